import { connect, type Socket } from "node:net"
import { Duration, Effect } from "effect"
import { manyAddresses } from "./Attack.ts"
import type { Answers, FloodOrder } from "./Flood.ts"

// Strangers that ask as fast as they are answered: node flooders.ts '{"port":…,"path":…}'. Prints a line once they have
// begun, and one when their time is over: what they were answered.
const order = JSON.parse(process.argv[2] ?? "") as FloodOrder
const { clients = 1, connections, headers = "", path, pipelined = 1, port, seconds } = order
const request = `GET ${path} HTTP/1.1\r\nhost: x\r\n${headers}\r\n`
const answers: Record<string, number> = {}
const open = new Set<Socket>()
let isOver = false

const headEnd = "\r\n\r\n"

/** Counts answers in a stream of bytes, each by its Content-Length. */
const counter = (onAnswer: (status: string) => void) => {
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
      left = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0)
      onAnswer(text.slice(9, 12))
    }
  }
}

const flood = (client: number) => {
  if (isOver) return
  const localAddress = manyAddresses ? `127.0.3.${1 + client}` : undefined
  const socket = connect({ host: "127.0.0.1", port, ...(localAddress === undefined ? {} : { localAddress }) })
  open.add(socket)
  const count = counter((status) => {
    answers[status] = (answers[status] ?? 0) + 1
    socket.write(request)
  })
  socket.on("connect", () => socket.write(request.repeat(pipelined)))
  socket.on("data", count)
  socket.on("error", () => undefined)
  socket.on("close", () => {
    open.delete(socket)
    setImmediate(flood, client)
  })
}

for (let i = 0; i < connections; i++) flood(i % clients)
process.stdout.write(`${JSON.stringify({ opened: connections })}\n`)
const end = Effect.sync(() => {
  isOver = true
  for (const socket of open) socket.destroy()
  const said: { readonly answers: Answers } = { answers }
  process.stdout.write(`${JSON.stringify(said)}\n`)
})
await Effect.runPromise(Effect.delay(end, Duration.seconds(seconds)))
