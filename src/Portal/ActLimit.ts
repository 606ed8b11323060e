import { allowanceOf, type RateLimit, spend, type Usage, unused } from "../Auth/rateLimitWindows.ts"
import type { AccountId } from "../Domain/Ids.ts"
import type { Person } from "../Domain/Person.ts"
import { BoundedMap } from "../lib/BoundedMap.ts"

/** More people or accounts than act within an hour. */
const capacity = 10_000

/** What a person may do in a time, and all people of an account together. Operators may do everything. */
interface Limits {
  readonly person: RateLimit
  readonly account: RateLimit
}

/**
 * Counts what people of accounts do that stores a row which nothing deletes, if only in the audit log. An account has the
 * limits of many people, so that a few keep nobody else of theirs out.
 */
export class ActLimit {
  readonly #limits: Limits
  readonly #usages = new BoundedMap<string, Usage>(capacity)

  constructor(limits: Limits) {
    this.#limits = limits
  }

  #usageOf(id: string): Usage {
    const usage = this.#usages.get(id) ?? unused()
    this.#usages.set(id, usage)
    return usage
  }

  #limited({ id }: Pick<Person, "id">, account: AccountId) {
    return [
      { of: "person", usage: this.#usageOf(id), limits: this.#limits.person },
      { of: "account", usage: this.#usageOf(`account ${account}`), limits: this.#limits.account }
    ] as const
  }

  /** When the next act is taken, if one at `now` were too many. Nothing is counted. Times in Unix milliseconds. */
  refusedUntil(person: Pick<Person, "account" | "id">, now: number): number | undefined {
    if (person.account === undefined) return undefined
    const { allowed, resetAt } = allowanceOf(this.#limited(person, person.account), now)
    return allowed ? undefined : resetAt
  }

  /** Counts an act. */
  count(person: Pick<Person, "account" | "id">, now: number): void {
    if (person.account !== undefined) spend(this.#limited(person, person.account), now)
  }
}

export const formLimits: Limits = {
  person: { perMinute: 60, perHour: 600 },
  account: { perMinute: 600, perHour: 6_000 }
}

/** A sign-in stores a row whether or not the account has room, and so does the sign-out after it. */
export const signInLimits: Limits = {
  person: { perMinute: 10, perHour: 30 },
  account: { perMinute: 100, perHour: 600 }
}
