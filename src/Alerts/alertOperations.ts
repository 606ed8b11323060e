/** Operations on alerts: list the open ones, show their signing secret, send a test. */
import { Clock, Effect, Redacted, Schema } from "effect"
import { alertSecret, makeSendAlert, readAlerts } from "../Alerts.ts"
import { Moment } from "../lib/moment.ts"
import { operation } from "../Operations/operation.ts"
import { Settings } from "../Settings.ts"
import { Reader } from "../Sql/Db.ts"
import { messageOf } from "./alertState.ts"

/** `alerts.url` is not set. */
export class AlertsOff extends Schema.TaggedError<AlertsOff>()("AlertsOff", { message: Schema.String }) {}

/** The settings, where alerts have a receiver. */
const whereOn = Effect.gen(function* () {
  const settings = yield* Settings
  if (settings.alerts.url !== "") return settings
  return yield* new AlertsOff({
    message: "No alerts are sent: set alerts.url in the configuration, and restart tilld"
  })
})

export const listAlerts = operation({
  name: "alerts list",
  summary: "List the open alerts that were sent to the operator",
  input: {},
  output: Schema.Struct({
    open: Schema.Array(
      Schema.Struct({ key: Schema.String, summary: Schema.String, remedy: Schema.String, openedAt: Moment })
    ),
    /** Messages that wait for another attempt. */
    unsent: Schema.Number
  }),
  refusals: [AlertsOff],
  run: Effect.fnUntraced(function* () {
    yield* whereOn
    const { seen, unsent } = yield* readAlerts(yield* Reader)
    const open = seen.flatMap(({ openedAt, ...alert }) => (openedAt === undefined ? [] : [{ ...alert, openedAt }]))
    return { open, unsent: unsent.length }
  })
})

export const showAlertSecret = operation({
  name: "alerts secret",
  summary: "Print the secret that signs messages to alerts.url",
  input: {},
  output: Schema.Struct({ secret: Schema.String }),
  refusals: [],
  audit: () => ({}),
  run: Effect.fnUntraced(function* () {
    return { secret: Redacted.value(yield* alertSecret) }
  })
})

export const testAlert = operation({
  name: "alerts test",
  summary: "Send a test message to alerts.url; exit 1 unless it answers with 2xx",
  input: {},
  output: Schema.Struct({
    id: Schema.String,
    status: Schema.optional(Schema.Number),
    error: Schema.optional(Schema.String)
  }),
  refusals: [AlertsOff],
  audit: () => ({}),
  auditFirst: true,
  run: Effect.fnUntraced(function* () {
    const send = yield* makeSendAlert(yield* whereOn, yield* alertSecret)
    const about = { key: "test", summary: "this is a test", remedy: "nothing is to be done" }
    const message = messageOf("alert.test", about, yield* Clock.currentTimeMillis)
    return { id: message.id, ...(yield* send(message)) }
  }, Effect.scoped)
})
