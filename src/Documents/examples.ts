import { Schema } from "effect"
import type { DeliveryObject } from "../Domain/DeliveryObject.ts"
import type { AccountedPayment, EventKind, PaymentEventKind, WebhookEvent } from "../Domain/Event.ts"
import type { ExceptionObject } from "../Domain/Exception.ts"
import {
  type InvoiceEvent,
  InvoiceEventKind,
  type InvoiceObject,
  InvoiceStatus,
  invoiceEventOf
} from "../Domain/Invoice.ts"
import type { LedgerRow } from "../Domain/LedgerRow.ts"
import type { PaymentObject } from "../Domain/Payment.ts"
import type { QuoteObject } from "../Domain/Quote.ts"
import type { RefundObject } from "../Domain/Refund.ts"
import type { CreateInvoiceBody } from "../Invoices/Api.ts"
import type { CreatePaymentBody, CurrencyList, PaymentPage } from "../Payments/Api.ts"
import type { RefundBody, ResolveBody } from "../Payments/decisions/Api.ts"
import type { CreateQuoteBody } from "../Quotes/Api.ts"
import type { ChangeEndpointBody, CreateEndpointBody, EndpointList, EndpointObject } from "../Webhooks/Api.ts"
import type { Example } from "./openApi.ts"

export const examplePayment: PaymentObject = {
  id: "pay_AZwT7J4AzuLMDHceQUS_fJMjoFEeWQ",
  merchantRef: "order-1",
  amount: "25000000",
  currency: "USDC",
  chain: "base",
  address: "0x8C8d35429F74ec245F8Ef2f4Fd1e551cFF97d650",
  status: "pending",
  createdAt: "2026-01-31T12:00:00.000Z",
  expiresAt: "2026-01-31T13:00:00.000Z",
  metadata: { cart: 7 },
  ...{ received: "0", refunded: "0", kept: "0" },
  checkoutUrl: "https://pay.example.com/pay/AZwT7J4AqB3xLk9TzW5cVn2mHf8RdQ",
  tokenContract: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
  chainId: 8453,
  decimals: 6,
  paymentUri:
    "ethereum:0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913@8453/transfer?address=0x8C8d35429F74ec245F8Ef2f4Fd1e551cFF97d650&uint256=25000000"
}

const txHash = "0xc18285c32520a01691427edb4da9a71dae416ff4ebec33007508bd88802ce591"

/** Nothing is left to pay, or nobody is asked to any more. */
const { paymentUri: _, ...withoutUri } = examplePayment

const all = "25000000"
const detecting: PaymentObject = {
  ...withoutUri,
  ...{ status: "detecting", amountReceived: all, received: all, kept: all, txHash }
}

const partPaid: PaymentObject = {
  ...detecting,
  ...{ received: "20000000", kept: "20000000" },
  amountReceived: "20000000",
  paymentUri: examplePayment.paymentUri?.replace("uint256=25000000", "uint256=5000000") ?? "",
  amountRemaining: "5000000"
}

const expired: PaymentObject = { ...withoutUri, status: "expired" }

const cancelled: PaymentObject = { ...expired, failureReason: "cancelled" }

const confirmed: PaymentObject = { ...detecting, status: "confirmed", confirmedAt: "2026-01-31T12:06:20.000Z" }

const underpaid: ExceptionObject = {
  id: "exc_Jw3mVn8qTz0Kc5rYb2sLxA",
  payment: examplePayment.id,
  merchantRef: examplePayment.merchantRef,
  kind: "underpaid",
  chain: "base",
  currency: "USDC",
  amount: "20000000",
  from: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
  txHash,
  address: examplePayment.address,
  derivationIndex: 4711,
  path: "m/44'/60'/0'/0/4711",
  detectedAt: "2026-01-31T13:01:20.000Z"
}

const failed: AccountedPayment = {
  ...detecting,
  status: "failed",
  ...{ received: "20000000", kept: "20000000" },
  amountReceived: "20000000",
  failureReason: "insufficient_amount",
  exceptions: [underpaid]
}

const lateMoney: ExceptionObject = {
  ...underpaid,
  id: "exc_Pq7cR4wLz9Xh1mDs6tVkBg",
  kind: "late",
  amount: "25000000",
  detectedAt: "2026-01-31T13:20:05.000Z"
}

const late: AccountedPayment = { ...expired, exceptions: [lateMoney] }

const refundTx = "0x5a2e8d1f6b904c37a1de52f08c6b7d943e10fa2b8d7c6549301eafbc24d57e68"

const refunded: ExceptionObject = {
  ...lateMoney,
  resolution: "refunded",
  resolvedAt: "2026-01-31T15:00:00.000Z",
  resolutionTxHash: refundTx,
  note: "sent back, ticket 118"
}

const refund: typeof ResolveBody.Encoded = { action: "refund", txHash: refundTx, note: "sent back, ticket 118" }

const paymentRefund: typeof RefundBody.Encoded = { amount: "20000000", txHash: refundTx }

const noted: RefundObject = {
  id: "ref_Zk3vQ8nTb5Yw2rLx7cJmHd",
  payment: examplePayment.id,
  status: "noted",
  chain: "base",
  currency: "USDC",
  amount: "20000000",
  txHash: refundTx,
  createdAt: "2026-01-31T12:30:00.000Z",
  changedAt: "2026-01-31T12:30:00.000Z"
}

const final: RefundObject = {
  ...noted,
  status: "final",
  from: "0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf",
  to: "0x2B5AD5c4795c026514f8317c7a215E218DcCD6cF",
  changedAt: "2026-01-31T12:31:00.000Z"
}

const sentBack: AccountedPayment = { ...confirmed, refunded: "20000000", kept: "5000000", refunds: [final] }

const accepted: ExceptionObject = { ...lateMoney, resolution: "accepted", resolvedAt: "2026-01-31T15:00:00.000Z" }

const ledgerRow: LedgerRow = {
  id: "led_Jw3mVn8qTz0Kc5rYb2sLxA",
  at: "2026-01-31T12:06:00.000Z",
  kind: "receipt",
  payment: examplePayment.id,
  merchantRef: examplePayment.merchantRef,
  chain: "base",
  currency: "USDC",
  amount: "25000000",
  decimals: 6,
  quantity: "25.000000",
  from: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
  to: examplePayment.address,
  txHash,
  what: "credited",
  decision: "none",
  credited: "25000000",
  worth: "22.73",
  income: "22.73",
  worthCurrency: "EUR",
  rate: "0.909090909091",
  rateSource: "chainlink"
}

/** Of each kind of event, with the payment in its state at the time. */
const dataOf: Readonly<Record<PaymentEventKind, readonly [data: AccountedPayment, at: string]>> = {
  "payment.created": [examplePayment, examplePayment.createdAt],
  "payment.detecting": [detecting, "2026-01-31T12:06:00.000Z"],
  "payment.updated": [partPaid, "2026-01-31T12:06:08.000Z"],
  "payment.confirmed": [confirmed, "2026-01-31T12:06:20.000Z"],
  "payment.expired": [expired, "2026-01-31T13:01:20.000Z"],
  "payment.failed": [failed, "2026-01-31T13:01:20.000Z"],
  "payment.exception": [late, lateMoney.detectedAt],
  "refund.final": [sentBack, final.changedAt]
}

const isOfInvoice = Schema.is(InvoiceEventKind)

export const exampleEvent = (kind: EventKind): WebhookEvent | InvoiceEvent => {
  const id = "evt_AZwT7J4A3Jm2Xc6nVb0sQw9eRt7yUi"
  if (isOfInvoice(kind)) {
    const status = InvoiceStatus.literals.find((one) => invoiceEventOf(one) === kind) ?? "open"
    return { id, event: kind, createdAt: examplePayment.createdAt, data: { ...exampleInvoice, status } }
  }
  const [data, createdAt] = dataOf[kind]
  const about =
    kind === "payment.exception" ? { exception: lateMoney } : kind === "refund.final" ? { refund: final } : {}
  return { id, event: kind, createdAt, data, ...about }
}

const createInvoice: typeof CreateInvoiceBody.Encoded = {
  price: { amount: "25.00", currency: "EUR" },
  merchantRef: "order-1"
}

const createInvoiceInFull: typeof CreateInvoiceBody.Encoded = {
  price: { amount: "25.00", currency: "EUR" },
  merchantRef: "order-2",
  currencies: ["USDC-base", "USDC-polygon", "ETH-ethereum"],
  expiresIn: 7200,
  metadata: { cart: 7 },
  redirectUrl: "https://shop.example.com/orders/2",
  webhookUrl: "https://shop.example.com/tilld",
  language: "de"
}

export const exampleInvoice: InvoiceObject = {
  id: "inv_AZwT7J4ARk2LbN8sVq5wXc3mHt7yUi",
  merchantRef: "order-1",
  price: { amount: "25.00", currency: "EUR" },
  status: "open",
  currencies: ["USDC-base", "USDC-polygon"],
  createdAt: examplePayment.createdAt,
  expiresAt: examplePayment.expiresAt,
  metadata: {},
  checkoutUrl: "https://pay.example.com/pay/AZwT7J4AZt5rMc9dKx2vQb7nLf3wEs",
  payments: []
}

const invoicePayment: PaymentObject = {
  ...examplePayment,
  checkoutUrl: exampleInvoice.checkoutUrl,
  invoice: { id: exampleInvoice.id, merchantRef: "order-1", price: exampleInvoice.price }
}

const chosen: InvoiceObject = { ...exampleInvoice, payment: examplePayment.id, payments: [invoicePayment] }

const createPayment: typeof CreatePaymentBody.Encoded = {
  merchantRef: "order-1",
  amount: "25000000",
  currency: "USDC",
  chain: "base",
  metadata: { cart: 7 }
}

const createPaymentInFull: typeof CreatePaymentBody.Encoded = {
  merchantRef: "order-2",
  amount: "54610500",
  currency: "USDC",
  chain: "base",
  webhookUrl: "https://shop.example.com/tilld",
  redirectUrl: "https://shop.example.com/orders/2",
  expiresIn: 900,
  metadata: { customer: "c_118", items: [{ sku: "mug", count: 2 }] },
  quoteId: "quote_Hc8mQ3wZxV5tB1nK7rL0sA"
}

const payable: typeof CurrencyList.Type = {
  data: [{ currency: "ETH", chain: "base", chainId: 8453, decimals: 18, native: true }]
}

const page: typeof PaymentPage.Encoded = { data: [confirmed, late], cursor: "WzE3Njk4NjA4MDAwMDAsMV0" }

const createQuote: typeof CreateQuoteBody.Encoded = {
  fromCurrency: "EUR",
  toCurrency: "USDC",
  amount: "49.90",
  chain: "base"
}

const quote: QuoteObject = {
  id: "quote_Hc8mQ3wZxV5tB1nK7rL0sA",
  fromCurrency: "EUR",
  toCurrency: "USDC",
  fromAmount: "49.90",
  toAmount: "54.6105",
  chargeAmount: "54.89",
  rate: "1.1",
  chain: "base",
  validUntil: "2026-01-31T12:00:30.000Z",
  fees: { network: "0.00505", service: "0.27445" }
}

const createEndpoint: typeof CreateEndpointBody.Encoded = {
  url: "https://shop.example.com/tilld",
  events: ["payment.confirmed", "payment.failed"],
  secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
}

const endpoint: typeof EndpointObject.Type = {
  id: "wh_Yt5hN2kQ8vC1xR7mB4zL0g",
  url: createEndpoint.url,
  events: ["payment.confirmed", "payment.failed"],
  createdAt: "2026-01-31T12:00:00.000Z"
}

const changeSecret: typeof ChangeEndpointBody.Encoded = {
  secret: "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
  overlapSeconds: 3600
}

const attempt = {
  number: 1,
  startedAt: "2026-01-31T12:06:20.010Z",
  durationMillis: 31,
  status: 500,
  bodyStart: "internal server error"
}

const failing: typeof DeliveryObject.Type = {
  id: "dlv_AZwT7J4A3Jm2Xc6nVb0sQw9eRt7yUi_Yt5hN2kQ8vC1",
  event: "evt_AZwT7J4A3Jm2Xc6nVb0sQw9eRt7yUi",
  kind: "payment.confirmed",
  payment: examplePayment.id,
  merchantRef: examplePayment.merchantRef,
  endpoint: endpoint.id,
  url: endpoint.url,
  status: "pending",
  createdAt: "2026-01-31T12:06:20.000Z",
  nextAttemptAt: "2026-01-31T12:07:20.041Z",
  attemptsMade: 1,
  lastAttempt: attempt
}

const endpoints: typeof EndpointList.Type = { data: [endpoint] }

const ready = {
  ready: true,
  chains: [{ chain: "base", mode: "live", ready: true }],
  workers: [{ name: "prices", ready: true }]
}

const notReady = { ...ready, ready: false, chains: [{ chain: "base", mode: "live", ready: false }] }

const created = exampleEvent("payment.created")

const exampleMessages = `id: evt_AZwTta-A9sVb4mXq2TzK0cLw7RfYhA

id: ${created.id}
event: ${created.event}
data: ${JSON.stringify(created)}

`

export interface OperationExamples {
  readonly request?: Readonly<Record<string, Example>>
  /** Of answers that are no errors, by status. */
  readonly answers: Readonly<Record<number, Readonly<Record<string, Example>>>>
}

const only = (value: unknown, summary: string) => ({ example: { summary, value } })

/** By operationId. */
export const operationExamples = {
  "payments.create": {
    request: {
      minimal: { summary: "25 USDC on base", value: createPayment },
      full: { summary: "Everything that can be asked for", value: createPaymentInFull }
    },
    answers: { 201: only(examplePayment, "The payment, with the address to pay to") }
  },
  "payments.get": {
    answers: {
      200: {
        pending: { summary: "Nothing has come yet", value: examplePayment },
        partPaid: { summary: "A part has come", value: partPaid },
        confirmed: { summary: "Paid", value: confirmed },
        failed: { summary: "Too little came in time", value: failed },
        late: { summary: "Money came too late", value: late }
      }
    }
  },
  "payments.list": { answers: { 200: only(page, "A page, and the cursor of the next") } },
  "payments.change": {
    request: only({ metadata: { email: "ada@example.com", cart: null } }, "One key is set, another removed"),
    answers: { 200: only({ ...examplePayment, metadata: { email: "ada@example.com" } }, "With its new metadata") }
  },
  "payments.currencies": { answers: { 200: only(payable, "The chain's own coin, on base alone") } },
  "payments.cancel": {
    request: only({}, "No fields"),
    answers: { 200: only(cancelled, "It has ended") }
  },
  "invoices.create": {
    request: {
      minimal: { summary: "25 EUR", value: createInvoice },
      full: { summary: "Everything that can be asked for", value: createInvoiceInFull }
    },
    answers: { 201: only(exampleInvoice, "The invoice, with the page to send the customer to") }
  },
  "invoices.get": { answers: { 200: only(chosen, "The customer has chosen") } },
  "invoices.list": { answers: { 200: only({ data: [exampleInvoice], cursor: null }, "One invoice") } },
  "invoices.choose": {
    request: only({ currency: "USDC", chain: "base" }, "USDC on base"),
    answers: { 200: only(chosen, "With the payment, and the address to pay to") }
  },
  "invoices.cancel": {
    request: only({}, "No fields"),
    answers: { 200: only({ ...exampleInvoice, status: "cancelled" }, "It has ended") }
  },
  "exceptions.list": {
    answers: { 200: only({ data: [lateMoney], cursor: null }, "Money that came too late") }
  },
  "exceptions.get": { answers: { 200: only(lateMoney, "Money that came too late") } },
  "exceptions.resolve": {
    request: {
      accept: { summary: "The money is taken", value: { action: "accept" } },
      refund: { summary: "The money was sent back", value: refund }
    },
    answers: {
      200: {
        accepted: { summary: "The money is taken", value: accepted },
        refunded: { summary: "The money was sent back", value: refunded }
      }
    }
  },
  "refunds.create": {
    request: only(paymentRefund, "What was sent back with another wallet"),
    answers: { 201: only(noted, "It is recorded, and looked up on the chain") }
  },
  "refunds.list": { answers: { 200: only({ data: [final], cursor: null }, "One refund") } },
  "refunds.get": { answers: { 200: only(final, "The chain has it for good") } },
  "refunds.name": {
    request: only({ txHash: refundTx }, "The transaction that sends it"),
    answers: { 200: only(noted, "It is looked up on the chain") }
  },
  "refunds.drop": {
    answers: { 200: only({ ...noted, status: "failed", problem: "it was dropped by hand" }, "Its money is open again") }
  },
  "ledger.list": { answers: { 200: only({ data: [ledgerRow], cursor: null }, "A payment's money") } },
  "webhooks.create": {
    request: only(createEndpoint, "Two kinds of events"),
    answers: {
      200: only(endpoint, "The endpoint that was registered so before"),
      201: only(endpoint, "The endpoint, without its secret")
    }
  },
  "webhooks.get": { answers: { 200: only(endpoint, "The endpoint, without its secret") } },
  "webhooks.list": { answers: { 200: only(endpoints, "One endpoint") } },
  "webhooks.change": {
    request: {
      url: { summary: "The receiver has moved", value: { url: "https://new.example.com/tilld" } },
      secret: { summary: "A new secret, and an hour to install it", value: changeSecret }
    },
    answers: { 200: only({ ...endpoint, url: "https://new.example.com/tilld" }, "The endpoint as it is now") }
  },
  "webhooks.remove": {
    answers: { 200: only({ id: endpoint.id, deleted: true, cancelled: 2 }, "It is gone, and two deliveries with it") }
  },
  "deliveries.list": { answers: { 200: only({ data: [failing], cursor: null }, "One that fails") } },
  "deliveries.get": { answers: { 200: only({ ...failing, attempts: [attempt] }, "A delivery and its attempt") } },
  "deliveries.redeliver": {
    request: {
      again: { summary: "To where it went", value: {} },
      elsewhere: { summary: "To another endpoint", value: { to: endpoint.id } }
    },
    answers: { 200: only({ id: failing.id, result: "ordered" }, "It is sent now") }
  },
  "deliveries.redeliverSome": {
    request: only({ status: "failing", createdAfter: "2026-01-31T00:00:00Z" }, "All that failed since a day"),
    answers: { 200: only({ ordered: 12, due: 1, refused: 0, cursor: null }, "How many are sent now") }
  },
  "quotes.create": {
    request: only(createQuote, "49.90 EUR in USDC on base"),
    answers: { 201: only(quote, "What 49.90 EUR are") }
  },
  "quotes.get": { answers: { 200: only(quote, "What 49.90 EUR are") } },
  "events.stream": { answers: { 200: only(exampleMessages, "Where the stream begins, and an event") } },
  "health.alive": { answers: { 200: only({ alive: true }, "The process lives") } },
  "health.ready": {
    answers: { 200: only(ready, "Everything works"), 503: only(notReady, "A chain is not read") }
  },
  "documents.openapi": { answers: { 200: only({ openapi: "3.1.1" }, "The start of it") } }
} satisfies Record<string, OperationExamples>
