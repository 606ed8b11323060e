import { Effect } from "effect"
import { UnknownAccount } from "../Domain/AccountErrors.ts"
import type { AccountId } from "../Domain/Ids.ts"
import { lazily } from "./operation.ts"

/** Fails unless there is such an account. */
export const mustExist = Effect.fnUntraced(function* (account: AccountId) {
  const { Accounts } = yield* lazily(() => import("./Accounts.ts"))
  const accounts = yield* Accounts
  if (!(yield* accounts.exists(account))) return yield* UnknownAccount.of(account)
})
