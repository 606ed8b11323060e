import { EventEmitter } from "node:events"
import { MessageChannel, receiveMessageOnPort, Worker } from "node:worker_threads"
import type pg from "pg"

/** A thread that asks PostgreSQL, while this one sleeps. */
const start = () => {
  const { port1, port2 } = new MessageChannel()
  const flag = new Int32Array(new SharedArrayBuffer(4))
  const workerData = { flag, port: port2 }
  const worker = new Worker(new URL("./postgresWorker.mjs", import.meta.url), { workerData, transferList: [port2] })
  worker.unref()
  port1.unref()
  return (asked: object) => {
    Atomics.store(flag, 0, 0)
    port1.postMessage(asked)
    // The notice of the answer before may come only now.
    while (Atomics.load(flag, 0) === 0) {
      if (Atomics.wait(flag, 0, 0, 120_000) === "timed-out") throw new Error("PostgreSQL does not answer")
    }
    const { cause, result } = receiveMessageOnPort(port1)?.message ?? {}
    if (cause !== undefined) {
      const { config } = asked as { config?: { text?: string } }
      throw Object.assign(new Error(), cause, { message: `${cause.message}: ${config?.text ?? ""}` })
    }
    return result
  }
}

let ask: ReturnType<typeof start> | undefined
let clients = 0

/**
 * A client that answers before it returns, as SQLite does: so that suites by the test clock, which know of no waiting for a
 * store, run on PostgreSQL too. What waits is tested in test/Sql/postgres.
 */
export class SyncClient extends EventEmitter {
  readonly #types: pg.CustomTypesConfig
  readonly #client = ++clients

  constructor({ types, ...config }: pg.ClientConfig) {
    super()
    this.#types = types as pg.CustomTypesConfig
    this.#config = config
  }
  readonly #config: pg.ClientConfig

  #ask(does: string, config: object = {}) {
    ask ??= start()
    return ask({ client: this.#client, does, config })
  }

  async connect() {
    this.#ask("connect", this.#config)
  }

  query(asked: string | pg.QueryConfig, callback?: (cause: Error | null, result?: unknown) => void) {
    try {
      const { command, fields, rowCount, rows } = this.#ask(
        "query",
        typeof asked === "string" ? { text: asked } : asked
      )
      const parsers = fields.map(({ dataTypeID }: pg.FieldDef) => this.#types.getTypeParser(dataTypeID, "text"))
      const named = rows.map((row: ReadonlyArray<string | null>) =>
        Object.fromEntries(row.map((text, i) => [fields[i].name, text === null ? null : parsers[i](text)]))
      )
      // Nothing may depend on the order of rows that no statement asks for: SQLite has that of an index.
      if (typeof asked !== "string" && !/ORDER BY/.test(asked.text ?? "")) named.reverse()
      callback?.(null, { command, fields, rowCount, rows: named })
    } catch (cause) {
      if (callback === undefined) throw cause
      callback(cause as Error)
    }
  }

  end(done?: () => void) {
    this.#ask("end")
    done?.()
  }
}
