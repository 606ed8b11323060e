import { connect, type Socket } from "node:net"
import { Duration, Effect, Schedule } from "effect"
import { type Answers, clients, type FloodName, type FloodOrder, floodOf, manyAddresses } from "./Flood.ts"

// The hostile clients, in a separate process: node flooders.ts '{"counts":{"idle":100},"port":…}'. Prints a line once they
// are there, and one when their time is over, or the server has ended the last of them: the responses that they got.
const order = JSON.parse(process.argv[2] ?? "") as FloodOrder
const answers: Partial<Record<FloodName, Record<string, number>>> = {}
const open = new Map<Socket, FloodName>()
let isOver = false

const headEnd = "\r\n\r\n"

const count = (name: FloodName, outcome: string) => {
  const counts = answers[name] ?? {}
  counts[outcome] = (counts[outcome] ?? 0) + 1
  answers[name] = counts
}

/** Finds answers in a stream of bytes, each by its Content-Length. None is found behind one that has none. */
const finder = (onAnswer: (status: string) => void) => {
  let head = ""
  let left = 0
  return (chunk: Buffer) => {
    let at = 0
    while (at < chunk.length) {
      const skipped = Math.min(left, chunk.length - at)
      left -= skipped
      at += skipped
      if (at === chunk.length) return
      const rest = chunk.subarray(at, at + 4096).toString("latin1")
      const end = (head + rest).indexOf(headEnd)
      if (end === -1) {
        head += rest
        at += rest.length
        continue
      }
      const text = (head + rest).slice(0, end)
      at += end + headEnd.length - head.length
      head = ""
      left = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? Number.POSITIVE_INFINITY)
      onAnswer(text.slice(9, 12))
    }
  }
}

/** Opens a connection; completes when it is there, or closed. */
const flood = (name: FloodName, connection: number): Effect.Effect<void> =>
  Effect.async((resume) => {
    const { from = `127.0.3.${1 + (connection % clients)}`, next, pipelined = 1, says } = floodOf(name)
    const text = Buffer.from(says(order, connection), "latin1")
    const socket = connect({ host: "127.0.0.1", port: order.port, ...(manyAddresses && { localAddress: from }) })
    open.set(socket, name)
    let isAnswered = false
    const answered = (status: string) => {
      isAnswered = true
      count(name, status)
      if (next === "ask") socket.write(text)
    }
    socket.on("connect", () => {
      if (next === "reset") socket.write(text, () => socket.resetAndDestroy())
      else for (let i = 0; i < pipelined; i++) socket.write(text)
      resume(Effect.void)
    })
    socket.on("data", finder(answered))
    socket.on("error", () => undefined)
    socket.on("close", () => {
      open.delete(socket)
      if (!isAnswered) count(name, "closed")
      resume(Effect.void)
      if (order.seconds !== undefined && !isOver) setImmediate(() => Effect.runFork(flood(name, connection)))
    })
  })

const drip = Effect.sync(() => {
  for (const [socket, name] of open) if (floodOf(name).next === "drip" && socket.writable) socket.write("x")
})

/** The server would bear those that are kept for a minute. */
const areEnded = Effect.repeat(
  Effect.sync(() => [...open.values()].every((name) => name === "kept")),
  { until: (ended) => ended, schedule: Schedule.spaced("50 millis") }
)

const main = Effect.gen(function* () {
  const names = Object.entries(order.counts) as ReadonlyArray<[FloodName, number]>
  const all = names.flatMap(([name, count]) => Array.from({ length: count }, () => name))
  yield* Effect.forEach(all, flood, { concurrency: 100, discard: true })
  process.stdout.write(`${JSON.stringify({ opened: all.length })}\n`)
  yield* Effect.fork(Effect.repeat(drip, Schedule.spaced("1 second")))
  yield* order.seconds === undefined ? areEnded : Effect.sleep(Duration.seconds(order.seconds))
  isOver = true
  for (const socket of open.keys()) socket.destroy()
  const said: { readonly answers: Answers } = { answers }
  process.stdout.write(`${JSON.stringify(said)}\n`)
})

await Effect.runPromise(main)
