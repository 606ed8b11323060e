import { Options } from "@effect/cli"
import { Data, Effect, Option } from "effect"
import { configPathOf, Invocation } from "../Control/Invocation.ts"
import { load, type SettingsInvalid, type SettingsShape } from "../Settings.ts"
import type { ControlTarget } from "./askDaemon.ts"

/** Replaces files that exist. */
export const force = Options.boolean("force").pipe(Options.withDescription("Replace the output file if it exists"))

/** Where a result goes. */
export const outputOption = (about: string) =>
  Options.text("output").pipe(Options.withPseudoName("FILE"), Options.withDescription(`${about}; -o for short`))

/** @effect/cli writes an option with a short name in a form of its own in help, which no other option has. */
export const withLongOutput = (words: ReadonlyArray<string>): ReadonlyArray<string> =>
  words[2] === "sweep" ? words.map((word) => (word === "-o" ? "--output" : word)) : words

/** The command line asks for something impossible: exit 2. */
export class UsageError extends Data.TaggedError("UsageError")<{ readonly message: string }> {}

/** Options of every command. @effect/cli accepts an option only at the command that declares it. */
export const common = {
  config: Options.text("config").pipe(
    Options.withPseudoName("FILE"),
    Options.withDescription("The configuration; otherwise $TILLD_CONFIG, then ./config/tilld.toml"),
    Options.optional
  ),
  json: Options.boolean("json").pipe(
    Options.withDescription("Print the result as one JSON value on standard output, and nothing else there")
  )
}

/** Values of the options in `common`. */
export interface Common {
  readonly config: Option.Option<string>
  readonly json: boolean
}

/** Path of the configuration: `--config`, or what stands for it. */
export const configPath = ({ config }: Pick<Common, "config">): Effect.Effect<string, never, Invocation> =>
  configPathOf(Option.getOrUndefined(config))

/** The configuration that the command line and the environment name. */
export const loadSettings = (
  options: Pick<Common, "config">
): Effect.Effect<SettingsShape, SettingsInvalid, Invocation> =>
  Effect.gen(function* () {
    const { env } = yield* Invocation
    return yield* load({ path: yield* configPath(options), env })
  })

/**
 * Where a command asks the daemon: at the socket that `TILLD_SOCKET` names, for users who may not read the configuration,
 * unless the command line names a configuration.
 */
export const controlTargetOf = (
  options: Pick<Common, "config">
): Effect.Effect<ControlTarget, SettingsInvalid, Invocation> =>
  Effect.gen(function* () {
    const { env } = yield* Invocation
    if (env.TILLD_SOCKET && Option.isNone(options.config)) return { socket: env.TILLD_SOCKET }
    return yield* loadSettings(options)
  })
