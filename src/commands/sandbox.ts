import { Args, Command, Options } from "@effect/cli"
import { Effect, Option } from "effect"
import { Invocation, untilStopped } from "../Control/Invocation.ts"
import { type ChainName, chainNames } from "../Domain/Chain.ts"
import { nativeToken, Token } from "../Domain/Currency.ts"
import { showPayment } from "../Payments/paymentOperations.ts"
import { ask, isDaemonAt } from "./askDaemon.ts"
import { UsageError } from "./commonOptions.ts"
import { loadSandbox, localChain, sandboxConfig, sandboxConfigPath } from "./localChain.ts"
import { print } from "./Output.ts"

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

const run = Effect.fn("commands.sandboxPay")(function* (options: PayOptions) {
  const sandbox = yield* loadSandbox(options.config)
  const { path, settings } = sandbox
  if (!(yield* isDaemonAt(settings))) {
    return yield* new UsageError({ message: `No sandbox runs with ${path}: start it with npm run sandbox` })
  }
  const { payment } = yield* ask(settings, showPayment, { of: options.id, limit: 1 })
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

/**
 * `tilld sandbox pay`: pays a payment of any account on a local chain.
 *
 * @param before `--config` before the word `pay`
 */
const sandboxPay = <R>(before: Effect.Effect<Option.Option<string>, never, R>) =>
  Command.make(
    "pay",
    {
      id: Args.text({ name: "ID" }).pipe(Args.withDescription("The payment, pay_…, of any account")),
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
      json: Options.boolean("json").pipe(
        Options.withDescription("Print the result as one JSON value on standard output, and nothing else there")
      )
    },
    ({ config, ...options }) =>
      Effect.flatMap(before, (earlier) => run({ ...options, config: Option.orElse(config, () => earlier) }))
  ).pipe(Command.withDescription("Pay a payment of the running sandbox on its local chain, and print what comes of it"))

/** Local chains, their contracts and the daemon are loaded only here. */
const sandboxed = Effect.promise(() => import("./runSandbox.ts"))

const alone = Command.make(
  "sandbox",
  {
    config: sandboxConfig,
    demo: Options.boolean("demo").pipe(
      Options.withDescription("Make two payments, pay them, print each signed webhook, and end")
    )
  },
  Effect.fnUntraced(function* ({ config, demo }) {
    const { env } = yield* Invocation
    const { runSandbox } = yield* sandboxed
    const run = runSandbox({ source: { path: yield* sandboxConfigPath(config), env }, demo })
    yield* demo ? run : untilStopped(run)
  })
).pipe(Command.withDescription("Run five local chains and a daemon that watches them, to try things out"))

/** `tilld sandbox`: runs local chains and a daemon until it is stopped; `tilld sandbox pay` pays beside it. */
export const sandbox = alone.pipe(Command.withSubcommands([sandboxPay(Effect.map(alone, ({ config }) => config))]))
