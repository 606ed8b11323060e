import type { Mode } from "./Chain.ts"
import type { AccountId } from "./Ids.ts"

/** The least and the most bytes that a quota can be. The least is a few hundred payments. */
export const leastQuota = 1_000_000
export const highestQuota = Number.MAX_SAFE_INTEGER

/** What the operator lets an account do; undefined: as configured. */
export interface AccountTerms {
  /** Bytes that it may store; 0: as many as the disk holds. */
  readonly quotaBytes: number | undefined
  /** Requests of all its keys together, in each mode. */
  readonly perMinute: number | undefined
  readonly perHour: number | undefined
}

/** Owns keys, payments and webhooks. */
export interface Account {
  readonly id: AccountId
  readonly name: string
  /** Unix milliseconds. */
  readonly createdAt: number
  /** The modes in which it has its own wallet. Empty: it uses the wallets of the configuration. */
  readonly ownWallets: ReadonlyArray<Mode>
  readonly terms: AccountTerms
}
