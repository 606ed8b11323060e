import { Clock, Duration, Effect, type Scheduler } from "effect"

interface Timer {
  readonly at: number
  readonly fire: () => void
}

/** More than this without any time is a loop that never waits. */
const mostTasks = 20_000

const eventLoopTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/**
 * The clock and the scheduler of one life of the daemon. Fibers run one at a time, in a fixed order, and time moves when
 * nothing is left to run: a seed does the same each time. `TestClock` waits some milliseconds of real time at each step
 * for other fibers to come to rest; here nothing else is running.
 *
 * Only the writer's turns of the event loop happen outside of it, and what `isBusy` reports, so that one turn with
 * nothing to run afterwards means rest.
 */
export class VirtualTime {
  #now: number
  readonly #isBusy: () => boolean
  readonly #tasks: Array<() => void> = []
  #timers: Array<Timer> = []
  #stopped = false

  /** By how many milliseconds the system's clock is ahead. Timers still run correctly. */
  skew = 0

  /** `isBusy`: something outside is under way, which takes no time and will end by itself. */
  constructor(now: number, isBusy: () => boolean = () => false) {
    this.#now = now
    this.#isBusy = isBusy
  }

  /** Unix milliseconds, by a clock that is right. */
  get now(): number {
    return this.#now
  }

  readonly scheduler: Scheduler.Scheduler = {
    shouldYield: (fiber) => (fiber.currentOpCount > 2048 ? 0 : false),
    scheduleTask: (task) => void this.#tasks.push(task)
  }

  readonly clock: Clock.Clock = {
    [Clock.ClockTypeId]: Clock.ClockTypeId,
    unsafeCurrentTimeMillis: () => this.#now + this.skew,
    // As in Node: monotonic, and set by no one.
    unsafeCurrentTimeNanos: () => BigInt(this.#now) * 1_000_000n,
    currentTimeMillis: Effect.sync(() => this.#now + this.skew),
    currentTimeNanos: Effect.sync(() => BigInt(this.#now) * 1_000_000n),
    sleep: (duration) =>
      Effect.async<void>((resume) => {
        const timer = { at: this.#now + Math.ceil(Duration.toMillis(duration)), fire: () => resume(Effect.void) }
        this.#insert(timer)
        return Effect.sync(() => {
          this.#timers = this.#timers.filter((other) => other !== timer)
        })
      })
  }

  // Those of one moment fire in the order in which they were set.
  #insert(timer: Timer): void {
    const at = this.#timers.findLastIndex((other) => other.at <= timer.at)
    this.#timers.splice(at + 1, 0, timer)
  }

  /** Runs nothing more, from this very task on. */
  stop(): void {
    this.#stopped = true
  }

  /** Runs on after a stop. */
  resume(): void {
    this.#stopped = false
  }

  get stopped(): boolean {
    return this.#stopped
  }

  /** Runs until everyone waits for the clock. */
  async rest(): Promise<void> {
    let run = 0
    do {
      for (; this.#tasks.length > 0 && !this.#stopped; run++) {
        this.#tasks.shift()?.()
        if (run > mostTasks) throw new Error("somebody goes round and round, and time does not pass")
      }
      await eventLoopTurn()
    } while ((this.#tasks.length > 0 || this.#isBusy()) && !this.#stopped)
  }

  /** When someone who waits goes on next, Unix milliseconds; undefined where no one waits. */
  get nextAt(): number | undefined {
    return this.#timers[0]?.at
  }

  /** Lets time pass up to `until` (Unix milliseconds), or to the end of everything. */
  async passTo(until: number): Promise<void> {
    await this.rest()
    while (!this.#stopped) {
      const [first] = this.#timers
      if (first === undefined || first.at > until) break
      this.#now = Math.max(this.#now, first.at)
      const due = this.#timers.findIndex((timer) => timer.at > first.at)
      for (const timer of this.#timers.splice(0, due < 0 ? this.#timers.length : due)) timer.fire()
      await this.rest()
    }
    if (!this.#stopped) this.#now = Math.max(this.#now, until)
  }
}
