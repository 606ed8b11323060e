import { connect } from "node:net"
import { Deferred, Effect, FiberId, Schedule } from "effect"
import { type Attack, manyAddresses, type Outcomes, type Sort, sorts } from "./Attack.ts"

// All hostile clients, in a separate process: node attackers.ts '{"port":…,"counts":{…}}'. Prints a line once
// every connection has been opened, and one once the server has ended the last of them: what each came to.
const { counts, port } = JSON.parse(process.argv[2] ?? "") as Attack

/** Where one machine has many addresses, each of them holds so many connections: fewer than are allowed. */
const perAddress = 200

const says = {
  silent: "",
  kept: "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n",
  slowHeaders: "POST /v1/payments HTTP/1.1\r\nhost: x\r\nx-slow: ",
  slowBodies:
    "POST /v1/payments HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 60000\r\n\r\n",
  oversized: `GET /v1/payments HTTP/1.1\r\nhost: x\r\nx-large: ${"x".repeat(256 * 1024)}`,
  greedy: ""
} as const

const outcomes = Object.fromEntries(sorts.map((sort) => [sort, {}])) as Record<Sort, Record<string, number>>

/** One connection. It sends a byte more each second where it is slow; `over` completes when it is closed. */
const attack = (sort: Sort, localAddress: string | undefined) =>
  Effect.async<{ readonly drip: () => void; readonly end: () => void; readonly over: Effect.Effect<void> }>(
    (resume) => {
      const socket = connect({ host: "127.0.0.1", port, ...(localAddress === undefined ? {} : { localAddress }) })
      let answers = ""
      socket.setEncoding("latin1").on("data", (text: string) => {
        answers += text.slice(0, 4096)
      })
      socket.on("error", () => undefined)
      const over = Deferred.unsafeMake<void>(FiberId.none)
      const opened = () =>
        resume(
          Effect.succeed({
            drip: () => void (socket.writable && sort.startsWith("slow") && socket.write("x")),
            end: () => void socket.destroy(),
            over: Deferred.await(over)
          })
        )
      socket.once("connect", () => {
        socket.write(says[sort])
        opened()
      })
      socket.once("close", () => {
        const outcome = /^HTTP\/1.1 (\d+)/.exec(answers)?.[1] ?? "closed"
        outcomes[sort][outcome] = (outcomes[sort][outcome] ?? 0) + 1
        Deferred.unsafeDone(over, Effect.void)
        opened()
      })
    }
  )

const addressOf = (sort: Sort, index: number): string | undefined => {
  if (!manyAddresses) return undefined
  return sort === "greedy" ? "127.0.2.1" : `127.0.1.${1 + Math.floor(index / perAddress)}`
}

const main = Effect.gen(function* () {
  const everybody = sorts.flatMap((sort) => Array.from({ length: counts[sort] }, () => sort))
  const connections = yield* Effect.forEach(
    everybody,
    (sort, i) => Effect.map(attack(sort, addressOf(sort, i)), (one) => ({ sort, ...one })),
    { concurrency: 100 }
  )
  process.stdout.write(`${JSON.stringify({ opened: connections.length })}\n`)
  const drip = Effect.sync(() => {
    for (const { drip } of connections) drip()
  })
  yield* Effect.fork(Effect.repeat(drip, Schedule.spaced("1 second")))
  const [kept, others] = [true, false].map((want) => connections.filter(({ sort }) => (sort === "kept") === want))
  yield* Effect.forEach(others ?? [], ({ over }) => over, { concurrency: "unbounded", discard: true })
  // The server would bear them for a minute.
  for (const { end } of kept ?? []) end()
  yield* Effect.forEach(kept ?? [], ({ over }) => over, { concurrency: "unbounded", discard: true })
  const said: { readonly outcomes: Outcomes } = { outcomes }
  process.stdout.write(`${JSON.stringify(said)}\n`)
})

await Effect.runPromise(Effect.scoped(main))
