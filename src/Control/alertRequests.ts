import { Schema } from "effect"
import { StoreUnavailable } from "../Sql/Db.ts"

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

/** `alerts.url` is not set. */
export class AlertsOff extends Schema.TaggedError<AlertsOff>()("AlertsOff", { message: Schema.String }) {}

/** The conditions that are open, and how many messages wait for another attempt. */
export class ListAlerts extends Schema.TaggedRequest<ListAlerts>()("ListAlerts", {
  payload: {},
  success: Schema.Struct({
    open: Schema.Array(
      Schema.Struct({ key: Schema.String, summary: Schema.String, remedy: Schema.String, openedAt: Schema.String })
    ),
    unsent: Schema.Number
  }),
  failure: Schema.Union(AlertsOff, StoreUnavailable)
}) {}

/** The secret that signs messages to `alerts.url`. */
export class ShowAlertSecret extends Schema.TaggedRequest<ShowAlertSecret>()("ShowAlertSecret", {
  payload: {},
  success: Schema.Struct({ secret: Schema.String }),
  failure: StoreUnavailable
}) {}

/** Sends a message of the type `alert.test` to `alerts.url`, once. */
export class TestAlert extends Schema.TaggedRequest<TestAlert>()("TestAlert", {
  payload: {},
  success: Schema.Struct({ id: Schema.String, status: optional(Schema.Number), error: optional(Schema.String) }),
  failure: Schema.Union(AlertsOff, StoreUnavailable)
}) {}
