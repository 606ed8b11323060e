import { Schema } from "effect"
import { longestOverlap, NotFound } from "../Auth/inputFields.ts"
import { Mode } from "../Domain/Chain.ts"
import { EventKind } from "../Domain/Event.ts"
import { AccountId } from "../Domain/Ids.ts"
import { RotationUnderWay, SecretUnreadable } from "../Domain/SecretErrors.ts"
import { StoreUnavailable } from "../Sql/Db.ts"
import { Modes } from "./controlRequests.ts"

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

const EndpointView = Schema.Struct({
  id: Schema.String,
  account: Schema.String,
  mode: Mode,
  url: Schema.String,
  events: Schema.Array(EventKind),
  createdAt: Schema.String
})
export type EndpointView = typeof EndpointView.Type

/** The change is not possible. Nothing was changed. */
export class ChangeRefused extends Schema.TaggedError<ChangeRefused>()("ChangeRefused", { message: Schema.String }) {}

export class ListEndpoints extends Schema.TaggedRequest<ListEndpoints>()("ListEndpoints", {
  payload: { account: AccountId, modes: Modes },
  success: Schema.Array(EndpointView),
  failure: StoreUnavailable
}) {}

/** Changes an endpoint of any account; the rest of it stays. */
export class ChangeEndpoint extends Schema.TaggedRequest<ChangeEndpoint>()("ChangeEndpoint", {
  payload: {
    id: Schema.String,
    url: optional(Schema.String),
    events: optional(Schema.Array(EventKind).pipe(Schema.minItems(1))),
    secret: optional(Schema.String.pipe(Schema.pattern(/^whsec_[^\s\p{C}]{16,256}$/u))),
    overlap: optional(Schema.Duration.pipe(Schema.lessThanOrEqualToDuration(longestOverlap)))
  },
  success: EndpointView,
  failure: Schema.Union(NotFound, ChangeRefused, RotationUnderWay, SecretUnreadable, StoreUnavailable)
}) {}
