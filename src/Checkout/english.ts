/**
 * What the checkout page says, in one dictionary per language; the others have every key of this one, or do not compile.
 * Amounts, counts and names come formatted. The texts never say that money which came is lost: it is always at an address
 * of the shop.
 */
import type { ExtraKind } from "./view.ts"

/** Money that came and does not pay: how much, on which network, and the currency and network that were asked for. */
const extra: Readonly<
  Record<ExtraKind, (amount: string, network: string, currencyAsked: string, networkAsked: string) => string>
> = {
  overpaid: (amount) => `You sent ${amount} too much.`,
  late: (amount) => `${amount} arrived after the time had run out.`,
  found_late: (amount) => `${amount} was seen only after this payment had ended.`,
  wrong_token: (amount, _, currency) => `${amount} arrived, but ${currency} was asked for.`,
  wrong_chain: (amount, network, _, asked) => `${amount} arrived on ${network}, but ${asked} was asked for.`,
  former: (amount, network) => `${amount} arrived on ${network}, for your earlier choice.`,
  other: (amount) => `${amount} has arrived.`
}

export const english = {
  /** The language in its own words. */
  name: "English",
  headline: {
    waiting: (amount: string, network: string) => `Pay ${amount} on ${network}`,
    partPaid: (missing: string) => `${missing} still missing`,
    /** Of a payment that failed with too little. */
    tooLittle: (received: string, amount: string) => `Only ${received} of ${amount} came in time`,
    /** Money came that does not pay, and nobody has decided on it. */
    wrong_chain: "Money arrived on the wrong network",
    wrong_token: "Money arrived in the wrong currency",
    former: "Money arrived for your earlier choice",
    seen: "Payment seen",
    closing: "Time ran out",
    paid: "Paid",
    expired: "This payment has expired",
    tooLate: "Your payment was seen too late",
    cancelled: "This payment was cancelled",
    failed: "This payment is not complete",
    unavailable: "This payment cannot be made at the moment"
  },
  /** The worth in another currency. */
  worth: (value: string) => `about ${value}`,
  /** Beside the amount, and on the code. */
  onNetwork: (currency: string, network: string) => `${currency} on ${network}`,
  onNetworkOnly: (currency: string, network: string) => `${currency} on ${network} only`,
  warning: "Anything else is not credited, and getting it back can take days.",
  amount: "Amount",
  address: "Address",
  /** Before what is copied, for screen readers. */
  copy: "Copy",
  copied: "Copied",
  copyByHand: "Selected: copy it with a long press or the keyboard.",
  codes: "Scan with a wallet",
  payCode: "Payment",
  addressCode: "Address only",
  payCodeHint: "Your wallet shows something else? Choose “Address only”.",
  addressCodeHint: "Enter the amount yourself.",
  openWallet: "Open in a wallet app",
  /** Shown when the link to a wallet app opened none. */
  noWallet: "No wallet opened? Copy the amount and the address.",
  /** The heading over the tokens and networks for a price, and the link back to it. */
  choose: (price: string) => `Choose how to pay ${price}`,
  whichToChoose: "Choose what your wallet or exchange has, on the network that it sends on.",
  changeChoice: "Pay with something else",
  /** Before a choice: the former one was not paid in time. */
  rateExpired: "The rate has expired. Choose again at today’s rate.",
  /** What a network takes for the transfer. */
  moreChoices: (count: number) => `${count} more ways to pay`,
  fee: (cost: string) => `network fee about ${cost}`,
  /** In place of the amount of what cannot be chosen. */
  unpriced: "Not available now: no current price.",
  help: "Need help?",
  /** For those who pay from an exchange, which takes a fee off what it sends. */
  exchange: (network: string, amount: string) =>
    `Sending from an exchange? Choose the network ${network} there, and add its fee on top: at least ${amount} must arrive.`,
  /** The smallest amount that is credited before the last one. */
  least: (amount: string) => `Less than ${amount} in one transfer is not credited, unless it completes the payment.`,
  /** For those who see nothing of what they have sent. */
  alreadySent: "Have you sent it already? It can take some minutes to show here. Do not send it twice.",
  /** The link that shows the code on a phone. */
  showCode: "Show QR code",
  timeLeft: "Time left:",
  partPaid: (received: string, amount: string) =>
    `${received} of ${amount} has arrived and counts. Send what is missing to the same address.`,
  seen: "There is nothing more to do: you may close this page.",
  confirmations: (count: string, needed: string) => `${count} of ${needed} confirmations`,
  /** Behind the confirmations; `time` is a duration such as "20 minutes". */
  timeToFinal: (time: string) => `about ${time} left`,
  lastCheck: "All confirmations are there. A last check is under way.",
  closing:
    "Do not send anything any more. If you have just paid, wait a moment: what was sent in time counts, and this page will show it.",
  /** Instead, where a part has come, and where other money has. */
  closingPart: (received: string, amount: string) =>
    `${received} of ${amount} came in time. Do not send anything more: a last check is under way.`,
  closingOther: "Do not send anything more. A last check is under way.",
  /** Said of a payment that was paid while its page was open, with a button that stays. */
  returning: "You are taken back to the shop in eight seconds.",
  stay: "Stay on this page",
  backToShop: "Back to the shop",
  expired:
    "No payment was seen in time. Do not send anything to this address any more: start again in the shop for a new payment.",
  cancelled: "The shop has cancelled it. Do not send anything to this address any more.",
  failed: (currency: string, network: string) => ({
    insufficient_amount:
      "It is safe with the shop: ask to have it accepted or sent back. Do not send anything more to this address.",
    wrong_token: `Money arrived, but not in ${currency}. The shop has it: ask the shop to accept it or send it back.`,
    wrong_chain: `Money arrived, but not on ${network}. The shop has it: ask the shop to accept it or send it back.`,
    reorged: `${network} has undone the transaction that paid. Look in your wallet whether it was sent again, and ask the shop before you pay once more.`,
    abandoned: `The shop does not follow ${network} any more. Do not send anything to this address; if you have paid, ask the shop.`
  }),
  /** Of money that does not pay an open payment: what the payer can do, and the link that shows how to pay. */
  eitherWay: "It is safe. Ask the shop first to accept it. If you pay again, ask the shop to send this money back.",
  payAgain: (network: string) => `Pay again on ${network}`,
  /** Of a payment that ended, and whose money was sent back. */
  startAgain: "To order still, start again in the shop.",
  /** Of an expired payment whose money came after its time. */
  tooLate: "Do not pay again.",
  /** Of payments that ended, and where no money is known to have come. */
  sentAnyway: "Already sent it? What went to this address is safe: contact the shop, and quote this reference.",
  /** What to do with money that came. */
  contact: (shop: string | undefined) => `Contact ${shop ?? "the shop"}, and quote this reference.`,
  /** The button for the same, where the shop has said where to ask. */
  contactShop: (shop: string | undefined) => `Contact ${shop ?? "the shop"}`,
  /** Behind `extra.overpaid`. */
  askBack: "Ask the shop for it back.",
  extra,
  /** What has become of it. */
  fate: {
    open: "It is safe with the shop: ask to have it accepted or sent back.",
    accepted: "The shop has accepted it.",
    refunded: "The shop has sent it back.",
    rest: (sentBack: string) => `${sentBack} of it was sent back, and the shop has accepted the rest.`,
    partly: (sentBack: string) => `${sentBack} of it was sent back. The rest is safe with the shop.`
  },
  /** The receipt of a payment that is paid. */
  paidAt: "Paid on",
  transaction: "Transaction",
  explorer: "Show in the block explorer",
  print: "Print the receipt",
  unavailable: "Do not send anything now.",
  reference: "Reference",
  lagging: (network: string) =>
    `${network} is being read with a delay at the moment. What you send is found as soon as it is read again.`,
  test: "Test payment: no real money",
  /** Said while the browser has no network. */
  offline: "No connection. Your payment is not affected: this page goes on when you are back.",
  languages: "Language",
  notFound: {
    title: "No such payment",
    text: "Check the link, look for it in your order or its email, or ask the shop for it. A wrong link changes nothing about a payment that you have made."
  },
  /** What the wallet buttons say; `{wallet}` stands for the name of the wallet. */
  wallet: {
    pay: "Pay with {wallet}",
    confirm: "Confirm the payment in {wallet}.",
    sent: "Sent. Transaction:",
    /** The heading once it is sent and not seen yet. */
    waiting: "Sent: waiting for the network",
    note: "There is nothing more to do. Do not pay again: this page shows it once the network has it.",
    /** The button that shows again how to pay. */
    again: "It failed? Show how to pay",
    declined: "Declined in {wallet}: nothing was sent.",
    unknownNetwork: "{wallet} does not know this network. Add it there, and try again.",
    failed: "{wallet} could not send the payment. Check the network and your balance there, and try again."
  }
}

export type Texts = typeof english
