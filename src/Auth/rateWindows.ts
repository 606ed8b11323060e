/** A fixed window that began with the first request in it. */
export interface Window {
  /** Unix milliseconds. */
  start: number
  count: number
}

/** What one key has used. */
export interface Usage {
  readonly minute: Window
  readonly hour: Window
}

export interface RateLimit {
  readonly perMinute: number
  readonly perHour: number
}

/** What a key's owner is told of one window. */
export interface Allowance {
  readonly window: "minute" | "hour"
  /** Requests in a window. */
  readonly limit: number
  /** Requests left in it. */
  readonly remaining: number
  /** When it ends, Unix milliseconds. */
  readonly resetAt: number
}

export const minuteMillis = 60_000
export const hourMillis = 3_600_000

export const unused = (): Usage => ({ minute: { start: 0, count: 0 }, hour: { start: 0, count: 0 } })

/** A window that is over, or that a clock set back has put into the future, counts for nothing. */
const isOver = ({ start }: Window, length: number, now: number): boolean => now < start || now >= start + length

/** Nothing of it counts any more. */
export const isForgotten = ({ hour, minute }: Usage, now: number): boolean =>
  isOver(hour, hourMillis, now) && isOver(minute, minuteMillis, now)

const renew = (window: Window, length: number, now: number): void => {
  if (!isOver(window, length, now)) return
  window.start = now
  window.count = 0
}

/**
 * Counts a request at `now`, Unix milliseconds, unless one of the two windows is full: what is refused is not counted.
 * Gives the window that is full, the one that is full for longer if both are; else the one with fewer requests left.
 */
export const spend = (usage: Usage, limits: RateLimit, now: number): Allowance & { readonly allowed: boolean } => {
  renew(usage.minute, minuteMillis, now)
  renew(usage.hour, hourMillis, now)
  const allowed = usage.minute.count < limits.perMinute && usage.hour.count < limits.perHour
  if (allowed) {
    usage.minute.count++
    usage.hour.count++
  }
  const minute: Allowance = {
    window: "minute",
    limit: limits.perMinute,
    remaining: Math.max(0, limits.perMinute - usage.minute.count),
    resetAt: usage.minute.start + minuteMillis
  }
  const hour: Allowance = {
    window: "hour",
    limit: limits.perHour,
    remaining: Math.max(0, limits.perHour - usage.hour.count),
    resetAt: usage.hour.start + hourMillis
  }
  const both = minute.remaining === 0 && hour.remaining === 0
  const tighter = both ? minute.resetAt >= hour.resetAt : minute.remaining <= hour.remaining
  return { ...(tighter ? minute : hour), allowed }
}
