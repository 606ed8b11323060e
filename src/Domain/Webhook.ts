import { Schema } from "effect"
import { alternatives, inLog, must } from "../lib/annotations.ts"
import type { Mode } from "./Chain.ts"
import { EventKind, isPluginEventKind, type OutboxEventKind } from "./Event.ts"
import type { AccountId, EndpointId } from "./Ids.ts"

/** What a webhook's secret must be. */
export const secretRule = "be whsec_ followed by 16 to 256 visible characters"

export const SecretText = Schema.String.pipe(Schema.pattern(/^whsec_[^\s\p{C}]{16,256}$/u))

export const EventKinds = Schema.Array(must(`be ${alternatives(EventKind.literals)}`, EventKind))
  .annotations({ message: () => "must be an array of event kinds" })
  .pipe(
    Schema.filter((events) => events.length > 0, { message: () => "must have at least one event kind" }),
    Schema.filter((events) => new Set(events).size === events.length, {
      message: () => "must not have the same event kind twice",
      description:
        "The event kinds to send; `payment.updated`, `payment.exception` and `refund.final` go only to endpoints that name them.",
      jsonSchema: { minItems: 1, uniqueItems: true }
    })
  )
  .annotations(inLog("shown"))

/** The loggable part of a URL: the rest may contain a secret of the merchant. */
export const loggedHost = (url: string | undefined): string | undefined =>
  url !== undefined && URL.canParse(url) ? new URL(url).host : undefined

/** What a shop plugin asked for with its endpoint. */
export const PluginEndpoint = Schema.Struct({
  /** Otherwise nothing is sent. */
  enabled: Schema.Boolean,
  /** Whether a failed attempt is followed by others. */
  automaticRedelivery: Schema.Boolean,
  /** Whether it gets all kinds, not only `specificEvents`. */
  everything: Schema.Boolean,
  /** May name kinds that there are not. */
  specificEvents: Schema.Array(Schema.String)
})
export type PluginEndpoint = typeof PluginEndpoint.Type

/** A registered webhook endpoint. Its secret is sealed in the store and never part of this record. */
export interface Endpoint {
  readonly id: EndpointId
  readonly account: AccountId
  readonly mode: Mode
  readonly url: string
  /** None where a shop plugin registered it. */
  readonly events: ReadonlyArray<EventKind>
  /** Undefined for an endpoint of the own API. */
  readonly plugin?: PluginEndpoint | undefined
  /** Unix milliseconds. */
  readonly createdAt: number
  /** Until when the secret before the last one signs too, or did; Unix milliseconds. */
  readonly formerSecretUntil?: number | undefined
}

/** Whether an endpoint gets events of a kind. */
export const takes = ({ events, plugin }: Endpoint, kind: OutboxEventKind): boolean => {
  if (plugin === undefined) return events.some((one) => one === kind)
  return plugin.enabled && isPluginEventKind(kind) && (plugin.everything || plugin.specificEvents.includes(kind))
}

/** Most endpoints that an account may have in each mode. */
export const maxEndpoints = 50

/** The account already has the maximum number of endpoints in that mode. */
export class TooManyEndpoints extends Schema.TaggedError<TooManyEndpoints>()("TooManyEndpoints", {
  limit: Schema.Number,
  message: Schema.String
}) {
  static readonly of = (limit: number) =>
    new TooManyEndpoints({ limit, message: `There are ${limit} endpoints, as many as can be: delete one first.` })
}

/** Another endpoint gets the same events at the same URL, signed with another secret. Nothing was changed. */
export class EndpointAlike extends Schema.TaggedError<EndpointAlike>()("EndpointAlike", { id: Schema.String }) {}

/** An endpoint with the id that was asked for exists, or did: the request was made twice. Nothing was changed. */
export class EndpointExists extends Schema.TaggedError<EndpointExists>()("EndpointExists", {
  id: Schema.String,
  message: Schema.String
}) {
  static readonly of = (id: string) =>
    new EndpointExists({ id, message: `There is an endpoint ${id} already: its secret was shown once` })
}
