import { join } from "node:path"
import { HttpClient } from "@effect/platform"
import { Effect, Schedule } from "effect"
import { type Installation, install, localChain, startDaemon } from "./daemon.ts"
import { type Figure, mebibytes, median, seconds } from "./Figure.ts"
import { memoryOf } from "./memory.ts"

const starts = 7

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

/** Starts over and over on a database that is there, and then stays up for its memory to settle. */
const measure = (installation: Installation, what: string, env: Readonly<Record<string, string>>) =>
  Effect.gen(function* () {
    const all = yield* Effect.replicateEffect(startOnce(installation, env), starts, { concurrency: 1 })
    const times = all.map(({ listening }) => listening)
    const readyTimes = all.map(({ ready }) => ready)
    const memory = yield* Effect.scoped(Effect.flatMap(startDaemon(installation, env), ({ pid }) => settled(pid)))
    const figures: ReadonlyArray<Figure> = [
      {
        what: `start to listening, ${what}`,
        measured: `median of ${starts}, from ${seconds(Math.min(...times))} to ${seconds(Math.max(...times))}`,
        judged: median(times),
        floor: { atMost: 0.4 },
        goal: { atMost: 0.15 },
        written: seconds
      },
      {
        what: `start to ready, ${what}`,
        measured: `median of ${starts}, from ${seconds(Math.min(...readyTimes))} to ${seconds(Math.max(...readyTimes))}`,
        judged: median(readyTimes),
        floor: { atMost: 0.5 },
        goal: { atMost: 0.35 },
        written: seconds
      },
      {
        what: `resident memory idle, ${what}`,
        measured: "of the whole process, watching a chain",
        judged: memory,
        floor: { atMost: 120 },
        goal: { atMost: 80 },
        written: mebibytes
      }
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
  return [...plain, ...(yield* measure(installation, "compile cache", cache))]
}).pipe(Effect.scoped)
