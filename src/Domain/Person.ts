import { Schema } from "effect"
import type { AccountId, PersonId } from "./Ids.ts"

/**
 * What a person may do in the portal. An operator sees every account, its chains and people; an admin administers one
 * account; a viewer reads one account.
 */
export const Role = Schema.Literal("operator", "admin", "viewer")
export type Role = typeof Role.Type

/** The roles of an account's people. */
export const AccountRole = Schema.Literal("admin", "viewer")
export type AccountRole = typeof AccountRole.Type

/** Somebody who uses the portal. */
export interface Person {
  readonly id: PersonId
  readonly name: string
  readonly role: Role
  /** Undefined for an operator, who belongs to no account. */
  readonly account: AccountId | undefined
  /** Unix milliseconds. */
  readonly createdAt: number
  readonly disabledAt: number | undefined
}
