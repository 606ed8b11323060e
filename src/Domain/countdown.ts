const formats = new Map<string, Intl.NumberFormat>()

/** Making one takes longer than all the rest of a page that is rendered already. */
const formatOf = (language: string, least: number): Intl.NumberFormat => {
  const name = `${language} ${least}`
  const format =
    formats.get(name) ?? new Intl.NumberFormat(language, { minimumIntegerDigits: least, useGrouping: false })
  formats.set(name, format)
  return format
}

/** A time that is left as a clock shows it, in the digits of a language: `4:05`. Minutes may be more than 59. */
export const countdown = (millis: number, language: string): string => {
  const seconds = Math.max(0, Math.ceil(millis / 1000))
  const digits = (value: number, least: number) => formatOf(language, least).format(value)
  return `${digits(Math.floor(seconds / 60), 1)}:${digits(seconds % 60, 2)}`
}
