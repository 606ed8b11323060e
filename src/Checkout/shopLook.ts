/**
 * The branding of a shop, as stored by `tilld accounts shop` and the portal, as paths below the payment's own page. A
 * logo is read from the operator's folder for each request: it may be replaced at any time, and few are asked for.
 */
import { Effect } from "effect"
import { readLogo } from "../Auth/logos.ts"
import { shopOf } from "../Auth/ShopsRepo.ts"
import type { AccountId } from "../Domain/Ids.ts"
import { contactLink, type Shop } from "../Domain/Shop.ts"
import { themeOf } from "../Domain/theme.ts"
import type { HttpReply } from "../Http/HttpReply.ts"
import { logoReply, lookHeaders } from "../Pages/logoReply.ts"
import { Settings } from "../Settings.ts"
import { Reader, type StoreUnavailable } from "../Sql.ts"
import type { ShopLook } from "./look.ts"

/** The paths below a payment's page. */
export type LookPart = "logo" | "theme.css"

/** @param path of the payment's page */
export const lookOf = ({ accent, contact, frameOrigins, logo, name, website }: Shop, path: string): ShopLook => ({
  ...(name === undefined ? {} : { name }),
  ...(logo === undefined ? {} : { logo: `${path}/logo` }),
  ...(accent === undefined ? {} : { style: `${path}/theme.css` }),
  ...(website === undefined ? {} : { website }),
  ...(contact === undefined ? {} : { contact: contactLink(contact) }),
  frameAncestors: frameOrigins
})

export const makeShopLook = Effect.gen(function* () {
  const reader = yield* Reader
  const settings = yield* Settings

  /** Undefined where it is gone, or has become too large. */
  const imageOf = (account: AccountId, logo: string): Effect.Effect<HttpReply | undefined, StoreUnavailable> =>
    readLogo(account, logo).pipe(
      Effect.provideService(Settings, settings),
      Effect.provideService(Reader, reader),
      Effect.map((bytes) => logoReply(logo, bytes)),
      Effect.catchTag("LogoRefused", ({ message }) =>
        Effect.as(Effect.annotateLogs(Effect.logWarning(message), { account, logo }), undefined)
      )
    )

  /** A part of an account's look; undefined where it has none. */
  const partOf = Effect.fnUntraced(function* (account: AccountId, part: LookPart) {
    const { accent, logo } = yield* shopOf(reader, account)
    if (part === "logo") return logo === undefined ? undefined : yield* imageOf(account, logo)
    const type = { "content-type": "text/css; charset=utf-8" }
    return accent === undefined
      ? undefined
      : { status: 200, headers: { ...lookHeaders, ...type }, text: themeOf(accent) }
  })

  return { partOf }
})
