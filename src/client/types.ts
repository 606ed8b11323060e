// Generated from the schemas of the server: npm run docs. The package needs no other package for its types.

export type Chain = "ethereum" | "polygon" | "arbitrum" | "optimism" | "base"

export type PaymentCurrency = "ETH" | "USDC" | "USDT" | "DAI" | "WBTC"

export type Fiat =
  | "USD"
  | "EUR"
  | "GBP"
  | "MXN"
  | "AUD"
  | "BRL"
  | "CAD"
  | "CHF"
  | "CZK"
  | "DKK"
  | "JPY"
  | "NOK"
  | "NZD"
  | "PLN"
  | "SEK"

export type QuoteCurrency = Fiat | "ETH" | "USDC" | "USDT" | "DAI" | "WBTC" | "MATIC"

export type PaymentStatus = "pending" | "detecting" | "confirmed" | "expired" | "failed"

export type FailureReason =
  | "insufficient_amount"
  | "wrong_token"
  | "wrong_chain"
  | "reorged"
  | "abandoned"
  | "cancelled"

export type EventKind =
  | "payment.created"
  | "payment.detecting"
  | "payment.confirmed"
  | "payment.expired"
  | "payment.failed"
  | "payment.updated"
  | "payment.exception"
  | "refund.final"
  | "invoice.created"
  | "invoice.processing"
  | "invoice.paid"
  | "invoice.expired"
  | "invoice.failed"
  | "invoice.cancelled"

export type PaymentEventKind =
  | "payment.created"
  | "payment.detecting"
  | "payment.confirmed"
  | "payment.expired"
  | "payment.failed"
  | "payment.updated"
  | "payment.exception"
  | "refund.final"

export type InvoiceEventKind =
  | "invoice.created"
  | "invoice.processing"
  | "invoice.paid"
  | "invoice.expired"
  | "invoice.failed"
  | "invoice.cancelled"

export type InvoiceStatus = "open" | "processing" | "paid" | "expired" | "failed" | "cancelled"

export type Language = "en" | "es" | "de" | "fr" | "pt"

export type ReceiptKind =
  | "credited"
  | "overpaid"
  | "underpaid"
  | "late"
  | "wrong_token"
  | "wrong_chain"
  | "unattributed"
  | "found_late"
  | "reorged"
  | "unknown_payment"
  | "too_small"
  | "gas"
  | "before"

export type RefundStatus = "noted" | "begun" | "seen" | "final" | "not_found" | "failed"

export type ExceptionKind =
  | "overpaid"
  | "underpaid"
  | "late"
  | "wrong_token"
  | "wrong_chain"
  | "unattributed"
  | "found_late"
  | "reorged"

export type LedgerKind = "receipt" | "refund" | "collection" | "gas"

export type DeliveryStatus = "pending" | "delivered" | "failed" | "cancelled"

export type DeliveryFilter = "pending" | "delivered" | "failed" | "cancelled" | "failing"

/** Your own data, as it was given. */
export type Metadata = Readonly<Record<string, unknown>>

/** A payment. Fields that do not apply yet are absent, never null. */
export interface Payment {
  /** Identifier of the payment. */
  readonly id: string
  /** Your reference, in NFC and without blanks around it. */
  readonly merchantRef: string
  /** What is asked for, in the smallest unit of the token: wei for ETH, millionths for USDC. */
  readonly amount: string
  /** Symbol of the token. */
  readonly currency: PaymentCurrency
  /** The chain to pay on. */
  readonly chain: Chain
  /** Receiving address made for this payment alone, in EIP-55 form. */
  readonly address: string
  /** `pending`: waiting for money. `detecting`: money was seen and waits for confirmations. `confirmed`: enough came and is deep enough. `expired`: nothing came in time. `failed`: see `failureReason`. */
  readonly status: PaymentStatus
  /** When the payment was created. ISO 8601, UTC, with milliseconds. */
  readonly createdAt: string
  /** Until when money is on time: `createdAt` plus `expiresIn`. ISO 8601, UTC, with milliseconds. */
  readonly expiresAt: string
  /** Your own data, as given; empty when none was. */
  readonly metadata: Metadata
  /** Address of the page on which the customer pays, in five languages: a link that needs no key. Whoever has it sees what is to be paid and what has come, and nothing else of yours. */
  readonly checkoutUrl: string
  /** What came in the currency asked for on the chain asked for, also too much, too late or not confirmed yet, without transfers that are too small to be credited, in the smallest unit of the token: wei for ETH, millionths for USDC. */
  readonly received: string
  /** What was sent back of that, in the smallest unit of the token: wei for ETH, millionths for USDC. */
  readonly refunded: string
  /** `received` less `refunded`, in the smallest unit of the token: wei for ETH, millionths for USDC. */
  readonly kept: string
  /** What has come in the currency asked for, on time, confirmed or not; of an ended payment, what was confirmed by then, in the smallest unit of the token: wei for ETH, millionths for USDC. */
  readonly amountReceived?: string
  /** Hash of the first transaction that was seen; once confirmed, of the one that completed the amount. From `detecting` on. */
  readonly txHash?: string
  /** When the payment was confirmed. From `confirmed` on. ISO 8601, UTC, with milliseconds. */
  readonly confirmedAt?: string
  /** Why it failed. `insufficient_amount`: too little came in time. `wrong_token`, `wrong_chain`: only such money came. `reorged`: the chain took back what had been confirmed. `abandoned`: the operator gave up the chain. `cancelled`: you ended it. When `failed`, and as `cancelled` also when `expired`. */
  readonly failureReason?: FailureReason
  /** Contract of the token on this chain when the payment was created, in EIP-55 form. Absent for the chain's own coin. */
  readonly tokenContract?: string
  /** Id of the chain (EIP-155), as wallets know it. Absent if the operator no longer configures the chain. */
  readonly chainId?: number
  /** Decimals of the token: 6 if a million base units are one. */
  readonly decimals?: number
  /** What is to be paid now as an EIP-681 URI, for a wallet or a QR code: `amountRemaining` of a part-paid payment, else `amount`. Absent when there is nothing to pay any more. */
  readonly paymentUri?: string
  /** What is still missing, while only a part has come, in the smallest unit of the token: wei for ETH, millionths for USDC. */
  readonly amountRemaining?: string
  /** The invoice that a customer's choice made this payment of. */
  readonly invoice?: {
    /** Identifier of the invoice. */ readonly id: string
    /** Your reference of the invoice. */
    readonly merchantRef?: string
    readonly price: Price
  }
}

/** A payment, with the money that does not fit it. Fields that do not apply yet are absent, never null. */
export interface AccountedPayment extends Payment {
  /** Where the customer goes after paying, as given; only in answers that read or change a payment. */
  readonly redirectUrl?: string
  /** Money that came and does not fit, when there is any. What is open comes first, and of that `found_late` and `reorged`; at most 100, and 10 in an event. */
  readonly exceptions?: ReadonlyArray<PaymentException>
  /** What came to the payment's address, on any chain, oldest first, where anything did; with one payment and in events. At most 100, and 10 in an event: the newest. */
  readonly receipts?: ReadonlyArray<Receipt>
  /** What goes back of it, oldest first, where anything does; with one payment and in events. */
  readonly refunds?: ReadonlyArray<Refund>
  /** Of a confirmed payment: money that does not fit it and was accepted by hand, such as another token or another chain. What it asked for is in `kept` alone. */
  readonly acceptedAs?: ReadonlyArray<AcceptedMoney>
  /** Set when there are more than are shown: `GET /v1/exceptions?payment=` lists them all. */
  readonly moreExceptions?: true
}

/** A page of payments. */
export interface PaymentPage {
  /** Newest first. */
  readonly data: ReadonlyArray<AccountedPayment>
  /** Asks for the next page; null at the end. */
  readonly cursor: string | null
}

/** Money that goes back to a customer. */
export interface Refund {
  /** Identifier of the refund. */
  readonly id: string
  /** The payment whose money it sends back. */
  readonly payment?: string
  /** The exceptions whose money it sends back, where there are any. */
  readonly exceptions?: ReadonlyArray<string>
  /** `noted`: recorded; no transaction was named, or the chain has not shown it yet, as for an hour of a wrong one. `begun`: signed transfers are being sent. `seen`: the chain has it, without the confirmations yet. `final`: the chain has it for good. `not_found`: the chain has not had the transaction for an hour: name the right one, or drop the refund. `failed`: see `problem`; the money is open again, and another refund of it is a new one. */
  readonly status: RefundStatus
  /** The chain that the money is on. */
  readonly chain: Chain
  /** What is sent back. */
  readonly currency: string
  /** How much, in the smallest unit. */
  readonly amount: string
  /** Who gets it, in EIP-55 form, where that is known. */
  readonly to?: string
  /** Who sent it, in EIP-55 form, once the chain has shown it: the payment's own address, or another wallet of yours. */
  readonly from?: string
  /** The transaction that sends it. */
  readonly txHash?: string
  /** The note that was left with it. */
  readonly reason?: string
  /** Why it is `not_found` or `failed`, or why the chain cannot tell. */
  readonly problem?: string
  /** When it was recorded. ISO 8601, UTC, with milliseconds. */
  readonly createdAt: string
  /** When it got its status. ISO 8601, UTC, with milliseconds. */
  readonly changedAt: string
}

/** A page of refunds. */
export interface RefundPage {
  /** Newest first. */
  readonly data: ReadonlyArray<Refund>
  /** Asks for the next page; null at the end. */
  readonly cursor: string | null
}

export interface RefundedPart {
  /** Identifier of the refund. */
  readonly id: string
  /** As of the refund: `failed` is not sent back. */
  readonly status: RefundStatus
  /** How much of this money goes back, in the smallest unit. */
  readonly amount: string
  /** The transaction that sends it. */
  readonly txHash?: string
  /** The note that was left with it. */
  readonly note?: string
  /** When it was recorded. ISO 8601, UTC, with milliseconds. */
  readonly refundedAt: string
}

/** Money that came to a payment's address. */
export interface Receipt {
  /** The transaction; absent where no node can tell it. */
  readonly txHash?: string
  /** Who sent it, in EIP-55 form, where that is known. */
  readonly from?: string
  /** The chain that it came on. */
  readonly chain: Chain
  /** What came. */
  readonly currency: string
  /** How much, in the smallest unit. */
  readonly amount: string
  /** The time of its block. ISO 8601, UTC, with milliseconds. */
  readonly at: string
  /** `credited`: it counts for the payment, all or a part of it. `too_small`: below what is credited. `gas`: the operator sent it to pay for collecting. `before`: it came before the payment. The others are as of exceptions. */
  readonly kind: ReceiptKind
  /** Blocks from its own to the head that was read, its own included. */
  readonly confirmations?: number
}

/** Money that was accepted by hand. */
export interface AcceptedMoney {
  /** The exception that was accepted. */
  readonly exception: string
  /** The chain that the money is on. */
  readonly chain: Chain
  /** What came. */
  readonly currency: string
  /** How much, in the smallest unit of that. */
  readonly amount: string
  /** The transaction that brought it, where that is known. */
  readonly txHash?: string
}

/** An amount of fiat money. */
export interface Price {
  /** A decimal. */
  readonly amount: string
  /** The currency of the price. */
  readonly currency: Fiat
}

/** A price, and what was paid of it. Fields that do not apply yet are absent, never null. */
export interface Invoice {
  /** Identifier of the invoice. */
  readonly id: string
  /** Your reference, as given. */
  readonly merchantRef?: string
  readonly price: Price
  /** `open`: nobody has paid. `processing`: money was seen, all of it or a part, and waits for confirmations or the rest. `paid`: its payment is confirmed. `expired`: nothing came in time. `failed`: its payment failed, see there. `cancelled`: you ended it. */
  readonly status: InvoiceStatus
  /** What the customer may pay in: token and network, such as `USDC-base`. */
  readonly currencies: ReadonlyArray<string>
  /** When the invoice was created. ISO 8601, UTC, with milliseconds. */
  readonly createdAt: string
  /** Until when it can be paid. ISO 8601, UTC, with milliseconds. */
  readonly expiresAt: string
  /** Your own data, as given; empty when none was. */
  readonly metadata: Metadata
  /** Address of the page on which the customer chooses and pays: a link that needs no key. */
  readonly checkoutUrl: string
  /** Where the customer goes after paying, as given. */
  readonly redirectUrl?: string
  /** The language of its page, unless the customer takes another. */
  readonly language?: Language
  /** The payment of the last choice; absent before the first. */
  readonly payment?: string
  /** The payments of all choices, oldest first, also those that another choice replaced. */
  readonly payments: ReadonlyArray<Payment>
}

/** A page of invoices. */
export interface InvoicePage {
  /** Newest first. */
  readonly data: ReadonlyArray<Invoice>
  /** Asks for the next page; null at the end. */
  readonly cursor: string | null
}

/** `data` is the invoice in its state at that time. */
export interface InvoiceEvent {
  /** Identifier of the event. It can come more than once: skip the ids that you know. */
  readonly id: string
  /** What happened. */
  readonly event: InvoiceEventKind
  /** When it happened. ISO 8601, UTC, with milliseconds. */
  readonly createdAt: string
  readonly data: Invoice
}

/** Money that fits no payment and needs a person. */
export interface PaymentException {
  /** Identifier of the exception. The same money keeps it for ever. */
  readonly id: string
  /** The payment whose address the money came to. */
  readonly payment: string
  /** Your reference of that payment. */
  readonly merchantRef: string
  /** `overpaid`: more than was missing, or paid again. `underpaid`: what a payment had when it failed or was cancelled. `late`: mined after the deadline. `wrong_token`, `wrong_chain`: not what was asked for. `unattributed`: no node can tell the transaction, or only one can tell of the money at all. `found_late`: on time, but seen after the payment had ended. `reorged`: what a confirmed payment lacks since the chain undid it. */
  readonly kind: ExceptionKind
  /** The chain that the money is on. */
  readonly chain: Chain
  /** What came: a token's symbol, the name of a known wrong token such as `USDC.e`, or the contract of a token that is taken no longer. */
  readonly currency: string
  /** How much, in the smallest unit of what came. Of what is sent back in parts: what is left, and all of it once all was sent back. */
  readonly amount: string
  /** How much of it was sent back, where that is not all of it. */
  readonly amountRefunded?: string
  /** Its refunds, the oldest first, when there are any. */
  readonly refunds?: ReadonlyArray<RefundedPart>
  /** Who sent it, in EIP-55 form: the token's holder, or the transaction's sender. It may be an exchange: ask your customer before you send money back there. Absent for money that moved inside contracts, and where nodes differ. */
  readonly from?: string
  /** Hash of the transaction; absent where no node can tell it. */
  readonly txHash?: string
  /** Not yet corroborated: only one provider has the transaction. Wait before you decide: once a second one has it, an exception of another kind takes its place, and once it is refuted there is none. */
  readonly uncorroborated?: true
  /** The address that the money is at, in EIP-55 form. */
  readonly address: string
  /** The index of that address in its wallet. */
  readonly derivationIndex?: number
  /** The path of that address, as wallets show it. Absent where the wallet's key does not tell its account. */
  readonly path?: string
  /** When it was noticed. ISO 8601, UTC, with milliseconds. */
  readonly detectedAt: string
  /** Absent while it is open. `accepted`, `refunded`: what was decided. `gone`: a reorg took the money back, or it turned out to be something else. */
  readonly resolution?: "accepted" | "refunded" | "gone"
  /** When it was closed. ISO 8601, UTC, with milliseconds. */
  readonly resolvedAt?: string
  /** The transaction that the decision named: the one that sent money back, the last one where there were several, or the one that was accepted for money without a known transaction. */
  readonly resolutionTxHash?: string
  /** The note that was left with the decision. */
  readonly note?: string
}

/** A page of exceptions. */
export interface ExceptionPage {
  /** Newest first. */
  readonly data: ReadonlyArray<PaymentException>
  /** Asks for the next page; null at the end. */
  readonly cursor: string | null
}

/** A price that holds for 30 seconds, for one payment. */
export interface Quote {
  /** Identifier of the quote: the `quoteId` of a payment. */
  readonly id: string
  /** Source currency, as asked for. */
  readonly fromCurrency: QuoteCurrency
  /** Target currency, as asked for. */
  readonly toCurrency: QuoteCurrency
  /** What is converted, a decimal in `fromCurrency`, as asked for. */
  readonly fromAmount: string
  /** What is received, a decimal in `toCurrency`; all fees are taken off. */
  readonly toAmount: string
  /** What to charge a payer for what costs `fromAmount`, a decimal in `toCurrency`: `toAmount` and both fees together. */
  readonly chargeAmount: string
  /** Units of `toCurrency` for one `fromCurrency`, 12 significant digits. */
  readonly rate: string
  /** The chain that token prices and the network fee are of. */
  readonly chain: Chain
  /** Until when the quote can be used, 30 seconds after its creation. ISO 8601, UTC, with milliseconds. */
  readonly validUntil: string
  /** What `toAmount` lacks of `fromAmount` × `rate`, rounded down. */
  readonly fees: {
    /** Estimated cost of the transfer on the chain, in `toCurrency`. */ readonly network: string
    /** The fee of whoever runs this service, 0.5 % unless they set another, rounded up, in `toCurrency`. */
    readonly service: string
  }
}

/** Money that moved, and its worth at that moment. */
export interface LedgerRow {
  /** Identifier of the row. A reorg that mines the same transfer again changes nothing of it. */
  readonly id: string
  /** The time of its block. ISO 8601, UTC, with milliseconds. */
  readonly at: string
  /** `receipt`: money that came. `refund`: money that was sent back. `collection`: money that `tilld sweep` moved to the operator's own address. `gas`: what a transaction of `tilld sweep` paid. */
  readonly kind: LedgerKind
  /** The refund; absent where it is none. */
  readonly refund?: string
  /** Of a refund: while it is `noted`, the chain has not shown it, and `at` is the time of its record. */
  readonly status?: RefundStatus
  /** The payment; absent where there are several, as of a batch's gas. */
  readonly payment?: string
  /** The payment's reference. */
  readonly merchantRef?: string
  /** The chain that the money moved on. */
  readonly chain: Chain
  /** What moved: a token's symbol, a wrong token's name, or its contract. */
  readonly currency: string
  /** How much, in the smallest unit. */
  readonly amount: string
  /** Decimals of the currency; absent where they are not known. */
  readonly decimals?: number
  /** The amount in whole tokens, a decimal. */
  readonly quantity?: string
  /** Who sent it, in EIP-55 form; absent where that is not known. */
  readonly from?: string
  /** Who received it, in EIP-55 form; of gas, what the transaction called. Absent for a refund whose receiver is not known. */
  readonly to?: string
  /** The transaction; absent where no node can tell it. */
  readonly txHash?: string
  /** Of a receipt what the money is, as for the payment. Of a refund and of gas who paid: a receiving `address`, the `sponsor`, or `elsewhere`. */
  readonly what?: string
  /** What was decided on the money of a receipt that did not fit; `none` where nothing had to be. */
  readonly decision: "accepted" | "refunded" | "open" | "none"
  /** How much of a receipt is income, in the smallest unit; of a refund, how much of it was. */
  readonly credited?: string
  /** The amount in the account's currency when tilld first stored it, a decimal with at most four digits behind the point. It never changes. Absent where no rate was known. */
  readonly worth?: string
  /** What the row adds to the income, in the account's currency: the worth of `credited`, below zero for a refund. */
  readonly income?: string
  /** The account's currency of then. */
  readonly worthCurrency?: Fiat
  /** Units of that currency for one whole token. */
  readonly rate?: string
  /** Where the rate is from: `quote`, or the names of price sources. */
  readonly rateSource?: string
  /** Why there is no worth. `unknown_token`: it has no price. `no_fresh_price`: no source had one. `seen_late`: the money was seen more than a day after its block. `too_small`: it is not credited. */
  readonly worthUnknown?: "unknown_token" | "no_fresh_price" | "seen_late" | "too_small"
}

/** A page of the ledger. */
export interface LedgerPage {
  /** Newest first. */
  readonly data: ReadonlyArray<LedgerRow>
  /** Asks for the next page, also where filters left few rows of this one; null at the end. */
  readonly cursor: string | null
}

/** A token that a payment can be made in, on one chain. */
export interface PayableCurrency {
  /** Symbol of the token. */
  readonly currency: PaymentCurrency
  /** The chain to pay on. */
  readonly chain: Chain
  /** Id of the chain (EIP-155), as wallets know it. */
  readonly chainId: number
  /** Decimals of the token: 6 if a million base units are one. */
  readonly decimals: number
  /** Whether it is the chain's own coin, which has no contract. */
  readonly native: boolean
  /** Contract of the token, in EIP-55 form. */
  readonly contract?: string
}

export interface CurrencyList {
  /** By chain, in the order of the configuration. */
  readonly data: ReadonlyArray<PayableCurrency>
}

/** A registered endpoint, without its secret. */
export interface WebhookEndpoint {
  /** Identifier of the endpoint. */
  readonly id: string
  /** Where events go. */
  readonly url: string
  /** The event kinds that it receives. */
  readonly events: ReadonlyArray<EventKind>
  /** When it was registered. ISO 8601, UTC, with milliseconds. */
  readonly createdAt: string
  /** While the former secret signs too: until when. ISO 8601, UTC, with milliseconds. */
  readonly formerSecretUntil?: string
}

export interface WebhookEndpointList {
  /** All of them, at most 50. */
  readonly data: ReadonlyArray<WebhookEndpoint>
}

export interface DeletedWebhookEndpoint {
  /** Identifier of the endpoint that was deleted. */
  readonly id: string
  readonly deleted: true
  /** How many deliveries ended with it: they had not arrived yet. Each can be sent to another endpoint, with `to`. */
  readonly cancelled?: number
}

export interface DeliveryAttempt {
  /** Counts all attempts of the delivery, from 1 on. */
  readonly number: number
  /** Set when it was ordered, outside the retry schedule. */
  readonly redelivery?: true
  /** When it began. ISO 8601, UTC, with milliseconds. */
  readonly startedAt: string
  /** How long it took. */
  readonly durationMillis: number
  /** The receiver's HTTP status. Absent when it gave none. */
  readonly status?: number
  /** Why there was no status, such as `timeout` or `connection refused`. */
  readonly error?: string
  /** The start of the receiver's answer, at most 512 bytes. */
  readonly bodyStart?: string
}

/** An event on its way to one receiver. */
export interface Delivery {
  /** Identifier of the delivery. */
  readonly id: string
  /** The event that it delivers. The same at every endpoint. */
  readonly event: string
  /** What the event tells. */
  readonly kind: EventKind
  /** The payment that it tells of. */
  readonly payment?: string
  /** The invoice that it tells of, where it is no payment. */
  readonly invoice?: string
  /** Your own reference of the payment or invoice; of an invoice without one, its id. */
  readonly merchantRef: string
  /** The endpoint that it goes to. Absent for a payment's own `webhookUrl`. */
  readonly endpoint?: string
  /** Where the last attempt went; before the first one, where it will go. */
  readonly url: string
  /** `pending` until it arrives, `failed` once its fifth attempt has failed, with the sixth ahead while `nextAttemptAt` is there; `cancelled` when its endpoint was deleted. */
  readonly status: DeliveryStatus
  /** When it was made. ISO 8601, UTC, with milliseconds. */
  readonly createdAt: string
  /** When the next attempt is due. ISO 8601, UTC, with milliseconds. */
  readonly nextAttemptAt?: string
  /** How many attempts were made. */
  readonly attemptsMade: number
  readonly lastAttempt?: DeliveryAttempt
}

/** A delivery with its attempts. */
export interface DeliveryWithAttempts extends Delivery {
  /** In the order in which they were made: the first one and the last ten, when there were more. */
  readonly attempts: ReadonlyArray<DeliveryAttempt>
}

/** A page of deliveries. */
export interface DeliveryPage {
  /** Newest first. */
  readonly data: ReadonlyArray<Delivery>
  /** Asks for the next page; null at the end. */
  readonly cursor: string | null
}

export interface Redelivered {
  /** The delivery that is sent: with `to`, the one to that endpoint. */
  readonly id: string
  /** `ordered`: an attempt is made now. `due`: one was about to be made already, and nothing was added. */
  readonly result: "ordered" | "due"
}

export interface RedeliveredSome {
  /** For how many an attempt is made now. */
  readonly ordered: number
  /** For how many nothing was added: an attempt was about to be made already or, with `to`, the event has arrived there. */
  readonly due: number
  /** How many went to a deleted endpoint: name another one with `to`. With `to`, how many report no new status and are of a kind that this endpoint does not name. */
  readonly refused: number
  /** Send the same body with this `cursor` to go on with the rest; null at the end. */
  readonly cursor: string | null
}

/** `data` is the payment in its state at the time of the event; `exception`, in `payment.exception` only, and `refund`, in `refund.final` only, what it is about, as it is now. */
export interface WebhookEvent {
  /** Identifier of the event. It can come more than once: skip the ids that you know. */
  readonly id: string
  /** What happened. */
  readonly event: PaymentEventKind
  /** When it happened. ISO 8601, UTC, with milliseconds. */
  readonly createdAt: string
  readonly data: AccountedPayment
  readonly exception?: PaymentException
  readonly refund?: Refund
}

/** What the customer is to pay, in fiat money. */
export interface PriceOfInvoice {
  /** What it costs, with no more decimals than the currency has. Must be a decimal string above 0 such as "25.00", with at most 15 digits before the point. */
  readonly amount: string
  /** The currency of the price. Must be USD, EUR, GBP, MXN, AUD, BRL, CAD, CHF, CZK, DKK, JPY, NOK, NZD, PLN or SEK. */
  readonly currency: Fiat
}

/** A price to be paid. Unknown fields are refused. */
export interface CreateInvoice {
  readonly price: PriceOfInvoice
  /** Your own reference, once in an account and mode unless the account lets invoices repeat one, in NFC: blanks around it do not count, and each other one is a plain one. Must be a string of 1 to 128 printable characters. */
  readonly merchantRef?: string | undefined
  /** What the customer may choose; by default all that can be paid in. One alone is chosen at once. Must be a list of tokens and networks such as USDC-base, each once, at least one. */
  readonly currencies?: ReadonlyArray<string> | undefined
  /** How long there is to pay. Must be an integer from 60 to 86400, in seconds. By default `3600`. */
  readonly expiresIn?: number | undefined
  /** Your own data, returned as given. At most 50 keys of 40 characters, strings of 500 characters, 5 levels and 16 KiB; a number that a double cannot hold exactly is refused. */
  readonly metadata?: Metadata | undefined
  /** Where the customer goes after paying. Must be an https URL of at most 2048 characters, without user info; http is possible on localhost with a test key. */
  readonly redirectUrl?: string | undefined
  /** Gets every event that reports a new status of this payment, signed with the account's default secret, or with the endpoint's own where it is a registered one. Must be an https URL without user info, to a public address. */
  readonly webhookUrl?: string | undefined
  /** The language of its page; by default the customer's. Must be en, es, de, fr or pt. */
  readonly language?: Language | undefined
}

/** What the customer pays in. Unknown fields are refused. */
export interface Choose {
  /** The token to be paid in. Must be ETH, USDC, USDT, DAI or WBTC; MATIC is quoted, not taken. */
  readonly currency: PaymentCurrency
  /** The chain to be paid on. Must be ethereum, polygon, arbitrum, optimism or base. */
  readonly chain: Chain
}

/** What is to be paid. Unknown fields are refused. */
export interface CreatePayment {
  /** Your own reference, once for ever in an account and mode, in NFC: blanks around it do not count, and each other one is a plain one. Must be a string of 1 to 128 printable characters. */
  readonly merchantRef: string
  /** What is to be paid. Must be a string of digits in the smallest unit of the token, at most 2^256 - 1, without sign or leading zero: 25 USDC are "25000000". */
  readonly amount: string
  /** The token to be paid in. Must be ETH, USDC, USDT, DAI or WBTC; MATIC is quoted, not taken. */
  readonly currency: PaymentCurrency
  /** The chain to be paid on. Must be ethereum, polygon, arbitrum, optimism or base. */
  readonly chain: Chain
  /** Gets every event that reports a new status of this payment, signed with the account's default secret, or with the endpoint's own where it is a registered one. Must be an https URL without user info, to a public address. */
  readonly webhookUrl?: string | undefined
  /** Where the customer goes after paying. Must be an https URL of at most 2048 characters, without user info; http is possible on localhost with a test key. */
  readonly redirectUrl?: string | undefined
  /** How long there is to pay. Must be an integer from 60 to 86400, in seconds. By default `3600`. */
  readonly expiresIn?: number | undefined
  /** Your own data, returned as given. At most 50 keys of 40 characters, strings of 500 characters, 5 levels and 16 KiB; a number that a double cannot hold exactly is refused. */
  readonly metadata?: Metadata | undefined
  /** Locks the quote's rate for this payment. Must be the id of a quote. */
  readonly quoteId?: string | undefined
}

/** What goes back. Unknown fields are refused. */
export interface RefundPayment {
  /** How much goes back: what is open first, then what counts for the payment, and never more than is left. Must be a string of digits in the smallest unit of what came, without sign or leading zero. */
  readonly amount: string
  /** Which of the money that came; the payment's own currency if absent. Must be a currency that came for the payment. */
  readonly currency?: string | undefined
  /** On which chain the money came; the payment's if absent. Must be ethereum, polygon, arbitrum, optimism or base. */
  readonly chain?: Chain | undefined
  /** Who gets it. Without `txHash`, the operator's `tilld sweep plan --refund` can send it there. Must be an address: 0x and 40 hexadecimal digits. */
  readonly to?: string | undefined
  /** The transaction that sends it, which is looked up on the chain; it can be named later. Must be a transaction's hash: 0x and 64 hexadecimal digits. */
  readonly txHash?: string | undefined
  /** Kept with it, and shown to everybody who sees it. Must be a string of 1 to 500 characters, without control characters. */
  readonly reason?: string | undefined
}

/** Which transaction a refund is. Unknown fields are refused. */
export interface NameRefund {
  /** The transaction that sends it, of a refund without one, or whose one is not found. Must be a transaction's hash: 0x and 64 hexadecimal digits. */
  readonly txHash: string
}

/** A decision. Unknown fields are refused. */
export interface ResolveException {
  /** What you have decided: to take the money, or to send it back, which you have done with your own wallet. Must be accept or refund. */
  readonly action: "accept" | "refund"
  /** With `refund` the transaction that sends the money back, which is looked up on the chain. With `accept` the transaction that paid, where the exception has none: the chain must have it, with its confirmations. Must be a transaction's hash: 0x and 64 hexadecimal digits. */
  readonly txHash?: string | undefined
  /** With `refund`: how much goes back; the rest stays open. Must be a string of digits in the smallest unit of what came, without sign or leading zero. */
  readonly amount?: string | undefined
  /** Kept with it, and shown to everybody who sees it. Must be a string of 1 to 500 characters, without control characters. */
  readonly note?: string | undefined
}

/** What is to be priced. Unknown fields are refused. */
export interface CreateQuote {
  /** Source currency; MATIC is quoted, and no payment takes it. Must be USD, EUR, GBP, MXN, AUD, BRL, CAD, CHF, CZK, DKK, JPY, NOK, NZD, PLN, SEK, ETH, USDC, USDT, DAI, WBTC or MATIC. */
  readonly fromCurrency: QuoteCurrency
  /** Target currency, another than the source; MATIC is quoted, and no payment takes it. Must be USD, EUR, GBP, MXN, AUD, BRL, CAD, CHF, CZK, DKK, JPY, NOK, NZD, PLN, SEK, ETH, USDC, USDT, DAI, WBTC or MATIC. */
  readonly toCurrency: QuoteCurrency
  /** What is to be converted, in `fromCurrency`, with no more decimals than that has. Must be a decimal string above 0, such as "100.50", with at most 30 digits before the point and 18 after it. */
  readonly amount: string
  /** The chain that the token is on; when absent ethereum, or the token's only chain. Must be ethereum, polygon, arbitrum, optimism or base. */
  readonly chain?: Chain | undefined
}

/** Where events are to go. Unknown fields are refused. */
export interface CreateWebhookEndpoint {
  /** Must be an https URL of at most 2048 characters, without user info. */
  readonly url: string
  /** The event kinds to send; `payment.updated`, `payment.exception` and `refund.final` go only to endpoints that name them. */
  readonly events: ReadonlyArray<EventKind>
  /** Signs what is sent to this endpoint; it is never shown again. Must be whsec_ followed by 16 to 256 visible characters. */
  readonly secret: string
}

/** What of a payment is changed. Unknown fields are refused. */
export interface ChangePayment {
  /** Each key gets its new value as a whole, and `null` removes it; the other keys stay. The outcome keeps the rules of a new payment. At most 50 keys of 40 characters, strings of 500 characters, 5 levels and 16 KiB; a number that a double cannot hold exactly is refused. */
  readonly metadata: Metadata
}

/** What is to change: at least one of `url`, `events` and `secret`. Unknown fields are refused. */
export interface ChangeWebhookEndpoint {
  /** Must be an https URL of at most 2048 characters, without user info. */
  readonly url?: string | undefined
  /** The event kinds to send; `payment.updated`, `payment.exception` and `refund.final` go only to endpoints that name them. */
  readonly events?: ReadonlyArray<EventKind> | undefined
  /** Signs what is sent to this endpoint; it is never shown again. Must be whsec_ followed by 16 to 256 visible characters. */
  readonly secret?: string | undefined
  /** How long the former secret also signs. Must be an integer from 0 to 2592000, in seconds, with a secret. By default `86400`. */
  readonly overlapSeconds?: number | undefined
}

/** May be `{}`. Unknown fields are refused. */
export interface Redeliver {
  /** The endpoint to send to, in place of the former one. Must be an id: wh_ and letters, digits, _ or -. */
  readonly to?: string | undefined
}

/** Which deliveries to send again: the filters of the list. Unknown fields are refused. */
export interface RedeliverSome {
  /** Only those to this endpoint. Must be an id: wh_ and letters, digits, _ or -. */
  readonly endpoint?: string | undefined
  /** Only those of this payment. Must be an id: pay_ and letters, digits, _ or -. */
  readonly payment?: string | undefined
  /** Only those made at this time or later. Must be a time such as 2026-01-31T12:00:00Z, or a day such as 2026-01-31. */
  readonly createdAfter?: string | undefined
  /** Only those made before this time. Must be a time such as 2026-01-31T12:00:00Z, or a day such as 2026-01-31. */
  readonly createdBefore?: string | undefined
  /** Only deliveries in this state. Must be pending, delivered, failed, cancelled or failing. By default `failing`. */
  readonly status?: DeliveryFilter | undefined
  /** The endpoint to send to, in place of the former one. Must be an id: wh_ and letters, digits, _ or -. */
  readonly to?: string | undefined
  /** The `cursor` of the page before, with the same filters; it never expires. Must be given once. */
  readonly cursor?: string | undefined
}

/** What a list is selected by. */
export interface ListPayments {
  /** Only payments in this status; `pending` does not include `detecting`. Must be pending, detecting, confirmed, expired or failed. */
  readonly status?: PaymentStatus | undefined
  /** Only payments on this chain. Must be ethereum, polygon, arbitrum, optimism or base. */
  readonly chain?: Chain | undefined
  /** Only the payment with this reference, in NFC: blanks around it do not count, and each other one is a plain one. Must be a string of 1 to 128 printable characters. */
  readonly merchantRef?: string | undefined
  /** Only the payment with this address. Must be an address: 0x and 40 hexadecimal digits, all in one case or with their EIP-55 checksum. */
  readonly address?: string | undefined
  /** Only payments that this transaction sent something to, even too late, of another token, or in a block that a reorg has removed since. Must be a transaction's hash: 0x and 64 hexadecimal digits. */
  readonly txHash?: string | undefined
  /** Only payments that this address sent something to. Must be an address: 0x and 40 hexadecimal digits. */
  readonly from?: string | undefined
  /** Only payments with these texts of up to 100 characters, numbers or booleans in the first level of their metadata, in any case of letters. Must be metadata[KEY]=VALUE, with 10 different keys at most. */
  readonly metadata?: Readonly<Record<string, string>> | undefined
  /** Only payments that this names: the id of a payment, a quote, an exception or a refund, the address of a checkout page or its token, a receiving address, a sender, a transaction, a reference, or a whole value in the metadata; the first of these that there are any of. Must be given once, and not be empty. */
  readonly search?: string | undefined
  /** Only payments created at this time or later. Must be a time such as 2026-01-31T12:00:00Z, or a day such as 2026-01-31. */
  readonly createdAfter?: string | undefined
  /** Only payments created before this time. Must be a time such as 2026-01-31T12:00:00Z, or a day such as 2026-01-31. */
  readonly createdBefore?: string | undefined
  /** Payments a page. Must be an integer from 1 to 100. By default `20`. */
  readonly limit?: number | undefined
  /** The `cursor` of the page before, with the same filters; it never expires. Must be given once. */
  readonly cursor?: string | undefined
}

/** What a list is selected by. */
export interface ListInvoices {
  /** Only invoices in this status. Must be open, processing, paid, expired, failed or cancelled. */
  readonly status?: InvoiceStatus | undefined
  /** Only invoices with this reference, in NFC: blanks around it do not count, and each other one is a plain one. Must be a string of 1 to 128 printable characters. */
  readonly merchantRef?: string | undefined
  /** Only invoices created at this time or later. Must be a time such as 2026-01-31T12:00:00Z, or a day such as 2026-01-31. */
  readonly createdAfter?: string | undefined
  /** Only invoices created before this time. Must be a time such as 2026-01-31T12:00:00Z, or a day such as 2026-01-31. */
  readonly createdBefore?: string | undefined
  /** Invoices a page. Must be an integer from 1 to 100. By default `20`. */
  readonly limit?: number | undefined
  /** The `cursor` of the page before, with the same filters; it never expires. Must be given once. */
  readonly cursor?: string | undefined
}

/** What a list is selected by. */
export interface ListExceptions {
  /** Only those that are to be decided, or only those that are closed. Must be open or resolved. */
  readonly status?: "open" | "resolved" | undefined
  /** Only those of this kind. Must be overpaid, underpaid, late, wrong_token, wrong_chain, unattributed, found_late or reorged. */
  readonly kind?: ExceptionKind | undefined
  /** Only those of money on this chain. Must be ethereum, polygon, arbitrum, optimism or base. */
  readonly chain?: Chain | undefined
  /** Only those of this payment. Must be an id: pay_ and letters, digits, _ or -. */
  readonly payment?: string | undefined
  /** Exceptions a page. Must be an integer from 1 to 100. By default `20`. */
  readonly limit?: number | undefined
  /** The `cursor` of the page before, with the same filters; it never expires. Must be given once. */
  readonly cursor?: string | undefined
}

/** What a list is selected by. */
export interface ListRefunds {
  /** Only those of this payment. Must be an id: pay_ and letters, digits, _ or -. */
  readonly payment?: string | undefined
  /** Only those in this state. Must be noted, begun, seen, final, not_found or failed. */
  readonly status?: RefundStatus | undefined
  /** Refunds a page. Must be an integer from 1 to 100. By default `20`. */
  readonly limit?: number | undefined
  /** The `cursor` of the page before, with the same filters; it never expires. Must be given once. */
  readonly cursor?: string | undefined
}

/** What a list is selected by. */
export interface ListLedger {
  /** Only rows of this kind. Must be receipt, refund, collection or gas. */
  readonly kind?: LedgerKind | undefined
  /** Only money on this chain. Must be ethereum, polygon, arbitrum, optimism or base. */
  readonly chain?: Chain | undefined
  /** Only money of this currency. Must be given once. */
  readonly currency?: string | undefined
  /** Only rows of this payment. Must be an id: pay_ and letters, digits, _ or -. */
  readonly payment?: string | undefined
  /** Only money of blocks of this time or later. Must be a time such as 2026-01-31T12:00:00Z, or a day such as 2026-01-31. */
  readonly from?: string | undefined
  /** Only money of blocks before this time. Must be a time such as 2026-01-31T12:00:00Z, or a day such as 2026-01-31. */
  readonly until?: string | undefined
  /** Rows a page. Must be an integer from 1 to 100. By default `20`. */
  readonly limit?: number | undefined
  /** The `cursor` of the page before, with the same filters; it never expires. Must be given once. */
  readonly cursor?: string | undefined
}

/** What a list is selected by. */
export interface ListDeliveries {
  /** Only those to this endpoint. Must be an id: wh_ and letters, digits, _ or -. */
  readonly endpoint?: string | undefined
  /** Only those of this payment. Must be an id: pay_ and letters, digits, _ or -. */
  readonly payment?: string | undefined
  /** Only those made at this time or later. Must be a time such as 2026-01-31T12:00:00Z, or a day such as 2026-01-31. */
  readonly createdAfter?: string | undefined
  /** Only those made before this time. Must be a time such as 2026-01-31T12:00:00Z, or a day such as 2026-01-31. */
  readonly createdBefore?: string | undefined
  /** Only deliveries in this state; `failing` ones have a failed attempt and none that succeeded. Must be pending, delivered, failed, cancelled or failing. */
  readonly status?: DeliveryFilter | undefined
  /** Deliveries a page. Must be an integer from 1 to 100. By default `20`. */
  readonly limit?: number | undefined
  /** The `cursor` of the page before, with the same filters; it never expires. Must be given once. */
  readonly cursor?: string | undefined
}

/** The codes of error responses. Later versions of `/v1` may have more. */
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
  | "DUPLICATE_INVOICE_REF"
  | "INVOICE_NOT_OPEN"
  | "PAYMENT_NOT_PENDING"
  | "IDEMPOTENCY_KEY_IN_USE"
  | "ROTATION_UNDER_WAY"
  | "QUOTE_EXPIRED"
  | "QUOTE_ALREADY_USED"
  | "TOO_MANY_ENDPOINTS"
  | "ENDPOINT_DELETED"
  | "EXCEPTION_RESOLVED"
  | "NOTHING_TO_REFUND"
  | "MONEY_NOT_CONFIRMED"
  | "REFUND_UNDER_WAY"
  | "REFUND_SETTLED"
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
  | "TOO_MANY_CONNECTIONS"
  | "OVERLOADED"
  | "STORE_UNAVAILABLE"
  | "RATE_UNAVAILABLE"
  | "CHOICE_UNAVAILABLE"
  | "WALLET_NOT_CONFIGURED"
  | "QUOTA_EXCEEDED"
