/** How a page is shown: its language and its code, as its address names them, and the branding of its shop. */
import { type Language, languages } from "../Domain/Invoice.ts"
import { english, type Texts } from "./english.ts"
import { french } from "./french.ts"
import { german } from "./german.ts"
import { portuguese } from "./portuguese.ts"
import { spanish } from "./spanish.ts"

export { type Language, languages } from "../Domain/Invoice.ts"

export const checkoutTexts: Readonly<Record<Language, Texts>> = {
  en: english,
  es: spanish,
  de: german,
  fr: french,
  pt: portuguese
}

/** By its primary subtag: `de-AT` is German. */
const languageOfTag = (tag: string): Language | undefined => {
  const [primary = ""] = tag.trim().split("-", 1)
  const wanted = primary.toLowerCase()
  return languages.find((language) => language === wanted)
}

/** The quality of a part of `Accept-Language`, 0 to 1 (RFC 9110, 12.4.2). */
const qualityOf = (parameter = "q=1"): number => Number(/^\s*q=([01](?:\.\d{0,3})?)\s*$/i.exec(parameter)?.[1] ?? 0)

/** Maximum characters of `Accept-Language` that are read; browsers send a tenth. */
const longestHeader = 1_024

/** The link's language, else the browser's preferred one of those available, else English. */
export const languageOf = (named: string | null, acceptLanguage = ""): Language => {
  const byLink = languageOfTag(named ?? "")
  if (byLink !== undefined) return byLink
  const wanted = acceptLanguage
    .slice(0, longestHeader)
    .split(",")
    .flatMap((part) => {
      const [tag = "", parameter] = part.split(";")
      const language = languageOfTag(tag)
      return language === undefined ? [] : [{ language, quality: qualityOf(parameter) }]
    })
  return wanted.filter(({ quality }) => quality > 0).sort((a, b) => b.quality - a.quality)[0]?.language ?? "en"
}

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
