import { DateTime } from "effect"

/** Unix milliseconds as ISO 8601, UTC, with milliseconds. */
export const iso = (millis: number): string => DateTime.formatIso(DateTime.unsafeMake(millis))
