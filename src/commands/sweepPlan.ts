import { BigDecimal, Effect, Option, Redacted, Schema } from "effect"
import { ChainField, ModeField, maybe, otherwise } from "../Auth/inputFields.ts"
import { asked } from "../Auth/inputText.ts"
import type { PlannedRefund } from "../Collect/makePlan.ts"
import { type Network, networkKey } from "../Domain/Chain.ts"
import { Token } from "../Domain/Currency.ts"
import { must } from "../Domain/must.ts"
import { listExceptions } from "../Payments/decisions/decisionOperations.ts"
import { walletIdentity } from "../Settings/walletKey.ts"
import type { SettingsShape } from "../Settings.ts"
import { ask } from "./askDaemon.ts"
import { loadSettings, UsageError } from "./commonOptions.ts"
import { complain, print } from "./Output.ts"
import { commandWith, decoded } from "./operationCommand.ts"
import { readInput } from "./options.ts"
import { allReceived } from "./received.ts"
import { UsdField } from "./unswept.ts"

/** Loaded only here. */
const planning = Effect.promise(() =>
  Promise.all([
    import("viem"),
    import("../Collect/access.ts"),
    import("../Collect/makePlan.ts"),
    import("../Collect/outputFile.ts"),
    import("../Collect/planFile.ts"),
    import("../Quotes/readPrices.ts"),
    import("../Chains/rpc/Rpc.ts")
  ])
)

const mostSteps = 8

const fields = {
  chain: ChainField,
  mode: ModeField,
  to: asked(
    must("be an address: 0x and 40 hexadecimal digits", Schema.String.pipe(Schema.pattern(/^0x[0-9a-fA-F]{40}$/))),
    {
      about: "Where the money goes",
      value: "ADDRESS"
    }
  ),
  tokens: asked(maybe(Schema.Array(Token)), { about: "Only these coins and tokens; otherwise all", value: "A,B" }),
  minUsd: asked(
    otherwise(UsdField, () => "5"),
    { about: "Leave balances below this in USD where they are; otherwise 5", value: "USD" }
  ),
  maxFeeGwei: asked(
    maybe(must("be a number such as 50 or 0.25", Schema.String.pipe(Schema.pattern(/^\d{1,9}(\.\d{1,9})?$/)))),
    { about: "The highest fee for a unit of gas that any step may have", value: "GWEI" }
  ),
  feeSteps: asked(
    otherwise(must(`be a whole number from 1 to ${mostSteps}`, Schema.Int.pipe(Schema.between(1, mostSteps))), () => 3),
    {
      about: "How many fees are signed for each transaction, each a quarter above the one before; otherwise 3",
      value: "N"
    }
  ),
  refund: asked(
    otherwise(Schema.Array(Schema.String), () => []),
    { about: "Send back these open exceptions instead, each from the address that received it", value: "EXC_ID,…" }
  ),
  includeOpen: asked(
    otherwise(Schema.Boolean, () => false),
    { about: "Also collect from addresses whose payment is open or has an open exception" }
  ),
  xpub: asked(maybe(Schema.String), {
    about: "The extended public key of an account's own wallet; otherwise the configuration's",
    isFile: true
  }),
  output: asked(Schema.String, { about: "The plan, a new file; -o for short", value: "FILE" }),
  force: asked(
    otherwise(Schema.Boolean, () => false),
    { about: "Replace the output file if it exists" }
  )
}

/** The open exceptions that are named, all of one network. */
const refundsOf = Effect.fnUntraced(function* (settings: SettingsShape, network: Network, ids: ReadonlyArray<string>) {
  const wanted = new Set(ids)
  const found: Array<PlannedRefund> = []
  let after: string | undefined
  while (found.length < wanted.size) {
    const page: ReadonlyArray<(typeof listExceptions.output.Type)[number]> = yield* ask(settings, listExceptions, {
      limit: 1000,
      ...(after === undefined ? {} : { after })
    })
    for (const { address, amount, chain, currency, derivationIndex: index, id, mode } of page) {
      if (!wanted.has(id)) continue
      if (chain !== network.chain || mode !== network.mode || index === undefined) {
        return yield* new UsageError({ message: `${id} is on ${chain}.${mode}, not on ${networkKey(network)}` })
      }
      found.push({ id, address, index, currency, amount: BigInt(amount) })
    }
    after = page.at(-1)?.id
    if (page.length < 1000) break
  }
  const missing = [...wanted].find((id) => !found.some((one) => one.id === id))
  return missing === undefined
    ? found
    : yield* new UsageError({ message: `${missing} is not an open exception: tilld payments exceptions shows them` })
})

/** The extended public key: of a file, or the configuration's. */
const xpubOf = Effect.fnUntraced(function* (settings: SettingsShape, mode: Network["mode"], file: string | undefined) {
  const given = file === undefined ? undefined : yield* readInput(file)
  const configured = settings.wallets[mode]
  const xpub = given ?? (configured && Redacted.value(configured))
  if (xpub === undefined) {
    return yield* new UsageError({
      message: `wallets.${mode} is not configured: name the key of the wallet with --xpub`
    })
  }
  // Never shown: with one child private key it gives every key.
  if (walletIdentity(xpub) === undefined) {
    return yield* new UsageError({ message: "--xpub has no extended public key of an account: xpub…, m/44'/60'/n'" })
  }
  return xpub
})

/** `tilld sweep plan`: reads the chain, and writes what can be signed where there is no network. */
export const planCommand = commandWith(
  "plan",
  "Plan a collection, or refunds: what moves from where, by which way and at which fees. Needs no key",
  fields,
  (json, target) =>
    Effect.gen(function* () {
      const given = yield* decoded({ fields, input: Schema.Struct(fields) }, json)
      const { chain, force, maxFeeGwei, mode, output } = given
      const settings = yield* loadSettings(target)
      const [utils, { accessTo }, { makePlan }, files, texts, { readPrices }, { Rpc }] = yield* planning
      if (!utils.isAddress(given.to)) {
        return yield* new UsageError({ message: `--to ${given.to} is not an address: its checksum is wrong` })
      }
      yield* files.checkOutput(output, force)
      const network = { chain, mode }
      const ids = given.refund.flatMap((text) => text.split(",")).filter((id) => id !== "")
      const xpub = yield* xpubOf(settings, mode, given.xpub)
      const refunds = yield* refundsOf(settings, network, ids)
      const { plan, seesFees } = yield* Effect.gen(function* () {
        const access = yield* accessTo(settings, network)
        const received = ids.length > 0 ? [] : yield* allReceived(settings, network, undefined)
        const prices = yield* readPrices(settings)
        return yield* makePlan(access, {
          ...{ xpub, received, refunds, destination: utils.getAddress(given.to), currencies: given.tokens },
          minUsd: Option.getOrElse(BigDecimal.fromString(given.minUsd), () => BigDecimal.make(0n, 0)),
          maxFee: maxFeeGwei === undefined ? undefined : utils.parseGwei(maxFeeGwei),
          ...{ feeSteps: given.feeSteps, includeOpen: given.includeOpen, price: prices.usd, onProgress: complain }
        })
      }).pipe(Effect.provide(Rpc.layer))
      yield* files.writeOutput(output, `${JSON.stringify(plan, undefined, 1)}\n`, force)
      yield* print(
        target.json ? JSON.stringify(texts.madeJson(plan, seesFees, output)) : texts.madeText(plan, seesFees, output)
      )
    })
)
