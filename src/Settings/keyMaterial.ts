import { english } from "viem/accounts"

const words = new Set(english)
const phraseLength = 12

// Providers put 64 hex digits into the path of an RPC URL, so URLs are removed before the search for private keys.
const url = /https?:\/\/[^\s"']+/g
const forms: ReadonlyArray<readonly [pattern: RegExp, what: string]> = [
  [/[xyztuvYZUV]prv[1-9A-HJ-NP-Za-km-z]{20,}/, "an extended private key"],
  [/[0-9a-fA-F]{64}/, "a private key (64 hex digits)"],
  [/BEGIN [A-Z ]{0,40}PRIVATE KEY/, "a private key (PEM)"]
]

const formOf = (text: string): string | undefined => {
  const rest = text.replace(url, "")
  return forms.find(([pattern]) => pattern.test(rest))?.[1]
}

const phrase = "a recovery phrase"

/**
 * What kind of private key a value of the configuration looks like, if any. No value is prose: many words are a phrase.
 */
export const keyInValue = (value: string): string | undefined => {
  const parts = value.trim().split(/[\s,]+/)
  const isPhrase = parts.length >= phraseLength && parts.every((part) => /^[\p{L}\p{M}]+$/u.test(part))
  return isPhrase ? phrase : formOf(value)
}

/**
 * As `keyInValue`, for a whole file with its comments: the first line (from 1) that looks like it. Words of a phrase may
 * be numbered, quoted, or stand on lines of their own.
 */
export const keyInText = (text: string): { readonly what: string; readonly line: number } | undefined => {
  const lines = text.split("\n")
  let run = 0
  for (const [i, line] of lines.entries()) {
    const what = formOf(line)
    if (what !== undefined) return { what, line: i + 1 }
    for (const [token] of line.matchAll(/\p{L}[\p{L}\p{M}_]*|[^\s\p{L}\d.,"'#]/gu)) {
      run = words.has(token.toLowerCase()) ? run + 1 : 0
      if (run === phraseLength) return { what: phrase, line: i + 1 }
    }
  }
  return undefined
}
