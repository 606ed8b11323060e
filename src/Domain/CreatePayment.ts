import type { ChainName } from "./Chain.ts"
import type { PaymentCurrency } from "./Currency.ts"

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
  (text.length > mostNormalized ? text : text.normalize("NFC")).replace(/\p{Zs}/gu, " ").trim()

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
  /** As it was given: `Quotes.lock` checks whether there is such a quote. */
  readonly quoteId?: string | undefined
}
