import type { PaymentId } from "../../Domain/Ids.ts"

/** How many searches in a row may find new money for a payment and make it wait for the next search. */
const maxRepeats = 3

/**
 * Counts how often searches have found new money for a payment that is about to end. Without a limit, a provider that
 * invents dust for each search could keep the payment open forever. Receipts that corroboration asks about one by one
 * keep it open by themselves.
 */
export class RepeatedFindings {
  readonly #counts = new Map<PaymentId, number>()

  /** Whether a payment with new money may still wait for the next search. */
  mayWait(payment: PaymentId): boolean {
    return (this.#counts.get(payment) ?? 0) < maxRepeats
  }

  /** Counts a search after which the payment waits. */
  waits(payment: PaymentId): void {
    this.#counts.set(payment, (this.#counts.get(payment) ?? 0) + 1)
  }

  /** Forgets all payments but these. */
  retain(payments: ReadonlySet<PaymentId>): void {
    for (const payment of this.#counts.keys()) if (!payments.has(payment)) this.#counts.delete(payment)
  }
}
