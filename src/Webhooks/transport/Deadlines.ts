import { Clock, Duration, Effect, type Scope } from "effect"

/** An operation with a deadline. */
export interface Timed {
  /** Unix milliseconds. */
  readonly until: number
  readonly expire: () => void
}

/**
 * One time limit for many concurrent operations. They expire in the order in which they began, so one fiber sleeps for
 * all of them: a timer for each would cost as much as the request that it limits.
 */
export class Deadlines {
  readonly #underWay = new Set<Timed>()
  readonly #millis: number

  private constructor(millis: number) {
    this.#millis = millis
  }

  static readonly make = (limit: Duration.DurationInput): Effect.Effect<Deadlines, never, Scope.Scope> =>
    Effect.gen(function* () {
      const deadlines = new Deadlines(Duration.toMillis(limit))
      yield* Effect.forkScoped(deadlines.#watch)
      return deadlines
    })

  /** Starts an operation at `startedAt`, Unix milliseconds, not before that of the last one. Its caller calls `end`. */
  begin(startedAt: number, expire: () => void): Timed {
    const timed = { until: startedAt + this.#millis, expire }
    this.#underWay.add(timed)
    return timed
  }

  end(timed: Timed): void {
    this.#underWay.delete(timed)
  }

  // Sleeps at most for the limit: an operation that begins meanwhile cannot expire before the fiber wakes.
  readonly #watch = Effect.gen(this, function* () {
    while (true) {
      const now = yield* Clock.currentTimeMillis
      const [first] = this.#underWay
      yield* Effect.sleep(first === undefined ? this.#millis : Math.min(Math.max(0, first.until - now), this.#millis))
      const then = yield* Clock.currentTimeMillis
      for (const timed of this.#underWay) {
        // A deadline later than a full limit from now was set before the clock was set back: it expires, too.
        if (timed.until > then && timed.until <= then + this.#millis) break
        this.#underWay.delete(timed)
        timed.expire()
      }
    }
  })
}
