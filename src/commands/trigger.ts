import { Args, Command, HelpDoc, Options } from "@effect/cli"
import { Effect, Option, Schema } from "effect"
import { type ChainName, chainNames } from "../Domain/Chain.ts"
import { PaymentCurrency } from "../Domain/Currency.ts"
import { EventKind, isStatusEventKind, StatusEventKind } from "../Domain/Event.ts"
import { alternatives } from "../lib/annotations.ts"
import { apiKey, webUrl } from "./apiOptions.ts"
import { UsageError } from "./commonOptions.ts"
import { loadSandbox, localChain, sandboxConfig } from "./localChain.ts"
import { complain, print } from "./Output.ts"

/** Loaded only here. */
const parts = Effect.promise(() => Promise.all([import("../Listen/askApi.ts"), import("../Sandbox/trigger.ts")]))

const testKey = Effect.filterOrFail(
  apiKey,
  (key) => key.startsWith("svc_test_"),
  () =>
    new UsageError({
      message: "TILLD_API_KEY is a live key, and live money is not for trying things out: use a test key"
    })
)

/** How to get the events that a single payment from beginning to end does not have. */
const byHand: Readonly<Record<Exclude<EventKind, StatusEventKind>, string>> = {
  "payment.updated":
    "payment.updated comes with the second part of a payment: run tilld sandbox pay ID --part half twice. It goes to those who name it, such as tilld listen --events payment.updated",
  "payment.exception":
    "payment.exception comes with money that fits no payment: run tilld sandbox pay ID --part more. It goes to those who name it, such as tilld listen --events payment.exception"
}

const run = Effect.fn("commands.trigger")(function* (options: {
  readonly kind: EventKind
  readonly config: Option.Option<string>
  readonly apiUrl: Option.Option<URL>
  readonly chain: ChainName
  readonly currency: PaymentCurrency
  readonly json: boolean
}) {
  const { currency, json, kind } = options
  if (!isStatusEventKind(kind)) return yield* new UsageError({ message: byHand[kind] })
  const key = yield* testKey
  const sandbox = yield* loadSandbox(options.config)
  const chain = yield* localChain(sandbox, options.chain)
  const { payments, server } = sandbox.settings
  const { href } = Option.getOrElse(options.apiUrl, () => new URL(`http://${server.host}:${server.port}`))
  const [{ listenClient }, { triggerEvents: trigger }] = yield* parts
  const api = { url: href.replace(/\/$/, ""), key, client: yield* listenClient }
  const { settleGrace } = payments
  const event = yield* trigger({ api, kind, chain, currency, settleGrace, tell: complain })
  yield* print(json ? JSON.stringify(event) : JSON.stringify(event, null, 2))
}, Effect.scoped)

/** `tilld trigger`: drives a payment of the sandbox to an event. */
export const triggerCommand = Command.make(
  "trigger",
  {
    kind: Args.text({ name: "kind" }).pipe(
      Args.withDescription(`The event to wait for: ${alternatives(StatusEventKind.literals)}`),
      Args.mapEffect((text) =>
        Schema.is(EventKind)(text)
          ? Effect.succeed(text)
          : Effect.fail(HelpDoc.p(`The kind of an event is one of ${EventKind.literals.join(", ")}`))
      )
    ),
    config: sandboxConfig,
    apiUrl: webUrl("api-url").pipe(
      Options.withDescription("Base of the sandbox's API; otherwise what its configuration says"),
      Options.optional
    ),
    chain: Options.choice("chain", chainNames).pipe(
      Options.withDescription("The local chain to pay on; otherwise base"),
      Options.withDefault("base" as const)
    ),
    currency: Options.choice("currency", PaymentCurrency.literals).pipe(
      Options.withDescription("What to pay; otherwise USDC"),
      Options.withDefault("USDC" as const)
    ),
    json: Options.boolean("json").pipe(
      Options.withDescription(
        "Print the event as one line of JSON on standard output; what is done goes to standard error"
      )
    )
  },
  run
).pipe(
  Command.withDescription(
    "Drive a real payment of the running sandbox to an event. The key is in $TILLD_API_KEY: a test key with payments:write, payments:read and webhooks:read"
  )
)
