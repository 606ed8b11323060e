import { Effect } from "effect"
import type { AccountId } from "../Domain/Ids.ts"
import type { Shop } from "../Domain/Shop.ts"
import { Tx, Writer } from "../Sql.ts"
import { readLogo } from "./logos.ts"
import { putShop, shopOf } from "./ShopsRepo.ts"

/** Changes of a shop: absent fields stay, null removes. */
export interface ShopChange {
  readonly name?: string | null
  readonly accent?: string | null
  readonly logo?: string | null
  readonly website?: string | null
  readonly frameOrigins?: ReadonlyArray<string>
}

/** The value after a change. */
const after = <A>(before: A | undefined, change: A | null | undefined): A | undefined =>
  change === undefined ? before : (change ?? undefined)

const changed = (before: Shop, change: ShopChange): Shop => {
  const name = after(before.name, change.name)
  const accent = after(before.accent, change.accent)
  const logo = after(before.logo, change.logo)
  const website = after(before.website, change.website)
  return {
    ...(name === undefined ? {} : { name }),
    ...(accent === undefined ? {} : { accent }),
    ...(logo === undefined ? {} : { logo }),
    ...(website === undefined ? {} : { website }),
    frameOrigins: change.frameOrigins ?? before.frameOrigins
  }
}

/** Changes how the checkout of an existing account looks. Returns the whole. Refuses a logo that cannot be shown. */
export const storeShopChange = Effect.fn("Shops.change")(function* (account: AccountId, change: ShopChange) {
  const writer = yield* Writer
  if (change.logo !== undefined && change.logo !== null) yield* readLogo(account, change.logo)
  return yield* writer.write(
    Effect.gen(function* () {
      const shop = changed(yield* shopOf(yield* Tx, account), change)
      yield* putShop(account, shop)
      return shop
    })
  )
})
