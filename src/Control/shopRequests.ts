import { Schema } from "effect"
import { LogoRefused, UnknownAccount } from "../Domain/AccountErrors.ts"
import { AccountId } from "../Domain/Ids.ts"
import { Accent, LogoFile, Shop, ShopName, Website } from "../Domain/Shop.ts"
import { StoreUnavailable } from "../Sql/Db.ts"

/** How the checkout of an account looks. */
export class ShowShop extends Schema.TaggedRequest<ShowShop>()("ShowShop", {
  payload: { account: AccountId },
  success: Shop,
  failure: Schema.Union(UnknownAccount, StoreUnavailable)
}) {}

const change = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(Schema.NullOr(schema), { exact: true })

/** Changes what is given; null takes away. */
export class ChangeShop extends Schema.TaggedRequest<ChangeShop>()("ChangeShop", {
  payload: {
    account: AccountId,
    name: change(ShopName),
    accent: change(Accent),
    logo: change(LogoFile),
    website: change(Website),
    frameOrigins: Schema.optionalWith(Shop.fields.frameOrigins, { exact: true })
  },
  success: Shop,
  failure: Schema.Union(UnknownAccount, LogoRefused, StoreUnavailable)
}) {}
