import { readFileSync } from "node:fs"
import { HelpDoc, Options, ValidationError } from "@effect/cli"
import { Context, Effect, FiberRef, Option } from "effect"
import { closest } from "../lib/suggestion.ts"
import { durationForm, parseDuration } from "../Settings/valueSchemas.ts"
import { UsageError } from "./commonOptions.ts"

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

/** An option with a duration such as 90d or 24h. */
export const durationOption = (option: string) =>
  Options.text(option).pipe(
    Options.withPseudoName("DURATION"),
    Options.mapEffect((text) =>
      Option.match(parseDuration(text), {
        onNone: () => refuse(`--${option} must be ${durationForm}`),
        onSome: Effect.succeed
      })
    )
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
