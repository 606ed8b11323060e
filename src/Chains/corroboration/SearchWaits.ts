/**
 * The payments that a search before their end has left open. Each is searched for again after a wait that doubles: a
 * search costs tens of calls at two providers, and a provider that invents money for each search must not use up the
 * others' rate limits.
 *
 * In memory: a restart searches for all of them at once. `endingSearch.ts` owns it.
 */
import { Duration } from "effect"
import type { PaymentId } from "../../Domain/Ids.ts"

/** The longest wait. The wait starts at one poll interval and doubles. */
const longestWait = Duration.toMillis("1 minute")
/** How many searches in a row may find new money for a payment and make it wait for the next search. */
const maxFindings = 3

/** Times are Unix milliseconds. */
interface Wait {
  readonly searches: number
  readonly since: number
  readonly until: number
  /** Searches that found new money. */
  readonly findings: number
}

export class SearchWaits {
  readonly #waits = new Map<PaymentId, Wait>()

  /** @param first the first wait, milliseconds */
  constructor(readonly first: number) {}

  /** The payments whose next search is not due yet. A clock that was set back ends a wait. */
  waiting(now: number): ReadonlyArray<PaymentId> {
    return Array.from(this.#waits)
      .filter(([, { since, until }]) => now >= since && now < until)
      .map(([payment]) => payment)
  }

  /** Counts a search: the payment waits for the next one unless `ended` follows. */
  searched(payment: PaymentId, now: number): void {
    const { findings, searches } = this.#waits.get(payment) ?? { findings: 0, searches: 0 }
    const wait = Math.min(this.first * 2 ** searches, Math.max(this.first, longestWait))
    this.#waits.set(payment, { searches: searches + 1, since: now, until: now + wait, findings })
  }

  /**
   * Whether a payment with new money may wait for the next search. Without a limit, a provider that invents dust for
   * each search could keep the payment open forever. Receipts that corroboration asks about one by one keep it open by
   * themselves.
   */
  mayFind(payment: PaymentId): boolean {
    return (this.#waits.get(payment)?.findings ?? 0) < maxFindings
  }

  /** Counts a search that found new money and made the payment wait. The first ones are followed by another at once. */
  found(payment: PaymentId): void {
    const wait = this.#waits.get(payment)
    if (wait === undefined) return
    const until = this.mayFind(payment) ? wait.since + this.first : wait.until
    this.#waits.set(payment, { ...wait, until, findings: wait.findings + 1 })
  }

  /** Ends all waits: a provider has come back, which may decide what waits. */
  endAll(): void {
    for (const [payment, wait] of this.#waits) this.#waits.set(payment, { ...wait, until: wait.since })
  }

  /** The payment has been searched for and may end. */
  ended(payment: PaymentId): void {
    this.#waits.delete(payment)
  }

  /** Forgets the payments whose wait is over, but for those that are due. */
  retain(due: ReadonlySet<PaymentId>, now: number): void {
    const waiting = new Set(this.waiting(now))
    for (const payment of this.#waits.keys()) {
      if (!due.has(payment) && !waiting.has(payment)) this.#waits.delete(payment)
    }
  }
}
