import { Schema } from "effect"

/** A string of a response, with its description and further JSON Schema keywords. */
export const text = (description: string, jsonSchema: Readonly<Record<string, unknown>> = {}) =>
  Schema.String.annotations({ description, jsonSchema })

/** A whole number of a response, 0 or more, with its description. */
export const count = (description: string) =>
  Schema.Number.annotations({ description, jsonSchema: { type: "integer", minimum: 0, description } })

/** A point in time in a response, ISO 8601. */
export const timestamp = (description: string) =>
  text(`${description}. ISO 8601, UTC, with milliseconds.`, { format: "date-time" })

/** The pattern of ids with this prefix: at least 128 bits follow it, safe in a URL. */
export const idPattern = (prefix: string) => ({ pattern: `^${prefix}_[A-Za-z0-9_-]{22,43}$` })
