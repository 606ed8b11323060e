import { Duration } from "effect"
import { BoundedMap } from "../../Domain/BoundedMap.ts"
import * as Ledger from "../ledger/LedgerRepo.ts"
import type { Uncorroborated } from "./CorroborationRepo.ts"

/** The longest wait until a receipt is asked about again. The wait starts at one poll interval and doubles. */
const longestWait = Duration.toMillis("10 minutes")
/** Most receipts in memory. A receipt that drops out counts as never asked about. */
const capacity = 10_000

/** The wait of a receipt that was asked about and is still undecided. Times are Unix milliseconds. */
interface Wait {
  readonly times: number
  readonly since: number
  readonly until: number
  readonly warned: boolean
}

/**
 * Exponential backoff per receipt: how long `corroborate.ts` waits before it asks providers about an undecided receipt
 * again. In memory; drops the least recently changed receipts first.
 */
export class AskBackoff {
  readonly #waits = new BoundedMap<string, Wait>(capacity)

  /** @param first the first wait, milliseconds */
  constructor(readonly first: number) {}

  get(receipt: Uncorroborated): Wait | undefined {
    return this.#waits.get(Ledger.keyOf(receipt))
  }

  /** Whether its wait is over. A clock that was set back ends the wait. */
  isDue(receipt: Uncorroborated, now: number): boolean {
    const wait = this.get(receipt)
    return wait === undefined || now < wait.since || now >= wait.until
  }

  /** Doubles its wait. `warned`: it has been logged as overdue. */
  lengthen(receipt: Uncorroborated, now: number, warned: boolean): void {
    const times = (this.get(receipt)?.times ?? -1) + 1
    const wait = Math.min(this.first * 2 ** times, Math.max(this.first, longestWait))
    this.#waits.set(Ledger.keyOf(receipt), { times, since: now, until: now + wait, warned })
  }

  forget(receipt: Uncorroborated): void {
    this.#waits.delete(Ledger.keyOf(receipt))
  }
}
