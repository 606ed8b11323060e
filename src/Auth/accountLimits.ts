import type { AccountTerms } from "../Domain/Account.ts"
import type { ApiKey, KeyLimits } from "../Domain/ApiKey.ts"
import type { SettingsShape } from "../Settings.ts"
import type { RateLimit } from "./rateLimitWindows.ts"

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
