import { DateTime, Either, Option, ParseResult, Schema } from "effect"

/** Unix milliseconds as ISO 8601, UTC, with milliseconds. */
// This reads no clock. DateTime would take five times as long, several times a request.
// @effect-diagnostics-next-line globalDate:off
export const iso = (millis: number): string => new Date(millis).toISOString()

// RFC 3339, and what Java, Python, PHP and PostgreSQL print beyond it: no seconds, an offset without colon or minutes, a
// zone's name after it. A `+` that was not encoded in a query arrives as a space. A time without its zone means another
// moment on another machine; a day alone is one in UTC.
const momentForm =
  /^(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d)(?:(:\d\d)(?:\.(\d{1,9}))?)?(?:[Zz]|([-+ ](?:[01]\d|2[0-3]))(?::?([0-5]\d))?)(?:\[[\w+/:-]+\])?)?$/

/**
 * A time or a day as Unix milliseconds, never below 0; none when it is neither. A part of a millisecond counts as a whole
 * one: times in whole milliseconds compare with it as with what was written.
 */
export const parseMoment = (text: string): Option.Option<number> => {
  const found = momentForm.exec(text)
  const [, day = "", time = "00:00", seconds = ":00", fraction = "", hours = "+00", minutes = "00"] = found ?? []
  // DateTime.make takes the 30th of February for a day in March.
  const isDay = Option.exists(DateTime.make(day), (start) => DateTime.formatIsoDateUtc(start) === day)
  if (found === null || !isDay) return Option.none()
  return Option.map(DateTime.make(`${day}T${time}${seconds}${hours.replace(" ", "+")}:${minutes}`), (start) =>
    Math.max(0, DateTime.toEpochMillis(start) + Math.ceil(Number(fraction.padEnd(9, "0")) / 1e6))
  )
}

/** A time in a text, as Unix milliseconds; encoded in UTC. */
export const Moment = Schema.transformOrFail(Schema.String, Schema.Number, {
  strict: true,
  decode: (text, _, ast) => Either.fromOption(parseMoment(text), () => new ParseResult.Type(ast, text)),
  encode: (millis) => ParseResult.succeed(iso(millis))
})
