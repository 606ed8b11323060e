import { Command } from "@effect/cli"
import { Clock, Data, Duration, Effect, Redacted, Schema } from "effect"
import type { OperatorDelivery } from "../Domain/DeliveryObject.ts"
import { maybe, momentAt } from "../Operations/inputFields.ts"
import { withFlag } from "../Operations/operation.ts"
import {
  eventsSince,
  listDeliveries,
  RangePlace,
  redeliverOne,
  redeliverRange,
  sendTestDelivery,
  showDelivery
} from "../Webhooks/deliveryOperations.ts"
import {
  changeEndpoint,
  deleteEndpoint,
  type ListedEndpointJson,
  listEndpoints,
  registerEndpoint
} from "../Webhooks/endpointOperations.ts"
import { succeeded } from "../Webhooks/queue/retryPolicy.ts"
import { rotateSecret, type SecretJson, showSecret } from "../Webhooks/secretOperations.ts"
import { freshSecret } from "../Webhooks/signature.ts"
import { ask } from "./askDaemon.ts"
import { complain, print, table } from "./Output.ts"
import { askFor, commandOf, commandWith, decoded, moreAfter, printOperation } from "./operationCommand.ts"
import { type Common, controlTargetOf, UsageError } from "./options.ts"
import { readSigningSecret } from "./signingSecret.ts"

type Attempt = OperatorDelivery["attempts"][number]

/** A receiver's response on one line, without characters that move the terminal's cursor. */
const oneLine = (text: string): string => text.replace(/[\p{C}\p{Z}]+/gu, " ").trim()

const answered = ({ bodyStart = "", error, status }: Pick<Attempt, "bodyStart" | "error" | "status">): string =>
  [status ?? error ?? "", ...(bodyStart === "" ? [] : [oneLine(bodyStart)])].join("  ")

/** An attempt on one line: time, duration, IP address, and the response or error. */
export const attemptLine = (attempt: Attempt): string =>
  `${attempt.number}.  ${attempt.startedAt}  ${attempt.durationMillis} ms  ${attempt.address ?? "no address"}  ` +
  `${attempt.redelivery ? "redelivery  " : ""}${answered(attempt)}`

const lastOf = ({ attempts }: OperatorDelivery): string => {
  const last = attempts.at(-1)
  return last === undefined ? "" : String(last.status ?? last.error)
}

/** `tilld webhooks list`. */
const listCommand = commandOf(listDeliveries, {
  print: (deliveries) =>
    table(
      ["ID", "CREATED", "MODE", "KIND", "PAYMENT", "REFERENCE", "STATUS", "ATTEMPTS", "LAST", "NEXT", "URL"],
      deliveries.map((delivery) => [
        delivery.id,
        delivery.createdAt,
        delivery.mode,
        delivery.kind,
        delivery.payment ?? delivery.invoice ?? "",
        oneLine(delivery.merchantRef),
        delivery.status,
        String(delivery.attemptsMade),
        lastOf(delivery),
        delivery.nextAttemptAt ?? "",
        delivery.url
      ])
    ),
  explain: moreAfter
})

/** `tilld webhooks show`. */
const showCommand = commandOf(showDelivery, {
  print: ({ attempts, lastAttempt: _, ...delivery }) =>
    [
      ...Object.entries(delivery).map(([key, value]) => `${key}: ${value}`),
      attempts.length === 0 ? "attempts: none" : "attempts:",
      ...attempts.map((attempt) => `  ${attemptLine(attempt)}`),
      ...(delivery.status === "cancelled"
        ? [
            `Its endpoint was deleted. Send its event to another one: tilld webhooks redeliver ${delivery.id} --to ENDPOINT`
          ]
        : [])
    ].join("\n")
})

const renderCounts = (counts: { readonly ordered: number; readonly due: number; readonly refused: number }): string =>
  `${counts.ordered} to be sent again, ${counts.due} were due already` +
  (counts.refused === 0
    ? ""
    : `, ${counts.refused} refused: they have no endpoint any more (name another with --to), or the other does not name their kind`)

/** Redelivers a range page by page. Progress goes to standard error where there is more than one page. */
const wholeRange = Effect.fn("commands.wholeRange")(function* (json: object, options: Common) {
  const range = yield* decoded(redeliverRange, { ...json })
  const place = yield* controlTargetOf(options)
  const now = yield* Clock.currentTimeMillis
  // The same times for each page.
  const since = { at: momentAt(range.since, now) }
  const until = { at: range.until === undefined ? now : momentAt(range.until, now) }
  const sum = { ordered: 0, due: 0, refused: 0 }
  let after: typeof RangePlace.Type | undefined
  do {
    const part = { ...range, since, until, ...(after === undefined ? {} : { after }) }
    const done = yield* Effect.tapError(askFor(place, redeliverRange, part), () =>
      complain(`${renderCounts(sum)} before the error; the same command continues`)
    )
    sum.ordered += done.ordered
    sum.due += done.due
    sum.refused += done.refused
    after = done.next === undefined ? undefined : Schema.decodeSync(RangePlace)(done.next)
    if (after !== undefined && done.ordered + done.due + done.refused > 0) yield* complain(renderCounts(sum))
  } while (after !== undefined)
  yield* print(options.json ? JSON.stringify(sum) : renderCounts(sum))
})

/** The receiver did not answer the attempt with a 2xx, or there was none in time. */
class NotDelivered extends Data.TaggedError("NotDelivered")<{ readonly message: string }> {}

/** Longer than an attempt may take, with its turn among others. */
const attemptPatience = Duration.toMillis("90 seconds")

/** Orders a delivery again, and waits for the attempt: the daemon makes it, and is asked until it has. */
const redeliverAndWait = Effect.fn("commands.redeliverAndWait")(function* (json: object, options: Common) {
  const one = yield* decoded(redeliverOne, { ...json })
  const place = yield* controlTargetOf(options)
  const { attemptsMade, id: sent } = yield* ask(place, redeliverOne, one)
  const until = (yield* Clock.currentTimeMillis) + attemptPatience
  while (true) {
    const delivery = yield* ask(place, showDelivery, { id: sent })
    const last = delivery.attempts.at(-1)
    if (last !== undefined && last.number > attemptsMade) {
      yield* print(options.json ? JSON.stringify(delivery) : `${sent}  ${attemptLine(last)}`)
      if (succeeded(last.status)) return
      return yield* new NotDelivered({
        message: `The receiver did not answer with a 2xx: ${last.status ?? last.error}`
      })
    }
    if ((yield* Clock.currentTimeMillis) > until) {
      return yield* new NotDelivered({ message: `No attempt has ended for 90 seconds: tilld webhooks show ${sent}` })
    }
    yield* Effect.sleep("250 millis")
  }
})

/** `tilld webhooks redeliver`. */
const redeliverCommand = commandWith(
  "redeliver",
  redeliverOne.summary,
  {
    ...redeliverRange.fields,
    id: withFlag(maybe(Schema.String), {
      about: "The delivery, dlv_…, as tilld webhooks list and payments show have it",
      value: "ID",
      isArgument: true
    }),
    since: eventsSince,
    wait: withFlag(maybe(Schema.Boolean), {
      about: "With an ID: wait for the attempt, and fail unless it is answered with a 2xx"
    })
  },
  ({ id, wait: waits, ...json }, target) => {
    if (waits && id === undefined) return new UsageError({ message: "--wait tells of one delivery: give its ID" })
    if ((id === undefined) === (json.since === undefined)) {
      return new UsageError({ message: "Give either the ID of a delivery, or --since TIME for a range" })
    }
    if (id === undefined) return wholeRange(json, target)
    const { to, ...filters } = json
    if (Object.keys(filters).length > 0) {
      return new UsageError({
        message: `An ID names one delivery: leave out ${Object.keys(filters)
          .map((name) => `--${name}`)
          .join(", ")}`
      })
    }
    const one = { id, ...(to === undefined ? {} : { to }) }
    if (waits) return redeliverAndWait(one, target)
    return printOperation(
      redeliverOne,
      {
        print: ({ id: sent, result }) =>
          result === "ordered"
            ? `${sent} is sent again now, or when the daemon starts`
            : `${sent} is being sent or about to be: nothing was added`
      },
      one,
      target
    )
  }
)

/** `tilld webhooks test`: exit 1 unless the endpoint responds with a 2xx. */
export const test = commandOf(sendTestDelivery, {
  print: (result) =>
    `${result.url}  ${result.durationMillis} ms  ${result.address ?? "no address"}  ${answered(result)}`,
  failure: ({ error, status }) =>
    succeeded(status)
      ? undefined
      : { _tag: "TestNotTaken", message: `The endpoint did not answer with a 2xx: ${status ?? error}` }
})

const row = ({ createdAt, events, id, mode, plugin, url }: ListedEndpointJson) => [
  ...[id, createdAt, mode],
  plugin === undefined ? events.join(",") : "shop plugin",
  url
]
const endpointTable = (endpoints: ReadonlyArray<ListedEndpointJson>) =>
  table(["ID", "CREATED", "MODE", "EVENTS", "URL"], endpoints.map(row))

/** `tilld webhooks endpoints`. */
const endpointsCommand = commandOf(listEndpoints, { print: endpointTable })

/** `tilld webhooks register`. */
const registerCommand = commandOf(
  registerEndpoint,
  {
    print: ({ secret }) => secret,
    explain: ({ id }) =>
      `This is the secret of ${id}. It is shown only now: the receiver needs it to verify what it gets.`
  },
  (json) =>
    typeof json.secret === "string"
      ? Effect.map(readSigningSecret(json.secret), (secret) => ({ ...json, secret }))
      : Effect.succeed(json)
)

const newSecret = withFlag(maybe(Schema.Boolean), { about: "Make a new secret, and print it" })

/** `tilld webhooks change`. A new secret is made here: it is on standard output, and nowhere else. */
const changeCommand = commandWith(
  "change",
  changeEndpoint.summary,
  { ...changeEndpoint.fields, newSecret },
  ({ newSecret: makesNew, ...json }, target) =>
    Effect.gen(function* () {
      if (makesNew && "secret" in json) {
        return yield* new UsageError({ message: "Give either --secret or --new-secret" })
      }
      const made = makesNew ? { secret: Redacted.value(freshSecret()) } : {}
      const read = typeof json.secret === "string" ? { secret: yield* readSigningSecret(json.secret) } : {}
      const input = yield* decoded(changeEndpoint, { ...json, ...made, ...read })
      const changed = yield* askFor(yield* controlTargetOf(target), changeEndpoint, input)
      if (target.json) return yield* print(JSON.stringify({ ...changed, ...made }))
      yield* complain(endpointTable([changed]))
      yield* print(made.secret ?? changed.id)
    })
)

/** `tilld webhooks delete`. */
const deleteCommand = commandOf(deleteEndpoint, {
  print: ({ cancelled, id }) => `${id} is deleted; deliveries that were cancelled with it: ${cancelled}`
})

const printing = {
  print: ({ secret }: SecretJson) => secret,
  explain: ({ previous }: SecretJson) =>
    previous &&
    `Until ${previous.until} X-Service-Signature stays on the secret before it, ${previous.secret}; ` +
      "webhook-signature has a signature of each."
}

const rotate = withFlag(maybe(Schema.Boolean), { about: "Make a new secret, which replaces the present one" })

const secret = commandWith(
  "secret",
  "Print the secret that signs webhooks to payments' webhookUrl, or make a new one",
  { ...rotateSecret.fields, rotate },
  ({ rotate, ...json }, target) => {
    if (rotate) return printOperation(rotateSecret, printing, json, target)
    return "overlap" in json
      ? new UsageError({ message: "--overlap says how to --rotate, which was not given" })
      : printOperation(showSecret, printing, json, target)
  }
)

/** `tilld webhooks`: deliveries, endpoints, tests and the signing secret. */
export const webhooksCommand = Command.make("webhooks").pipe(
  Command.withDescription("Webhooks: deliveries, endpoints, and the secret that signs"),
  Command.withSubcommands([
    listCommand,
    showCommand,
    redeliverCommand,
    endpointsCommand,
    registerCommand,
    changeCommand,
    deleteCommand,
    test,
    secret
  ])
)
