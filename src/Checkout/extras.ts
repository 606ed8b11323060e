/** Money that came and does not pay for its payment, as shown to the payer: by the payment's exceptions. */

import type { ChainName } from "../Domain/Chain.ts"
import { decimalsOn, type NetworkTokens } from "../Domain/Currency.ts"
import type { PaymentException } from "../Domain/Exception.ts"
import { isEnded, type Payment } from "../Domain/Payment.ts"

export type ExtraKind = "overpaid" | "late" | "found_late" | "wrong_token" | "wrong_chain" | "other"

export interface Extra {
  readonly kind: ExtraKind
  /** Base units: all of it, with what was sent back. */
  readonly amount: bigint
  readonly currency: string
  /** Undefined for a token that tilld does not take. */
  readonly decimals: number | undefined
  readonly chain: ChainName
  readonly status: "open" | "accepted" | "refunded"
  /** Base units of it that the shop has noted as sent back, and the transactions that it named. */
  readonly sentBack: bigint
  readonly refunds: ReadonlyArray<string>
}

/** Money with a text of its own on the page; undefined where there is none. */
const extraKindOf = (payment: Payment, { kind }: PaymentException): ExtraKind | undefined => {
  switch (kind) {
    case "reorged":
    case "unknown_payment":
      return undefined
    case "underpaid":
      return "other"
    case "unattributed":
      // While the payment is open, its page counts it.
      return isEnded(payment.status) ? "other" : undefined
    default:
      return kind
  }
}

/** @param exceptions the payment's, in their order */
export const extrasOf = (
  payment: Payment,
  exceptions: ReadonlyArray<PaymentException>,
  networks: ReadonlyArray<NetworkTokens>
): ReadonlyArray<Extra> =>
  exceptions.flatMap((exception) => {
    const { amount, chain, currency, refunds, sentBack, status } = exception
    const kind = extraKindOf(payment, exception)
    if (kind === undefined || status === "gone") return []
    return [
      {
        ...{ kind, currency, chain, status, sentBack },
        amount: status === "refunded" ? amount : amount + sentBack,
        decimals: decimalsOn(networks, exception, currency),
        refunds: refunds.flatMap(({ txHash }) => (txHash === undefined ? [] : [txHash]))
      }
    ]
  })
