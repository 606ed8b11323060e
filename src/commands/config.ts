import { Command } from "@effect/cli"
import { Effect, Redacted } from "effect"
import { confirmWallets } from "../Conditions/operations.ts"
import { networkKey } from "../Domain/Chain.ts"
import { missingFolder } from "../Payments/addresses/IndexMark.ts"
import { unmetNeeds } from "../Payments/openNeeds.ts"
import { SettingsInvalid, type SettingsShape } from "../Settings.ts"
import { holderOf } from "../Sql/InstanceLock.ts"
import { print } from "./Output.ts"
import { commandOf } from "./operationCommand.ts"
import { common, configPath, loadSettings } from "./options.ts"

/** The hosts of the example configuration, which nobody has (RFC 2606). */
const isExample = (url: string) => /(^|\.)example(\.(com|net|org))?$/.test(new URL(url).hostname)

/** The keys that still name a host of the example. */
const placeholders = ({ chains, server }: SettingsShape): ReadonlyArray<string> => [
  ...(isExample(server.publicUrl) ? ["server.public_url"] : []),
  ...chains
    .filter(({ rpcUrls }) => rpcUrls.some((url) => isExample(Redacted.value(url))))
    .map((chain) => `chains.${networkKey(chain)}.rpc_urls`)
]

/** Loaded only here: no other command reads the database beside a daemon. */
const facts = Effect.promise(() => import("../Doctor/storeFacts.ts"))

/** What the configuration says of the database, compared with what is there. */
interface Compared {
  /** Why the database was not compared, where this user cannot read it. */
  readonly uncompared?: string
  /** What the operator may not have meant. */
  readonly warnings: ReadonlyArray<string>
}

/** Refuses what the next start would: a configuration without what open payments need. */
const compareWithDatabase = Effect.fnUntraced(function* (file: string, settings: SettingsShape) {
  if (settings.postgres !== undefined) {
    return { uncompared: "they are in PostgreSQL, and a start compares them", warnings: [] } satisfies Compared
  }
  const { otherDatabase, overtakenWallets, readStartFacts } = yield* facts
  const { markFolder, path } = settings.database
  const found = readStartFacts(path, holderOf(path) !== undefined, settings.chains)
  if ("finding" in found) return { uncompared: found.finding, warnings: [] } satisfies Compared
  const problems = unmetNeeds(settings.chains, found.openNeeds).map(({ at, need, remedy }) => ({
    at,
    message: `${need}: ${remedy}`
  }))
  if (problems.length > 0) return yield* new SettingsInvalid({ file, problems })
  const missing = missingFolder(path)
  const overtaken = overtakenWallets(settings, markFolder, found.wallets).map(otherDatabase)
  const warnings = [...(missing === undefined ? [] : [missing]), ...overtaken]
  const compared: Compared = { warnings: warnings.map(({ finding, remedy }) => `${finding}: ${remedy}`) }
  return compared
})

const check = Command.make(
  "check",
  common,
  Effect.fnUntraced(function* (options) {
    const file = yield* configPath(options)
    const { compared, settings } = yield* loadSettings(options).pipe(
      Effect.bindTo("settings"),
      Effect.bind("compared", ({ settings }) => compareWithDatabase(file, settings)),
      Effect.tapError(({ problems }) =>
        options.json ? print(JSON.stringify({ valid: false, file, problems })) : Effect.void
      )
    )
    const chains = settings.chains.map(networkKey)
    const unfilled = placeholders(settings)
    if (options.json) {
      return yield* print(JSON.stringify({ valid: true, file, chains, placeholders: unfilled, ...compared }))
    }
    const { uncompared, warnings } = compared
    for (const warning of warnings) yield* print(`Warning: ${warning}`)
    yield* print(`${file} is valid. Chains: ${chains.join(", ")}`)
    if (unfilled.length > 0) yield* print(`Still the example's: ${unfilled.join(", ")}`)
    if (uncompared !== undefined) yield* print(`Not compared with open payments: ${uncompared}`)
  })
).pipe(
  Command.withDescription(
    "Check the whole configuration, also for what open payments need, and name every problem at once"
  )
)

const confirm = commandOf(confirmWallets, {
  print: ({ confirmed }) =>
    confirmed.length === 0
      ? "No wallet was replaced"
      : `Confirmed: ${confirmed.map((mode) => `wallets.${mode}`).join(", ")}`
})

/** `tilld config`: checks the configuration, and confirms a change of it. */
export const config = Command.make("config").pipe(
  Command.withDescription("The configuration"),
  Command.withSubcommands([check, confirm])
)
