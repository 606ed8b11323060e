/** Fields that the inputs and outputs of several operations have. */
import { Duration, Option, ParseResult, Schema } from "effect"
import { ChainName, chainNames, Mode } from "../Domain/Chain.ts"
import { AccountId } from "../Domain/Ids.ts"
import { maybe, must } from "../lib/annotations.ts"
import { iso, parseMoment } from "../lib/moment.ts"
import { parseDuration } from "../Settings/valueSchemas.ts"
import { withFlag } from "./operation.ts"

export { maybe }

/** A field with its default. */
export const otherwise = <A, I>(schema: Schema.Schema<A, I>, value: () => NoInfer<A>) =>
  Schema.optionalWith(schema, { exact: true, default: value })

/** A duration, as text such as `24h`, at most `longest`. */
export const durationUpTo = (longest: string & Duration.DurationInput, isZeroTaken = true) =>
  must(
    `be a duration such as 24h, ${isZeroTaken ? "" : "above zero and "}at most ${longest}`,
    Schema.transformOrFail(Schema.String, Schema.DurationFromSelf, {
      strict: true,
      decode: (text, _, ast) =>
        Option.match(
          Option.filter(
            parseDuration(text),
            (length) =>
              Duration.lessThanOrEqualTo(length, longest) &&
              (isZeroTaken || Duration.greaterThan(length, Duration.zero))
          ),
          { onNone: () => ParseResult.fail(new ParseResult.Type(ast, text)), onSome: ParseResult.succeed }
        ),
      encode: (value) => ParseResult.succeed(`${Duration.toMillis(value)} millis`)
    })
  )

/** Maximum length of the name of an account or a key. */
export const nameLength = 100

const nameRule = `be 1 to ${nameLength} printable characters`
/** A name that people give, without the space around it. */
export const GivenName = must(
  nameRule,
  Schema.transform(
    Schema.String,
    must(nameRule, Schema.String.pipe(Schema.pattern(/^\P{C}+$/u), Schema.maxLength(nameLength))),
    {
      strict: true,
      decode: (text) => text.trim(),
      encode: (text) => text
    }
  )
)

/** Nothing has that id. */
export class NotFound extends Schema.TaggedError<NotFound>()("NotFound", { message: Schema.String }) {}

/** Maximum length of a page of a list. A client that may only read must not make the daemon load a whole table. */
export const longestPage = 1000

/** How many rows of a list; `length` unless given. */
export const limitField = (length: number) =>
  withFlag(
    otherwise(
      must(`be a whole number from 1 to ${longestPage}`, Schema.Int.pipe(Schema.between(1, longestPage))),
      () => length
    ),
    { about: `How many of each list, 1 to ${longestPage}; otherwise ${length}`, value: "N" }
  )

/** The rows of a list behind the one with an id; `length` of them unless `limit` is given. */
export const pageFields = (of: string, length: number) => ({
  after: withFlag(maybe(Schema.String), { about: `The page of ${of} after the one with this ID`, value: "ID" }),
  limit: limitField(length)
})

/** A time, or how long ago it was. */
type GivenMoment = { readonly at: number } | { readonly ago: Duration.Duration }

/** In Unix milliseconds. */
export const momentAt = (moment: GivenMoment, now: number): number =>
  "at" in moment ? moment.at : now - Duration.toMillis(moment.ago)

/** A time as ISO 8601 writes it, or how long ago it was. */
export const MomentField = must(
  "be a time such as 2026-01-31T12:00:00Z or 2026-01-31, or so long ago, such as 24h",
  Schema.transformOrFail(Schema.String, Schema.Any as Schema.Schema<GivenMoment>, {
    strict: true,
    decode: (text, _, ast) =>
      Option.match(
        Option.orElse(
          Option.map(parseDuration(text), (ago): GivenMoment => ({ ago })),
          () => Option.map(parseMoment(text), (at): GivenMoment => ({ at }))
        ),
        { onNone: () => ParseResult.fail(new ParseResult.Type(ast, text)), onSome: ParseResult.succeed }
      ),
    encode: (moment) => ParseResult.succeed("at" in moment ? iso(moment.at) : `${Duration.toMillis(moment.ago)} millis`)
  })
)

/** As the audit log has it. */
export const momentText = Schema.encodeSync(MomentField)

/** Both modes, or one. */
export const SomeMode = withFlag(maybe(must("be live or test", Mode)), {
  about: "live moves real funds, test does not; otherwise both"
})

/** Required: one of the five chains. */
export const ChainField = withFlag(must(`be one of ${chainNames.join(", ")}`, ChainName), {
  about: "The chain; with --mode it names the network"
})

/** Required: live or test. */
export const ModeField = withFlag(must("be live or test", Mode), { about: "live moves real funds, test does not" })

export const accountRule = "be an account's id, as tilld accounts list shows it"

/** The account; `default` where it is absent. */
export const AccountField = withFlag(
  otherwise(must(accountRule, AccountId), () => AccountId.make("default")),
  { about: "The account; otherwise default", value: "ID" }
)

/** A transaction's hash, in lower case. */
export const HashField = must(
  "be a transaction's hash: 0x and 64 hexadecimal digits",
  Schema.compose(Schema.Lowercase, Schema.String.pipe(Schema.pattern(/^0x[0-9a-f]{64}$/)))
)

/** A rate limit, in requests; null: as configured. */
export const rateField = (of: string, highest: number) =>
  withFlag(
    maybe(Schema.NullOr(must(`be a whole number from 1 to ${highest}`, Schema.Int.pipe(Schema.between(1, highest))))),
    {
      about: `Requests ${of}; default: as configured`,
      value: "N",
      words: { default: null }
    }
  )

/** A rate limit as the audit log has it. */
export const notedRate = (given: number | null | undefined) => (given === null ? "default" : given)
