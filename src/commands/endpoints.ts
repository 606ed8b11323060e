import { Args, Command, Options } from "@effect/cli"
import { Effect, Option, Redacted } from "effect"
import { ChangeEndpoint, type EndpointView, ListEndpoints } from "../Control/endpointRequests.ts"
import { modes } from "../Domain/Chain.ts"
import { EventKind } from "../Domain/Event.ts"
import { freshSecret } from "../Webhooks/signature.ts"
import { askDaemon } from "./askDaemon.ts"
import { common, controlTargetOf, UsageError } from "./commonOptions.ts"
import { complain, print, table } from "./Output.ts"
import { account, listOption, mode, overlapOption } from "./options.ts"
import { printResult } from "./result.ts"
import { readSigningSecret } from "./signingSecret.ts"

const row = ({ createdAt, events, id, mode, url }: EndpointView) => [id, createdAt, mode, events.join(","), url]
const endpointTable = (endpoints: ReadonlyArray<EndpointView>) =>
  table(["ID", "CREATED", "MODE", "EVENTS", "URL"], endpoints.map(row))

/** `tilld webhooks endpoints`. */
export const endpointsCommand = Command.make(
  "endpoints",
  { ...common, account, mode: Options.optional(mode) },
  (options) =>
    printResult(
      options,
      "webhooks endpoints",
      new ListEndpoints({
        account: options.account,
        modes: Option.match(options.mode, { onNone: () => modes, onSome: (only) => [only] })
      }),
      endpointTable
    )
).pipe(Command.withDescription("Show the registered endpoints of an account, without their secrets"))

const secretOf = Effect.fnUntraced(function* (given: Option.Option<string>, makesNew: boolean) {
  if (makesNew) return Redacted.value(freshSecret())
  return Option.isNone(given) ? undefined : yield* readSigningSecret(given.value)
})

/** `tilld webhooks change`. */
export const changeCommand = Command.make(
  "change",
  {
    ...common,
    endpoint: Args.text({ name: "ENDPOINT" }).pipe(
      Args.withDescription("The endpoint, wh_…, as tilld webhooks endpoints shows it")
    ),
    url: Options.text("url").pipe(
      Options.withDescription("Where its events go from now on, those that are pending too"),
      Options.optional
    ),
    events: listOption("events", EventKind.literals).pipe(
      Options.withDescription(`The kinds that it receives: of ${EventKind.literals.join(", ")}`),
      Options.optional
    ),
    secret: Options.text("secret").pipe(
      Options.withPseudoName("FILE"),
      Options.withDescription("Its new secret: a file, or - to read it from standard input"),
      Options.optional
    ),
    makesNew: Options.boolean("new-secret").pipe(Options.withDescription("Make a new secret, and print it")),
    overlap: overlapOption.pipe(
      Options.withDescription("With a new secret: how long the present one still signs; otherwise 24h"),
      Options.optional
    )
  },
  Effect.fnUntraced(function* ({ endpoint: id, events, makesNew, overlap, secret, url, ...options }) {
    if (makesNew && Option.isSome(secret)) {
      return yield* new UsageError({ message: "Give either --secret or --new-secret" })
    }
    const replaces = makesNew || Option.isSome(secret)
    if (Option.isSome(overlap) && !replaces) {
      return yield* new UsageError({ message: "--overlap needs --secret or --new-secret" })
    }
    if (Option.isNone(url) && Option.isNone(events) && !replaces) {
      return yield* new UsageError({ message: "Say what to change: --url, --events, --secret or --new-secret" })
    }
    const next = yield* secretOf(secret, makesNew)
    const request = new ChangeEndpoint({
      id,
      ...(Option.isSome(url) ? { url: url.value } : {}),
      ...(Option.isSome(events) ? { events: events.value } : {}),
      ...(next === undefined ? {} : { secret: next }),
      ...(Option.isSome(overlap) ? { overlap: overlap.value } : {})
    })
    const changed = yield* askDaemon(yield* controlTargetOf(options), "webhooks change", request)
    const shown = makesNew ? { secret: next } : {}
    if (options.json) return yield* print(JSON.stringify({ ...changed, ...shown }))
    yield* complain(endpointTable([changed]))
    yield* print(makesNew ? `${next}` : changed.id)
  })
).pipe(Command.withDescription("Change an endpoint's URL, kinds of events or secret; nothing that is pending is lost"))
