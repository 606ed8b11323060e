/** How the checkout of an account looks. */
import { Effect, Schema } from "effect"
import { ShopRefused, UnknownAccount } from "../Domain/Account.ts"
import { Fiat, standardFiat } from "../Domain/Currency.ts"
import {
  Accent,
  Contact,
  FrameOrigin,
  LogoFile,
  MinimumUsd,
  mostFrameOrigins,
  Shop,
  ShopName,
  TimeZone,
  Website
} from "../Domain/Shop.ts"
import { alternatives, must } from "../lib/annotations.ts"
import { AccountField, maybe } from "../Operations/inputFields.ts"
import { type Flag, operation, withFlag } from "../Operations/operation.ts"
import { Reader } from "../Sql/Db.ts"
import { mustExist } from "./accountOperations.ts"
import { shopOf, storeShopChange } from "./shops.ts"

/** A part of a shop: absent stays, null removes. */
const part = <A>(rule: string, schema: Schema.Schema<A, string>, { about, value }: Pick<Flag, "about" | "value">) =>
  withFlag(maybe(Schema.NullOr(must(rule, schema))), {
    about: `${about}; none takes it away`,
    value: value ?? "TEXT",
    words: { none: null }
  })

/** One word, in any case. */
const word = <const Word extends string>(only: Word) =>
  Schema.compose(Schema.Lowercase, Schema.Literal(only), { strict: false })

export const showShop = operation({
  name: "accounts shop show",
  summary: "Show how an account's checkout looks and its portal counts",
  input: { account: AccountField },
  output: Shop,
  refusals: [UnknownAccount],
  run: Effect.fnUntraced(function* ({ account }) {
    yield* mustExist(account)
    return yield* shopOf(yield* Reader, account)
  })
})

export const changeShop = operation({
  name: "accounts shop",
  summary: "Change how an account's checkout looks and its portal counts",
  input: {
    account: AccountField,
    name: part("be 1 to 60 printable characters", ShopName, { about: "What the shop is called" }),
    accent: part("be a colour such as #1f5fd1", Schema.compose(Schema.Lowercase, Accent), {
      about: "The colour of its buttons",
      value: "COLOUR"
    }),
    logo: part("be the name of a .png, .svg, .webp or .jpg file, without a folder", LogoFile, {
      about: "Its logo, a file in the folder checkout.logo_folder",
      value: "FILE"
    }),
    website: part("be an https URL of at most 500 characters (http for localhost only)", Website, {
      about: "Where customers find the shop, or its help",
      value: "URL"
    }),
    contact: part("be an e-mail address, or an https URL of at most 500 characters", Contact, {
      about: "Where customers ask about their money",
      value: "EMAIL|URL"
    }),
    timezone: part("be a time zone such as Europe/Berlin", TimeZone, {
      about: "Where the days of the portal's sums begin at midnight",
      value: "ZONE"
    }),
    currency: part(`be one of ${Fiat.literals.join(", ")}`, Schema.compose(Schema.Uppercase, Fiat, { strict: false }), {
      about: `The currency of the portal's sums: ${alternatives(standardFiat)}, or one of rates.currencies`,
      value: "CURRENCY"
    }),
    minimumUsd: part("be an amount in USD such as 1 or 0.50", MinimumUsd, {
      about: "What a payment must be worth, where its price is known: less is refused",
      value: "USD"
    }),
    invoiceRefs: part("be repeat", word("repeat"), {
      about: "Whether several invoices may have one merchantRef, as of an order that is paid again",
      value: "repeat"
    }),
    plugins: withFlag(maybe(Schema.NullOr(must("be on", word("on")))), {
      about: "Whether shop plugins may connect to the account and use it",
      value: "on|off",
      words: { off: null }
    }),
    frameOrigins: withFlag(
      maybe(
        Schema.Array(
          must("be an origin such as https://shop.example (http for localhost only), without a path", FrameOrigin)
        ).pipe(Schema.maxItems(mostFrameOrigins, { message: () => `must have ${mostFrameOrigins} at most` }))
      ),
      {
        about: `A site that may show the checkout in a frame, up to ${mostFrameOrigins} times; none for no site`,
        name: "frame-origin",
        value: "ORIGIN",
        words: { none: [] }
      }
    )
  },
  output: Shop,
  refusals: [UnknownAccount, ShopRefused],
  audit: ({ account, frameOrigins, ...texts }) => ({
    ...{ account, frameOrigins },
    ...Object.fromEntries(Object.entries(texts).map(([part, text]) => [part, text ?? undefined]))
  }),
  run: Effect.fnUntraced(function* ({ account, ...change }) {
    yield* mustExist(account)
    return yield* storeShopChange(account, change)
  })
})
