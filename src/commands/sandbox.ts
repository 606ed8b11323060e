import { Args, Command, HelpDoc, Options } from "@effect/cli"
import { Effect, Option, Schema } from "effect"
import { Invocation, untilStopped } from "../Control/Invocation.ts"
import { type ChainName, chainNames } from "../Domain/Chain.ts"
import { nativeToken, PaymentCurrency, Token } from "../Domain/Currency.ts"
import { EventKind, isStatusEventKind, PaymentEventKind, StatusEventKind } from "../Domain/Event.ts"
import { alternatives } from "../lib/annotations.ts"
import { showPayment } from "../Payments/paymentOperations.ts"
import { defaultSandboxConfig, type LocalNetwork, localChainIn } from "../Sandbox/local.ts"
import { load, type SettingsShape } from "../Settings.ts"
import { ask } from "./askDaemon.ts"
import { complain, print } from "./Output.ts"
import { apiKey, common, fileOption, UsageError, webUrl } from "./options.ts"

/** The configuration of a sandbox. */
const sandboxConfig = fileOption(
  "config",
  `The sandbox's configuration; otherwise $TILLD_CONFIG, then ./${defaultSandboxConfig}`
)

const sandboxConfigPath = (config: Option.Option<string>): Effect.Effect<string, never, Invocation> =>
  Effect.map(Invocation, ({ env }) => Option.getOrElse(config, () => env.TILLD_CONFIG || defaultSandboxConfig))

/** The settings of a sandbox, and where they are. */
const loadSandbox = Effect.fnUntraced(function* (config: Option.Option<string>) {
  const { env } = yield* Invocation
  const path = yield* sandboxConfigPath(config)
  return { path, settings: yield* load({ path, env }) }
})

/** A local chain of the sandbox: the only kind whose coins may be spent. */
const localChain = (
  { path, settings }: { readonly path: string; readonly settings: SettingsShape },
  name: string
): Effect.Effect<LocalNetwork, UsageError> =>
  Effect.suspend(() => {
    const chain = localChainIn(settings.chains, name)
    if (chain !== undefined) return Effect.succeed(chain)
    return new UsageError({
      message: `${path} has no local chain ${name} in test mode: --config must be a sandbox's configuration`
    })
  })

/** Loaded only here. */
const paying = Effect.promise(() => import("../Sandbox/pay.ts"))

interface PayOptions {
  readonly id: string
  readonly config: Option.Option<string>
  readonly part: Option.Option<"half" | "more">
  readonly late: boolean
  readonly token: Option.Option<Token>
  readonly chain: Option.Option<ChainName>
  readonly json: boolean
}

const pay = Effect.fn("commands.sandboxPay")(function* (options: PayOptions) {
  const sandbox = yield* loadSandbox(options.config)
  const { path, settings } = sandbox
  const { payment } = yield* Effect.catchTag(
    ask(settings, showPayment, { of: options.id, limit: 1 }),
    "DaemonAbsent",
    () => new UsageError({ message: `No sandbox runs with ${path}: start it with npm run sandbox` })
  )
  if (payment.mode !== "test") {
    return yield* new UsageError({
      message: `${payment.id} is a live payment, and live money is not for trying things out`
    })
  }
  const own = yield* localChain(sandbox, payment.chain)
  const chain = yield* localChain(
    sandbox,
    Option.getOrElse(options.chain, () => payment.chain)
  )
  const { name } = chain
  const currency = Option.getOrElse(options.token, () => payment.currency)
  const currencies: ReadonlyArray<string> = [nativeToken(name), ...chain.tokens.keys()]
  if (!currencies.includes(currency)) {
    return yield* new UsageError({ message: `${name} has no ${currency} here; it has ${currencies.join(", ")}` })
  }
  const { payFor } = yield* paying
  const part = Option.getOrUndefined(options.part)
  const { late } = options
  const sending = { payment, part, late, chain, currency, confirmations: own.confirmations, networks: settings.chains }
  const { amount, expected, sent, txHash } = yield* payFor(sending)
  if (options.json) {
    const { address: to, id } = payment
    return yield* print(
      JSON.stringify({ payment: id, chain: name, currency, amount: String(amount), to, txHash, expected })
    )
  }
  yield* print(`Sent ${sent} on ${name} to ${payment.address}, in ${txHash}\nTo expect: ${expected}.`)
}, Effect.scoped)

/** `tilld sandbox pay`: pays a payment of any account on a local chain. `before` is `--config` before the word `pay`. */
const sandboxPay = <R>(before: Effect.Effect<Option.Option<string>, never, R>) =>
  Command.make(
    "pay",
    {
      id: Args.text({ name: "ID" }).pipe(
        Args.withDescription("The payment, pay_…, of any account, or the invoice, inv_…, of which one was chosen")
      ),
      config: sandboxConfig,
      part: Options.choice("part", ["half", "more"] as const).pipe(
        Options.withDescription(
          "half of what is missing, or a tenth more than it asks for; otherwise all that is missing"
        ),
        Options.optional
      ),
      late: Options.boolean("late").pipe(
        Options.withDescription(
          "Pay one that has ended: what it asked for comes after its end, and becomes an exception"
        )
      ),
      token: Options.choice("token", Token.literals).pipe(
        Options.withDescription("What to pay with; otherwise what the payment asks for"),
        Options.optional
      ),
      chain: Options.choice("chain", chainNames).pipe(
        Options.withDescription("The local chain to pay on; otherwise the payment's"),
        Options.optional
      ),
      json: common.json
    },
    ({ config, ...options }) =>
      Effect.flatMap(before, (earlier) => pay({ ...options, config: Option.orElse(config, () => earlier) }))
  ).pipe(Command.withDescription("Pay a payment of the running sandbox on its local chain, and print what comes of it"))

/** Local chains, their contracts and the daemon are loaded only here. */
const sandboxed = Effect.promise(() => import("./runSandbox.ts"))

const alone = Command.make(
  "sandbox",
  {
    config: sandboxConfig,
    demo: Options.boolean("demo").pipe(
      Options.withDescription("Make two payments, pay them, print each signed webhook, and end")
    ),
    postgres: Options.boolean("postgres").pipe(
      Options.withDescription("Keep the data in a PostgreSQL of its own, in place of a file")
    )
  },
  Effect.fnUntraced(function* ({ config, demo, postgres }) {
    const { env } = yield* Invocation
    const { runSandbox } = yield* sandboxed
    const run = runSandbox({ source: { path: yield* sandboxConfigPath(config), env }, demo, postgres })
    yield* demo ? run : untilStopped(run)
  })
).pipe(Command.withDescription("Run five local chains and a daemon that watches them, to try things out"))

/** `tilld sandbox`: runs local chains and a daemon until it is stopped; `tilld sandbox pay` pays beside it. */
export const sandbox = alone.pipe(Command.withSubcommands([sandboxPay(Effect.map(alone, ({ config }) => config))]))

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

const isPaymentEventKind = Schema.is(PaymentEventKind)

/** How to get the events that a single payment from beginning to end does not have. */
const byHand: Readonly<Record<Exclude<PaymentEventKind, StatusEventKind> | "invoice", string>> = {
  "payment.updated":
    "payment.updated comes with the second part of a payment: run tilld sandbox pay ID --part half twice. It goes to those who name it, such as tilld listen --events payment.updated",
  "payment.exception":
    "payment.exception comes with money that fits no payment: run tilld sandbox pay ID --part more. It goes to those who name it, such as tilld listen --events payment.exception",
  "refund.final":
    "refund.final comes when the chain has a refund for good: send the money with a wallet, then run tilld payments refunded ID --tx 0x… It goes to those who name it, such as tilld listen --events refund.final",
  invoice:
    "events of invoices come with an invoice: create one with POST /v1/invoices, choose on its page, then run tilld sandbox pay ID. tilld listen forwards them, and webhooks that name them get them"
}

const triggerEvent = Effect.fn("commands.trigger")(function* (options: {
  readonly kind: EventKind
  readonly config: Option.Option<string>
  readonly apiUrl: Option.Option<URL>
  readonly chain: ChainName
  readonly currency: PaymentCurrency
  readonly json: boolean
}) {
  const { currency, json, kind } = options
  if (!isStatusEventKind(kind))
    return yield* new UsageError({ message: byHand[isPaymentEventKind(kind) ? kind : "invoice"] })
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
  triggerEvent
).pipe(
  Command.withDescription(
    "Drive a real payment of the running sandbox to an event. The key is in $TILLD_API_KEY: a test key with payments:write, payments:read and webhooks:read"
  )
)
