/** A fixed window that began with the first request in it. */
export interface Window {
  /** Unix milliseconds. */
  start: number
  count: number
}

/** The usage of one key. */
export interface Usage {
  readonly minute: Window
  readonly hour: Window
}

export interface RateLimit {
  readonly perMinute: number
  readonly perHour: number
}

/** The state of one window, for the rate limit headers. */
export interface Allowance {
  readonly window: "minute" | "hour"
  /** Requests allowed in a window. */
  readonly limit: number
  /** Requests left in this window. */
  readonly remaining: number
  /** When this window ends, Unix milliseconds. */
  readonly resetAt: number
}

export const minuteMillis = 60_000
export const hourMillis = 3_600_000

export const unused = (): Usage => ({ minute: { start: 0, count: 0 }, hour: { start: 0, count: 0 } })

/** A window is over after its length, or when it begins in the future because the clock was set back. */
const isOver = ({ start }: Window, length: number, now: number): boolean => now < start || now >= start + length

/** Both windows are over: the usage need not be stored any more. */
export const isForgotten = ({ hour, minute }: Usage, now: number): boolean =>
  isOver(hour, hourMillis, now) && isOver(minute, minuteMillis, now)

const renew = (window: Window, length: number, now: number): void => {
  if (!isOver(window, length, now)) return
  window.start = now
  window.count = 0
}

/**
 * Counts a request at `now`, Unix milliseconds, unless one of the two windows is full: refused requests are not counted.
 * Returns the tighter window: the one with fewer requests left or, if both are full, the one that ends later.
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
