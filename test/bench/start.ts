import { join } from "node:path"
import { HttpClient } from "@effect/platform"
import { Effect, Schedule } from "effect"
import { type Installation, install, localChain, startDaemon } from "./daemon.ts"
import { type Figure, mebibytes, median, seconds, times } from "./Figure.ts"
import { memoryOf } from "./memory.ts"
import { start as startNode } from "./processes.ts"

const starts = 15

/** Resident memory once it has changed by less than a MiB for three seconds, or half a minute has gone by. */
const settled = (pid: number) =>
  Effect.gen(function* () {
    let before = memoryOf(pid, "now")
    yield* Effect.sleep("3 seconds").pipe(
      Effect.map(() => {
        const now = memoryOf(pid, "now")
        const isSteady = Math.abs(now - before) < 1
        before = now
        return isSteady
      }),
      Effect.repeat({ until: (isSteady) => isSteady, schedule: Schedule.recurs(9) })
    )
    return before
  })

/** Until every chain and worker is ready. */
const untilReady = (port: number) =>
  Effect.repeat(
    Effect.flatMap(HttpClient.HttpClient, (client) => client.get(`http://127.0.0.1:${port}/readyz`)).pipe(
      Effect.map(({ status }) => status),
      Effect.scoped
    ),
    { until: (status) => status === 200, schedule: Schedule.spaced("10 millis") }
  )

/** One start: seconds to its listening, and to its being ready. */
const startOnce = (installation: Installation, env: Readonly<Record<string, string>>) =>
  Effect.gen(function* () {
    const begun = performance.now()
    const { millis, said } = yield* startDaemon(installation, env)
    yield* untilReady(said)
    return { listening: millis / 1000, ready: (performance.now() - begun) / 1000 }
  }).pipe(Effect.scoped)

const said = (line: string) => line

/** Seconds in which a program of Node says its first line. */
const firstLine = (args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}) =>
  Effect.map(Effect.scoped(startNode(args, said, env)), ({ millis }) => millis / 1000)

/** How long Node takes that loads the largest packages of the daemon, unbundled, and does nothing with them. */
const bareNode = firstLine([
  "--input-type=module",
  "--eval",
  'import "effect"; import "undici"; import "better-sqlite3"; console.log(0)'
])

/** One after the other, over and over: what slows the machine for a while slows both. */
const besideBare = <Took, Error, Services>(once: Effect.Effect<Took, Error, Services>) =>
  Effect.replicateEffect(Effect.all({ bare: bareNode, took: once }), starts, { concurrency: 1 })

/** Times beside that, each beside the one that was taken with it. */
const timed = (pairs: ReadonlyArray<{ readonly bare: number; readonly took: number }>) => {
  const all = pairs.map(({ took }) => took)
  return {
    measured: `${seconds(median(all))}, from ${seconds(Math.min(...all))} to ${seconds(Math.max(...all))}`,
    beside: `${seconds(median(pairs.map(({ bare }) => bare)))} of Node that loads effect, undici and better-sqlite3`,
    judged: median(pairs.map(({ bare, took }) => took / bare)),
    written: times
  }
}

/** Starts over and over on a database that is there, and then stays up for its memory to settle. */
const measure = (installation: Installation, what: string, env: Readonly<Record<string, string>>) =>
  Effect.gen(function* () {
    const pairs = yield* besideBare(startOnce(installation, env))
    const memory = yield* Effect.scoped(Effect.flatMap(startDaemon(installation, env), ({ pid }) => settled(pid)))
    const figures: ReadonlyArray<Figure> = [
      {
        what: `start to listening, ${what}`,
        ...timed(pairs.map(({ bare, took }) => ({ bare, took: took.listening }))),
        floor: { atMost: 1.35 },
        goal: { atMost: 0.8 }
      },
      {
        what: `start to ready, ${what}`,
        ...timed(pairs.map(({ bare, took }) => ({ bare, took: took.ready }))),
        floor: { atMost: 2 },
        goal: { atMost: 1.1 }
      },
      {
        what: `resident memory idle, ${what}`,
        measured: "of the whole process, watching a chain",
        judged: memory,
        floor: { atMost: 120 },
        goal: { atMost: 95 },
        written: mebibytes
      }
    ]
    return figures
  })

/** Commands: one that asks a daemon, and the one that does nothing. */
const commands = (installation: Installation) =>
  Effect.gen(function* () {
    const { config, env } = installation
    const version = yield* besideBare(firstLine(["dist/tilld.js", "--version"]))
    const list = besideBare(firstLine(["dist/tilld.js", "keys", "list", "--config", config], env))
    const listed = yield* Effect.scoped(Effect.zipRight(startDaemon(installation), list))
    const figures: ReadonlyArray<Figure> = [
      { what: "tilld --version", ...timed(version), floor: { atMost: 0.12 } },
      { what: "tilld keys list, from a daemon", ...timed(listed), floor: { atMost: 1.1 }, goal: { atMost: 0.4 } }
    ]
    return figures
  })

/** From the start of the process to its listening, and its memory then, with and without a cache of compiled code. */
export const start = Effect.gen(function* () {
  const installation = yield* install(yield* localChain)
  const cache = { NODE_COMPILE_CACHE: join(installation.folder, "cache") }
  // Makes the database, and the cache where Node has one (from version 22 on).
  yield* Effect.scoped(startDaemon(installation, cache))
  const plain = yield* measure(installation, "no cache", {})
  return [...plain, ...(yield* measure(installation, "compile cache", cache)), ...(yield* commands(installation))]
}).pipe(Effect.scoped)
