import { Command } from "@effect/cli"
import { Effect } from "effect"
import { networkKey } from "../Domain/Chain.ts"
import { common, configPath, loadSettings } from "./commonOptions.ts"
import { complain, print } from "./Output.ts"

const check = Command.make(
  "check",
  common,
  Effect.fnUntraced(function* (options) {
    const file = yield* configPath(options)
    const { settings, unread } = yield* loadSettings(options).pipe(
      Effect.tapError(({ problems }) =>
        options.json ? print(JSON.stringify({ valid: false, file, problems })) : Effect.void
      )
    )
    const chains = settings.chains.map(networkKey)
    if (options.json) return yield* print(JSON.stringify({ valid: true, file, chains, unread }))
    yield* print(`${file} is valid. Chains: ${chains.join(", ")}`)
    if (unread.length > 0) yield* complain(`Nothing in this version reads: ${unread.join(", ")}`)
  })
).pipe(Command.withDescription("Check the whole configuration and name every problem at once"))

/** `tilld config`: checks the configuration. */
export const config = Command.make("config").pipe(
  Command.withDescription("The configuration"),
  Command.withSubcommands([check])
)
