import { checkoutTexts, type Language, languages } from "../../src/Checkout/languages.ts"

/** Every text of a dictionary by its path, functions called with the names of what they are given. */
export const textsIn = (value: unknown, path = ""): ReadonlyArray<readonly [path: string, text: string]> => {
  if (typeof value === "string") return [[path, value]]
  if (typeof value === "function") return textsIn(value("{a}", "{b}", "{c}", "{d}"), path)
  return Object.entries(value ?? {}).flatMap(([key, each]) => textsIn(each, `${path}.${key}`))
}

/** Not letters among the digits of an address. */
const word = /(?<![\p{L}\p{N}])\p{L}{3,}(?![\p{L}\p{N}])/gu
const wordsOf = (text: string): ReadonlyArray<string> => text.toLowerCase().match(word) ?? []
const saidIn = (language: Language) =>
  new Set(textsIn(checkoutTexts[language]).flatMap(([path, text]) => (path === ".name" ? [] : wordsOf(text))))

/** Words of a page that another language's dictionary has, and its own has not: English ones, of a page in another. */
export const foreignWords = (page: string, language: Language): ReadonlyArray<string> => {
  const own = saidIn(language)
  const other = saidIn("en")
  const names = new Set(languages.flatMap((one) => wordsOf(checkoutTexts[one].name)))
  return wordsOf(page).filter((word) => other.has(word) && !own.has(word) && !names.has(word))
}
