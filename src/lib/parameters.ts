import { Either, Schema } from "effect"
import { alternatives, maybe, must } from "./annotations.ts"
import { Moment } from "./moment.ts"

/** A segment with invalid percent-encoding is left as it is: no id matches it. */
const decodeSegment = (segment: string): string =>
  Either.getOrElse(
    Either.try(() => decodeURIComponent(segment)),
    () => segment
  )

/**
 * The parameters of a path that fits a pattern such as `/v1/webhooks/:id`, both split at their slashes; undefined where it
 * does not. No parameter is empty.
 */
export const parametersIn = (
  pattern: ReadonlyArray<string>,
  segments: ReadonlyArray<string>
): Readonly<Record<string, string>> | undefined => {
  if (pattern.length !== segments.length) return undefined
  const found: Record<string, string> = {}
  for (const [i, part] of pattern.entries()) {
    const segment = segments[i] ?? ""
    if (part.startsWith(":") && segment !== "") found[part.slice(1)] = decodeSegment(segment)
    else if (part !== segment) return undefined
  }
  return found
}

// Query parameters that several lists take.

/** Most rows of a page, and how many without `limit`. */
export const maxPageSize = 100
export const defaultPageSize = 20

/** One of several values. `about`: what it selects. */
export const choiceParameter = <Values extends readonly [string, ...ReadonlyArray<string>]>(
  values: Schema.Literal<[...Values]>,
  about: string
) => maybe(must(`be ${alternatives(values.literals)}`, values, { about }))

/** Any text: one that names nothing selects nothing. `about`: what it selects. */
export const idParameter = (about: string, prefix: string) =>
  maybe(must(`be an id: ${prefix}_ and letters, digits, _ or -`, Schema.String, { about, log: "hidden" }))

/** `what`: the rows, in the plural. */
export const limitParameter = (what: string) =>
  maybe(
    must(
      `be an integer from 1 to ${maxPageSize}`,
      Schema.String.pipe(
        Schema.pattern(/^[1-9][0-9]{0,2}$/),
        Schema.compose(Schema.NumberFromString),
        Schema.between(1, maxPageSize)
      ),
      {
        about: `${what} a page`,
        byDefault: defaultPageSize,
        json: { type: "integer", minimum: 1, maximum: maxPageSize }
      }
    )
  )

export const cursorParameter = maybe(
  must("be given once", Schema.String, {
    about: "The `cursor` of the page before, with the same filters; it never expires",
    log: "hidden"
  })
)

/** `about`: what it selects. */
export const momentParameter = (about: string) =>
  maybe(
    must("be a time such as 2026-01-31T12:00:00Z, or a day such as 2026-01-31", Moment, {
      about,
      json: { type: "string" },
      log: "shown"
    })
  )

/** The schema of a page. `what`: the rows, in the plural. */
export const pageSchema = <Row, I>(
  identifier: string,
  what: string,
  row: Schema.Schema<Row, I>,
  next = "Asks for the next page; null at the end."
) =>
  Schema.Struct({
    data: Schema.Array(row).annotations({ description: "Newest first." }),
    cursor: Schema.NullOr(Schema.String).annotations({ description: next })
  }).annotations({ identifier, description: `A page of ${what}.` })
