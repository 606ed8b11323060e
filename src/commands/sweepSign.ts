import { Args, Command, Options } from "@effect/cli"
import { Effect, Option } from "effect"
import { common, loadSettings } from "./commonOptions.ts"
import { complain, print } from "./Output.ts"
import { refuse } from "./options.ts"
import { force, outputOption } from "./outputOptions.ts"
import { seedOptions } from "./seedOptions.ts"

/** Loaded only here. */
const signing = Effect.promise(() => import("../Collect/signFile.ts"))

/** An option that may be repeated, each time with a text of this form. */
const repeatedOption = (name: string, value: string, form: RegExp, must: string, about: string) =>
  Options.text(name).pipe(
    Options.withPseudoName(value),
    Options.withDescription(about),
    Options.repeated,
    Options.mapEffect((texts) =>
      texts.every((text) => form.test(text)) ? Effect.succeed(texts) : refuse(`--${name} must be ${must}`)
    )
  )

const options = {
  ...common,
  output: outputOption("The signed plan, a new file"),
  seed: seedOptions,
  destinationEnds: repeatedOption(
    "destination-ends",
    "ABCDEF",
    /^[0-9a-fA-F]{6}$/,
    "the last six characters of an address",
    "The last six characters of the destination, where no one can be asked for them; also for each receiver of a refund"
  ),
  allow: repeatedOption(
    "allow",
    "ADDRESS",
    /^0x[0-9a-fA-F]{40}$/,
    "an address",
    "Refuse a destination that is none of these, nor in sweep.allow of a file that --config names; refunds apart"
  ),
  feeCeiling: Options.text("fee-ceiling-gwei").pipe(
    Options.withPseudoName("GWEI"),
    Options.withDescription(
      "The highest fee for a unit of gas that is signed; otherwise 1000 on ethereum, 20000 on polygon, 100 elsewhere"
    ),
    Options.mapEffect((text) => {
      const [, whole, rest = ""] = /^(\d{1,9})(?:\.(\d{1,9}))?$/.exec(text) ?? []
      return whole === undefined
        ? refuse("--fee-ceiling-gwei must be a number such as 50 or 0.25")
        : Effect.succeed(BigInt(`${whole}${rest.padEnd(9, "0")}`))
    }),
    Options.optional
  ),
  force
}

const plan = Args.text({ name: "plan" }).pipe(Args.withDescription("The plan, as tilld sweep plan has written it"))

/** `tilld sweep sign`: signs a plan on a machine without a network. */
export const signCommand = Command.make(
  "sign",
  { ...options, plan },
  Effect.fnUntraced(function* ({ allow, config, feeCeiling, json, ...request }) {
    // Only where one is named: the machine with the seed has none of its own.
    const configured = Option.isSome(config) ? (yield* loadSettings({ config })).sweep.allow : []
    const { signFile } = yield* signing
    const signed = yield* signFile(
      { ...request, allow: [...allow, ...configured], feeCeiling: Option.getOrUndefined(feeCeiling) },
      complain
    )
    yield* print(
      json
        ? JSON.stringify(signed)
        : `Signed ${signed.file}: ${signed.authorizations} authorizations and ${signed.transactions} transactions. Take it to the server: tilld sweep broadcast ${signed.file}`
    )
  })
).pipe(
  Command.withDescription("Sign a plan where the seed is: opens no network connection, and shows what it signs first")
)
