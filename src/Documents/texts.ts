import type { HttpApi, HttpApiEndpoint, HttpApiGroup } from "@effect/platform"
import type { Api } from "../Api.ts"
import type { EventKind } from "../Domain/Event.ts"

type OperationIdOf<Group> = Group extends HttpApiGroup.HttpApiGroup.Any
  ? `${HttpApiGroup.HttpApiGroup.Name<Group>}.${HttpApiEndpoint.HttpApiEndpoint.Name<HttpApiGroup.HttpApiGroup.Endpoints<Group>>}`
  : never

type GroupsOf<Api> = Api extends HttpApi.HttpApi<infer _Id, infer Groups, infer _Error, infer _R> ? Groups : never

type Groups = GroupsOf<typeof Api>

/** Every operation of the definition: one that lacks its text does not compile. */
export type OperationId = OperationIdOf<Groups>

interface Text {
  readonly summary: string
  readonly description: string
}

export const operationTexts: Readonly<Record<OperationId, Text>> = {
  "payments.create": {
    summary: "Create a payment",
    description:
      "Returns an address that is used for this payment only. All transfers to it until `expiresAt`, in the requested currency and on the requested chain, add up; nothing else counts. Every change is reported by webhook."
  },
  "payments.get": {
    summary: "Get a payment",
    description: "A payment of the key's account and mode."
  },
  "payments.list": {
    summary: "List payments",
    description:
      "Newest first. Filters can be combined. Pass `cursor` to get the next page, until it is null; pages stay stable while payments are created."
  },
  "payments.change": {
    summary: "Change a payment's metadata",
    description:
      "In any status, and merged: each key given gets its new value as a whole, `null` removes it, and the other keys stay. Webhooks that are stored keep the metadata that they have; later ones have the new. Each change is in the audit log, with its keys."
  },
  "payments.currencies": {
    summary: "List what can be paid in",
    description: "Each token on each chain that is configured in the key's mode. Any key may ask. Keep it for minutes."
  },
  "payments.cancel": {
    summary: "Cancel a payment",
    description:
      "Ends an open payment at once, with `failureReason` `cancelled` and its event: it is `expired`, or `failed` where money has come for it, which becomes an exception (`underpaid`). The address stays watched: money that was on its way, or comes later, is in `exceptions`. Cancelling it again returns the same payment."
  },
  "invoices.create": {
    summary: "Create an invoice",
    description:
      "A price in fiat money. Send the customer to `checkoutUrl`: there they choose what to pay in, which makes an ordinary payment at the rate of that moment. Where `currencies` has one entry it is chosen at once."
  },
  "invoices.get": {
    summary: "Get an invoice",
    description: "An invoice of the key's account and mode, with the payments of its choices."
  },
  "invoices.list": {
    summary: "List invoices",
    description: "Newest first. Filters can be combined. Pass `cursor` to get the next page, until it is null."
  },
  "invoices.choose": {
    summary: "Choose what an invoice is paid in",
    description:
      "What a customer does on the page: makes a payment with its own address. Its rate holds for an hour, and no longer than the invoice. Another choice is possible until money was seen: it cancels the payment before. The same choice again returns the payment that is there."
  },
  "invoices.cancel": {
    summary: "Cancel an invoice",
    description:
      "Ends an open invoice and its open payment at once. Money that has come for that, or still comes, is an exception of the payment. Cancelling it again returns the same invoice."
  },
  "exceptions.list": {
    summary: "List exceptions",
    description:
      "Money that fits no payment of the account and mode, newest first. `status=open` is what somebody has to decide on. Pass `cursor` to get the next page, until it is null."
  },
  "exceptions.get": { summary: "Get an exception", description: "An exception of the key's account and mode." },
  "exceptions.resolve": {
    summary: "Decide on an exception",
    description:
      "`accept` takes the money of this exception alone: a payment that is not confirmed becomes so by it, with its event, and a confirmed one keeps the surplus. Of `reorged` it means to do without the money, and the payment stays failed. `refund` notes that you have sent the money back with your own wallet, and with which transaction; it pays for nothing any more; it makes a refund, see there. The same decision again gets the same answer. Other exceptions of the payment stay open, and every decision is an event `payment.exception`."
  },
  "refunds.create": {
    summary: "Refund a payment",
    description:
      "Records that money of a payment goes back, of whatever status: what is open as an exception first, then what counts, and never more than came and is left. With `txHash` you have sent it, from any wallet: the chain is asked until it is `final`, or shows that it is not such a transfer. Without, name the transaction later, or let the operator send it with `tilld sweep plan --refund`. Of a `pending` or `detecting` payment it counts no more; a confirmed one stays paid, and `kept` is less by it. The same `txHash` and `amount` again change nothing."
  },
  "refunds.list": {
    summary: "List refunds",
    description:
      "The refunds of the account and mode, newest first. Pass `cursor` to get the next page, until it is null."
  },
  "refunds.get": { summary: "Get a refund", description: "A refund as it is now." },
  "refunds.name": {
    summary: "Name a refund's transaction",
    description: "For a refund that was recorded without its transaction, or with one that is `not_found`."
  },
  "refunds.drop": {
    summary: "Drop a refund",
    description:
      "Ends a refund that was not made, as `failed`: its money is open again, or counts for its payment again. What the chain has shown stays."
  },
  "ledger.list": {
    summary: "List the ledger",
    description:
      "What came, was sent back, was collected and paid for gas, of the account and mode, newest first by the time of blocks: a row each, once a second provider has it. `worth` is in the account's currency when tilld first stored the money, and never changes; `income` is the worth of `credited`, and less than zero for a refund. Pass `cursor` to get the next page, until it is null."
  },
  "webhooks.create": {
    summary: "Register a webhook endpoint",
    description:
      "From now on the endpoint receives events of the kinds that it names, for every payment of the account and mode. https only, to public addresses; at most 50 endpoints. One that has the same `url`, `events` and `secret` already is the answer, with 200; with another `secret` it is a 400."
  },
  "webhooks.get": {
    summary: "Get a webhook endpoint",
    description: "An endpoint of the account and mode, without its secret."
  },
  "webhooks.list": {
    summary: "List webhook endpoints",
    description: "All endpoints of the account and mode. Secrets are never shown."
  },
  "webhooks.change": {
    summary: "Change a webhook endpoint",
    description:
      "What is pending goes to the new `url`, signed with the new `secret`; nothing is lost. For `overlapSeconds` after a new secret `X-Service-Signature` stays on the former one, and `webhook-signature` has a signature of each. That holds for events of payments whose own `webhookUrl` is the former `url`, too: what is pending goes to the new one only."
  },
  "webhooks.remove": {
    summary: "Delete a webhook endpoint",
    description:
      "No more events are sent to it, and its pending deliveries are `cancelled`, except for events that a payment's own `webhookUrl` must get. A cancelled delivery can be sent to another endpoint: `POST /v1/deliveries/{id}/redeliver` with `to`. To move an endpoint, change its `url` instead. Deleting it again is a 404."
  },
  "deliveries.list": {
    summary: "List deliveries",
    description: "Every event on its way to each of its receivers, newest first. `status=failing` finds what needs you."
  },
  "deliveries.get": {
    summary: "Get a delivery",
    description: "A delivery with its attempts: when, how long, and what the receiver answered."
  },
  "deliveries.redeliver": {
    summary: "Send a delivery again",
    description:
      "The same event, with the same id and bytes, as an attempt outside the retry schedule, which goes on; a success ends it. With `to` the event goes to another endpoint of yours, as a delivery of its own."
  },
  "deliveries.redeliverSome": {
    summary: "Send many deliveries again",
    description:
      "All that the filters select, oldest first; without `status` those that are `failing`. A request orders up to 500: send it again with `cursor` until that is null."
  },
  "quotes.create": {
    summary: "Create a quote",
    description:
      "Prices a conversion between fiat currencies and tokens. It holds for 30 seconds and for one payment: give its `id` as `quoteId`. `fromAmount` × `rate`, rounded down to the decimals of `toCurrency`, is `toAmount` and both fees, to the last digit. That sum is `chargeAmount`, which a payer is charged for goods that cost `fromAmount`; `toAmount` charges so much less as the fees are."
  },
  "quotes.get": {
    summary: "Get a quote",
    description: "As it was created. One that no payment uses is deleted some time after its end."
  },
  "events.stream": {
    summary: "Stream events",
    description:
      "The new events of the account and mode as server-sent events, in the order in which they happened; those that report no new status only if `events` names them. Each message has the event's `id`, its kind as `event`, and as `data` the body that webhooks carry, byte for byte. A client that sends the last `id` in `Last-Event-ID`, as EventSource clients do by themselves, continues after that event and misses none; if that event is unknown, or no longer stored, a comment says so, and the oldest stored event comes next. First comes an `id` alone, for a client that is disconnected before the first event; a comment comes every 15 seconds. At most 20 streams per account. For tools and tests: a shop should use webhooks, which are retried."
  },
  "health.alive": {
    summary: "Is the process alive?",
    description: "For load balancers: payments can be created while a chain lags."
  },
  "health.ready": {
    summary: "Does everything work?",
    description:
      "For monitoring: whether each chain is read and each worker is running. Reasons are shown only to the operator. A response is up to a second old."
  },
  "documents.openapi": {
    summary: "This API as OpenAPI 3.1",
    description: "Generated from the schemas that validate requests."
  }
}

export const groupTexts: Readonly<Record<HttpApiGroup.HttpApiGroup.Name<Groups>, string>> = {
  payments: "Create payments and follow their status.",
  invoices: "Ask for a price, and let the customer choose what to pay in.",
  exceptions: "Money that fits no payment: look at it, and decide on it.",
  refunds: "Money that goes back to customers, and what the chain shows of it.",
  ledger: "Each movement of money, with its worth at that moment.",
  webhooks: "Endpoints that events are sent to.",
  deliveries: "Events on their way to their receivers: what arrived, what failed and why, and how to send it again.",
  quotes: "What an amount is worth in another currency.",
  events: "What tilld reports: sent to your webhook endpoints and to clients of the stream.",
  health: "For probes and monitoring. No key is needed.",
  documents: "This API for programs. No key is needed."
}

const named = "`data` is the invoice. Sent only to endpoints that name this kind, never to a `webhookUrl`."

export const eventTexts: Readonly<Record<EventKind, Text>> = {
  "invoice.created": { summary: "An invoice was created", description: `\`data.status\` is \`open\`. ${named}` },
  "invoice.processing": {
    summary: "Money was seen for an invoice",
    description: `\`data.status\` is \`processing\`. ${named}`
  },
  "invoice.paid": {
    summary: "An invoice is paid",
    description: `\`data.status\` is \`paid\`: one of its payments is confirmed, or its money was accepted. ${named}`
  },
  "invoice.expired": {
    summary: "An invoice was not paid in time",
    description: `\`data.status\` is \`expired\`. ${named}`
  },
  "invoice.failed": {
    summary: "The payment of an invoice failed",
    description: `\`data.status\` is \`failed\`: its payment says why. ${named}`
  },
  "invoice.cancelled": {
    summary: "An invoice was cancelled",
    description: `\`data.status\` is \`cancelled\`. ${named}`
  },
  "payment.created": {
    summary: "A payment was created",
    description: "`data.status` is `pending`."
  },
  "payment.detecting": {
    summary: "Money was seen",
    description:
      "`data.status` is `detecting`: the first transfer in time was seen, even of a part, and waits for confirmations. It comes again, as a new event, if a reorg removed the transfer and it was mined again."
  },
  "payment.updated": {
    summary: "What remains or goes back of a payment has changed",
    description:
      "Another transfer came to a `detecting` payment, or a reorg removed one, and `amountRemaining` has changed by at least a hundredth of `amount`, or is gone; or `refunded` of a payment in any state has changed. Only for endpoints that name this kind: it is not sent to a payment's own `webhookUrl`."
  },
  "payment.confirmed": {
    summary: "A payment is paid",
    description:
      "`data.status` is `confirmed`, with `txHash` and `confirmedAt`. It can follow `payment.expired` and `payment.failed`, if the operator accepted the money that arrived."
  },
  "payment.expired": {
    summary: "No money came in time",
    description:
      "`data.status` is `expired`. With `failureReason` `cancelled` you ended the payment before its time, and no money had come for it."
  },
  "payment.failed": {
    summary: "A payment failed",
    description:
      "`data.status` is `failed`, with `failureReason`: `cancelled` where you ended it after money had come. The only event that can follow `payment.confirmed`, with the reason `reorged`, if a reorg removed the confirmed transfer."
  },
  "payment.exception": {
    summary: "Money fits no payment, or was decided on",
    description:
      "`exception` was opened, has become another amount, or was closed: `resolution` says how. Sent only to endpoints that name this kind, never to a payment's own `webhookUrl`."
  },
  "refund.final": {
    summary: "Money has gone back for good",
    description:
      "The chain has the transfer of `refund`, by two providers and with its confirmations. Sent only to endpoints that name this kind, never to a payment's own `webhookUrl`."
  }
}
