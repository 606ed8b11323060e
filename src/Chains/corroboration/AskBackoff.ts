import { Duration } from "effect"
import * as Ledger from "../ledger/LedgerRepo.ts"
import type { Uncorroborated } from "./CorroborationRepo.ts"

/** The longest that a receipt waits until it is asked about again: the wait doubles, from one poll. */
const longestWait = Duration.toMillis("10 minutes")
/** Receipts whose waits are known; of any other it is not known that it was asked about. */
const remembered = 10_000

/** What is known of a receipt that was asked about in vain. Times are Unix milliseconds. */
interface Wait {
  readonly times: number
  readonly since: number
  readonly until: number
  readonly warned: boolean
}

/** The waits of receipts, the longest unchanged forgotten first. */
export class AskBackoff {
  readonly #waits = new Map<string, Wait>()

  constructor(readonly first: number) {}

  get(receipt: Uncorroborated): Wait | undefined {
    return this.#waits.get(Ledger.keyOf(receipt))
  }

  /** Whether it is to be asked about. */
  isDue(receipt: Uncorroborated, now: number): boolean {
    const wait = this.get(receipt)
    return wait === undefined || now < wait.since || now >= wait.until
  }

  /** It was asked about in vain. */
  lengthen(receipt: Uncorroborated, now: number, warned: boolean): void {
    const times = (this.get(receipt)?.times ?? -1) + 1
    const wait = Math.min(this.first * 2 ** times, Math.max(this.first, longestWait))
    this.forget(receipt)
    this.#waits.set(Ledger.keyOf(receipt), { times, since: now, until: now + wait, warned })
    const [oldest] = this.#waits.keys()
    if (this.#waits.size > remembered && oldest !== undefined) this.#waits.delete(oldest)
  }

  forget(receipt: Uncorroborated): void {
    this.#waits.delete(Ledger.keyOf(receipt))
  }
}
