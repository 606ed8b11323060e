// Talks to PostgreSQL for syncPostgres.ts, whose thread sleeps until the answer is there.
import { workerData } from "node:worker_threads"
import pg from "pg"

const { flag, port } = workerData
const asText = { getTypeParser: () => (text) => text }
const clients = new Map()

const carryOut = async ({ client, does, config }) => {
  if (does === "connect") {
    const opened = new pg.Client({ ...config, types: asText })
    // The server ends the connections of a database that is dropped.
    opened.on("error", () => {})
    await opened.connect()
    clients.set(client, opened)
    return undefined
  }
  if (does === "end") {
    // Not awaited: the server may have ended it, and then nothing more is heard of it.
    void clients
      .get(client)
      ?.end()
      .catch(() => {})
    clients.delete(client)
    return undefined
  }
  const { command, fields, rowCount, rows } = await clients.get(client).query({ ...config, rowMode: "array" })
  return { command, rowCount, rows, fields: fields.map(({ dataTypeID, name }) => ({ dataTypeID, name })) }
}

port.on("message", async (asked) => {
  try {
    port.postMessage({ result: await carryOut(asked) })
  } catch (cause) {
    port.postMessage({
      answers: asked.number,
      cause: { message: cause.message, code: cause.code, position: cause.position }
    })
  }
  Atomics.store(flag, 0, 1)
  Atomics.notify(flag, 0)
})
