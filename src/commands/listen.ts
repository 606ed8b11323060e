import { randomBytes } from "node:crypto"
import { Command, Options } from "@effect/cli"
import { Clock, Effect, Option, Redacted } from "effect"
import { EventKind } from "../Domain/Event.ts"
import { iso } from "../Domain/Timestamp.ts"
import type { Message } from "../Listen/messages.ts"
import { apiKey, jsonLines, webUrl } from "./apiOptions.ts"
import { untilStopped } from "./Invocation.ts"
import { complain, print } from "./Output.ts"
import { listOf } from "./options.ts"

/** Read in only here. */
const parts = Effect.promise(() =>
  Promise.all([import("../Listen/follow.ts"), import("../Listen/forward.ts"), import("../Webhooks/signature.ts")])
)

interface Line {
  readonly time: string
  readonly event: string
  readonly id: string
  readonly payment: string
  readonly status?: number | undefined
  readonly error?: string | undefined
  readonly durationMillis: number
}

const rendered = ({ durationMillis, error, event, payment, status, time }: Line): string =>
  `${time}  ${event.padEnd(17)}  ${payment}  ${status ?? error}  ${durationMillis} ms`

const run = Effect.fn("commands.listen")(function* (options: {
  readonly forwardTo: URL
  readonly apiUrl: URL
  readonly events: Option.Option<ReadonlyArray<EventKind>>
  readonly json: boolean
}) {
  const { apiUrl, events, forwardTo, json } = options
  const key = yield* apiKey
  const [{ follow, makeAgent }, { forward }, { signingKey }] = yield* parts
  const agent = yield* makeAgent
  const secret = `whsec_${randomBytes(32).toString("base64")}`
  const signing = signingKey(Redacted.make(secret))
  const url = apiUrl.href.replace(/\/$/, "")
  yield* print(
    json
      ? JSON.stringify({ secret, apiUrl: url, forwardTo: forwardTo.href })
      : `Events of ${url} go to ${forwardTo.href}, signed with a secret of this session:\n\n  ${secret}\n`
  )

  const relay = ({ data }: Message) =>
    Effect.gen(function* () {
      if (data === "") return
      const {
        id,
        event,
        data: payment
      } = JSON.parse(data) as {
        readonly id: string
        readonly event: EventKind
        readonly data: { readonly id: string }
      }
      if (Option.exists(events, (kinds) => !kinds.includes(event))) return
      const time = iso(yield* Clock.currentTimeMillis)
      const line = {
        time,
        event,
        id,
        payment: payment.id,
        ...(yield* forward(agent, forwardTo, signing, { id, data }))
      }
      yield* print(json ? JSON.stringify(line) : rendered(line))
    })

  return yield* follow({ url, key, agent }, relay, (why) => complain(`tilld: ${why}; connecting again`))
}, Effect.scoped)

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
    events: listOf("events", EventKind.literals).pipe(
      Options.withDescription("Only these kinds; otherwise all of them"),
      Options.optional
    ),
    json: jsonLines
  },
  (options) => untilStopped(run(options))
).pipe(
  Command.withDescription(
    "Forward an account's events to your own machine, signed, as they happen. The key is in $TILLD_API_KEY, with the permissions webhooks:read and payments:read"
  )
)
