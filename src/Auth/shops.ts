import { Effect } from "effect"
import { ShopRefused } from "../Domain/Account.ts"
import { offText } from "../Domain/Currency.ts"
import type { AccountId } from "../Domain/Ids.ts"
import { type Shop, shopTexts } from "../Domain/Shop.ts"
import { Settings } from "../Settings.ts"
import { Tx, Writer } from "../Sql.ts"
import { dropOtherImage } from "./logoImages.ts"
import { readLogo } from "./logos.ts"
import { putShop, shopOf } from "./ShopsRepo.ts"

/** Changes of a shop: absent fields stay, null removes. */
export type ShopChange = { readonly [Part in (typeof shopTexts)[number]]?: string | null } & {
  readonly frameOrigins?: ReadonlyArray<string>
}

const changed = (before: Shop, change: ShopChange): Shop => {
  const textsOf = shopTexts.flatMap((part) => {
    const text = change[part] === undefined ? before[part] : change[part]
    return text === null || text === undefined ? [] : [[part, text] as const]
  })
  return { ...Object.fromEntries(textsOf), frameOrigins: change.frameOrigins ?? before.frameOrigins }
}

/** Changes how the checkout of an existing account looks. Returns the whole. Refuses a logo that cannot be shown. */
export const storeShopChange = Effect.fn("Shops.change")(function* (account: AccountId, change: ShopChange) {
  const writer = yield* Writer
  const { rates } = yield* Settings
  if (typeof change.currency === "string" && !rates.currencies.some((on) => on === change.currency)) {
    return yield* new ShopRefused({ part: "currency", rule: offText(change.currency) })
  }
  if (change.logo !== undefined && change.logo !== null) yield* readLogo(account, change.logo)
  return yield* writer.write(
    Effect.gen(function* () {
      const shop = changed(yield* shopOf(yield* Tx, account), change)
      yield* putShop(account, shop)
      yield* dropOtherImage(account, shop.logo)
      return shop
    })
  )
})
