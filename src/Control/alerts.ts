import { Clock, Effect, Redacted, Schema } from "effect"
import * as AlertsRepo from "../Alerts/AlertsRepo.ts"
import { messageOf } from "../Alerts/alertState.ts"
import { makeSendAlert } from "../Alerts/sendAlert.ts"
import { alertSecret } from "../Alerts.ts"
import { iso } from "../Domain/Timestamp.ts"
import { Settings } from "../Settings.ts"
import { StoreUnavailable } from "../Sql/Db.ts"
import { Reader } from "../Sql.ts"
import { administering, reading } from "./controlHandler.ts"

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

/** `alerts.url` is not set. */
export class AlertsOff extends Schema.TaggedError<AlertsOff>()("AlertsOff", { message: Schema.String }) {}

const whereOn = Effect.filterOrFail(
  Settings,
  ({ alerts }) => alerts.url !== "",
  () => new AlertsOff({ message: "Nobody is told of trouble: set alerts.url in the configuration, and restart tilld" })
)

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

export const listAlerts = reading(ListAlerts, () =>
  Effect.gen(function* () {
    yield* whereOn
    const { seen, unsent } = yield* AlertsRepo.read(yield* Reader)
    const open = seen.flatMap(({ key, openedAt, remedy, summary }) =>
      openedAt === undefined ? [] : [{ key, summary, remedy, openedAt: iso(openedAt) }]
    )
    return { open, unsent: unsent.length }
  })
)

/** The secret that signs messages to `alerts.url`. */
export class ShowAlertSecret extends Schema.TaggedRequest<ShowAlertSecret>()("ShowAlertSecret", {
  payload: {},
  success: Schema.Struct({ secret: Schema.String }),
  failure: StoreUnavailable
}) {}

export const showAlertSecret = administering(
  ShowAlertSecret,
  () => ({ act: "alerts secret", detail: {} }),
  () => Effect.map(alertSecret, (secret) => ({ secret: Redacted.value(secret) }))
)

/** Sends a message of the type `alert.test` to `alerts.url`, once. */
export class TestAlert extends Schema.TaggedRequest<TestAlert>()("TestAlert", {
  payload: {},
  success: Schema.Struct({ id: Schema.String, status: optional(Schema.Number), error: optional(Schema.String) }),
  failure: Schema.Union(AlertsOff, StoreUnavailable)
}) {}

export const testAlert = administering(
  TestAlert,
  () => ({ act: "alerts test", detail: {}, first: true }),
  () =>
    Effect.scoped(
      Effect.gen(function* () {
        const send = yield* makeSendAlert(yield* whereOn, yield* alertSecret)
        const about = { key: "test", summary: "this is a test", remedy: "nothing is to be done" }
        const message = messageOf("alert.test", about, yield* Clock.currentTimeMillis)
        return { id: message.id, ...(yield* send(message)) }
      })
    )
)
