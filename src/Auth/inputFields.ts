/** Fields that the inputs and outputs of several operations have. */
import { Duration, Option, ParseResult, Schema } from "effect"
import { Mode } from "../Domain/Chain.ts"
import { AccountId } from "../Domain/Ids.ts"
import { must } from "../Domain/must.ts"
import { iso } from "../Domain/Timestamp.ts"
import { parseDuration } from "../Settings/valueSchemas.ts"
import { asked } from "./inputText.ts"

/** A field that may be absent. */
export const maybe = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

/** A field with what it is where it is absent. */
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

/** The longest overlap in which two secrets sign, or two keys work. */
export const longestOverlap = "30 days"

/** The longest name of an account or a key. */
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

/** The longest page of a list. Whoever may only read must not make the daemon load a whole table. */
export const longestPage = 1000

/** The rows of a list behind the one with an id; `length` of them unless `limit` is given. */
export const pageFields = (of: string, length: number) => ({
  after: asked(maybe(Schema.String), { about: `The page of ${of} after the one with this ID`, value: "ID" }),
  limit: asked(
    otherwise(must(`be a whole number from 1 to ${longestPage}`, Schema.Int.pipe(Schema.between(1, longestPage))), () => length),
    { about: `How many of each list, 1 to ${longestPage}; otherwise ${length}`, value: "N" }
  )
})

/** Required: live or test. */
export const ModeField = asked(must("be live or test", Mode), { about: "live moves real funds, test does not" })

/** The account; `default` where it is absent. */
export const AccountField = asked(
  otherwise(must("be an account's id, as tilld accounts list shows it", AccountId), () => AccountId.make("default")),
  { about: "The account; otherwise default", value: "ID" }
)

/** A time: Unix milliseconds here, as ISO 8601 writes it in JSON. */
export const Time = Schema.transform(Schema.String, Schema.Number, { strict: true, decode: Date.parse, encode: iso })
