import { cut } from "./wellFormed.ts"

// Control characters other than line breaks and tabs, and marks of text direction: names, references, URLs and responses
// from outside could rewrite what a terminal shows.
const unsafe = /(?![\n\t])[\p{Cc}\p{Bidi_Control}]/gu

/** The JSON escape of a character. */
export const escaped = (found: string): string => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`

/** Escapes what could control a terminal. JSON text still decodes to the same value. */
export const shown = (text: string): string => text.replace(unsafe, escaped)

/** The same as one line of at most so many characters. */
export const shownLine = (text: string, most = 200): string =>
  cut(text.replace(/[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/gu, escaped), most, "…")
