import { Effect } from "effect"
import { addBacklog, identity, installWithEndpoints } from "./backlog.ts"
import { startDaemon } from "./daemon.ts"
import { count, type Figure, mebibytes, times } from "./Figure.ts"
import { memoryOf } from "./memory.ts"
import { startScript } from "./processes.ts"

const endpoints = 8
const latencyMillis = 25
/** It lasts about as long as the daemons are looked at. */
const few = 20_000

/** The most memory that a daemon takes in its first ten seconds of sending such a backlog. */
const measure = (backlog: number) =>
  Effect.gen(function* () {
    const { caFile, identityFile } = yield* identity
    const receivers = yield* startScript<ReadonlyArray<number>>("receivers.ts", [
      identityFile,
      ...[endpoints, latencyMillis, backlog].map(String)
    ])
    const { endpoints: targets, installation } = yield* installWithEndpoints(receivers.said, caFile)
    yield* Effect.sync(() => addBacklog(installation.database, targets, backlog))
    const { pid } = yield* startDaemon(installation)
    yield* Effect.sleep("10 seconds")
    return memoryOf(pid, "peak")
  }).pipe(Effect.scoped)

/** Whether a large backlog shows in the memory of the daemon that sends it. */
export const pending = (rows: number) =>
  Effect.gen(function* () {
    const small = yield* measure(few)
    const large = yield* measure(rows)
    const figure: Figure = {
      what: `memory, ${count(rows)} pending deliveries`,
      measured: mebibytes(large),
      beside: `${mebibytes(small)} with ${count(few)}, both while they are sent`,
      judged: large / small,
      floor: { atMost: 1.25 },
      written: times
    }
    return [figure]
  })
