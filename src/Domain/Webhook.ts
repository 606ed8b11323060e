import { Schema } from "effect"
import type { Mode } from "./Chain.ts"
import type { EventKind } from "./Event.ts"
import type { AccountId, EndpointId } from "./Ids.ts"

/** What a webhook's secret must be. */
export const secretRule = "be whsec_ followed by 16 to 256 visible characters"

export const SecretText = Schema.String.pipe(Schema.pattern(/^whsec_[^\s\p{C}]{16,256}$/u))

/** A registered webhook endpoint. Its secret is sealed in the store and never part of this record. */
export interface Endpoint {
  readonly id: EndpointId
  readonly account: AccountId
  readonly mode: Mode
  readonly url: string
  readonly events: ReadonlyArray<EventKind>
  /** Unix milliseconds. */
  readonly createdAt: number
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

/** An endpoint with the id that was asked for exists, or did: the request was made twice. Nothing was changed. */
export class EndpointExists extends Schema.TaggedError<EndpointExists>()("EndpointExists", {
  id: Schema.String,
  message: Schema.String
}) {
  static readonly of = (id: string) =>
    new EndpointExists({ id, message: `There is an endpoint ${id} already: its secret was shown once` })
}
