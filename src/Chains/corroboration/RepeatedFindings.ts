import type { PaymentId } from "../../Domain/Ids.ts"

/** Searches in a row that may find something new of a payment and let it wait for the next. */
const mostAnew = 3

/**
 * How often searches have found something new of payments that are to end. A provider can make up dust for each search: that
 * does not keep a payment open for ever. What is asked about one by one keeps it open by itself.
 */
export class RepeatedFindings {
  readonly #counts = new Map<PaymentId, number>()

  /** Whether a payment that something new was found of still waits for the next search. */
  mayWait(payment: PaymentId): boolean {
    return (this.#counts.get(payment) ?? 0) < mostAnew
  }

  waits(payment: PaymentId): void {
    this.#counts.set(payment, (this.#counts.get(payment) ?? 0) + 1)
  }

  /** Forgets all payments but these. */
  retain(payments: ReadonlySet<PaymentId>): void {
    for (const payment of this.#counts.keys()) if (!payments.has(payment)) this.#counts.delete(payment)
  }
}
