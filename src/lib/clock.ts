const formats = new Map<string, Intl.NumberFormat>()

/** Making one takes longer than all the rest of a page that is rendered already. */
const formatOf = (language: string, least: number): Intl.NumberFormat => {
  const name = `${language} ${least}`
  const format =
    formats.get(name) ?? new Intl.NumberFormat(language, { minimumIntegerDigits: least, useGrouping: false })
  formats.set(name, format)
  return format
}

/** A time that is left as a clock shows it, in the digits of a language: `4:05`, `23:04:05`. */
export const countdown = (millis: number, language: string): string => {
  const seconds = Math.max(0, Math.ceil(millis / 1000))
  const digits = (value: number, least: number) => formatOf(language, least).format(value)
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60]
  const clock = hours === 0 ? [digits(minutes, 1)] : [digits(hours, 1), digits(minutes, 2)]
  return [...clock, digits(seconds % 60, 2)].join(":")
}

/** The time in which a payment can be paid. Unix milliseconds. */
export interface Period {
  readonly startsAt: number
  readonly endsAt: number
}

/** The share of the period that is left, in percent. */
export const shareLeft = ({ endsAt, startsAt }: Period, now: number): number =>
  Math.max(0, Math.min(100, Math.round((100 * (endsAt - now)) / Math.max(1, endsAt - startsAt))))

/** A time of day with its date and zone, as a language writes it: `Nov 23, 2026, 2:35 PM UTC`. `zone`: the machine's unless given. */
export const clockTime = (millis: number, language: string, zone?: string): string =>
  new Intl.DateTimeFormat(language, {
    year: "numeric",
    month: "short",
    day: "numeric",
    hour: "numeric",
    minute: "2-digit",
    timeZoneName: "short",
    ...(zone === undefined ? {} : { timeZone: zone })
  }).format(millis)
