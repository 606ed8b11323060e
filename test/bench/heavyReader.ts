import { monitorEventLoopDelay } from "node:perf_hooks"
import { Effect, Redacted, Schedule } from "effect"
import { getFullBlock } from "../../src/Chains/rpc/methods.ts"
import { Rpc } from "../../src/Chains/rpc/Rpc.ts"

// The daemon's client in a separate process, as bare as can be: what its event loop and its memory are like while it is
// answered with 20 MB. Says so for each kind of answer, alone and on five chains at once.

const [, , port = ""] = process.argv
const chains = 5
const rounds = 9
/** Milliseconds. */
const resolution = 1

/** The longest stall of the event loop in milliseconds, and the most resident memory in MiB, while something is done. */
const watched = <A>(work: Effect.Effect<A>) =>
  Effect.gen(function* () {
    const delay = monitorEventLoopDelay({ resolution })
    let most = process.memoryUsage.rss()
    const look = Effect.sync(() => {
      most = Math.max(most, process.memoryUsage.rss())
    })
    yield* Effect.forkScoped(Effect.repeat(look, Schedule.spaced("2 millis")))
    delay.enable()
    yield* work
    delay.disable()
    return { stall: Math.max(0, delay.max / 1e6 - resolution), memory: most / 2 ** 20 }
  }).pipe(Effect.scoped)

/** What one kind of answer does, on so many chains. */
export interface Heavy {
  readonly kind: "quiet" | "brackets" | "values"
  readonly count: number
  /** Milliseconds, the longest of each round but the first, in which connections are opened and code is compiled. */
  readonly stalls: ReadonlyArray<number>
  /** MiB more than before. */
  readonly memory: number
}

const main = Effect.gen(function* () {
  const rpc = yield* Rpc
  const measure = Effect.fn("bench.measure")(function* (kind: Heavy["kind"], count: number) {
    const clients = Array.from({ length: count }, () => rpc.client(Redacted.make(`http://127.0.0.1:${port}/${kind}`)))
    const ask = Effect.forEach(clients, (client) => Effect.exit(client.send([getFullBlock(1)])), {
      concurrency: "unbounded"
    })
    const before = process.memoryUsage.rss() / 2 ** 20
    const once = watched(ask)
    const found: Array<Effect.Effect.Success<typeof once>> = []
    for (let i = 0; i <= rounds; i++) {
      found.push(yield* once)
      yield* Effect.sleep("200 millis")
    }
    const stalls = found.slice(1).map(({ stall }) => stall)
    return { kind, count, stalls, memory: Math.max(...found.map(({ memory }) => memory)) - before } satisfies Heavy
  })
  const measured: Array<Heavy> = []
  for (const kind of ["quiet", "brackets", "values"] as const) {
    for (const count of [1, chains]) measured.push(yield* measure(kind, count))
  }
  console.log(JSON.stringify(measured))
})

await Effect.runPromise(main.pipe(Effect.provide(Rpc.layer)))
