import { Schema } from "effect"

/** A string of an answer, with what it means, and JSON Schema keywords that say more of its form. */
export const text = (description: string, jsonSchema: Readonly<Record<string, unknown>> = {}) =>
  Schema.String.annotations({ description, jsonSchema })

/** A point in time in an answer, ISO 8601. */
export const timestamp = (description: string) =>
  text(`${description}. ISO 8601, UTC, with milliseconds.`, { format: "date-time" })

/** What makes the tail of every id: at least 128 bits, safe in a URL. */
export const idPattern = (prefix: string) => ({ pattern: `^${prefix}_[A-Za-z0-9_-]{22,43}$` })
