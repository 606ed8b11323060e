import { Clock, Effect, Redacted } from "effect"
import * as AlertsRepo from "../Alerts/AlertsRepo.ts"
import { messageOf } from "../Alerts/alertState.ts"
import { makeSendAlert } from "../Alerts/sendAlert.ts"
import { alertSecret } from "../Alerts.ts"
import { iso } from "../Domain/Timestamp.ts"
import { Settings } from "../Settings.ts"
import { Reader } from "../Sql.ts"
import { AlertsOff, ListAlerts, ShowAlertSecret, TestAlert } from "./alertRequests.ts"
import { administering, reading } from "./controlHandler.ts"

const whereOn = Effect.filterOrFail(
  Settings,
  ({ alerts }) => alerts.url !== "",
  () => new AlertsOff({ message: "Nobody is told of trouble: set alerts.url in the configuration, and restart tilld" })
)

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

export const showAlertSecret = administering(
  ShowAlertSecret,
  () => ({ act: "alerts secret", detail: {} }),
  () => Effect.map(alertSecret, (secret) => ({ secret: Redacted.value(secret) }))
)

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
