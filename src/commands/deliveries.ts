import { Args, Command, Options } from "@effect/cli"
import { Clock, Data, Duration, Effect, Option } from "effect"
import { latestMoment } from "../Control/controlRequests.ts"
import {
  ListDeliveries,
  ListedStatus,
  Redeliver,
  RedeliverRange,
  SelectedStatus,
  SendTest,
  ShowDelivery
} from "../Control/deliveryRequests.ts"
import type { DeliveryView } from "../Control/deliveryView.ts"
import { modes } from "../Domain/Chain.ts"
import type { AccountId } from "../Domain/Ids.ts"
import { listEndpoints } from "../Webhooks/endpointOperations.ts"
import { succeeded } from "../Webhooks/queue/retryPolicy.ts"
import { ask, askDaemon, type ControlTarget, isDaemonAt } from "./askDaemon.ts"
import { type Common, common, controlTargetOf, UsageError } from "./commonOptions.ts"
import { complain, print, table } from "./Output.ts"
import { account, after, limit, mode, moment, moreOf, pageOf } from "./options.ts"
import { printResult } from "./result.ts"

type Attempt = DeliveryView["attempts"][number]

/** A receiver's response on one line, without characters that move the terminal's cursor. */
const oneLine = (text: string): string => text.replace(/[\p{C}\p{Z}]+/gu, " ").trim()

const answered = ({ bodyStart = "", error, status }: Pick<Attempt, "bodyStart" | "error" | "status">): string =>
  [status ?? error ?? "", ...(bodyStart === "" ? [] : [oneLine(bodyStart)])].join("  ")

/** An attempt on one line: time, duration, IP address, and the response or error. */
export const attemptLine = (attempt: Attempt): string =>
  `${attempt.number}.  ${attempt.startedAt}  ${attempt.durationMillis} ms  ${attempt.address ?? "no address"}  ` +
  `${attempt.redelivery ? "redelivery  " : ""}${answered(attempt)}`

const endpoint = Options.text("endpoint").pipe(
  Options.withPseudoName("ID"),
  Options.withDescription("Only those of this endpoint, wh_…, of any account"),
  Options.optional
)
const someMode = mode.pipe(Options.optional)
const since = moment("since").pipe(
  Options.withDescription(
    "Of events made at this time or later: 2026-01-31T12:00:00Z, 2026-01-31, or 24h for so long ago"
  )
)
const until = moment("until").pipe(Options.withDescription("Of events made before this time; otherwise now"))

const given = <Key extends string, A>(key: Key, option: Option.Option<A>): { readonly [K in Key]?: A } =>
  Option.match(option, { onNone: () => ({}), onSome: (value) => ({ [key]: value }) as { readonly [K in Key]: A } })

const lastOf = ({ attempts }: DeliveryView): string => {
  const last = attempts.at(-1)
  return last === undefined ? "" : String(last.status ?? last.error)
}

/** `tilld webhooks list`. */
export const listCommand = Command.make(
  "list",
  {
    ...common,
    account,
    mode: someMode,
    endpoint,
    status: Options.choice("status", SelectedStatus.literals).pipe(
      Options.withDescription("Only deliveries in this state; failing: tried, and not arrived; otherwise all"),
      Options.optional
    ),
    since: since.pipe(Options.withDefault(0)),
    until: until.pipe(Options.optional),
    after: after("deliveries"),
    limit
  },
  (options) =>
    printResult(
      options,
      "webhooks list",
      new ListDeliveries({
        account: options.account,
        modes: Option.match(options.mode, { onNone: () => modes, onSome: (only) => [only] }),
        statuses: Option.match(options.status, { onNone: () => ListedStatus.literals, onSome: (only) => [only] }),
        since: options.since,
        until: Option.getOrElse(options.until, () => latestMoment),
        ...pageOf(options),
        ...given("endpoint", options.endpoint)
      }),
      (deliveries) =>
        table(
          ["ID", "CREATED", "MODE", "KIND", "PAYMENT", "REFERENCE", "STATUS", "ATTEMPTS", "LAST", "NEXT", "URL"],
          deliveries.map((delivery) => [
            delivery.id,
            delivery.createdAt,
            delivery.mode,
            delivery.kind,
            delivery.payment,
            oneLine(delivery.merchantRef),
            delivery.status,
            String(delivery.attempts.length + (delivery.forgottenAttempts ?? 0)),
            lastOf(delivery),
            delivery.nextAttemptAt ?? "",
            delivery.url
          ])
        ),
      moreOf(options)
    )
).pipe(Command.withDescription("Show deliveries, newest first"))

const renderDelivery = ({ attempts, ...delivery }: DeliveryView): string =>
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

const id = Args.text({ name: "ID" }).pipe(
  Args.withDescription("The delivery, dlv_…, as tilld webhooks list and payments show have it")
)

/** `tilld webhooks show`. */
export const showCommand = Command.make("show", { ...common, id }, (options) =>
  printResult(options, "webhooks show", new ShowDelivery({ id: options.id }), renderDelivery)
).pipe(Command.withDescription("Show a delivery with its attempts"))

interface Range {
  readonly account: AccountId
  readonly mode: Option.Option<(typeof modes)[number]>
  readonly endpoint: Option.Option<string>
  readonly status: (typeof SelectedStatus.literals)[number]
  readonly to: Option.Option<string>
  readonly since: number
  readonly until: Option.Option<number>
}

const renderCounts = (counts: { readonly ordered: number; readonly due: number; readonly refused: number }): string =>
  `${counts.ordered} to be sent again, ${counts.due} were due already` +
  (counts.refused === 0
    ? ""
    : `, ${counts.refused} refused: they have no endpoint any more (name another with --to), or the other does not name their kind`)

/** The modes of a range; with `--to` the endpoint's. The daemon refuses one that is not of the account. */
const modesOf = Effect.fnUntraced(function* (place: ControlTarget, { account, mode, to }: Range) {
  if (Option.isSome(mode)) return [mode.value]
  if (Option.isNone(to)) return modes
  const endpoints = yield* ask(place, listEndpoints, { account })
  return [endpoints.find(({ id }) => id === to.value)?.mode ?? "live"]
})

/** Redelivers a range page by page. Progress goes to standard error where there is more than one page. */
const redeliverRange = Effect.fn("commands.redeliverRange")(function* (options: Common, range: Range) {
  const place = yield* controlTargetOf(options)
  const until = Option.isSome(range.until) ? range.until.value : yield* Clock.currentTimeMillis
  const wanted = { account: range.account, status: range.status, since: range.since, until }
  let sum = { ordered: 0, due: 0, refused: 0 }
  for (const each of yield* modesOf(place, range)) {
    let after: RedeliverRange["after"]
    do {
      const part = new RedeliverRange({
        ...wanted,
        mode: each,
        ...given("endpoint", range.endpoint),
        ...given("to", range.to),
        ...(after === undefined ? {} : { after })
      })
      const told = () => complain(`${renderCounts(sum)} before the error; the same command continues`)
      const done = yield* Effect.tapError(askDaemon(place, "webhooks redeliver", part), told)
      sum = { ordered: sum.ordered + done.ordered, due: sum.due + done.due, refused: sum.refused + done.refused }
      after = done.next
      if (after !== undefined) yield* complain(renderCounts(sum))
    } while (after !== undefined)
  }
  yield* print(options.json ? JSON.stringify(sum) : renderCounts(sum))
})

const redeliverRequest = (id: Option.Option<string>, to: Option.Option<string>) =>
  new Redeliver({ id: Option.getOrElse(id, () => ""), ...given("to", to) })

/** The receiver did not answer the attempt with a 2xx, or there was none in time. */
class NotDelivered extends Data.TaggedError("NotDelivered")<{ readonly message: string }> {}

/** Longer than an attempt may take, with its turn among others. */
const attemptPatience = Duration.toMillis("90 seconds")

/** Orders a delivery again, and waits for the attempt: the daemon makes it, and is asked until it has. */
const redeliverAndWait = Effect.fn("commands.redeliverAndWait")(function* (
  options: Common,
  id: string,
  to: Option.Option<string>
) {
  const place = yield* controlTargetOf(options)
  if (!(yield* isDaemonAt(place))) {
    return yield* new NotDelivered({ message: "No attempt is made while the daemon does not run: start it" })
  }
  const show = (delivery: string) => askDaemon(place, "webhooks show", new ShowDelivery({ id: delivery }))
  const { attemptsMade, id: sent } = yield* askDaemon(
    place,
    "webhooks redeliver",
    redeliverRequest(Option.some(id), to)
  )
  const until = (yield* Clock.currentTimeMillis) + attemptPatience
  while (true) {
    const delivery = yield* show(sent)
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
export const redeliverCommand = Command.make(
  "redeliver",
  {
    ...common,
    id: Args.optional(id),
    since: since.pipe(Options.optional),
    until: until.pipe(Options.optional),
    to: Options.text("to").pipe(
      Options.withPseudoName("ENDPOINT"),
      Options.withDescription("Send to this endpoint, wh_…, of the same account and mode, not where they went"),
      Options.optional
    ),
    waits: Options.boolean("wait").pipe(
      Options.withDescription("With an ID: wait for the attempt, and fail unless it is answered with a 2xx")
    ),
    status: Options.choice("status", SelectedStatus.literals).pipe(
      Options.withDescription("The state they are in; otherwise failing: tried, and not arrived"),
      Options.withDefault("failing" as const)
    ),
    account,
    mode: someMode,
    endpoint
  },
  Effect.fnUntraced(function* ({ id, since, ...options }) {
    if (options.waits && Option.isNone(id)) {
      return yield* new UsageError({ message: "--wait tells of one delivery: give its ID" })
    }
    if (Option.isSome(id) === Option.isSome(since)) {
      return yield* new UsageError({ message: "Give either the ID of a delivery, or --since TIME for a range" })
    }
    if (Option.isSome(since)) return yield* redeliverRange(options, { ...options, since: since.value })
    if (options.waits)
      return yield* redeliverAndWait(
        options,
        Option.getOrElse(id, () => ""),
        options.to
      )
    yield* printResult(options, "webhooks redeliver", redeliverRequest(id, options.to), ({ id: sent, result }) =>
      result === "ordered"
        ? `${sent} is sent again now, or when the daemon starts`
        : `${sent} is being sent or about to be: nothing was added`
    )
  })
).pipe(
  Command.withDescription(
    "Send deliveries again: the same id and bytes, in addition to the retries; a success ends these"
  )
)

/** The endpoint did not respond to the test with a 2xx. */
class TestNotTaken extends Data.TaggedError("TestNotTaken")<{ readonly message: string }> {}

/** `tilld webhooks test`: exit 1 unless the endpoint responds with a 2xx. */
export const test = Command.make(
  "test",
  {
    ...common,
    endpoint: Args.text({ name: "ENDPOINT" }).pipe(Args.withDescription("The endpoint, wh_…, of POST /v1/webhooks"))
  },
  Effect.fnUntraced(function* ({ endpoint, ...options }) {
    const place = yield* controlTargetOf(options)
    const result = yield* askDaemon(place, "webhooks test", new SendTest({ endpoint }))
    yield* print(
      options.json
        ? JSON.stringify({ ...result })
        : `${result.url}  ${result.durationMillis} ms  ${result.address ?? "no address"}  ${answered(result)}`
    )
    if (!succeeded(result.status)) {
      return yield* new TestNotTaken({
        message: `The endpoint did not answer with a 2xx: ${result.status ?? result.error}`
      })
    }
  })
).pipe(Command.withDescription("Send an endpoint a signed test that is no webhook event, and show its response"))
