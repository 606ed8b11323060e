import { BigDecimal, Effect, Option, Schema } from "effect"
import { accessTo, readPricedHead } from "../Chains/providers/chainAccess.ts"
import { Rpc } from "../Chains/rpc/Rpc.ts"
import { toChecksummed } from "../Domain/Address.ts"
import { Token } from "../Domain/Currency.ts"
import { must } from "../lib/annotations.ts"
import { ChainField, ModeField, maybe, otherwise } from "../Operations/inputFields.ts"
import { withFlag } from "../Operations/operation.ts"
import { readPrices } from "../Quotes/Prices.ts"
import { UsdField } from "./addresses.ts"
import { complain, print } from "./Output.ts"
import { commandWith, decoded } from "./operationCommand.ts"
import { loadSettings, UsageError } from "./options.ts"
import { receivedBut, refundsOf, untilRead, xpubOf } from "./sweepInputs.ts"

/** Loaded only here. */
const planning = Effect.promise(() =>
  Promise.all([
    import("../Collect/makePlan.ts"),
    import("../Collect/fees.ts"),
    import("../Backup/files.ts"),
    import("./sweepTexts.ts")
  ])
)

const mostSteps = 8

const flag = (about: string) =>
  withFlag(
    otherwise(Schema.Boolean, () => false),
    { about }
  )
const names = (about: string, value: string) =>
  withFlag(
    otherwise(Schema.Array(Schema.String), () => []),
    { about, value }
  )

const fields = {
  chain: ChainField,
  mode: ModeField,
  to: withFlag(
    maybe(
      must("be an address: 0x and 40 hexadecimal digits", Schema.String.pipe(Schema.pattern(/^0x[0-9a-fA-F]{40}$/)))
    ),
    { about: "Where the money goes; a refund that was noted with its receiver goes there", value: "ADDRESS" }
  ),
  tokens: withFlag(maybe(Schema.Array(Token)), { about: "Only these coins and tokens; otherwise all", value: "A,B" }),
  minUsd: withFlag(
    otherwise(UsdField, () => "5"),
    { about: "Leave balances below this in USD where they are; otherwise 5", value: "USD" }
  ),
  maxFeeGwei: withFlag(
    maybe(must("be a number such as 50 or 0.25", Schema.String.pipe(Schema.pattern(/^\d{1,9}(\.\d{1,9})?$/)))),
    { about: "The highest fee for a unit of gas that any step may have", value: "GWEI" }
  ),
  feeSteps: withFlag(
    otherwise(must(`be a whole number from 1 to ${mostSteps}`, Schema.Int.pipe(Schema.between(1, mostSteps))), () => 3),
    {
      about: "How many fees are signed for each transaction, each a quarter above the one before; otherwise 3",
      value: "N"
    }
  ),
  refund: names(
    "Send back these open exceptions and noted refunds instead, each from the address that received it, or all that were noted with a receiver",
    "EXC_ID,REF_ID,…|all"
  ),
  uncorroborated: flag("Also send back what one of several providers alone has seen"),
  belowGas: flag("Also send back what costs more gas than it pays, without being asked"),
  includeOpen: names(
    "Take all from these addresses, or from all, also where a payment is open or money waits",
    "ADDRESS,…"
  ),
  xpub: withFlag(maybe(Schema.String), {
    about: "The extended public key of an account's own wallet; otherwise the configuration's",
    isFile: true
  }),
  output: withFlag(Schema.String, { about: "The plan, a new file; -o for short", value: "FILE" }),
  force: flag("Replace the output file if it exists")
}

/** `tilld sweep plan`: reads the chain, and writes what can be signed where there is no network. */
export const planCommand = commandWith(
  "plan",
  "Plan a collection, or refunds: what moves from where, by which way and at which fees. Needs no key",
  fields,
  (json, target) =>
    Effect.gen(function* () {
      const given = yield* decoded({ fields, input: Schema.Struct(fields) }, json)
      const { belowGas, chain, force, maxFeeGwei, mode, output } = given
      const includeOpen = given.includeOpen.flatMap((text) => text.split(","))
      const settings = yield* loadSettings(target)
      const [{ makePlan }, { weiOf }, files, texts] = yield* planning
      const named = given.to && toChecksummed(given.to)
      if (given.to !== undefined && named === undefined) {
        return yield* new UsageError({ message: `--to ${given.to} is not an address: its checksum is wrong` })
      }
      if (given.to !== named) yield* complain("--to has no checksum: a mistyped digit would not be noticed")
      const { allow } = settings.sweep
      const network = { chain, mode }
      const ids = given.refund.flatMap((text) => text.split(",")).filter((id) => id !== "")
      // It would collect everything to the customer.
      if (given.refund.length > 0 && ids.length === 0) return yield* new UsageError({ message: "--refund names none" })
      if (ids.includes("all") && ids.length > 1) {
        return yield* new UsageError({
          message: "--refund all is of all noted refunds: name others in a plan of their own"
        })
      }
      if (ids.length > 0 && includeOpen.length > 0) {
        return yield* new UsageError({ message: "--include-open is for a collection: leave it out beside --refund" })
      }
      const refunds = yield* refundsOf(settings, network, ids, given.uncorroborated)
      const destination = refunds.some(({ to }) => to === undefined) ? named : (named ?? refunds[0]?.to)
      if (destination === undefined) return yield* new UsageError({ message: "--to must say where the money goes" })
      if (given.refund.length === 0 && allow.length > 0 && !allow.includes(destination)) {
        return yield* new UsageError({
          message: `--to ${destination} is not in sweep.allow: add it there, or name one of ${allow.join(", ")}`
        })
      }
      yield* files.checkOutput(output, force)
      const xpub = yield* xpubOf(settings, mode, given.xpub)
      const { dear, plan, seesFees } = yield* Effect.gen(function* () {
        const access = yield* accessTo(settings, network)
        if (ids.length === 0 && !includeOpen.includes("all")) {
          yield* untilRead(settings, network, (yield* readPricedHead(access)).number)
        }
        const received = ids.length > 0 ? [] : yield* receivedBut(settings, network, includeOpen)
        const prices = yield* readPrices(settings)
        return yield* makePlan(access, {
          ...{ xpub, received, refunds, destination, currencies: given.tokens },
          minUsd: Option.getOrElse(BigDecimal.fromString(given.minUsd), () => BigDecimal.make(0n, 0)),
          maxFee: maxFeeGwei === undefined ? undefined : weiOf(maxFeeGwei),
          ...{ feeSteps: given.feeSteps, price: prices.usd, onProgress: complain }
        })
      }).pipe(Effect.provide(Rpc.layer))
      if (dear !== "") yield* complain(dear)
      if (dear !== "" && !belowGas) {
        const { askAtTerminal } = yield* Effect.promise(() => import("../Collect/seed.ts"))
        const answer = target.json ? "" : yield* askAtTerminal("Plan it all the same (yes/no)? ", false)
        const message = "Nothing was planned: --below-gas plans it all the same"
        if (answer.trim() !== "yes") return yield* new UsageError({ message })
      }
      yield* files.writeOutput(output, `${JSON.stringify(plan, undefined, 1)}\n`, force)
      yield* print(
        target.json
          ? JSON.stringify(texts.madeJson(plan, seesFees, output))
          : texts.madeText(plan, { seesFees, file: output, includeOpen: includeOpen.length > 0 })
      )
    })
)
