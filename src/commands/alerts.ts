import { Command } from "@effect/cli"
import { Data } from "effect"
import { listAlerts, showAlertSecret, testAlert } from "../Alerts/alertOperations.ts"
import { succeeded } from "../Webhooks/queue/retryPolicy.ts"
import { commandOf } from "./operationCommand.ts"

/** The test message did not arrive. What came of it has been printed. */
export class AlertNotDelivered extends Data.TaggedError("AlertNotDelivered")<{ readonly reason: string }> {
  override get message() {
    return `the test did not arrive: ${this.reason}`
  }
}

const list = commandOf(listAlerts, {
  print: ({ open, unsent }) =>
    [
      ...(open.length === 0 ? ["nothing is wrong"] : []),
      ...open.map(({ openedAt, remedy, summary }) => `${openedAt}  ${summary}. Remedy: ${remedy}`),
      ...(unsent === 0 ? [] : [`messages that alerts.url has not taken yet: ${unsent}`])
    ].join("\n")
})

const secret = commandOf(showAlertSecret, { print: ({ secret }) => secret })

const endingOf = ({ error, status }: { readonly error?: string | undefined; readonly status?: number | undefined }) =>
  error ?? `alerts.url answered ${status}`

const test = commandOf(testAlert, {
  print: ({ id, ...result }) => `${id}  ${endingOf(result)}`,
  failure: (result) => (succeeded(result.status) ? undefined : new AlertNotDelivered({ reason: endingOf(result) }))
})

/** `tilld alerts`: the messages that go to `alerts.url`. */
export const alertsCommand = Command.make("alerts").pipe(
  Command.withDescription("Alerts: the messages that go to alerts.url"),
  Command.withSubcommands([list, secret, test])
)
