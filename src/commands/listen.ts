import { Command, Options } from "@effect/cli"
import { Clock, Effect, Option, Redacted, Schema } from "effect"
import { Invocation, untilStopped } from "../Control/Invocation.ts"
import { EventKind, Position, StatusEventKind, streamStart } from "../Domain/Event.ts"
import { InvoiceEventKind } from "../Domain/Invoice.ts"
import type { Follower, Forwarded, Message } from "../Listen/follow.ts"
import { iso } from "../lib/moment.ts"
import { complain, print } from "./Output.ts"
import { apiKey, fileOption, jsonLines, listOption, refuse, webUrl } from "./options.ts"
import { listenSecretFile, readOrMakeSigningSecret } from "./signingSecret.ts"

/** Loaded only here. */
const parts = Effect.promise(() =>
  Promise.all([import("../Listen/askApi.ts"), import("../Listen/follow.ts"), import("../Webhooks/signature.ts")])
)

interface Line extends Forwarded {
  readonly time: string
  readonly event: string
  readonly id: string
  readonly payment?: string
  readonly invoice?: string
}

const rendered = ({ durationMillis, error, event, invoice, payment, status, time }: Line): string =>
  `${time}  ${event.padEnd(18)}  ${payment ?? invoice}  ${status ?? error}  ${durationMillis} ms`

/** The part of an event's body that is shown. */
interface ShownEvent {
  readonly event: EventKind
  readonly data: { readonly id: string }
}

interface ListenOptions {
  readonly forwardTo: URL
  readonly apiUrl: URL
  readonly events: Option.Option<ReadonlyArray<EventKind>>
  readonly after: Option.Option<Position>
  readonly secret: Option.Option<string>
  readonly json: boolean
}

/** Those that report a new status. */
const usualKinds: ReadonlyArray<EventKind> = [...StatusEventKind.literals, ...InvoiceEventKind.literals]

/** Forwards each event and prints a line for it. `farewell` says how the next session continues where this one ended. */
const makeFollower = ({ after, events, json }: ListenOptions, send: (event: Message) => Effect.Effect<Forwarded>) => {
  let place: string | undefined = Option.getOrUndefined(after)
  const kinds = Option.getOrElse(events, () => usualKinds)

  const onOpen = (position: string) =>
    Effect.gen(function* () {
      const isForgotten = place !== undefined && place !== position
      if (isForgotten) yield* complain(`tilld: ${place} is no longer stored: some events may be missing`)
      yield* complain(`tilld: listening, ${position === streamStart ? "from the start" : `after ${position}`}`)
      place = position
    })

  const onEvent = (message: Message) =>
    Effect.gen(function* () {
      const { data, event } = JSON.parse(message.data) as ShownEvent
      if (kinds.includes(event)) {
        const time = iso(yield* Clock.currentTimeMillis)
        const about = event.startsWith("invoice.") ? { invoice: data.id } : { payment: data.id }
        const line: Line = { time, event, id: message.id, ...about, ...(yield* send(message)) }
        yield* print(json ? JSON.stringify(line) : rendered(line))
      }
      place = message.id
    })

  const follower: Follower<never> = {
    after: place,
    // All that there are: the position goes on with those that are left out, too.
    kinds: EventKind.literals,
    onOpen,
    onEvent,
    onLost: (why) => complain(`tilld: ${why}; connecting again`)
  }
  const farewell = Effect.suspend(() =>
    place === undefined ? Effect.void : complain(`tilld: to continue where this ended: --after ${place}`)
  )
  return { follower, farewell }
}

const run = Effect.fn("commands.listen")(function* (options: ListenOptions) {
  const { apiUrl, forwardTo, json } = options
  const key = yield* apiKey
  const { env } = yield* Invocation
  const place = Option.getOrElse(options.secret, () => listenSecretFile(env))
  const secret = yield* readOrMakeSigningSecret(place)
  const [{ listenClient }, { follow, forward }, { signingKey }] = yield* parts
  const client = yield* listenClient
  const signing = signingKey(Redacted.make(secret))
  const url = apiUrl.href.replace(/\/$/, "")
  yield* print(
    json
      ? JSON.stringify({ secret, apiUrl: url, forwardTo: forwardTo.href })
      : `Events of ${url} go to ${forwardTo.href}, signed with the secret of ${place === "-" ? "standard input" : place}:\n\n  ${secret}\n`
  )
  const { farewell, follower } = makeFollower(options, (event) => forward(client, forwardTo, signing, event))
  return yield* Effect.onExit(follow({ url, key, client }, follower), () => farewell)
}, Effect.scoped)

/** `tilld listen`: forwards events to a server of your own until it is stopped. */
export const listen = Command.make(
  "listen",
  {
    forwardTo: webUrl("forward-to").pipe(
      Options.withDescription("Your server, such as http://localhost:3000/hook: it gets each event by POST")
    ),
    apiUrl: webUrl("api-url").pipe(
      Options.withDescription("Base of the tilld to listen to; otherwise http://127.0.0.1:8080"),
      Options.withDefault(new URL("http://127.0.0.1:8080"))
    ),
    events: listOption("events", EventKind.literals).pipe(
      Options.withDescription("Only these kinds; otherwise all that report a new status of a payment or an invoice"),
      Options.optional
    ),
    after: Options.text("after").pipe(
      Options.withPseudoName("EVENT"),
      Options.withDescription("Continue after this event; start: with the oldest that is stored; otherwise now"),
      Options.mapEffect((text) =>
        Schema.is(Position)(text) ? Effect.succeed(text) : refuse("--after must be the id of an event, or start")
      ),
      Options.optional
    ),
    secret: fileOption(
      "secret",
      "The secret to sign with: a file, made with a new one if it does not exist, or - for standard input; otherwise ~/.config/tilld/listen.secret"
    ),
    json: jsonLines
  },
  (options) => untilStopped(run(options))
).pipe(
  Command.withDescription(
    "Forward an account's events to your own machine, signed, as they happen. The key is in $TILLD_API_KEY, with the permissions webhooks:read and payments:read"
  )
)
