/** A time that is left as a clock shows it, in the digits of a language: `4:05`. Minutes may be more than 59. */
export const countdown = (millis: number, language: string): string => {
  const seconds = Math.max(0, Math.ceil(millis / 1000))
  const digits = (value: number, least: number) =>
    new Intl.NumberFormat(language, { minimumIntegerDigits: least, useGrouping: false }).format(value)
  return `${digits(Math.floor(seconds / 60), 1)}:${digits(seconds % 60, 2)}`
}
