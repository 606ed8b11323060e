import { Effect } from "effect"
import { createsOf } from "./create.ts"
import { createKey, install, localChain, startDaemon, temporaryFolder } from "./daemon.ts"
import { count, type Figure, percent } from "./Figure.ts"
import { profiled, timesIn } from "./profile.ts"
import { runLoad } from "./runLoad.ts"

const connections = 64
const creates = 20_000
const warmUp = 4_000

/**
 * The parts of a create, each with the largest share of it, as a profile shows it. A new step is in one of them. The
 * floor of `create` holds the whole beside a bare server; a share differs less than such a ratio between processors.
 */
const ceilings = {
  "node:http, sockets": 0.17,
  "checks and replies, Http/": 0.065,
  "keys and limits, Auth/": 0.02,
  "JSON and schemas": 0.05,
  "payment and event, other rooms": 0.135,
  "SQLite, Sql/": 0.38,
  "Effect's fibers": 0.205,
  "the rest of Node": 0.1,
  "garbage collection": 0.25
} as const

type Part = keyof typeof ceilings | "idle"

const partOf = (name: string, file: string): Part => {
  if (name === "(idle)") return "idle"
  if (name === "(garbage collector)") return "garbage collection"
  if (/better-sqlite3|\/src\/Sql/.test(file) || ["run", "get", "all"].includes(name)) {
    return "SQLite, Sql/"
  }
  if (/node_modules\/effect\/.*\/(Schema|SchemaAST|ParseResult)/.test(file) || /\/src\/Domain\/Json/.test(file)) {
    return "JSON and schemas"
  }
  if (/node_modules\/(effect|@effect)\//.test(file)) return "Effect's fibers"
  if (/\/src\/(Http|Server)/.test(file)) return "checks and replies, Http/"
  if (/\/src\/Auth/.test(file)) return "keys and limits, Auth/"
  if (/\/src\//.test(file)) return "payment and event, other rooms"
  return /node:(_http|net|stream|internal\/(streams|stream_base|http|net|timers))|^$/.test(file)
    ? "node:http, sockets"
    : "the rest of Node"
}

const now = Effect.sync(() => Number(process.hrtime.bigint() / 1000n))

/** What each part of a create takes of the main thread. */
export const steps = Effect.gen(function* () {
  const folder = yield* temporaryFolder
  const installation = yield* install(yield* localChain)
  const apiKey = yield* Effect.scoped(Effect.zipRight(startDaemon(installation), createKey(installation)))
  const during = yield* Effect.scoped(
    Effect.gen(function* () {
      const { said: port } = yield* startDaemon(installation, {}, profiled(folder))
      yield* runLoad(folder, port, connections, { apiKey, requests: createsOf("warm", warmUp) })
      const from = yield* now
      yield* runLoad(folder, port, connections, { apiKey, requests: createsOf("measured", creates) })
      return [from, yield* now] as const
    })
  )
  const spent = timesIn(folder, during, partOf)
  spent.delete("idle")
  const whole = Array.from(spent.values()).reduce((all, micros) => all + micros, 0)
  const micros = (value: number) => `${(value / creates).toFixed(1)} µs`
  const figures: ReadonlyArray<Figure> = Object.entries(ceilings).map(([what, atMost]) => {
    const took = spent.get(what as Part) ?? 0
    return { what, measured: micros(took), judged: took / whole, floor: { atMost }, written: percent }
  })
  return [
    ...figures,
    {
      what: "a create",
      measured: `${micros(whole)} over ${count(creates)}, as a profile has it`,
      judged: 1,
      written: percent
    }
  ]
}).pipe(Effect.scoped)
