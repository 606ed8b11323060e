import { Data, Duration, Schema } from "effect"
import { count, idPattern, maybe, text, timestamp } from "../lib/annotations.ts"
import { ChainName, type Mode } from "./Chain.ts"
import { decimalsOf, PaymentCurrency, PriceCurrency } from "./Currency.ts"
import type { AccountId, CheckoutToken, InvoiceId, PaymentId, QuoteId } from "./Ids.ts"

export const PaymentStatus = Schema.Literal("pending", "detecting", "confirmed", "expired", "failed")
export type PaymentStatus = typeof PaymentStatus.Type

/** `cancelled` is that of an expired payment, or of a failed one where money had come; all others are of failed ones. */
export const FailureReason = Schema.Literal(
  "insufficient_amount",
  "wrong_token",
  "wrong_chain",
  "reorged",
  "abandoned",
  "cancelled"
)
export type FailureReason = typeof FailureReason.Type

/** A token as the configuration offered it: a row of the store, which never changes. */
export interface OfferedToken {
  readonly id: number
  /** EIP-55 form. */
  readonly contract: string
  readonly decimals: number
}

/** The invoice that a payment is a choice of. */
export interface PricedInvoice {
  readonly id: InvoiceId
  /** The secret in the address of its page: never logged. */
  readonly checkoutToken: CheckoutToken
  readonly merchantRef: string | undefined
  readonly price: { readonly amount: string; readonly currency: PriceCurrency }
}

/** A payment as the store keeps it. Amounts in base units, times in Unix milliseconds. */
export interface Payment {
  /** Order of creation, also the tie-breaker of the list. */
  readonly sequence: number
  readonly id: PaymentId
  /** The secret in the address of its checkout page: never logged. */
  readonly checkoutToken: CheckoutToken
  readonly account: AccountId
  readonly mode: Mode
  readonly merchantRef: string
  readonly amount: bigint
  readonly currency: PaymentCurrency
  /** The currency's token when the payment was created: it decides what is paid, whatever is configured later. Undefined for the chain's own coin. */
  readonly token: OfferedToken | undefined
  readonly chain: ChainName
  /** EIP-55 form. */
  readonly address: string
  readonly status: PaymentStatus
  readonly createdAt: number
  readonly expiresAt: number
  /**
   * The creation head: the number of the chain's scanned head when the payment was created. Only money above it counts.
   * Undefined until the chain's first head is known.
   */
  readonly createdHead: number | undefined
  /**
   * When the payment is due by the chain's clock, where this machine's clock was behind that at creation. Otherwise undefined,
   * and the payment is due at `expiresAt`: see `deadline.ts`.
   */
  readonly dueAt: number | undefined
  /** Milliseconds after it is due in which a block still counts as on time: `payments.settle_grace` when it was created. */
  readonly settleGrace: number
  /** Accepted underpayment, 1/100 %: `payments.tolerance_bps` when it was created. */
  readonly toleranceBps: number
  /** The smallest amount that is credited by itself, base units: by the payment's worth when it was created. */
  readonly floor: bigint
  /** JSON text, exactly as it will be returned. */
  readonly metadata: string
  readonly webhookUrl: string | undefined
  readonly redirectUrl: string | undefined
  readonly quoteId: QuoteId | undefined
  readonly invoice: PricedInvoice | undefined
  /** The worth of `amount` in USD when the payment was created, a decimal; undefined where no price was known. */
  readonly usdValue: string | undefined
  /** The sum of canonical, on-time receipts in the currency and on the chain asked for. Fixed once ended, reorgs apart. */
  readonly amountReceived: bigint | undefined
  readonly txHash: string | undefined
  readonly confirmedAt: number | undefined
  readonly failureReason: FailureReason | undefined
  /** When it was confirmed, expired or failed; undefined while it is open. */
  readonly endedAt: number | undefined
  /** The number of its `payment.updated` events. */
  readonly updates: number
  /** Of its own currency on its chain: what came and is large enough to be credited, and what was sent back of that. */
  readonly received: bigint
  readonly refunded: bigint
}

/** Decimals of what a payment asks for. */
export const decimalsOfPayment = ({ currency, token }: Pick<Payment, "currency" | "token">): number =>
  token?.decimals ?? decimalsOf[currency]

/** A payment to be stored: the store assigns its sequence, its creation head and its due time. */
export type NewPayment = Omit<
  Payment,
  "sequence" | "createdHead" | "dueAt" | "endedAt" | "updates" | "usdValue" | "received" | "refunded"
> &
  Partial<Pick<Payment, "usdValue">>

/** Whether it is confirmed, expired or failed: after that only a reorg or an operator changes it. */
export const isEnded = (status: PaymentStatus): status is Exclude<PaymentStatus, "pending" | "detecting"> =>
  status !== "pending" && status !== "detecting"

const baseUnits = (description: string, pattern: string) =>
  text(`${description}, in the smallest unit of the token: wei for ETH, millionths for USDC.`, { pattern })

/** The price of an invoice. */
export const InvoicePrice = Schema.Struct({
  amount: text("A decimal.", { pattern: "^(0|[1-9][0-9]*)(\\.[0-9]+)?$" }),
  currency: PriceCurrency.annotations({
    description: "The currency of the price: fiat money, or a token where a shop plugin made the invoice."
  })
}).annotations({ identifier: "Price", description: "What is to be paid." })

/** The payment object of the API and of every event. Fields that do not apply yet are absent, never null. */
export const PaymentObject = Schema.Struct({
  id: text("Identifier of the payment.", idPattern("pay")),
  merchantRef: text("Your reference, in NFC and without blanks around it."),
  amount: baseUnits("What is asked for", "^[1-9][0-9]{0,77}$"),
  currency: text("Symbol of the token.", { enum: PaymentCurrency.literals }),
  chain: text("The chain to pay on.", { enum: ChainName.literals }),
  address: text("Receiving address made for this payment alone, in EIP-55 form.", { pattern: "^0x[0-9a-fA-F]{40}$" }),
  status: PaymentStatus.annotations({
    description:
      "`pending`: waiting for money. `detecting`: money was seen and waits for confirmations. `confirmed`: enough came and is deep enough. `expired`: nothing came in time. `failed`: see `failureReason`."
  }),
  createdAt: timestamp("When the payment was created"),
  expiresAt: timestamp("Until when money is on time: `createdAt` plus `expiresIn`"),
  metadata: Schema.Unknown.annotations({
    jsonSchema: { type: "object", description: "Your own data, as given; empty when none was." }
  }),
  checkoutUrl: text(
    "Address of the page on which the customer pays, in five languages: a link that needs no key. Whoever has it sees what is to be paid and what has come, and nothing else of yours.",
    { format: "uri" }
  ),
  received: baseUnits(
    "What came in the currency asked for on the chain asked for, also too much, too late or not confirmed yet, without transfers that are too small to be credited",
    "^(0|[1-9][0-9]*)$"
  ),
  refunded: baseUnits("What was sent back of that", "^(0|[1-9][0-9]*)$"),
  kept: baseUnits("`received` less `refunded`", "^(0|[1-9][0-9]*)$"),
  amountReceived: maybe(
    baseUnits(
      "What has come in the currency asked for, on time, confirmed or not; of an ended payment, what was confirmed by then",
      "^(0|[1-9][0-9]*)$"
    )
  ),
  txHash: maybe(
    text(
      "Hash of the first transaction that was seen; once confirmed, of the one that completed the amount. From `detecting` on.",
      { pattern: "^0x[0-9a-fA-F]{64}$" }
    )
  ),
  confirmedAt: maybe(timestamp("When the payment was confirmed. From `confirmed` on")),
  failureReason: maybe(
    FailureReason.annotations({
      description:
        "Why it failed. `insufficient_amount`: too little came in time. `wrong_token`, `wrong_chain`: only such money came. `reorged`: the chain took back what had been confirmed. `abandoned`: the operator gave up the chain. `cancelled`: you ended it. When `failed`, and as `cancelled` also when `expired`."
    })
  ),
  tokenContract: maybe(
    text(
      "Contract of the token on this chain when the payment was created, in EIP-55 form. Absent for the chain's own coin.",
      {
        pattern: "^0x[0-9a-fA-F]{40}$"
      }
    )
  ),
  chainId: maybe(
    count("Id of the chain (EIP-155), as wallets know it. Absent if the operator no longer configures the chain.")
  ),
  decimals: maybe(count("Decimals of the token: 6 if a million base units are one.")),
  paymentUri: maybe(
    text(
      "What is to be paid now as an EIP-681 URI, for a wallet or a QR code: `amountRemaining` of a part-paid payment, else `amount`. Absent when there is nothing to pay any more.",
      { pattern: "^ethereum:0x[0-9a-fA-F]{40}@[0-9]+[/?]" }
    )
  ),
  amountRemaining: maybe(baseUnits("What is still missing, while only a part has come", "^[1-9][0-9]*$")),
  invoice: maybe(
    Schema.Struct({
      id: text("Identifier of the invoice.", idPattern("inv")),
      merchantRef: maybe(text("Your reference of the invoice.")),
      price: InvoicePrice
    }).annotations({ description: "The invoice that a customer's choice made this payment of." })
  )
}).annotations({
  identifier: "Payment",
  description: "A payment. Fields that do not apply yet are absent, never null."
})
export type PaymentObject = typeof PaymentObject.Type

/** What a request for a payment has where it does not say. */
export const paymentDefaults = { expiresIn: 3600, metadata: "{}" } as const

/** Seconds in which a payment can be paid, at least and at most. */
export const expiryBounds = [60, 86_400] as const

export const expiryRule = `be an integer from ${expiryBounds[0]} to ${expiryBounds[1]}, in seconds`

/** Characters up to which a reference is normalized: the time grows with the square, and a longer one is refused. */
const mostNormalized = 512

/**
 * A reference as it is stored and looked up, so that no two look alike: in NFC, with plain blanks, and none around it.
 */
export const referenceOf = (text: string): string =>
  // Most are: then there is nothing to do, for less than a tenth of the time.
  /^[!-~]*$/.test(text)
    ? text
    : (text.length > mostNormalized ? text : text.normalize("NFC")).replace(/\p{Zs}/gu, " ").trim()

/** A request for a payment, each field checked. `Payments` checks whether this installation can offer it. */
export interface CreatePayment {
  /** 1 to 128 visible characters as `referenceOf` gives them, unique permanently in its account and mode. */
  readonly merchantRef: string
  /** Base units, 1 to 2^256 - 1. */
  readonly amount: bigint
  readonly currency: PaymentCurrency
  readonly chain: ChainName
  /** Seconds, 60 to 86,400; `paymentDefaults` where absent, as for `metadata`. */
  readonly expiresIn?: number | undefined
  /** JSON text of an object, as it will be returned. */
  readonly metadata?: string | undefined
  /** A well-formed https URL; `Webhooks` checks whether tilld may call it. */
  readonly webhookUrl?: string | undefined
  /** An absolute URL, https or http on localhost; https in live mode. */
  readonly redirectUrl?: string | undefined
  /** The invoice that it is a choice of, and when it ends then, Unix milliseconds. */
  readonly invoice?: PricedInvoice | undefined
  readonly expiresAt?: number | undefined
  /** As it was given: `Quotes.lock` checks whether there is such a quote. */
  readonly quoteId?: string | undefined
}

/**
 * When a payment's time is over: the one definition for the status machine, settlement and the queries over payments.
 * Money in a block is on time up to the deadline, which is the payment's settle grace after its due time. A payment is over
 * at a block whose time is after the deadline. The chain's clock decides, never this machine's.
 */

/** The last millisecond, by block time, at which money is on time; Unix time. */
export const deadline = ({ dueAt, expiresAt, settleGrace }: Pick<Payment, "dueAt" | "expiresAt" | "settleGrace">) =>
  (dueAt ?? expiresAt) + settleGrace

/** The same of a row of `payments`, in SQL. The index `payments_open` is on exactly this expression. */
export const deadlineSql = "coalesce(due_at, expires_at) + settle_grace"

/** How long after its deadline a payment waits for other chains than its own at most, milliseconds. */
export const longestWaitElsewhere = Duration.toMillis("2 minutes")

/**
 * By how much a block may be newer than its time says, as this machine's clock has it; milliseconds. Block times lag by ten
 * minutes at most, and a wrong clock may be a quarter of an hour ahead.
 */
export const blockTimeLag = Duration.toMillis("25 minutes")

/** The account already has a payment with that reference in that mode. */
export class DuplicateMerchantRef extends Data.TaggedError("DuplicateMerchantRef")<{
  readonly paymentId: PaymentId
}> {}

/** This installation does not watch that chain in the key's mode. */
export class ChainNotConfigured extends Data.TaggedError("ChainNotConfigured")<{
  readonly chain: ChainName
  readonly mode: Mode
  /** The chains that take new payments in that mode. */
  readonly available: ReadonlyArray<ChainName>
}> {}

/** The currency does not exist on that chain, or its contract is not configured there. */
export class CurrencyNotOnChain extends Data.TaggedError("CurrencyNotOnChain")<{
  readonly currency: PaymentCurrency
  readonly chain: ChainName
  /** The currencies that can be asked for on that chain. */
  readonly available: ReadonlyArray<PaymentCurrency>
}> {}

/** The payment is worth less than its account takes: the amount is likely to be meant in whole tokens. */
export class WorthTooLittle extends Data.TaggedError("WorthTooLittle")<{ readonly message: string }> {}

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
