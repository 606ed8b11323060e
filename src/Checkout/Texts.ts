/**
 * What the checkout page says, in one dictionary per language. The type has every key, so that a text which one language
 * lacks does not compile. Amounts, counts and names come formatted. The texts never say that money which came is lost: it
 * is always at an address of the shop.
 */
import type { FailureReason } from "../Domain/Payment.ts"
import type { Extra, ExtraKind, StateKind } from "./view.ts"

/** Why a failed payment has failed. */
export type FailedFor = Exclude<FailureReason, "cancelled">

export interface Texts {
  /** The language in its own words. */
  readonly name: string
  readonly headline: Readonly<Record<Exclude<StateKind, "waiting" | "partPaid"> | "tooLate", string>> & {
    readonly waiting: (amount: string, network: string) => string
    readonly partPaid: (missing: string) => string
    /** Of a payment that failed with too little. */
    readonly tooLittle: (received: string, amount: string) => string
    /** Money came that does not pay, and nobody has decided on it. */
    readonly wrongChain: string
    readonly wrongToken: string
  }
  /** The worth in another currency. */
  readonly worth: (value: string) => string
  /** Beside the amount, and on the code. */
  readonly onNetwork: (currency: string, network: string) => string
  readonly onNetworkOnly: (currency: string, network: string) => string
  readonly warning: string
  readonly amount: string
  readonly address: string
  readonly copyAmount: string
  readonly copyAddress: string
  readonly copied: string
  readonly copyByHand: string
  readonly codes: string
  readonly payCode: string
  readonly addressCode: string
  readonly payCodeHint: string
  readonly addressCodeHint: string
  readonly openWallet: string
  /** Shown when the link to a wallet app opened none. */
  readonly noWallet: string
  /** The heading over the tokens and networks for a price, and the link back to it. */
  readonly choose: (price: string) => string
  readonly changeChoice: string
  /** Before a choice: the former one was not paid in time. */
  readonly rateExpired: string
  /** What a network takes for the transfer. */
  readonly fee: (cost: string) => string
  /** In place of the amount of what cannot be chosen. */
  readonly unpriced: string
  readonly help: string
  /** For those who pay from an exchange, which takes a fee off what it sends. */
  readonly exchange: (network: string, amount: string) => string
  /** The smallest amount that is credited before the last one. */
  readonly least: (amount: string) => string
  /** The link that shows the code on a phone. */
  readonly showCode: string
  /** For those who see nothing of what they have sent. */
  readonly alreadySent: string
  readonly timeLeft: string
  readonly partPaid: (received: string, amount: string) => string
  readonly seen: string
  readonly confirmations: (count: string, needed: string) => string
  /** Behind the confirmations; `time` is a duration such as "20 minutes". */
  readonly timeToFinal: (time: string) => string
  readonly lastCheck: string
  readonly closing: string
  /** Instead, where a part has come, and where other money has. */
  readonly closingPart: (received: string, amount: string) => string
  readonly closingOther: string
  /** Said of a payment that was paid while its page was open, with a button that stays. */
  readonly returning: string
  readonly stay: string
  readonly backToShop: string
  readonly expired: string
  readonly cancelled: string
  readonly failed: (currency: string, network: string) => Readonly<Record<FailedFor, string>>
  /** Of money that does not pay an open payment: what the payer can do, and the link that shows how to pay. */
  readonly eitherWay: string
  readonly payAgain: (network: string) => string
  /** Of an expired payment whose money came after its time. */
  readonly tooLate: string
  /** Of a payment that ended, and whose money was sent back. */
  readonly startAgain: string
  /** Of payments that ended, and where no money is known to have come. */
  readonly sentAnyway: string
  /** What to do with money that came. */
  readonly contact: (shop: string | undefined) => string
  /** The button for the same, where the shop has said where to ask. */
  readonly contactShop: (shop: string | undefined) => string
  readonly copyReference: string
  /** Behind `extra.overpaid`. */
  readonly askBack: string
  /** Money that came and does not pay: how much, on which network, and the currency and network that were asked for. */
  readonly extra: Readonly<
    Record<ExtraKind, (amount: string, network: string, currencyAsked: string, networkAsked: string) => string>
  >
  /** What has become of it. */
  readonly fate: Readonly<Record<Extra["status"], string>> & {
    readonly partly: (sentBack: string) => string
    readonly rest: (sentBack: string) => string
  }
  /** The receipt of a payment that is paid. */
  readonly paidAt: string
  readonly transaction: string
  readonly copyTransaction: string
  readonly explorer: string
  readonly print: string
  readonly unavailable: string
  readonly reference: string
  readonly lagging: (network: string) => string
  readonly test: string
  /** Said while the browser has no network. */
  readonly offline: string
  readonly languages: string
  readonly notFound: { readonly title: string; readonly text: string }
  readonly wallet: WalletTexts
}

/** What the wallet buttons say; `{wallet}` stands for the name of the wallet. */
export interface WalletTexts {
  readonly pay: string
  readonly confirm: string
  readonly sent: string
  /** The heading once it is sent and not seen yet, and the button that shows again how to pay. */
  readonly waiting: string
  readonly note: string
  readonly again: string
  readonly declined: string
  readonly unknownNetwork: string
  readonly failed: string
}
