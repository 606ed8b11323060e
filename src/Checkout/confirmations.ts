import { required } from "../Domain/Amount.ts"
import type { Payment } from "../Domain/Payment.ts"
import type { Receipt } from "../Domain/Receipt.ts"
import { counted } from "../Payments/statusMachine.ts"
import type { Confirmations } from "./view.ts"

/**
 * The confirmations of the receipt that completes the payment, in chain order: the receipts before it have more.
 * Undefined while too little money came.
 *
 * @param head number of the chain's scanned head
 * @param needed the confirmations that the chain is configured with
 */
export const confirmationsOf = (
  payment: Payment,
  receipts: ReadonlyArray<Receipt>,
  head: number,
  needed: number
): Confirmations | undefined => {
  const enough = required(payment)
  let reached = 0n
  for (const { amount, blockNumber } of counted(payment, receipts)) {
    reached += amount
    if (reached >= enough) return { count: Math.min(needed, Math.max(0, head - blockNumber + 1)), needed }
  }
  return undefined
}
