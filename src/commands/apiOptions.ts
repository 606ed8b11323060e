import { Options } from "@effect/cli"
import { Effect } from "effect"
import { Invocation } from "../Control/Invocation.ts"
import { UsageError } from "./commonOptions.ts"
import { refuse } from "./options.ts"

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
