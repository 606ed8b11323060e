import { Args, Command, Options } from "@effect/cli"
import { Effect, Option } from "effect"
import { Invocation } from "../Control/Invocation.ts"
import { quantityText } from "../lib/quantities.ts"
import { complain, print } from "./Output.ts"
import { common, force, loadSettings, outputOption, refuse, repeatedTexts, seedOptions } from "./options.ts"

/** Loaded only here. */
const signing = Effect.promise(() => Promise.all([import("../Collect/sign.ts"), import("./sweepTexts.ts")]))

/** An option that may be repeated, each time with a whole address, or the end of one. */
const addresses = (name: string, isWhole: boolean, about: string) => {
  const form = isWhole ? /^0x[0-9a-fA-F]{40}$/ : /^[0-9a-fA-F]{6,40}$/
  const must = isWhole ? "an address" : "the last characters of an address, six or more"
  const option = Options.text(name).pipe(Options.withPseudoName(isWhole ? "ADDRESS" : "ABCDEF"))
  return repeatedTexts(name, Options.withDescription(option, about)).pipe(
    Options.mapEffect((texts) =>
      texts.every((text) => form.test(text)) ? Effect.succeed(texts) : refuse(`--${name} must be ${must}`)
    )
  )
}

/** An amount with up to so many decimals, in base units. */
const amountOption = (name: string, value: string, decimals: number, about: string) =>
  Options.text(name).pipe(
    Options.withPseudoName(value),
    Options.withDescription(about),
    Options.mapEffect((text) => {
      const [, whole, rest = ""] = /^(\d{1,9})(?:\.(\d{1,18}))?$/.exec(text) ?? []
      return whole === undefined || rest.length > decimals
        ? refuse(`--${name} must be a number such as 50 or 0.25`)
        : Effect.succeed(BigInt(`${whole}${rest.padEnd(decimals, "0")}`))
    }),
    Options.optional
  )

const options = {
  ...common,
  output: outputOption("The signed plan, a new file"),
  seed: seedOptions,
  destination: addresses(
    "destination",
    true,
    "The address that collected money goes to, where no one can be asked for it"
  ),
  destinationEnds: addresses(
    "destination-ends",
    false,
    "The end of that address, six characters or more: a mistake is found by it, a thief is not"
  ),
  refundTo: addresses(
    "refund-to",
    true,
    "A customer's address that refunds go to, also beside those that --allow and sweep.allow name"
  ),
  refundEnds: addresses(
    "refund-ends",
    false,
    "The end of a customer's address that refunds go to, six characters or more"
  ),
  allow: addresses(
    "allow",
    true,
    "Refuse a receiver that is none of these, nor in sweep.allow of a configuration that --config or $TILLD_CONFIG names; refunds go to those of --refund-to, too"
  ),
  feeCeiling: amountOption(
    "fee-ceiling-gwei",
    "GWEI",
    9,
    "The highest fee for a unit of gas that is signed; otherwise 1000 on ethereum, 20000 on polygon, 100 elsewhere"
  ),
  maxTotalFee: amountOption(
    "max-total-fee",
    "COIN",
    18,
    "The highest sum of all fees that is signed, in the chain's coin; otherwise 0.05 and 0.005 for each move on ethereum, 2 and 0.2 on polygon, 0.005 and 0.0005 elsewhere"
  ),
  anyAge: Options.boolean("any-age").pipe(
    Options.withDescription("Sign a plan that is more than 7 days old, or an hour ahead, by this machine's clock")
  ),
  force
}

const plan = Args.text({ name: "plan" }).pipe(Args.withDescription("The plan, as tilld sweep plan has written it"))

/** `tilld sweep sign`: signs a plan on a machine without a network. */
export const signCommand = Command.make(
  "sign",
  { ...options, plan },
  Effect.fnUntraced(function* ({
    allow,
    config,
    destination,
    destinationEnds,
    json,
    refundEnds,
    refundTo,
    ...request
  }) {
    // Only where one is named: the machine with the seed has none of its own.
    const isNamed = Option.isSome(config) || Boolean((yield* Invocation).env.TILLD_CONFIG)
    const configured = isNamed ? (yield* loadSettings({ config })).sweep.allow : []
    const [{ signFile }, { signedJson }] = yield* signing
    const { output: file } = request
    const signed = yield* signFile(
      {
        ...request,
        allow: [...allow, ...configured],
        confirmed: { collected: [...destination, ...destinationEnds], refund: [...refundTo, ...refundEnds] },
        feeCeiling: Option.getOrUndefined(request.feeCeiling),
        maxTotalFee: Option.getOrUndefined(request.maxTotalFee)
      },
      complain
    )
    yield* print(
      json
        ? JSON.stringify(signedJson(signed, file))
        : `Signed ${file}: ${quantityText(signed.authorizations.length, "authorization")} and ${quantityText(signed.transactions.length, "transaction")}. Take it to the server: tilld sweep broadcast ${file}`
    )
  })
).pipe(
  Command.withDescription("Sign a plan where the seed is: opens no network connection, and shows what it signs first")
)
