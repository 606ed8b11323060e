import { Schema } from "effect"
import { NotFound } from "../Auth/inputFields.ts"
import { Mode } from "../Domain/Chain.ts"
import { AccountId } from "../Domain/Ids.ts"
import { SecretUnreadable } from "../Domain/SecretErrors.ts"
import { StoreUnavailable } from "../Sql/Db.ts"
import { Modes, Moment, PageLimit } from "./controlRequests.ts"
import { DeliveryView } from "./deliveryView.ts"

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

/** A delivery that cannot be sent again. */
export class RedeliveryRefused extends Schema.TaggedError<RedeliveryRefused>()("RedeliveryRefused", {
  message: Schema.String
}) {}

/** Statuses that a list or a redelivery can select. */
export const ListedStatus = Schema.Literal("pending", "failed", "delivered", "cancelled")
/** `failing`: an attempt has failed, and none has succeeded yet. */
export const SelectedStatus = Schema.Literal(...ListedStatus.literals, "failing")

/**
 * Deliveries to an endpoint if one is given, otherwise of an account in these modes. Unix milliseconds, `until`
 * exclusive.
 */
const scope = {
  account: AccountId,
  modes: Modes,
  endpoint: optional(Schema.String),
  since: Moment,
  until: Moment
}

export class ListDeliveries extends Schema.TaggedRequest<ListDeliveries>()("ListDeliveries", {
  payload: {
    ...scope,
    statuses: Schema.Array(SelectedStatus).pipe(Schema.maxItems(ListedStatus.literals.length)),
    after: optional(Schema.String),
    limit: PageLimit
  },
  success: Schema.Array(DeliveryView),
  failure: Schema.Union(NotFound, StoreUnavailable)
}) {}

export class ShowDelivery extends Schema.TaggedRequest<ShowDelivery>()("ShowDelivery", {
  payload: { id: Schema.String },
  success: DeliveryView,
  failure: Schema.Union(NotFound, StoreUnavailable)
}) {}

export class Redeliver extends Schema.TaggedRequest<Redeliver>()("Redeliver", {
  /** `to`: an endpoint of the same account and mode. */
  payload: { id: Schema.String, to: optional(Schema.String) },
  /** `due`: an attempt is due or waiting already, and nothing was added. */
  success: Schema.Struct({
    id: Schema.String,
    result: Schema.Literal("ordered", "due"),
    /** The attempts that it had by then: the one that was ordered comes after these. */
    attemptsMade: Schema.Int
  }),
  failure: Schema.Union(NotFound, RedeliveryRefused, StoreUnavailable)
}) {}

const Place = Schema.Struct({ createdAt: Schema.Number, sequence: Schema.Number })

/** Orders one page of a range again. The next request passes `next` as its `after`. */
export class RedeliverRange extends Schema.TaggedRequest<RedeliverRange>()("RedeliverRange", {
  payload: {
    account: AccountId,
    mode: Mode,
    endpoint: optional(Schema.String),
    status: SelectedStatus,
    since: Moment,
    until: Moment,
    to: optional(Schema.String),
    after: optional(Place)
  },
  success: Schema.Struct({
    ordered: Schema.Number,
    due: Schema.Number,
    refused: Schema.Number,
    next: optional(Place)
  }),
  failure: Schema.Union(NotFound, RedeliveryRefused, StoreUnavailable)
}) {}

export class SendTest extends Schema.TaggedRequest<SendTest>()("SendTest", {
  payload: { endpoint: Schema.String },
  success: Schema.Struct({
    id: Schema.String,
    endpoint: Schema.String,
    url: Schema.String,
    durationMillis: Schema.Number,
    address: optional(Schema.String),
    status: optional(Schema.Number),
    error: optional(Schema.String),
    bodyStart: optional(Schema.String)
  }),
  failure: Schema.Union(NotFound, SecretUnreadable, StoreUnavailable)
}) {}
