import type { Texts } from "./Texts.ts"

export const english: Texts = {
  name: "English",
  headline: {
    waiting: (amount, network) => `Pay ${amount} on ${network}`,
    partPaid: (missing) => `${missing} still missing`,
    tooLittle: (received, amount) => `Only ${received} of ${amount} came in time`,
    wrongChain: "Money arrived on the wrong network",
    wrongToken: "Money arrived in the wrong currency",
    seen: "Payment seen",
    closing: "Time ran out",
    paid: "Paid",
    expired: "This payment has expired",
    tooLate: "Your payment was seen too late",
    cancelled: "This payment was cancelled",
    failed: "This payment is not complete",
    unavailable: "This payment cannot be made at the moment"
  },
  worth: (value) => `about ${value}`,
  onNetwork: (currency, network) => `${currency} on ${network}`,
  onNetworkOnly: (currency, network) => `${currency} on ${network} only`,
  warning: "Anything else is not credited, and getting it back can take days.",
  amount: "Amount",
  address: "Address",
  copyAmount: "Copy amount",
  copyAddress: "Copy address",
  copied: "Copied",
  copyByHand: "Selected: copy it with a long press or the keyboard.",
  codes: "Scan with a wallet",
  payCode: "Payment",
  addressCode: "Address only",
  payCodeHint: "Your wallet shows something else? Choose “Address only”.",
  addressCodeHint: "Enter the amount yourself.",
  openWallet: "Open in a wallet app",
  noWallet: "No wallet opened? Copy the amount and the address.",
  changeChoice: "Pay with something else",
  help: "Need help?",
  exchange: (network, amount) =>
    `Sending from an exchange? Choose the network ${network} there, and add its fee on top: exactly ${amount} must arrive.`,
  least: (amount) => `Less than ${amount} in one transfer is not credited, unless it completes the payment.`,
  alreadySent: "Have you sent it already? It can take some minutes to show here. Do not send it twice.",
  showCode: "Show QR code",
  timeLeft: "Time left:",
  partPaid: (received, amount) =>
    `${received} of ${amount} has arrived and counts. Send what is missing to the same address.`,
  seen: "There is nothing more to do: you may close this page.",
  confirmations: (count, needed) => `${count} of ${needed} confirmations`,
  timeToFinal: (time) => `about ${time} left`,
  lastCheck: "All confirmations are there. A last check is under way.",
  closing:
    "Do not send anything any more. If you have just paid, wait a moment: what was sent in time counts, and this page will show it.",
  closingPart: (received, amount) =>
    `${received} of ${amount} came in time. Do not send anything more: a last check is under way.`,
  closingOther: "Do not send anything more. A last check is under way.",
  returning: "You are taken back to the shop in eight seconds.",
  stay: "Stay on this page",
  backToShop: "Back to the shop",
  expired:
    "No payment was seen in time. Do not send anything to this address any more: start again in the shop for a new payment.",
  cancelled: "The shop has cancelled it. Do not send anything to this address any more.",
  failed: (currency, network) => ({
    insufficient_amount:
      "It is safe with the shop: ask to have it accepted or sent back. Do not send anything more to this address.",
    wrong_token: `Money arrived, but not in ${currency}. The shop has it: ask the shop to accept it or send it back.`,
    wrong_chain: `Money arrived, but not on ${network}. The shop has it: ask the shop to accept it or send it back.`,
    reorged: `${network} has undone the transaction that paid. Look in your wallet whether it was sent again, and ask the shop before you pay once more.`,
    abandoned: `The shop does not follow ${network} any more. Do not send anything to this address; if you have paid, ask the shop.`
  }),
  eitherWay: "It is safe. Ask the shop first to accept it. If you pay again, ask the shop to send this money back.",
  payAgain: (network) => `Pay again on ${network}`,
  startAgain: "To order still, start again in the shop.",
  tooLate: "Do not pay again.",
  sentAnyway: "Already sent it? What went to this address is safe: contact the shop, and quote this reference.",
  contact: (shop) => `Contact ${shop ?? "the shop"}, and quote this reference.`,
  contactShop: (shop) => `Contact ${shop ?? "the shop"}`,
  copyReference: "Copy reference",
  askBack: "Ask the shop for it back.",
  extra: {
    overpaid: (amount) => `You sent ${amount} too much.`,
    late: (amount) => `${amount} arrived after the time had run out.`,
    found_late: (amount) => `${amount} was seen only after this payment had ended.`,
    wrong_token: (amount, _, currency) => `${amount} arrived, but ${currency} was asked for.`,
    wrong_chain: (amount, network, _, asked) => `${amount} arrived on ${network}, but ${asked} was asked for.`,
    other: (amount) => `${amount} has arrived.`
  },
  fate: {
    open: "It is safe with the shop: ask to have it accepted or sent back.",
    accepted: "The shop has accepted it.",
    refunded: "The shop has sent it back.",
    rest: (sentBack) => `${sentBack} of it was sent back, and the shop has accepted the rest.`,
    partly: (sentBack) => `${sentBack} of it was sent back. The rest is safe with the shop.`
  },
  paidAt: "Paid on",
  transaction: "Transaction",
  copyTransaction: "Copy transaction",
  explorer: "Show in the block explorer",
  print: "Print the receipt",
  unavailable: "Do not send anything now.",
  reference: "Reference",
  lagging: (network) =>
    `${network} is being read with a delay at the moment. What you send is found as soon as it is read again.`,
  test: "Test payment: no real money",
  offline: "No connection. Your payment is not affected: this page goes on when you are back.",
  languages: "Language",
  notFound: {
    title: "No such payment",
    text: "Check the link, look for it in your order or its email, or ask the shop for it. A wrong link changes nothing about a payment that you have made."
  },
  wallet: {
    pay: "Pay with {wallet}",
    confirm: "Confirm the payment in {wallet}.",
    sent: "Sent. Transaction:",
    waiting: "Sent: waiting for the network",
    note: "There is nothing more to do. Do not pay again: this page shows it once the network has it.",
    again: "It failed? Show how to pay",
    declined: "Declined in {wallet}: nothing was sent.",
    unknownNetwork: "{wallet} does not know this network. Add it there, and try again.",
    failed: "{wallet} could not send the payment. Check the network and your balance there, and try again."
  }
}
