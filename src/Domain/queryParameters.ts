import { Schema } from "effect"
import { Moment } from "./moment.ts"
import { must } from "./must.ts"

// Query parameters that several lists take.

/** Most rows of a page, and how many without `limit`. */
export const maxPageSize = 100
export const defaultPageSize = 20

const optional = { exact: true } as const

/** `what`: the rows, in the plural. */
export const limitParameter = (what: string) =>
  Schema.optionalWith(
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
    ),
    optional
  )

export const cursorParameter = Schema.optionalWith(
  must("be given once", Schema.String, {
    about: "The `cursor` of the page before, with the same filters; it never expires",
    log: "hidden"
  }),
  optional
)

/** `about`: what it selects. */
export const momentParameter = (about: string) =>
  Schema.optionalWith(
    must("be a time such as 2026-01-31T12:00:00Z, or a day such as 2026-01-31", Moment, {
      about,
      json: { type: "string" },
      log: "shown"
    }),
    optional
  )
