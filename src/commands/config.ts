import { Command } from "@effect/cli"
import { Effect, Redacted } from "effect"
import { networkKey } from "../Domain/Chain.ts"
import type { SettingsShape } from "../Settings.ts"
import { common, configPath, loadSettings } from "./commonOptions.ts"
import { print } from "./Output.ts"

/** The hosts of the example configuration, which nobody has (RFC 2606). */
const isExample = (url: string) => /(^|\.)example(\.(com|net|org))?$/.test(new URL(url).hostname)

/** The keys that still name a host of the example. */
const placeholders = ({ chains, server }: SettingsShape): ReadonlyArray<string> => [
  ...(isExample(server.publicUrl) ? ["server.public_url"] : []),
  ...chains
    .filter(({ rpcUrls }) => rpcUrls.some((url) => isExample(Redacted.value(url))))
    .map((chain) => `chains.${networkKey(chain)}.rpc_urls`)
]

const check = Command.make(
  "check",
  common,
  Effect.fnUntraced(function* (options) {
    const file = yield* configPath(options)
    const settings = yield* loadSettings(options).pipe(
      Effect.tapError(({ problems }) =>
        options.json ? print(JSON.stringify({ valid: false, file, problems })) : Effect.void
      )
    )
    const chains = settings.chains.map(networkKey)
    const unfilled = placeholders(settings)
    if (options.json) return yield* print(JSON.stringify({ valid: true, file, chains, placeholders: unfilled }))
    yield* print(`${file} is valid. Chains: ${chains.join(", ")}`)
    if (unfilled.length > 0) yield* print(`Still the example's: ${unfilled.join(", ")}`)
  })
).pipe(Command.withDescription("Check the whole configuration and name every problem at once"))

/** `tilld config`: checks the configuration. */
export const config = Command.make("config").pipe(
  Command.withDescription("The configuration"),
  Command.withSubcommands([check])
)
