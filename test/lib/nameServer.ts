import { createSocket } from "node:dgram"
import { Effect, Queue } from "effect"

/** A name server's response about a name: addresses in bytes by record type, a response code, or nothing. */
export type Records = (name: string, type: "A" | "AAAA") => ReadonlyArray<ReadonlyArray<number>> | number | undefined

const codes = { A: 1, AAAA: 28 } as const

/** RFC 1035, section 4: the header, the question as it came, and the answers, whose name is that of the question. */
const reply = (
  request: Buffer,
  endOfQuestion: number,
  type: number,
  answer: ReadonlyArray<ReadonlyArray<number>> | number
) => {
  const [code, addresses] = typeof answer === "number" ? [answer, []] : [0, answer]
  const header = Buffer.from([...request.subarray(0, 2), 0x81, 0x80 | code, 0, 1, 0, addresses.length, 0, 0, 0, 0])
  const records = addresses.map((bytes) =>
    Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 60, 0, bytes.length, ...bytes])
  )
  return Buffer.concat([header, request.subarray(12, endOfQuestion), ...records])
}

/** A name server on this machine, until the scope ends. */
export const startNameServer = (records: Records) =>
  Effect.gen(function* () {
    const asked = yield* Queue.unbounded<string>()
    const socket = yield* Effect.acquireRelease(
      Effect.async<ReturnType<typeof createSocket>>((resume) => {
        const made = createSocket("udp4")
        made.bind(0, "127.0.0.1", () => resume(Effect.succeed(made)))
      }),
      (made) => Effect.sync(() => made.close())
    )
    socket.on("message", (request, { address, port }) => {
      const labels: Array<string> = []
      let at = 12
      for (let length = request[at] ?? 0; length > 0; length = request[at] ?? 0) {
        labels.push(request.toString("latin1", at + 1, at + 1 + length))
        at += 1 + length
      }
      const code = request.readUInt16BE(at + 1)
      const name = labels.join(".")
      asked.unsafeOffer(name)
      const answer = records(name, code === codes.AAAA ? "AAAA" : "A")
      if (answer !== undefined) socket.send(reply(request, at + 5, code, answer), port, address)
    })
    return { server: `127.0.0.1:${socket.address().port}`, asked }
  })
