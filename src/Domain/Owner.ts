import type { Mode } from "./Chain.ts"
import type { AccountId } from "./Ids.ts"

/** The owner of a record. Nothing is shared between accounts, nor between the two modes of an account. */
export interface Owner {
  readonly account: AccountId
  readonly mode: Mode
}
