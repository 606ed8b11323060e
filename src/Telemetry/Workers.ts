import { Clock, Context, Duration, Effect, Layer } from "effect"

/** Intervals that a tick may take, and what it may take however short they are: the store's busy time-out, and more. */
const missed = 3
const shortest = Duration.toMillis("20 seconds")

export interface WorkerHealth {
  readonly name: string
  /** No tick has been under way for more than three of the worker's intervals. */
  readonly ready: boolean
  readonly reason?: string
}

/** What is known of a worker. Times are those of the monotonic clock, in nanoseconds: the other one may be set. */
interface Known {
  readonly limit: bigint
  readonly begun: Set<{ readonly at: bigint }>
}

const healthOf = (name: string, { begun, limit }: Known, now: bigint): WorkerHealth => {
  // In the order in which they began.
  const [oldest] = begun
  const longest = oldest === undefined ? 0n : now - oldest.at
  return longest <= limit
    ? { name, ready: true }
    : { name, ready: false, reason: `a tick has not ended for ${longest / 1_000_000_000n} seconds` }
}

const makeWorkers = () => {
  const all = new Map<string, Known>()
  return {
    /**
     * Gives what each tick of a worker is run through: one that hangs makes the worker not ready, one that fails does not.
     * A tick of several loops may be under way at a time.
     *
     * @param interval how often the worker ticks, or, where it waits for work, what a tick may take a third of
     */
    worker: (name: string, interval: Duration.DurationInput) => {
      const millis = Math.max(missed * Duration.toMillis(interval), shortest)
      const known: Known = { limit: BigInt(millis) * 1_000_000n, begun: new Set() }
      all.set(name, known)
      return <A, E, R>(tick: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
        Effect.acquireUseRelease(
          Effect.map(Clock.currentTimeNanos, (at) => {
            const begun = { at }
            known.begun.add(begun)
            return begun
          }),
          () => tick,
          (begun) => Effect.sync(() => known.begun.delete(begun))
        )
    },
    /** Of every worker, in the order of their names. */
    health: Effect.map(
      Clock.currentTimeNanos,
      (now): ReadonlyArray<WorkerHealth> =>
        Array.from(all, ([name, known]) => healthOf(name, known, now)).sort((a, b) => (a.name < b.name ? -1 : 1))
    )
  }
}

/**
 * The workers of a daemon and whether each of them goes on. A watcher, whose ticks fail where a provider does, has more to
 * say and says it itself.
 */
export class Workers extends Context.Reference<Workers>()("tilld/Telemetry/Workers", {
  // For what runs without a daemon, whose workers nobody asks for.
  defaultValue: makeWorkers
}) {
  /** A daemon's own. */
  static readonly layer = Layer.sync(Workers, makeWorkers)
}
