import { clockTime } from "../lib/clock.ts"
import { iso } from "../lib/moment.ts"
import type { Language } from "./languages.ts"

/** A time in UTC, which the island puts into the zone of the browser. `at` in Unix milliseconds. */
export const LocalTime = ({ at, language }: { readonly at: number; readonly language: Language }) => (
  <time dateTime={iso(at)} data-local={at}>
    {clockTime(at, language, "UTC")}
  </time>
)
