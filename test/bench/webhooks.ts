import { Effect } from "effect"
import { addBacklog, concurrency, eventBytes, identity, installWithEndpoints } from "./backlog.ts"
import { startDaemon } from "./daemon.ts"
import { count, type Figure, percent, perSecond } from "./Figure.ts"
import { startScript } from "./processes.ts"

const endpoints = 8
const latencyMillis = 25
const backlog = 20_000

interface Conclusion {
  /** Events that arrived, each counted once. */
  readonly different: number
  readonly perSecond: number
}

/** Receivers that expect the whole backlog: their ports, and what they say when they have had it. */
const startReceivers = (identityFile: string) =>
  Effect.map(
    startScript<ReadonlyArray<number>>("receivers.ts", [
      identityFile,
      ...[endpoints, latencyMillis, backlog].map(String)
    ]),
    ({ ended, said }) => ({
      ports: said,
      conclusion: Effect.map(ended, (output): Conclusion => JSON.parse(output.trim().split("\n").at(-1) ?? ""))
    })
  )

const drain = (files: Effect.Effect.Success<typeof identity>) =>
  Effect.gen(function* () {
    const receivers = yield* startReceivers(files.identityFile)
    const { endpoints, installation } = yield* installWithEndpoints(receivers.ports, files.caFile)
    yield* Effect.sync(() => addBacklog(installation.database, endpoints, backlog))
    yield* startDaemon(installation)
    return yield* receivers.conclusion
  }).pipe(Effect.scoped)

const bareLoop = (files: Effect.Effect.Success<typeof identity>) =>
  Effect.gen(function* () {
    const receivers = yield* startReceivers(files.identityFile)
    yield* startScript("sender.ts", [
      files.caFile,
      receivers.ports.join(","),
      ...[concurrency, backlog, eventBytes].map(String)
    ])
    return yield* receivers.conclusion
  }).pipe(Effect.scoped)

/** How fast a backlog goes out to receivers that take a moment each, beside what so many at once can do at best. */
export const webhooks = Effect.gen(function* () {
  const files = yield* identity
  const { different, perSecond: rate } = yield* drain(files)
  const bare = yield* bareLoop(files)
  const best = (concurrency / latencyMillis) * 1000

  const figures: ReadonlyArray<Figure> = [
    {
      what: `webhook drain, ${endpoints} endpoints`,
      measured: `${perSecond(rate)} of a backlog of ${count(backlog)}, receivers at ${latencyMillis} ms`,
      beside: `${perSecond(best)} by Little's law at ${concurrency} at once`,
      judged: rate / best,
      goal: { atLeast: 0.95 },
      written: percent
    },
    {
      what: "the same, beside a bare loop",
      measured: perSecond(rate),
      beside: `${perSecond(bare.perSecond)} of the same HTTP client, with nothing stored and nothing signed`,
      judged: rate / bare.perSecond,
      // By Little's law alone the processor would be judged: it keeps the bare loop from it too.
      floor: { atLeast: 0.75 },
      written: percent
    },
    {
      what: "deliveries lost",
      measured: `${count(different)} events arrived`,
      judged: backlog - different,
      floor: { atMost: 0 },
      written: count
    }
  ]
  return figures
}).pipe(Effect.scoped)
