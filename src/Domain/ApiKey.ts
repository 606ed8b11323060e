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

/** A key as the store keeps it, without the key itself, which only its owner knows. Times in Unix milliseconds. */
export interface ApiKey {
  readonly id: ApiKeyId
  readonly account: AccountId
  readonly mode: Mode
  readonly name: string
  readonly lastFour: string
  readonly permissions: ReadonlyArray<Permission>
  readonly createdAt: number
  readonly expiresAt: number | undefined
  readonly revokedAt: number | undefined
  readonly lastUsedAt: number | undefined
}
