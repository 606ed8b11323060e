import { hash, randomBytes } from "node:crypto"
import { Schema } from "effect"

const id = <const Prefix extends string, const Brand extends string>(prefix: Prefix, brand: Brand) =>
  Schema.String.pipe(Schema.pattern(new RegExp(`^${prefix}_[A-Za-z0-9_-]{22,43}$`)), Schema.brand(brand))

export const PaymentId = id("pay", "PaymentId")
export type PaymentId = typeof PaymentId.Type
export const InvoiceId = id("inv", "InvoiceId")
export type InvoiceId = typeof InvoiceId.Type
export const QuoteId = id("quote", "QuoteId")
export type QuoteId = typeof QuoteId.Type
export const RefundId = id("ref", "RefundId")
export type RefundId = typeof RefundId.Type
export const EventId = id("evt", "EventId")
export type EventId = typeof EventId.Type
export const EndpointId = id("wh", "EndpointId")
export type EndpointId = typeof EndpointId.Type
export const DeliveryId = id("dlv", "DeliveryId")
export type DeliveryId = typeof DeliveryId.Type
export const ApiKeyId = id("key", "ApiKeyId")
export type ApiKeyId = typeof ApiKeyId.Type
export const PersonId = id("per", "PersonId")
export type PersonId = typeof PersonId.Type
export const SessionId = id("ses", "SessionId")
export type SessionId = typeof SessionId.Type

/** The secret in the address of a checkout page: its holder sees the page, and nothing else. */
export const CheckoutToken = Schema.String.pipe(Schema.pattern(/^[A-Za-z0-9_-]{30}$/), Schema.brand("CheckoutToken"))
export type CheckoutToken = typeof CheckoutToken.Type

/** Accounts are named by people: `default`, or what `tilld accounts create` printed. */
export const AccountId = Schema.String.pipe(Schema.pattern(/^[a-z0-9][a-z0-9_-]{0,63}$/i), Schema.brand("AccountId"))
export type AccountId = typeof AccountId.Type
/** The id that a new account gets. */
export const NewAccountId = AccountId.pipe(Schema.pattern(/^acct_[A-Za-z0-9_-]{22}$/))

// Random bytes are drawn in blocks: one system call per id is visible in the profile of creating a payment.
const block = Buffer.alloc(16 * 256)
let used = block.length
/** 48 random bits for all that is drawn of the block. */
let blockName = ""

/** 128 random bits, URL-safe. */
export const randomToken = (): string => {
  if (used === block.length) {
    randomBytes(block.length).copy(block)
    blockName = randomBytes(6).toString("base64url")
    used = 0
  }
  const token = block.toString("base64url", used, used + 16)
  block.fill(0, used, used + 16)
  used += 16
  return token
}

/**
 * An id for one request, in its response, in the logs and in the log of requests. Those that are drawn one after another begin
 * alike: their index entries share a few pages instead of one page each.
 */
export const newRequestId = (): string => {
  const token = randomToken()
  return `req_${blockName}${token.slice(blockName.length)}`
}

/**
 * The time, `at` in Unix milliseconds, followed by 128 random bits. What is made for one commit begins alike: its index
 * entries share a few pages instead of one page each.
 */
const timedToken = (at: number): string => {
  const time = Buffer.alloc(6)
  time.writeUIntBE(at, 0, 6)
  return `${time.toString("base64url")}${randomToken()}`
}

/** An id that begins with the time, `at` in Unix milliseconds, as do the ids of the payment's events. */
export const newPaymentId = (at: number): PaymentId => PaymentId.make(`pay_${timedToken(at)}`, true)

/** The same of an invoice. */
export const newInvoiceId = (at: number): InvoiceId => InvoiceId.make(`inv_${timedToken(at)}`, true)

/** The secret in the address of a payment's checkout page. It begins with the time as well, and tells nothing of the id. */
export const newCheckoutToken = (at: number): CheckoutToken => CheckoutToken.make(timedToken(at), true)

export const newQuoteId = (): QuoteId => QuoteId.make(`quote_${randomToken()}`, true)
export const newEndpointId = (): EndpointId => EndpointId.make(`wh_${randomToken()}`, true)
export const newAccountId = (): AccountId => AccountId.make(`acct_${randomToken()}`, true)
export const newApiKeyId = (): ApiKeyId => ApiKeyId.make(`key_${randomToken()}`, true)
/** The id of a message to the operator. It begins with the time, `at` in Unix milliseconds. */
export const newAlertId = (at: number): string => `alr_${timedToken(at)}`
export const newPersonId = (): PersonId => PersonId.make(`per_${randomToken()}`, true)
export const newSessionId = (): SessionId => SessionId.make(`ses_${randomToken()}`, true)

/** 132 bits of a hash, as long as a random token. */
const derived = (...parts: ReadonlyArray<string>): string => hash("sha256", parts.join("\n"), "base64url").slice(0, 22)

/**
 * The `ordinal`-th event of its kind for a payment or an invoice. Derived, not drawn, so that a database restored from an older copy
 * repeats the ids that receivers have already seen.
 *
 * @param said content that goes with the id: of a decision, which may be another one after a restore
 */
export const eventId = (payment: PaymentId | InvoiceId, kind: string, ordinal: number, said?: string): EventId =>
  EventId.make(
    `evt_${payment.slice(4, 12)}${derived(payment, kind, String(ordinal), ...(said === undefined ? [] : [said]))}`,
    true
  )

/** What the ids of exceptions look like. */
export const exceptionIdForm = /^exc_[A-Za-z0-9_-]{22,43}$/

export const newRefundId = (): RefundId => RefundId.make(`ref_${randomToken()}`, true)

/**
 * The id of the `ordinal`-th refund of an exception that a signed plan pays. Derived, never from its amount: after a restore a
 * plan names the same refund again, and the token refuses the second authorization with its nonce.
 */
export const plannedRefundId = (exception: string, ordinal: number): RefundId =>
  RefundId.make(`ref_${derived("refund", exception, String(ordinal))}`, true)

/** The id of an exception at an address. Derived as well, so that it is the same in a restored database. */
export const exceptionId = (address: string, key: string): string => `exc_${derived(address, key)}`

/** Whoever has it may say where the money of a plugin's refund goes. */
export const newPullPaymentId = (): string => `pull_${randomToken()}`
