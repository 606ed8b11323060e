import { DateTime, Option } from "effect"

// A time without its zone means another moment on another machine; a day alone is one in UTC.
const momentForm = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d))?$/

/** A time in ISO 8601 with its zone, or a day, as Unix milliseconds; none when it is neither. */
export const parseMoment = (text: string): Option.Option<number> => {
  const day = text.slice(0, 10)
  // DateTime.make takes the 30th of February for a day in March.
  const isDay = Option.exists(DateTime.make(day), (time) => DateTime.formatIsoDateUtc(time) === day)
  return momentForm.test(text) && isDay ? Option.map(DateTime.make(text), DateTime.toEpochMillis) : Option.none()
}
