// The wire types, written out so that the package needs no other package for its types.
// test/client/types.test.ts compares each with the schema that the server uses.

/** The blockchains that a payment can be made on. */
export type Chain = "ethereum" | "polygon" | "arbitrum" | "optimism" | "base"

/** The tokens that a payment can be made in. */
export type PaymentCurrency = "ETH" | "USDC" | "USDT" | "DAI" | "WBTC"

/** The currencies that a quote can convert: MATIC too, which no payment takes. */
export type QuoteCurrency = PaymentCurrency | "MATIC" | "USD" | "EUR" | "GBP" | "MXN"

/**
 * `pending` until money is seen, `detecting` until it has its confirmations, then `confirmed`; `expired` when nothing arrived
 * in time or it was cancelled, `failed` for a `failureReason`.
 */
export type PaymentStatus = "pending" | "detecting" | "confirmed" | "expired" | "failed"

/** `cancelled` is that of an expired payment, or of a failed one where money had come; all others are of failed ones. */
export type FailureReason =
  | "insufficient_amount"
  | "wrong_token"
  | "wrong_chain"
  | "reorged"
  | "abandoned"
  | "cancelled"

/**
 * Endpoints and streams get the last two only where they name them: `payment.updated`, when what remains of a part-paid
 * payment has changed, and `payment.exception`.
 */
export type EventKind =
  | "payment.created"
  | "payment.detecting"
  | "payment.confirmed"
  | "payment.expired"
  | "payment.failed"
  | "payment.updated"
  | "payment.exception"

/** A merchant's own data: at most 50 keys, 5 levels and 16 KiB. Returned as it was given. */
export type Metadata = Readonly<Record<string, unknown>>

/** A payment. Fields that do not apply yet are absent. */
export interface Payment {
  readonly id: string
  readonly merchantRef: string
  /** Smallest units of the token, as decimal digits: 25 USDC are `"25000000"`. */
  readonly amount: string
  readonly currency: PaymentCurrency
  readonly chain: Chain
  /** The receiving address, made for this payment alone, in EIP-55 form. */
  readonly address: string
  readonly status: PaymentStatus
  /** ISO 8601, UTC. */
  readonly createdAt: string
  /** ISO 8601, UTC. */
  readonly expiresAt: string
  readonly metadata: Metadata
  /** The page on which your customer pays: send them there, or show the link. */
  readonly checkoutUrl: string
  /** Smallest units that have arrived on time, confirmed or not. */
  readonly amountReceived?: string
  /** From `detecting` on. Once confirmed, the transaction that completed the amount. */
  readonly txHash?: string
  /** ISO 8601, UTC. */
  readonly confirmedAt?: string
  readonly failureReason?: FailureReason
  /** The token's contract on this chain, in EIP-55 form. Absent for the chain's own coin. */
  readonly tokenContract?: string
  /** The chain's id, as wallets know it. Absent once tilld is no longer configured for the chain. */
  readonly chainId?: number
  /** The token's decimals. Absent once tilld is no longer configured for the token. */
  readonly decimals?: number
  /** What is to be paid now as an EIP-681 URI, for a wallet or a QR code. Absent when there is nothing to pay any more. */
  readonly paymentUri?: string
  /** Smallest units that are missing, while only a part has come. */
  readonly amountRemaining?: string
}

/** A payment as it is created: its chain and its token are configured. */
export interface CreatedPayment extends Payment {
  readonly chainId: number
  readonly decimals: number
}

export type ExceptionKind =
  | "overpaid"
  | "underpaid"
  | "late"
  | "wrong_token"
  | "wrong_chain"
  | "unattributed"
  | "found_late"
  | "reorged"

/** A part of an exception's money that was sent back. */
export interface Refund {
  /** Smallest units. */
  readonly amount: string
  readonly txHash?: string
  readonly note?: string
  /** ISO 8601, UTC. */
  readonly refundedAt: string
}

/** Money that does not fit its payment, and needs or needed a person's decision. */
export interface PaymentException {
  readonly id: string
  /** The payment whose address the money came to. */
  readonly payment: string
  readonly kind: ExceptionKind
  readonly chain: Chain
  readonly currency: string
  /** Smallest units. */
  readonly amount: string
  /** Smallest units that were sent back while the rest is open. */
  readonly amountRefunded?: string
  /** What was sent back, in order. */
  readonly refunds?: ReadonlyArray<Refund>
  /** Who sent it, where that is known. It may be an exchange: ask your customer before you send money back there. */
  readonly from?: string
  readonly txHash?: string
  /** Set on the sum of many small transfers. It may grow while it is open. */
  readonly dust?: true
  /** Set while only one provider has the transaction: wait before you decide. */
  readonly uncorroborated?: true
  /** Where the money is, with its place in the wallet. */
  readonly address: string
  readonly derivationIndex?: number
  /** `m/44'/60'/n'/0/i`. */
  readonly path?: string
  /** ISO 8601, UTC. */
  readonly detectedAt: string
  /** Absent while it is open. `gone`: a reorg removed the money, or it turned out to be something else. */
  readonly resolution?: "accepted" | "refunded" | "gone"
  /** ISO 8601, UTC. */
  readonly resolvedAt?: string
  /** The transaction that the decision named: of a refund the one that sent the money back. */
  readonly resolutionTxHash?: string
  readonly note?: string
}

/** A payment as `get`, `list`, `cancel` and `refund` return it, and as events tell it. */
export interface AccountedPayment extends Payment {
  /** Where the customer goes after paying, as given. Not in events. */
  readonly redirectUrl?: string
  /** Only where there are any; at most 100, and 10 in an event. */
  readonly exceptions?: ReadonlyArray<PaymentException>
  /** Set when there are more exceptions than are shown. */
  readonly moreExceptions?: true
}

export interface ListExceptions {
  readonly status?: "open" | "resolved" | undefined
  readonly kind?: ExceptionKind | undefined
  readonly chain?: Chain | undefined
  readonly payment?: string | undefined
  /** Exceptions a page, 1 to 100. */
  readonly limit?: number | undefined
  /** `cursor` of the page before. It belongs to its filters. */
  readonly cursor?: string | undefined
}

/** Newest first. */
export interface ExceptionPage {
  readonly data: ReadonlyArray<PaymentException>
  /** Pass it for the next page; null at the end. */
  readonly cursor: string | null
}

export interface ResolveException {
  /** `accept` takes the money; `refund` notes that you have sent it back with your own wallet. */
  readonly action: "accept" | "refund"
  /** The transaction of the refund; or the one that paid, where the exception has none. */
  readonly txHash?: string | undefined
  /** With `refund`: smallest units that were sent back, if not all. Needed where the amount may grow, as with dust. */
  readonly amount?: string | undefined
  /** 1 to 500 characters. */
  readonly note?: string | undefined
}

/** Money of an open payment that you have sent back with your own wallet. */
export interface RefundPayment {
  /** Smallest units, at most what counts for the payment. */
  readonly amount: string
  /** The transaction that sent it back. */
  readonly txHash?: string | undefined
  /** 1 to 500 characters. */
  readonly note?: string | undefined
}

export interface CreatePayment {
  /** Your own reference, 1 to 128 characters. It can be used only once, ever. */
  readonly merchantRef: string
  /** Smallest units of the token, as decimal digits. `toBaseUnits` converts a decimal amount. */
  readonly amount: string
  readonly currency: PaymentCurrency
  readonly chain: Chain
  /** An https URL that gets every event of this payment, signed with the account's default secret. */
  readonly webhookUrl?: string | undefined
  /** Where the checkout page sends the customer afterwards. */
  readonly redirectUrl?: string | undefined
  /** Seconds, 60 to 86,400; 3,600 unless given. */
  readonly expiresIn?: number | undefined
  readonly metadata?: Metadata | undefined
  /** A quote whose rate this payment is locked to. */
  readonly quoteId?: string | undefined
}

export interface ListPayments {
  readonly status?: PaymentStatus | undefined
  readonly chain?: Chain | undefined
  readonly merchantRef?: string | undefined
  /** In lower case, upper case or EIP-55 form. */
  readonly address?: string | undefined
  /** A transaction that sent something to the payments. */
  readonly txHash?: string | undefined
  /** ISO 8601 with its zone, or a day. */
  readonly createdAfter?: string | undefined
  readonly createdBefore?: string | undefined
  /** Payments a page, 1 to 100. */
  readonly limit?: number | undefined
  /** `cursor` of the page before. It belongs to its filters. */
  readonly cursor?: string | undefined
}

/** Newest first. */
export interface PaymentPage {
  readonly data: ReadonlyArray<AccountedPayment>
  /** Pass it for the next page; null at the end. */
  readonly cursor: string | null
}

/** A price that holds for 30 seconds. */
export interface Quote {
  readonly id: string
  readonly fromCurrency: QuoteCurrency
  readonly toCurrency: QuoteCurrency
  /** Decimal, in `fromCurrency`. */
  readonly fromAmount: string
  /** Decimal, in `toCurrency`, after fees. */
  readonly toAmount: string
  /** What to charge a payer for what costs `fromAmount`: decimal, in `toCurrency`, before fees. */
  readonly chargeAmount: string
  /** Units of `toCurrency` for one `fromCurrency`. */
  readonly rate: string
  readonly chain: Chain
  /** ISO 8601, UTC. */
  readonly validUntil: string
  /** Decimals, in `toCurrency`, already subtracted from `toAmount`. */
  readonly fees: { readonly network: string; readonly service: string }
}

export interface CreateQuote {
  readonly fromCurrency: QuoteCurrency
  readonly toCurrency: QuoteCurrency
  /** Decimal, in `fromCurrency`: `"49.90"`. */
  readonly amount: string
  /** By default ethereum, or the token's only chain. */
  readonly chain?: Chain | undefined
}

/** A registered webhook endpoint. Its secret is never returned. */
export interface WebhookEndpoint {
  readonly id: string
  readonly url: string
  readonly events: ReadonlyArray<EventKind>
  /** ISO 8601, UTC. */
  readonly createdAt: string
}

export interface CreateWebhookEndpoint {
  /** https only. */
  readonly url: string
  /** At least one. */
  readonly events: ReadonlyArray<EventKind>
  /** `whsec_` and 16 to 256 visible characters, of your choice. */
  readonly secret: string
}

export interface WebhookEndpointList {
  readonly data: ReadonlyArray<WebhookEndpoint>
}

/** What is to change of an endpoint: at least one of `url`, `events` and `secret`. */
export interface ChangeWebhookEndpoint {
  /** https only. What is pending goes there too. */
  readonly url?: string | undefined
  readonly events?: ReadonlyArray<EventKind> | undefined
  /** `whsec_` and 16 to 256 visible characters, of your choice. */
  readonly secret?: string | undefined
  /** With a secret: how long the former one also signs. Seconds, 0 to 604,800; 86,400 unless given. */
  readonly overlapSeconds?: number | undefined
}

export interface DeletedWebhookEndpoint {
  readonly id: string
  readonly deleted: true
  /** Deliveries that ended with it, each of which can be sent to another endpoint. Absent when the first answer was lost. */
  readonly cancelled?: number
}

export type DeliveryStatus = "pending" | "delivered" | "failed" | "cancelled"

/** `failing`: an attempt has failed, and none has succeeded yet. */
export type DeliveryFilter = DeliveryStatus | "failing"

/** An attempt to deliver an event. */
export interface DeliveryAttempt {
  readonly number: number
  /** Set when it was ordered, outside the retry schedule. */
  readonly redelivery?: true
  /** ISO 8601, UTC. */
  readonly startedAt: string
  readonly durationMillis: number
  /** The receiver's HTTP status. */
  readonly status?: number
  /** Why there was no status. */
  readonly error?: string
  /** The start of the receiver's answer. */
  readonly bodyStart?: string
}

/** An event on its way to one receiver. */
export interface Delivery {
  readonly id: string
  readonly event: string
  readonly kind: EventKind
  readonly payment: string
  readonly merchantRef: string
  /** Absent for a payment's own `webhookUrl`. */
  readonly endpoint?: string
  readonly url: string
  readonly status: DeliveryStatus
  /** ISO 8601, UTC. */
  readonly createdAt: string
  /** ISO 8601, UTC. */
  readonly nextAttemptAt?: string
  readonly attemptsMade: number
  readonly lastAttempt?: DeliveryAttempt
}

export interface DeliveryWithAttempts extends Delivery {
  /** The first one and the last ten, when there were more. */
  readonly attempts: ReadonlyArray<DeliveryAttempt>
}

export interface SelectDeliveries {
  readonly endpoint?: string | undefined
  readonly payment?: string | undefined
  readonly status?: DeliveryFilter | undefined
  /** ISO 8601 with its zone, or a day. */
  readonly createdAfter?: string | undefined
  readonly createdBefore?: string | undefined
  /** `cursor` of the answer before. It belongs to its filters. */
  readonly cursor?: string | undefined
}

export interface ListDeliveries extends SelectDeliveries {
  /** Deliveries a page, 1 to 100. */
  readonly limit?: number | undefined
}

/** Newest first. */
export interface DeliveryPage {
  readonly data: ReadonlyArray<Delivery>
  /** Pass it for the next page; null at the end. */
  readonly cursor: string | null
}

export interface Redeliver {
  /** The endpoint to send to, in place of the former one. */
  readonly to?: string | undefined
}

/** Without `status`, what is `failing`. */
export interface RedeliverSome extends SelectDeliveries, Redeliver {}

export interface Redelivered {
  readonly id: string
  /** `due`: an attempt was about to be made already. */
  readonly result: "ordered" | "due"
}

export interface RedeliveredSome {
  readonly ordered: number
  readonly due: number
  /** They went to a deleted endpoint: name another one with `to`. */
  readonly refused: number
  /** Send the same body with it to go on; null at the end. */
  readonly cursor: string | null
}

/** The body of a webhook. */
export interface WebhookEvent {
  /** The same for every delivery of the event: skip ids that you have already processed. */
  readonly id: string
  readonly event: EventKind
  /** ISO 8601, UTC. */
  readonly createdAt: string
  /** The payment as it was at the time of the event. */
  readonly data: AccountedPayment
  /** What `payment.exception` is about, and only there. */
  readonly exception?: PaymentException
}

/** The body that `tilld webhooks test` sends, without a payment. Respond with a 2xx, and do nothing else. */
export interface WebhookTest {
  /** `test_…`. */
  readonly id: string
  readonly event: "test"
  /** ISO 8601, UTC. */
  readonly createdAt: string
  /** The endpoint that it was sent to, `wh_…`. */
  readonly endpoint: string
  readonly message: string
}

/** The codes of tilld's error responses. Later versions of `/v1` may have more. */
export type ErrorCode =
  | "VALIDATION_ERROR"
  | "INVALID_JSON"
  | "INVALID_CURSOR"
  | "BAD_REQUEST"
  | "UNAUTHORIZED"
  | "FORBIDDEN"
  | "NOT_FOUND"
  | "METHOD_NOT_ALLOWED"
  | "REQUEST_TIMEOUT"
  | "DUPLICATE_MERCHANT_REF"
  | "PAYMENT_NOT_PENDING"
  | "IDEMPOTENCY_KEY_IN_USE"
  | "ROTATION_UNDER_WAY"
  | "ENDPOINT_DELETED"
  | "EXCEPTION_RESOLVED"
  | "NOTHING_TO_REFUND"
  | "QUOTE_EXPIRED"
  | "QUOTE_ALREADY_USED"
  | "TOO_MANY_ENDPOINTS"
  | "PAYLOAD_TOO_LARGE"
  | "UNSUPPORTED_MEDIA_TYPE"
  | "IDEMPOTENCY_KEY_REUSED"
  | "QUOTE_NOT_FOUND"
  | "QUOTE_MISMATCH"
  | "AMOUNT_TOO_SMALL"
  | "TRANSACTION_NOT_PROVEN"
  | "RATE_LIMITED"
  | "TOO_MANY_STREAMS"
  | "HEADERS_TOO_LARGE"
  | "INTERNAL"
  | "SHUTTING_DOWN"
  | "STORE_UNAVAILABLE"
  | "TOO_MANY_CONNECTIONS"
  | "OVERLOADED"
  | "RATE_UNAVAILABLE"
  | "WALLET_NOT_CONFIGURED"
  | "QUOTA_EXCEEDED"
