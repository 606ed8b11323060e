import { Args, Command, Options } from "@effect/cli"
import { Duration, Effect, Option, Redacted } from "effect"
import { longestOverlap } from "../Control/controlRequests.ts"
import { ChangeEndpoint, type EndpointView, ListEndpoints } from "../Control/endpointRequests.ts"
import { modes } from "../Domain/Chain.ts"
import { EventKind } from "../Domain/Event.ts"
import { freshSecret } from "../Webhooks/DefaultSecrets.ts"
import { askDaemon } from "./askDaemon.ts"
import { common, controlTargetOf, UsageError } from "./commonOptions.ts"
import { complain, print, table } from "./Output.ts"
import { account, durationOption, listOption, mode, readInput, refuse } from "./options.ts"
import { printResult } from "./result.ts"

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

/** How long the present secret of a webhook still signs. */
export const overlapOption = durationOption("overlap").pipe(
  Options.mapEffect((length) =>
    Duration.lessThanOrEqualTo(length, longestOverlap)
      ? Effect.succeed(length)
      : refuse(`--overlap must be at most ${longestOverlap}`)
  )
)

const secretOf = Effect.fnUntraced(function* (given: Option.Option<string>, makesNew: boolean) {
  if (makesNew) return Redacted.value(freshSecret())
  if (Option.isNone(given)) return undefined
  if (given.value.startsWith("whsec_")) {
    return yield* new UsageError({
      message:
        "--secret takes a file with the secret, or - for standard input: all users of this machine see a command's arguments"
    })
  }
  const secret = yield* readInput(given.value)
  return /^whsec_[^\s\p{C}]{16,256}$/u.test(secret)
    ? secret
    : yield* new UsageError({ message: "--secret must be whsec_ followed by 16 to 256 visible characters" })
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
