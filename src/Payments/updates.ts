import { remaining } from "../Domain/Amount.ts"
import type { Payment } from "../Domain/Payment.ts"

/**
 * Whether `payment.updated` reports the change of a detecting payment: a receipt or a reorg has changed what is still to be
 * paid by at least a hundredth of the amount, or it has become nothing, or was nothing. Smaller changes are in the next
 * event: anybody can send dust, thousands of times, and an event for each would be a flood. Pure; called by the status
 * machine.
 */
export const hasUpdate = (before: Payment, after: Payment): boolean => {
  const [was, is] = [remaining(before), remaining(after)]
  if (was === is) return false
  return was === 0n || is === 0n || (was > is ? was - is : is - was) * 100n >= before.amount
}
