import { Effect } from "effect"
import { putShop, shopOf } from "../Auth/ShopsRepo.ts"
import { Accounts } from "../Auth.ts"
import { UnknownAccount } from "../Domain/AccountErrors.ts"
import type { AccountId } from "../Domain/Ids.ts"
import type { Shop } from "../Domain/Shop.ts"
import { Reader, Tx, Writer } from "../Sql.ts"
import { administering, reading } from "./controlHandler.ts"
import { ChangeShop, ShowShop } from "./shopRequests.ts"

const mustExist = Effect.fnUntraced(function* (account: AccountId) {
  const accounts = yield* Accounts
  if (!(yield* accounts.exists(account))) return yield* UnknownAccount.of(account)
})

export const showShop = reading(
  ShowShop,
  Effect.fnUntraced(function* ({ account }) {
    yield* mustExist(account)
    return yield* shopOf(yield* Reader, account)
  })
)

/** The value after a change: absent leaves it, null takes it away. */
const after = <A>(before: A | undefined, change: A | null | undefined): A | undefined =>
  change === undefined ? before : (change ?? undefined)

/** A shop's look after a change. */
export const changedShop = (before: Shop, change: Omit<ChangeShop, "account">): Shop => {
  const name = after(before.name, change.name)
  const accent = after(before.accent, change.accent)
  const logo = after(before.logo, change.logo)
  return {
    ...(name === undefined ? {} : { name }),
    ...(accent === undefined ? {} : { accent }),
    ...(logo === undefined ? {} : { logo }),
    frameOrigins: change.frameOrigins ?? before.frameOrigins
  }
}

export const changeShop = administering(
  ChangeShop,
  ({ accent, account, frameOrigins, logo, name }) => ({
    act: "accounts shop",
    detail: { account, name: name ?? undefined, accent: accent ?? undefined, logo: logo ?? undefined, frameOrigins }
  }),
  Effect.fnUntraced(function* ({ account, ...change }) {
    yield* mustExist(account)
    const writer = yield* Writer
    return yield* writer.write(
      Effect.gen(function* () {
        const shop = changedShop(yield* shopOf(yield* Tx, account), change)
        yield* putShop(account, shop)
        return shop
      })
    )
  })
)
