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
