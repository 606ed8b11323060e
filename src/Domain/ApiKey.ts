import { Schema } from "effect"
import type { Mode } from "./Chain.ts"
import type { AccountId, ApiKeyId } from "./Ids.ts"

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

/** What an operator can change of a key. */
export interface KeyTerms {
  /** The only CIDR blocks that it may be used from, in canonical form; empty: from everywhere. */
  readonly ips: ReadonlyArray<string>
  /** Requests a minute; undefined: as configured. */
  readonly perMinute: number | undefined
  /** Requests an hour; undefined: as configured. */
  readonly perHour: number | undefined
}

/** A key as the store keeps it, without the key itself, which only its owner knows. Times in Unix milliseconds. */
export interface ApiKey extends KeyTerms {
  readonly id: ApiKeyId
  readonly account: AccountId
  readonly mode: Mode
  readonly name: string
  readonly lastFour: string
  readonly permissions: ReadonlyArray<Permission>
  readonly createdAt: number
  readonly expiresAt: number | undefined
  readonly revokedAt: number | undefined
  /** The key that replaces it, if it was rolled. */
  readonly rolledTo: ApiKeyId | undefined
  readonly lastUsedAt: number | undefined
}
