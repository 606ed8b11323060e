/** When a webhook is sent again: what the code does, and what messages and documents say of it. */
import type { Duration } from "effect"

/** The delay from the end of each failed attempt to the start of the next. */
export const retryDelays: ReadonlyArray<Duration.DurationInput> = [
  "1 minute",
  "5 minutes",
  "30 minutes",
  "2 hours",
  "24 hours"
]

/** `1 minute, 5 minutes and 2 hours` */
export const delaysInWords = `${retryDelays.slice(0, -1).join(", ")} and ${retryDelays.at(-1)}`

/** After this many failed attempts a delivery's status is `failed`, although the last retry is still to come. */
export const failedAfter = retryDelays.length

/** Attempts of the whole schedule. */
export const mostAttempts = retryDelays.length + 1

const ordinals = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"]

/** `fifth` */
export const ordinal = (attempt: number): string => ordinals[attempt - 1] ?? `${attempt}th`

/** `24 hours` */
export const lastDelay = String(retryDelays.at(-1))
