import { readFileSync } from "node:fs"
import { HelpDoc, Options, ValidationError } from "@effect/cli"
import { Context, Data, Effect, FiberRef, Option } from "effect"
import { configPathOf, Invocation } from "../Control/Invocation.ts"
import { closest } from "../lib/suggestion.ts"
import { load, type SettingsInvalid, type SettingsShape } from "../Settings.ts"
import type { ControlTarget } from "./askDaemon.ts"

/** An option that may be left out, with the path of a file. */
export const fileOption = (name: string, about: string) =>
  Options.text(name).pipe(Options.withPseudoName("FILE"), Options.withDescription(about), Options.optional)

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
  config: fileOption(
    "config",
    "The configuration; otherwise $TILLD_CONFIG, then ./config/tilld.toml, then /etc/tilld/tilld.toml"
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

/** Refuses what works on the database's file, where there is none; `instead`: what to do then. */
export const mustBeFile = ({ postgres }: SettingsShape, instead: string): Effect.Effect<void, UsageError> =>
  postgres === undefined ? Effect.void : new UsageError({ message: `The data is in PostgreSQL: ${instead}` })

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

/** Refuses a value of the command line: exit 2. */
export const refuse = (message: string) => Effect.fail(ValidationError.invalidValue(HelpDoc.p(message)))

/** Reads all of standard input. Tests, which run commands in their process, provide their own. */
export class StandardInput extends Context.Reference<StandardInput>()("tilld/commands/StandardInput", {
  defaultValue: () => () => readFileSync(0, "utf8")
}) {}

/** Reads a file, or standard input for `-`, without the white space around its text. */
export const readInput = (place: string) =>
  Effect.flatMap(StandardInput, (standardInput) =>
    Effect.try({
      try: () => (place === "-" ? standardInput() : readFileSync(place, "utf8")).trim(),
      catch: (cause) =>
        new UsageError({ message: `${place === "-" ? "Standard input" : place} cannot be read: ${cause}` })
    })
  )

/** Words of a list, separated by commas, each of which must be one of `known`. */
export const listOption = <A extends string>(option: string, known: ReadonlyArray<A>) =>
  Options.text(option).pipe(
    Options.withPseudoName("A,B"),
    Options.mapEffect((text) => {
      const words = text.split(",").map((word) => word.trim())
      const unknown = words.find((word) => !known.some((each) => each === word))
      if (unknown !== undefined) {
        const meant = closest(unknown, known)
        return refuse(
          `--${option}: ${JSON.stringify(unknown)} is none of ${known.join(", ")}${meant ? `; did you mean ${meant}?` : ""}`
        )
      }
      return Effect.succeed(known.filter((each) => words.includes(each)))
    })
  )

/** The words of the command line that is read. */
export const givenWords = FiberRef.unsafeMake<ReadonlyArray<string>>([])

/**
 * The values of an option that may be repeated. One without a value, as of a variable that is not set, is refused: left out, it
 * would be another command.
 */
export const repeatedTexts = (name: string, option: Options.Options<string>) =>
  Options.repeated(option).pipe(
    Options.mapEffect((texts) =>
      Effect.flatMap(FiberRef.get(givenWords), (words) => {
        const given = words.filter((word) => word === `--${name}` || word.startsWith(`--${name}=`))
        return texts.filter((text) => text !== "").length < given.length
          ? refuse(`--${name} has no value: was a variable not set?`)
          : Effect.succeed(texts)
      })
    )
  )

/** An option with an http or https URL, without a user name. TLS is not required: the user of the command chose the URL. */
export const webUrl = (option: string) =>
  Options.text(option).pipe(
    Options.withPseudoName("URL"),
    Options.mapEffect((text) => {
      const url = URL.canParse(text) ? new URL(text) : undefined
      const isWeb = url !== undefined && ["http:", "https:"].includes(url.protocol) && url.username === ""
      return isWeb ? Effect.succeed(url) : refuse(`--${option} must be an http or https URL`)
    })
  )

/** The API key, from the environment: every user of the machine sees a command line, and the shell keeps it. */
export const apiKey = Effect.gen(function* () {
  const { TILLD_API_KEY: key = "" } = (yield* Invocation).env
  if (/^svc_(live|test)_\w+$/.test(key)) return key
  const wrong = key === "" ? "is not set" : "is no API key"
  return yield* new UsageError({ message: `TILLD_API_KEY ${wrong}: put a key there that tilld keys create printed` })
})

/** `--json` of the commands that print as events come. */
export const jsonLines = Options.boolean("json").pipe(
  Options.withDescription("Print one JSON value a line on standard output, and nothing else there")
)

const optional = {
  fd: Options.integer("seed-fd").pipe(
    Options.withPseudoName("N"),
    Options.withDescription(
      "Read the seed's words from this file descriptor, and their passphrase from its second line; with --keystore, its password instead of the words. Otherwise it is asked for at the terminal"
    ),
    Options.mapEffect((fd) =>
      fd >= 0 && fd < 2 ** 31 ? Effect.succeed(fd) : refuse("--seed-fd must be 0 to 2147483647")
    ),
    Options.optional
  ),
  keystore: fileOption("keystore", "A keystore (version 3) with the entropy of the seed's words")
}

/** Where a command gets the seed: never from arguments or the environment, which others on the machine can read. */
export const seedOptions = Options.map(Options.all(optional), ({ fd, keystore }) => ({
  fd: Option.getOrUndefined(fd),
  keystore: Option.getOrUndefined(keystore)
}))

/** A number of an account m/44'/60'/n'. */
export const walletAccount = Options.integer("account").pipe(
  Options.withPseudoName("N"),
  Options.withDescription("The n of m/44'/60'/n'; otherwise 0"),
  Options.mapEffect((n) => (n >= 0 && n < 2 ** 31 ? Effect.succeed(n) : refuse("--account must be 0 to 2147483647"))),
  Options.withDefault(0)
)
