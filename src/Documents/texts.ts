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
      "Gives an address that is made for this payment alone. What arrives there until `expiresAt`, in the currency and on the chain asked for, adds up; nothing else counts. Every change is told by webhook."
  },
  "payments.get": {
    summary: "Get a payment",
    description: "A payment of the key's account and mode."
  },
  "payments.list": {
    summary: "List payments",
    description:
      "Newest first. Give `cursor` back for the next page, until it is null; pages stay stable while payments are created."
  },
  "webhooks.create": {
    summary: "Register a webhook endpoint",
    description:
      "From now on the endpoint is told of the kinds that it names, for every payment of the account and mode. https only, to public addresses; at most 50 endpoints."
  },
  "webhooks.list": {
    summary: "List webhook endpoints",
    description: "All of the account and mode. Secrets are never shown."
  },
  "webhooks.remove": {
    summary: "Delete a webhook endpoint",
    description:
      "Nothing is sent to it any more, also not what waits for a retry, except what a payment's own `webhookUrl` is owed. To delete it again is a 404."
  },
  "quotes.create": {
    summary: "Create a quote",
    description:
      "Prices a conversion between fiat currencies and tokens. It holds for 30 seconds and for one payment: give its `id` as `quoteId`. `fromAmount` × `rate`, rounded down to the decimals of `toCurrency`, is `toAmount` and both fees, to the last digit."
  },
  "events.stream": {
    summary: "Stream events",
    description:
      "The events of the account and mode as server-sent events, in the order in which they happened, from now on. Each message has the event's `id`, its kind as `event`, and as `data` the body that webhooks carry, byte for byte. A client that gives the last `id` back in `Last-Event-ID`, as such clients do by themselves, goes on behind that event, and misses none; if that event is unknown, or older than events are kept, a comment says so, and the oldest that is kept comes next. First comes an `id` alone, for a client that is cut off before there is an event; a comment comes every 15 seconds. At most 20 streams an account. For tools and tests: a shop is better served by webhooks, which are tried again."
  },
  "health.alive": {
    summary: "Is the process alive?",
    description: "What a load balancer should ask: payments can be created while a chain lags."
  },
  "health.ready": {
    summary: "Does everything work?",
    description:
      "What monitoring should ask: whether each chain is read and each worker goes on. Why one does not, only the operator is told. An answer is up to a second old."
  },
  "documents.openapi": {
    summary: "This API as OpenAPI 3.1",
    description: "Generated from the schemas that requests are checked with."
  },
  "documents.page": {
    summary: "This API as a page",
    description: "Complete in itself: no script, and nothing from elsewhere."
  },
  "documents.style": {
    summary: "The page's style",
    description: "A stylesheet."
  }
}

export const groupTexts: Readonly<Record<HttpApiGroup.HttpApiGroup.Name<Groups>, string>> = {
  payments: "Ask for a payment, and see what has become of it.",
  webhooks: "Where events are sent.",
  quotes: "What an amount is worth in another currency.",
  events: "What tilld tells you: sent to your webhook endpoints, or to whoever follows the stream.",
  health: "For probes and monitoring. No key is needed.",
  documents: "What you are reading. No key is needed."
}

export const eventTexts: Readonly<Record<EventKind, Text>> = {
  "payment.created": {
    summary: "A payment was created",
    description: "`data.status` is `pending`."
  },
  "payment.detecting": {
    summary: "Money was seen",
    description:
      "`data.status` is `detecting`: the first money on time was seen, even a part, and waits for confirmations. It comes again, as a new event, when a reorg took the money away and it was mined again."
  },
  "payment.confirmed": {
    summary: "A payment is paid",
    description:
      "`data.status` is `confirmed`, with `txHash` and `confirmedAt`. It can follow `payment.expired` and `payment.failed`: then the operator has accepted what came."
  },
  "payment.expired": {
    summary: "Nothing came in time",
    description: "`data.status` is `expired`."
  },
  "payment.failed": {
    summary: "A payment failed",
    description:
      "`data.status` is `failed`, with `failureReason`. The one event that can follow `payment.confirmed`: then the reason is `reorged`, and the chain took back what had been confirmed."
  }
}
