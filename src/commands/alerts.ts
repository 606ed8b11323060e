import { Command } from "@effect/cli"
import { Data, Effect } from "effect"
import { ListAlerts, ShowAlertSecret, TestAlert } from "../Control/alertRequests.ts"
import { succeeded } from "../Webhooks/queue/retryPolicy.ts"
import { askDaemon } from "./askDaemon.ts"
import { common, controlTargetOf } from "./commonOptions.ts"
import { print } from "./Output.ts"
import { printResult } from "./result.ts"

/** The test message did not arrive. What came of it has been printed. */
export class AlertNotDelivered extends Data.TaggedError("AlertNotDelivered")<{ readonly reason: string }> {
  override get message() {
    return `the test did not arrive: ${this.reason}`
  }
}

const list = Command.make(
  "list",
  common,
  Effect.fnUntraced(function* (options) {
    yield* printResult(options, "alerts list", new ListAlerts(), ({ open, unsent }) =>
      [
        ...(open.length === 0 ? ["nothing is wrong"] : []),
        ...open.map(({ openedAt, remedy, summary }) => `${openedAt}  ${summary}. Remedy: ${remedy}`),
        ...(unsent === 0 ? [] : [`messages that alerts.url has not taken yet: ${unsent}`])
      ].join("\n")
    )
  })
).pipe(Command.withDescription("List what the operator has been told of and is not over"))

const secret = Command.make(
  "secret",
  common,
  Effect.fnUntraced(function* (options) {
    yield* printResult(options, "alerts secret", new ShowAlertSecret(), (shown) => shown.secret)
  })
).pipe(Command.withDescription("Print the secret that signs messages to alerts.url"))

const test = Command.make(
  "test",
  common,
  Effect.fnUntraced(function* (options) {
    const place = yield* controlTargetOf(options)
    const { error, id, status } = yield* askDaemon(place, "alerts test", new TestAlert())
    const ending = error ?? `alerts.url answered ${status}`
    yield* print(options.json ? JSON.stringify({ id, status, error }) : `${id}  ${ending}`)
    if (!succeeded(status)) return yield* new AlertNotDelivered({ reason: ending })
  })
).pipe(Command.withDescription("Send a test message to alerts.url; exit 1 unless it answers with 2xx"))

/** `tilld alerts`: what the operator is told of at `alerts.url`. */
export const alertsCommand = Command.make("alerts").pipe(
  Command.withDescription("Alerts: what the operator is told of at alerts.url"),
  Command.withSubcommands([list, secret, test])
)
