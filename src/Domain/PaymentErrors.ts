import { Data, Schema } from "effect"
import type { ChainName, Mode } from "./Chain.ts"
import type { PaymentCurrency } from "./Currency.ts"
import type { PaymentId } from "./Ids.ts"
import { PaymentStatus } from "./Payment.ts"

/** The account already has a payment with that reference in that mode. */
export class DuplicateMerchantRef extends Data.TaggedError("DuplicateMerchantRef")<{
  readonly paymentId: PaymentId
}> {}

/** This installation does not watch that chain in the key's mode. */
export class ChainNotConfigured extends Data.TaggedError("ChainNotConfigured")<{
  readonly chain: ChainName
  /** The chains it does watch in that mode. */
  readonly available: ReadonlyArray<ChainName>
}> {}

/** The currency does not exist on that chain, or its contract is not configured there. */
export class CurrencyNotOnChain extends Data.TaggedError("CurrencyNotOnChain")<{
  readonly currency: PaymentCurrency
  readonly chain: ChainName
  /** The currencies that can be asked for on that chain. */
  readonly available: ReadonlyArray<PaymentCurrency>
}> {}

/** There is no extended public key to derive addresses from. Only the operator can change that. */
export class WalletNotConfigured extends Data.TaggedError("WalletNotConfigured")<{ readonly mode: Mode }> {}

/** The quote cannot be used for this payment. `message` is for the merchant; `details` holds the values that would be accepted. */
export class QuoteRefused extends Data.TaggedError("QuoteRefused")<{
  readonly code: "QUOTE_MISMATCH" | "QUOTE_NOT_FOUND" | "QUOTE_EXPIRED" | "QUOTE_ALREADY_USED"
  readonly message: string
  readonly details?: unknown
}> {}

const insteadOfCancelling = {
  confirmed: "it is paid; send the money back",
  expired: "it has ended, and there is nothing to cancel",
  failed: "it has ended, and there is nothing to cancel"
}

/** Only an open payment can be cancelled. `message` says what to do instead. */
export class PaymentNotPending extends Schema.TaggedError<PaymentNotPending>()("PaymentNotPending", {
  status: PaymentStatus,
  message: Schema.String
}) {
  static readonly of = (status: keyof typeof insteadOfCancelling) =>
    new PaymentNotPending({
      status,
      message: `Only a payment that is pending or detecting can be cancelled, and this one is ${status}: ${insteadOfCancelling[status]}.`
    })
}
