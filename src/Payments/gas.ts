/**
 * Gas at the address of a token payment: native coin that the operator sends there to collect the tokens with, which is
 * not an exception. Coin that a customer may have sent is not gas: from before the payment's end, before the first
 * token on that chain, or beyond the cost of a token transfer. What the wallet's own sponsor has sent is gas always: it
 * pays for nothing, also at the address of an open payment of coin.
 */
import { type ChainName, chainTraits } from "../Domain/Chain.ts"
import { nativeToken } from "../Domain/Currency.ts"
import { deadline, type Payment } from "../Domain/Payment.ts"
import { isCorroborated, type Receipt } from "../Domain/Receipt.ts"
import { earliest, leastOf } from "./statusMachine.ts"

const isCoin = ({ chain, currency }: Pick<Receipt, "chain" | "currency">): boolean => currency === nativeToken(chain)

/** Receipts without coin that the sponsor of their wallet, lower case, has sent. */
export const withoutSponsored = (all: ReadonlyArray<Receipt>, sponsor: string | undefined): ReadonlyArray<Receipt> =>
  all.filter((receipt) => !(isCoin(receipt) && sponsor !== undefined && receipt.sender === sponsor))

/** From when on coin may be gas; Unix milliseconds, undefined while there is nothing to collect. */
const gasFrom = (payment: Payment): number | undefined => {
  const { confirmedAt, endedAt, failureReason } = payment
  // Customers do not know at once that their payment was cancelled.
  if (failureReason === "cancelled") return Math.max(endedAt ?? 0, deadline(payment))
  // `endedAt` is later than `confirmedAt` where a reorg undid the payment.
  return confirmedAt ?? endedAt
}

/**
 * A payment's receipts without gas.
 *
 * @param all of the payment: money that was refunded since was there to be collected too
 * @param sponsor of the payment's wallet, lower case
 */
export const withoutGas = (
  payment: Payment,
  all: ReadonlyArray<Receipt>,
  sponsor: string | undefined
): ReadonlyArray<Receipt> => {
  const receipts = withoutSponsored(all, sponsor)
  const from = gasFrom(payment)
  if (from === undefined || isCoin(payment)) return receipts
  // By the chain's time, in Unix milliseconds. Balances are read late, and a reorg may mine money again.
  const arrived = leastOf(receipts, earliest)
  const seen = leastOf(receipts, ({ seenAt }) => seenAt)
  const firstTokens = new Map<ChainName, number>()
  for (const receipt of receipts) {
    const isThere = receipt.canonical && isCorroborated(receipt)
    const first = Math.min(earliest(receipt), firstTokens.get(receipt.chain) ?? Number.POSITIVE_INFINITY)
    if (isThere && !isCoin(receipt)) firstTokens.set(receipt.chain, first)
  }
  return receipts.filter((receipt) => {
    const { amount, chain } = receipt
    const at = arrived(receipt)
    // The end has the time of this machine's clock, which may be behind: money seen before it came before it.
    const isAfter = at > from && seen(receipt) > from
    const isToCollect = at > (firstTokens.get(chain) ?? Number.POSITIVE_INFINITY)
    return !(isCoin(receipt) && isAfter && isToCollect && amount <= chainTraits[chain].mostGas)
  })
}
