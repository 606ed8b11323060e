import { Clock, Context, Duration, Effect, Layer } from "effect"

/** A tick may take this many intervals, but at least `shortestLimit`, which is longer than the store's busy time-out. */
const intervalsPerTick = 3
const shortestLimit = Duration.toMillis("20 seconds")

export interface WorkerHealth {
  readonly name: string
  /** No tick has been under way for more than three of the worker's intervals. */
  readonly ready: boolean
  readonly reason?: string
}

/** The ticks of a worker that are under way. Times of the monotonic clock in nanoseconds: the wall clock may be set. */
interface WorkerState {
  readonly limit: bigint
  readonly begun: Set<{ readonly at: bigint }>
}

const healthOf = (name: string, { begun, limit }: WorkerState, now: bigint): WorkerHealth => {
  // Oldest first.
  const [oldest] = begun
  const longest = oldest === undefined ? 0n : now - oldest.at
  return longest <= limit
    ? { name, ready: true }
    : { name, ready: false, reason: `a tick has not ended for ${longest / 1_000_000_000n} seconds` }
}

const makeWorkers = () => {
  const all = new Map<string, WorkerState>()
  const conditions = new Map<string, () => string | undefined>()
  const remarks = new Map<string, () => string | undefined>()
  return {
    /**
     * Registers something else that the daemon needs: `reason` says why it is not ready, undefined when it is. One with
     * the name of a worker is part of that worker's health.
     */
    condition: (name: string, reason: () => string | undefined): void => void conditions.set(name, reason),
    /** Registers a warning about a worker that is ready nevertheless; undefined without one. */
    remark: (name: string, reason: () => string | undefined): void => void remarks.set(name, reason),
    /**
     * Registers a worker and returns a wrapper for its ticks. A tick that hangs makes the worker not ready; one that
     * fails does not. A worker with several loops may have several ticks under way.
     *
     * @param interval how often the worker ticks; a tick that takes longer than three intervals counts as hanging
     */
    worker: (name: string, interval: Duration.DurationInput) => {
      const millis = Math.max(intervalsPerTick * Duration.toMillis(interval), shortestLimit)
      const state: WorkerState = { limit: BigInt(millis) * 1_000_000n, begun: new Set() }
      all.set(name, state)
      return <A, E, R>(tick: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
        Effect.acquireUseRelease(
          Effect.map(Clock.currentTimeNanos, (at) => {
            const begun = { at }
            state.begun.add(begun)
            return begun
          }),
          () => tick,
          (begun) => Effect.sync(() => state.begun.delete(begun))
        )
    },
    /** The health of every worker and condition, sorted by name. */
    health: Effect.map(Clock.currentTimeNanos, (now): ReadonlyArray<WorkerHealth> => {
      const found = new Map(Array.from(all, ([name, state]) => [name, healthOf(name, state, now)]))
      for (const [name, reasonOf] of conditions) {
        const reason = reasonOf()
        if (found.get(name)?.ready === false) continue
        found.set(name, reason === undefined ? { name, ready: true } : { name, ready: false, reason })
      }
      for (const [name, reasonOf] of remarks) {
        const reason = reasonOf()
        if (reason !== undefined && found.get(name)?.ready !== false) found.set(name, { name, ready: true, reason })
      }
      return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
    })
  }
}

/**
 * The health of the daemon's workers, for /readyz: whether each one's ticks end in time, and of the store. Chain watchers are not among
 * them: they report their own health, with their providers.
 */
export class Workers extends Context.Reference<Workers>()("tilld/Telemetry/Workers", {
  // For commands without a daemon, whose workers' health is not read.
  defaultValue: makeWorkers
}) {
  /** The daemon's. */
  static readonly layer = Layer.sync(Workers, makeWorkers)
}
