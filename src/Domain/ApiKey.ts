import { Schema } from "effect"
import type { Mode } from "./Chain.ts"
import type { AccountId, ApiKeyId } from "./Ids.ts"
import type { PluginPermission } from "./Plugin.ts"

/** The longest overlap in which two secrets sign, or two keys work, by API, portal and command alike. */
export const longestOverlap = "30 days"

/** The same where nobody says, in hours. */
export const defaultOverlapHours = 24

export const Permission = Schema.Literal(
  "payments:read",
  "payments:write",
  "webhooks:read",
  "webhooks:write",
  "quotes:read",
  "exceptions:read",
  "exceptions:write"
)
export type Permission = typeof Permission.Type
export const permissions: ReadonlyArray<Permission> = Permission.literals

/** The most that a limit can be, of the configuration or of one key. */
export const highestLimits = { perMinute: 1_000_000, perHour: 100_000_000 }

/** The most working keys of an account and mode; and as many that were rolled and still work for their overlap. */
export const mostKeys = 100

/** Requests in a window of each kind; undefined: as configured. */
export interface KeyLimits {
  readonly perMinute: number | undefined
  readonly perHour: number | undefined
}

/** What can be changed of a key: where it may be used from, and its limits. */
export interface KeyTerms extends KeyLimits {
  /** The only CIDR blocks that it may be used from, in canonical form; empty: from everywhere. */
  readonly ips: ReadonlyArray<string>
}

/** A key as the store keeps it, without the key itself, which only its owner knows. Times in Unix milliseconds. */
export interface ApiKey extends KeyTerms {
  readonly id: ApiKeyId
  readonly account: AccountId
  readonly mode: Mode
  readonly name: string
  readonly lastFour: string
  /** The limits that the operator gave it. Its own may be lower: an admin of the account may lower them, and no more. */
  readonly granted: KeyLimits
  readonly permissions: ReadonlyArray<Permission>
  /** Of a shop plugin's key, which has no other permissions; empty for every other key. */
  readonly pluginPermissions: ReadonlyArray<PluginPermission>
  readonly createdAt: number
  readonly expiresAt: number | undefined
  readonly revokedAt: number | undefined
  /** The key that replaces it, if it was rolled. */
  readonly rolledTo: ApiKeyId | undefined
  readonly lastUsedAt: number | undefined
}

/** Whether a key is a shop plugin's: such a key reaches nothing of the API below `/v1`. */
export const isPluginKey = ({ pluginPermissions }: Pick<ApiKey, "pluginPermissions">): boolean =>
  pluginPermissions.length > 0
