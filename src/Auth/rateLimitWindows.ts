/** Rate limits: how much an account may do, and the windows in which it is counted. Pure. */
import type { AccountTerms } from "../Domain/Account.ts"
import type { ApiKey, KeyLimits } from "../Domain/ApiKey.ts"
import { isOver, type Window } from "../lib/Windows.ts"
import type { SettingsShape } from "../Settings.ts"

/** A length of time, as limits name it. */
type Length = "minute" | "hour"

/** The usage of a key or an account. */
export type Usage = Readonly<Record<Length, Window>>

export interface RateLimit {
  readonly perMinute: number
  readonly perHour: number
}

/** The usage that a request counts in, and its limits. */
export interface Limited {
  readonly of: "key" | "account"
  readonly usage: Usage
  readonly limits: RateLimit
}

/** The state of one window, for the rate limit headers. */
export interface Allowance {
  /** Whose window it is. */
  readonly of: Limited["of"]
  readonly window: Length
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

/** Both windows are over: the usage need no longer be stored. */
export const isForgotten = ({ hour, minute }: Usage, now: number): boolean =>
  isOver(hour, hourMillis, now) && isOver(minute, minuteMillis, now)

const renew = (window: Window, length: number, now: number): void => {
  if (!isOver(window, length, now)) return
  window.start = now
  window.count = 0
}

const tighter = (one: Allowance, next: Allowance): Allowance => {
  const both = one.remaining === 0 && next.remaining === 0
  return (both ? one.resetAt >= next.resetAt : one.remaining <= next.remaining) ? one : next
}

const left = (limit: number, { count }: Window): number => Math.max(0, limit - count)

const tightest = ({ limits: { perHour, perMinute }, of, usage: { hour, minute } }: Limited): Allowance =>
  tighter(
    {
      of,
      window: "minute",
      limit: perMinute,
      remaining: left(perMinute, minute),
      resetAt: minute.start + minuteMillis
    },
    { of, window: "hour", limit: perHour, remaining: left(perHour, hour), resetAt: hour.start + hourMillis }
  )

/**
 * Counts a request at `now`, Unix milliseconds, for its key and the key's account, unless one of the windows is full: refused
 * requests are not counted. Returns the tightest window: the one with the fewest requests left or, of several full ones, the
 * one that ends last.
 */
export const spend = (limited: ReadonlyArray<Limited>, now: number): Allowance & { readonly allowed: boolean } => {
  let allowed = true
  for (const { limits, usage } of limited) {
    renew(usage.minute, minuteMillis, now)
    renew(usage.hour, hourMillis, now)
    allowed &&= usage.minute.count < limits.perMinute && usage.hour.count < limits.perHour
  }
  for (const { hour, minute } of allowed ? limited.map(({ usage }) => usage) : []) {
    minute.count += 1
    hour.count += 1
  }
  return { ...limited.map(tightest).reduce(tighter), allowed }
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
