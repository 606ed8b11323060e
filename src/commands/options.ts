import { readFileSync } from "node:fs"
import { HelpDoc, Options, ValidationError } from "@effect/cli"
import { Clock, Duration, Effect, Option, Schema } from "effect"
import { longestPage } from "../Auth/inputFields.ts"
import { chainNames, modes, type Network, networkKey } from "../Domain/Chain.ts"
import { AccountId } from "../Domain/Ids.ts"
import { parseMoment } from "../Domain/moment.ts"
import { closest } from "../Domain/suggestion.ts"
import { durationForm, parseDuration } from "../Settings/valueSchemas.ts"
import type { ControlTarget } from "./askDaemon.ts"
import { UsageError } from "./commonOptions.ts"

/** Refuses a value of the command line: exit 2. */
export const refuse = (message: string) => Effect.fail(ValidationError.invalidValue(HelpDoc.p(message)))

/** Reads a file, or standard input for `-`, without the white space around its text. */
export const readInput = (place: string) =>
  Effect.try({
    try: () => readFileSync(place === "-" ? 0 : place, "utf8").trim(),
    catch: (cause) =>
      new UsageError({ message: `${place === "-" ? "Standard input" : place} cannot be read: ${cause}` })
  })

/** Required: live or test. */
export const mode = Options.choice("mode", modes).pipe(Options.withDescription("live moves real funds, test does not"))

/** An account's id; `default` unless given. */
export const account = Options.text("account").pipe(
  Options.withPseudoName("ID"),
  Options.withDescription("The account; otherwise default"),
  Options.withDefault("default"),
  Options.mapEffect((id) =>
    Option.match(Schema.decodeUnknownOption(AccountId)(id), {
      onNone: () => refuse("--account must be an account's id, as tilld accounts list shows it"),
      onSome: Effect.succeed
    })
  )
)

/** Required: one of the five chains. */
export const chain = Options.choice("chain", chainNames).pipe(
  Options.withDescription("The chain; with --mode it names the network")
)

/** Refuses a network that the configuration does not have: exit 2. At a socket the daemon checks it. */
export const checkConfigured = (place: ControlTarget, network: Network) =>
  "socket" in place || place.chains.some((each) => networkKey(each) === networkKey(network))
    ? Effect.void
    : new UsageError({
        message: `[chains.${networkKey(network)}] is not configured; there are ${place.chains.map(networkKey).join(", ")}`
      })

/** How many rows a list has, 1 to `longestPage`; `otherwise` unless given. */
export const limitOf = (otherwise: number) =>
  Options.integer("limit").pipe(
    Options.withPseudoName("N"),
    Options.withDescription(`How many of each list, 1 to ${longestPage}; otherwise ${otherwise}`),
    Options.withDefault(otherwise),
    Options.mapEffect((count) =>
      count >= 1 && count <= longestPage ? Effect.succeed(count) : refuse(`--limit must be 1 to ${longestPage}`)
    )
  )

/** Where the page of a list begins, for one whose rows are told by `what`. */
export const after = (what: string) =>
  Options.text("after").pipe(
    Options.withPseudoName("ID"),
    Options.withDescription(`The page of ${what} after the one with this ID`),
    Options.optional
  )

interface PageOptions {
  readonly after: Option.Option<string>
  readonly limit: number
}

/** The page that a list's options ask for. */
export const pageOf = ({ after, limit }: PageOptions) => ({
  limit,
  ...Option.match(after, { onNone: () => ({}), onSome: (id) => ({ after: id }) })
})

/** Says of a full page how to see what comes after it. */
export const moreOf =
  ({ limit }: PageOptions) =>
  (rows: ReadonlyArray<{ readonly id: string }>): string | undefined =>
    rows.length < limit ? undefined : `There may be more: --after ${rows.at(-1)?.id}`

/** Twenty rows unless given. */
export const limit = limitOf(20)

/** Words of a list, separated by commas, each of which must be one of `known`. */
export const listOption = <A extends string>(option: string, known: ReadonlyArray<A>) =>
  Options.text(option).pipe(
    Options.withPseudoName("A,B"),
    Options.mapEffect((text) => {
      const words = text.split(",").map((word) => word.trim())
      const unknown = words.find((word) => !known.some((each) => each === word))
      const all = `of ${known.join(", ")}`
      if (unknown !== undefined) {
        const meant = closest(unknown, known)
        return refuse(
          `--${option}: ${JSON.stringify(unknown)} is none ${all}${meant ? `; did you mean ${meant}?` : ""}`
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

/** A point in time, in Unix milliseconds: as ISO 8601 writes it, or how long ago it was. */
export const moment = (option: string) =>
  Options.text(option).pipe(
    Options.withPseudoName("TIME"),
    Options.mapEffect((text) =>
      Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        const ago = Option.map(parseDuration(text), (length) => now - Duration.toMillis(length))
        return yield* Option.match(
          Option.orElse(ago, () => parseMoment(text)),
          {
            onNone: () =>
              refuse(
                `--${option} must be a time such as 2026-01-31T12:00:00Z or 2026-01-31, or so long ago, such as 24h`
              ),
            onSome: Effect.succeed
          }
        )
      })
    )
  )
