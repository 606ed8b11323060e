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
