import { type Language, languages } from "../Domain/Invoice.ts"

export { type Language, languages } from "../Domain/Invoice.ts"

import { english } from "./english.ts"
import { french } from "./french.ts"
import { german } from "./german.ts"
import { portuguese } from "./portuguese.ts"
import { spanish } from "./spanish.ts"
import type { Texts } from "./Texts.ts"

export const checkoutTexts: Readonly<Record<Language, Texts>> = {
  en: english,
  es: spanish,
  de: german,
  fr: french,
  pt: portuguese
}

/** By its primary subtag: `de-AT` is German. */
export const languageOfTag = (tag: string): Language | undefined => {
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
