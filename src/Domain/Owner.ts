import type { Mode } from "./Chain.ts"
import type { AccountId } from "./Ids.ts"

/** Whose a thing is: nothing is shared between accounts, nor between an account's two modes. */
export interface Owner {
  readonly account: AccountId
  readonly mode: Mode
}
