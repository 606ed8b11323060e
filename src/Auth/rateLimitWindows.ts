/** Rate limits: how much an account may do, and the windows in which it is counted. Pure. */
import type { AccountTerms } from "../Domain/Account.ts"
import type { ApiKey, KeyLimits } from "../Domain/ApiKey.ts"
import type { SettingsShape } from "../Settings.ts"
/** A fixed window that began with the first request in it. */
export interface Window {
  /** Unix milliseconds. */
  start: number
  count: number
}

/** The usage of a key, an account or a person. */
export interface Usage {
  readonly minute: Window
  readonly hour: Window
}

export interface RateLimit {
  readonly perMinute: number
  readonly perHour: number
}

/** The usage that a request counts in, and its limits. */
export interface Limited {
  readonly of: "key" | "account" | "person"
  readonly usage: Usage
  readonly limits: RateLimit
}

/** The state of one window, for the rate limit headers. */
export interface Allowance {
  /** Whose window it is. */
  readonly of: Limited["of"]
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

/** Both windows are over: the usage need no longer be stored. */
export const isForgotten = ({ hour, minute }: Usage, now: number): boolean =>
  isOver(hour, hourMillis, now) && isOver(minute, minuteMillis, now)

const renew = (window: Window, length: number, now: number): void => {
  if (!isOver(window, length, now)) return
  window.start = now
  window.count = 0
}

/** Restarts windows that are over, and says whether both have room. */
const hasRoom = ({ limits, usage }: Limited, now: number): boolean => {
  renew(usage.minute, minuteMillis, now)
  renew(usage.hour, hourMillis, now)
  return usage.minute.count < limits.perMinute && usage.hour.count < limits.perHour
}

const count = ({ hour, minute }: Usage): void => {
  minute.count++
  hour.count++
}

const tighter = (one: Allowance, next: Allowance): Allowance => {
  const both = one.remaining === 0 && next.remaining === 0
  return (both ? one.resetAt >= next.resetAt : one.remaining <= next.remaining) ? one : next
}

const tightest = ({ limits, of, usage: { hour, minute } }: Limited): Allowance =>
  tighter(
    {
      ...{ of, window: "minute", limit: limits.perMinute },
      remaining: Math.max(0, limits.perMinute - minute.count),
      resetAt: minute.start + minuteMillis
    },
    {
      ...{ of, window: "hour", limit: limits.perHour },
      remaining: Math.max(0, limits.perHour - hour.count),
      resetAt: hour.start + hourMillis
    }
  )

/** What is counted together: by a request for its key and the key's account, by a person for their account too. */
type Counted = readonly [Limited, ...ReadonlyArray<Limited>]

const haveRoom = (limited: Counted, now: number): boolean => {
  let allowed = true
  for (const each of limited) allowed = hasRoom(each, now) && allowed
  return allowed
}

const tightestOf = ([first, ...others]: Counted): Allowance =>
  others.reduce((one, next) => tighter(one, tightest(next)), tightest(first))

/** Whether one more fits at `now`, Unix milliseconds, and the tightest window. Nothing is counted. */
export const allowanceOf = (limited: Counted, now: number): Allowance & { readonly allowed: boolean } => {
  const allowed = haveRoom(limited, now)
  return { ...tightestOf(limited), allowed }
}

/**
 * Counts a request at `now`, Unix milliseconds, unless one of the windows is full: refused requests are not counted. Returns
 * the tightest window: the one with the fewest requests left or, of several full ones, the one that ends last.
 */
export const spend = (limited: Counted, now: number): Allowance & { readonly allowed: boolean } => {
  const allowed = haveRoom(limited, now)
  if (allowed) for (const { usage } of limited) count(usage)
  return { ...tightestOf(limited), allowed }
}

/** An account's rate limit in limits of one key: a shop with several keys never has ten of them at full speed. */
const keysAtFullSpeed = 10

/** The rate limit of an account without a setting by the operator. */
export const configuredLimits = ({ accounts, limits }: Pick<SettingsShape, "accounts" | "limits">): RateLimit => ({
  perMinute: accounts.perMinute ?? keysAtFullSpeed * limits.perMinute,
  perHour: accounts.perHour ?? keysAtFullSpeed * limits.perHour
})

/**
 * How many requests all keys of an account may make together in a mode: the operator's setting, else the configuration,
 * and no less than the limits that the operator gave the requesting key.
 */
export const accountLimits = (
  terms: AccountTerms,
  configured: RateLimit,
  granted: Partial<KeyLimits> = {}
): RateLimit => ({
  perMinute: terms.perMinute ?? Math.max(configured.perMinute, granted.perMinute ?? 0),
  perHour: terms.perHour ?? Math.max(configured.perHour, granted.perHour ?? 0)
})

/**
 * Names the keys together with which a key has its account's limit: those of its mode, so that test requests stop no
 * live ones. Without a setting for the account, keys with limits of their own count apart: those with the same ones
 * together, so that rolling a key gives them no second time.
 */
export const sharing = (
  { perHour, perMinute }: AccountTerms,
  { account, granted, mode }: Pick<ApiKey, "account" | "granted" | "mode">
): string => {
  const isSaid = perMinute !== undefined || perHour !== undefined
  const apart: Partial<KeyLimits> = isSaid ? {} : granted
  return [account, mode, apart.perMinute, apart.perHour].join("/")
}
