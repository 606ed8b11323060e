import { Effect } from "effect"
import { shopOf } from "../Auth/ShopsRepo.ts"
import { changeShop, shopAct } from "../Auth/shops.ts"
import { Accounts } from "../Auth.ts"
import { UnknownAccount } from "../Domain/AccountErrors.ts"
import type { AccountId } from "../Domain/Ids.ts"
import { Reader } from "../Sql.ts"
import { administering, reading } from "./controlHandler.ts"
import { ChangeShop, ShowShop } from "./shopRequests.ts"

const mustExist = Effect.fnUntraced(function* (account: AccountId) {
  const accounts = yield* Accounts
  if (!(yield* accounts.exists(account))) return yield* UnknownAccount.of(account)
})

export const showShopHandler = reading(
  ShowShop,
  Effect.fnUntraced(function* ({ account }) {
    yield* mustExist(account)
    return yield* shopOf(yield* Reader, account)
  })
)

export const changeShopHandler = administering(
  ChangeShop,
  ({ account, ...change }) => shopAct(account, change),
  Effect.fnUntraced(function* ({ account, ...change }) {
    yield* mustExist(account)
    return yield* changeShop(account, change)
  })
)
