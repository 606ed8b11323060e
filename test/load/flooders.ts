import { connect, type Socket } from "node:net"
import { Duration, Effect, Schedule } from "effect"
import { manyAddresses } from "./Attack.ts"
import { type Answers, clients, type FloodOrder, floodOf } from "./Flood.ts"

// The flooding clients, in a separate process: node flooders.ts '{"name":"idle","port":…}'. Prints a line once they have
// begun, and one when their time is over: the responses that they got.
const order = JSON.parse(process.argv[2] ?? "") as FloodOrder
const { pipelined = 1, says, next } = floodOf(order.name)
const answers: Record<string, number> = {}
const open = new Set<Socket>()
let isOver = false

const headEnd = "\r\n\r\n"

const count = (outcome: string) => {
  answers[outcome] = (answers[outcome] ?? 0) + 1
}

/** Counts answers in a stream of bytes, each by its Content-Length. Nothing is counted behind one that has none. */
const counter = (onAnswer: () => void) => {
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
      count(text.slice(9, 12))
      onAnswer()
    }
  }
}

const flood = (connection: number, text: Buffer) => {
  if (isOver) return
  const localAddress = manyAddresses ? `127.0.3.${1 + (connection % clients)}` : undefined
  const socket = connect({ host: "127.0.0.1", port: order.port, ...(localAddress && { localAddress }) })
  open.add(socket)
  const again = () => void (next === "ask" && socket.write(text))
  socket.on("connect", () => {
    if (next === "reset") socket.write(text, () => socket.resetAndDestroy())
    else for (let i = 0; i < pipelined; i++) socket.write(text)
  })
  socket.on("data", counter(again))
  socket.on("error", () => undefined)
  socket.on("close", () => {
    open.delete(socket)
    count("closed")
    setImmediate(flood, connection, text)
  })
}

for (let i = 0; i < order.connections; i++) flood(i, Buffer.from(says(order, i), "latin1"))
process.stdout.write(`${JSON.stringify({ opened: order.connections })}\n`)

const drip = Effect.sync(() => {
  for (const socket of open) if (socket.writable) socket.write("x")
})
const dripping = next === "drip" ? Effect.repeat(drip, Schedule.spaced("1 second")) : Effect.never
await Effect.runPromise(Effect.timeoutOption(dripping, Duration.seconds(order.seconds)))
isOver = true
for (const socket of open) socket.destroy()
const said: { readonly answers: Answers } = { answers }
process.stdout.write(`${JSON.stringify(said)}\n`)
