import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { createsOf } from "./create.ts"
import { createKey, install, localChain, startDaemon, temporaryFolder } from "./daemon.ts"
import { count, type Figure, times } from "./Figure.ts"
import { startScript } from "./processes.ts"
import { profiled, timesIn } from "./profile.ts"
import { runLoad } from "./runLoad.ts"

const connections = 64
const creates = 20_000
const warmUp = 4_000

/**
 * The parts of a create, each with the most that it may take in the time of a whole create of the bare server, as two
 * profiles of one run show it. What a new step costs is in one of them.
 */
const ceilings = {
  "node:http, sockets": 0.8,
  "checks and replies, Http/": 0.28,
  "keys and limits, Auth/": 0.08,
  "JSON and schemas": 0.2,
  "payment and event, other rooms": 0.52,
  "SQLite, Sql/": 1.35,
  "Effect's fibers": 0.82,
  "the rest of Node": 0.4,
  "garbage collection": 1.1
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

/** Microseconds of each part, for each create. */
const measured = <E, R>(
  folder: string,
  serve: Effect.Effect<{ readonly port: number; readonly apiKey: string }, E, R>
) =>
  Effect.gen(function* () {
    const during = yield* Effect.scoped(
      Effect.gen(function* () {
        const { apiKey, port } = yield* serve
        yield* runLoad(folder, port, connections, { apiKey, requests: createsOf("warm", warmUp) })
        const from = yield* now
        yield* runLoad(folder, port, connections, { apiKey, requests: createsOf("measured", creates) })
        return [from, yield* now] as const
      })
    )
    const spent = timesIn(folder, during, partOf)
    return new Map(Array.from(spent, ([part, micros]) => [part, micros / creates]))
  })

const sum = (parts: ReadonlyMap<Part, number>) =>
  [...parts].reduce((all, [part, micros]) => (part === "idle" ? all : all + micros), 0)

/** What each part of a create takes of the main thread, beside a whole create of the bare server. */
export const steps = Effect.gen(function* () {
  const folder = yield* temporaryFolder
  const inFolder = (name: string) => {
    const path = join(folder, name)
    mkdirSync(path)
    return path
  }
  const [ours, before, after] = [inFolder("ours"), inFolder("before"), inFolder("after")]
  const bareIn = (own: string) =>
    Effect.map(
      measured(
        own,
        Effect.map(
          startScript<{ port: number }>("reference.ts", [join(own, "bare.db")], profiled(own)),
          ({ said }) => ({
            apiKey: "",
            port: said.port
          })
        )
      ),
      sum
    )
  const installation = yield* install(yield* localChain)
  const apiKey = yield* Effect.scoped(Effect.zipRight(startDaemon(installation), createKey(installation)))
  // Before and after: a machine that becomes slower meanwhile is not a slower daemon.
  const bareBefore = yield* bareIn(before)
  const parts = yield* measured(
    ours,
    Effect.map(startDaemon(installation, {}, profiled(ours)), ({ said }) => ({ apiKey, port: said }))
  )
  const bare = (bareBefore + (yield* bareIn(after))) / 2
  const micros = (value: number) => `${value.toFixed(1)} µs`
  const figures: ReadonlyArray<Figure> = Object.entries(ceilings).map(([what, atMost]) => {
    const took = parts.get(what as Part) ?? 0
    return { what, measured: micros(took), judged: took / bare, floor: { atMost }, written: times }
  })
  return [
    ...figures,
    {
      what: "a create",
      measured: `${micros(sum(parts))} over ${count(creates)}, as a profile has it`,
      beside: `${micros(bare)} of the bare server`,
      judged: sum(parts) / bare,
      written: times
    }
  ]
}).pipe(Effect.scoped)
