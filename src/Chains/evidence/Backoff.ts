import { BoundedMap } from "../../lib/BoundedMap.ts"

/** Times are Unix milliseconds. */
interface Wait {
  readonly times: number
  readonly since: number
  readonly until: number
}

/**
 * Exponential backoff of the questions that providers have left open: the wait doubles each time, so that a question
 * that no provider can settle costs little and delays nothing else. In memory: a restart asks everything at once, as is
 * a question evicted by `capacity` others. A clock that was set back ends a wait.
 */
export class Backoff<Question> {
  readonly #waits: BoundedMap<Question, Wait>

  /**
   * @param first the first wait, milliseconds
   * @param longest milliseconds
   */
  constructor(
    readonly first: number,
    readonly longest: number,
    capacity = 10_000
  ) {
    this.#waits = new BoundedMap(capacity)
  }

  /** Whether it was asked and left open. */
  has(question: Question): boolean {
    return this.#waits.has(question)
  }

  isDue(question: Question, now: number): boolean {
    const wait = this.#waits.get(question)
    return wait === undefined || now < wait.since || now >= wait.until
  }

  /** The questions that are not due. */
  waiting(now: number): ReadonlyArray<Question> {
    return [...this.#waits.keys()].filter((question) => !this.isDue(question, now))
  }

  /** It was asked: the next wait is twice as long as the last one. */
  lengthen(question: Question, now: number): void {
    const times = this.#waits.get(question)?.times ?? 0
    const wait = Math.min(this.first * 2 ** times, Math.max(this.first, this.longest))
    this.#waits.set(question, { times: times + 1, since: now, until: now + wait })
  }

  /** This time the wait is the first one again. */
  shorten(question: Question): void {
    const wait = this.#waits.get(question)
    if (wait !== undefined) this.#waits.set(question, { ...wait, until: wait.since + this.first })
  }

  /** Ends all waits: a provider is back, which may settle open questions. */
  endAll(): void {
    for (const [question, wait] of [...this.#waits]) this.#waits.set(question, { ...wait, until: wait.since })
  }

  /** It is settled. */
  forget(question: Question): void {
    this.#waits.delete(question)
  }
}
