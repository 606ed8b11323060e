import type { Mode } from "./Chain.ts"
import type { AccountId } from "./Ids.ts"

/** Owns keys, payments and webhooks. */
export interface Account {
  readonly id: AccountId
  readonly name: string
  /** Unix milliseconds. */
  readonly createdAt: number
  /** The modes in which it has its own wallet. Empty: it uses the wallets of the configuration. */
  readonly ownWallets: ReadonlyArray<Mode>
}
