import { type Language, languageOfTag } from "./languages.ts"

/** The QR codes of a page, of which it shows one. */
export type Code = "payment" | "address"

/** The choice in the page's URL, so that it persists when a page without scripts reloads itself. */
export interface Choice {
  /** Undefined where the browser's preference decides. */
  readonly language: Language | undefined
  /** Undefined where none was chosen: a phone then shows no code, a wide page that of the payment. */
  readonly code: Code | undefined
}

export const choiceOf = (query: URLSearchParams): Choice => {
  const code = query.get("code")
  return {
    language: languageOfTag(query.get("lang") ?? ""),
    code: code === "address" || code === "payment" ? code : undefined
  }
}

/** The address of the same page with another choice. */
export const hrefOf = ({ code, language }: Choice): string =>
  `?${new URLSearchParams({
    ...(language === undefined ? {} : { lang: language }),
    ...(code === undefined ? {} : { code })
  })}`

/** The branding of a payment's shop. The page has none of its own: without it, it shows only the payment. */
export interface ShopLook {
  readonly name?: string
  /** Path of a picture of this origin. */
  readonly logo?: string
  /** Path of a stylesheet of this origin that sets `--accent` and `--on-accent`. */
  readonly style?: string
  /** Its site or help page: the link of an unsuccessful payment. */
  readonly website?: string
  /** Where payers ask about money that does not fit: as `contactLink` gives it. */
  readonly contact?: string | undefined
  /** Origins that may show the page in a frame. */
  readonly frameAncestors?: ReadonlyArray<string>
}
