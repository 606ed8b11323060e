import { type RateLimit, spend, type Usage, unused } from "../Auth/rateLimitWindows.ts"
import { BoundedMap } from "../Domain/BoundedMap.ts"

/** Forms of one person. Each may store rows that nothing deletes, if only in the audit log. */
const limits: RateLimit = { perMinute: 60, perHour: 600 }
/** More people than send forms within an hour. */
const mostPeople = 10_000

/** Counts the forms that people of accounts send. */
export class FormLimit {
  readonly #usages = new BoundedMap<string, Usage>(mostPeople)

  /** Counts a form at `now`. Where it is one too many: when the next is taken. Times in Unix milliseconds. */
  refusedUntil(person: string, now: number): number | undefined {
    const usage = this.#usages.get(person) ?? unused()
    this.#usages.set(person, usage)
    const { allowed, resetAt } = spend([{ of: "person", usage, limits }], now)
    return allowed ? undefined : resetAt
  }
}
