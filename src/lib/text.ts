/**
 * Texts without half a surrogate pair, such as half an emoji, and without U+0000. JSON writes both as escapes. Decoders of
 * PHP, .NET and Rust refuse the first, PHP's a name that begins with U+0000, and PostgreSQL's any, with all of the JSON text.
 */

/** A text of at most so many UTF-16 units, cut between code points; then with `end`. */
export const cut = (text: string, most: number, end = ""): string =>
  text.length <= most
    ? text.toWellFormed()
    : text
        .slice(0, most - end.length)
        .replace(/[\uD800-\uDBFF]$/, "")
        .toWellFormed() + end

/** A text of at most so many bytes in UTF-8, cut between code points; then with `end`. */
export const cutToBytes = (text: string, most: number, end = ""): string => {
  const bytes = Buffer.from(text)
  if (bytes.length <= most) return text
  const kept = bytes.subarray(0, most - Buffer.byteLength(end))
  // `stream: true` leaves out a character that the limit cuts in half, instead of decoding it to U+FFFD.
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(kept, { stream: true }) + end
}

/** A text of `JSON.stringify`, which escapes no surrogate but half of a pair, with U+FFFD in place of each and of U+0000. */
export const wellFormedJson = (text: string): string =>
  text.includes("\\u") ? text.replace(/\\(?:u(d[89a-f]..|0000)|.)/g, (all, bad) => (bad ? "\uFFFD" : all)) : text

const isWellFormed = (text: string): boolean => text.isWellFormed() && !text.includes("\0")

/** Where a JSON value has such a half or U+0000, in a text or in a name. */
export const illFormedIn = (
  value: unknown,
  path: ReadonlyArray<string | number> = []
): ReadonlyArray<ReadonlyArray<string | number>> => {
  if (typeof value === "string") return isWellFormed(value) ? [] : [path]
  if (typeof value !== "object" || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) => {
    const at = [...path, Array.isArray(value) ? Number(name) : name]
    return isWellFormed(name) ? illFormedIn(inner, at) : [at]
  })
}

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

// A spreadsheet takes a cell that begins like this for a formula, and runs it.
// https://owasp.org/www-community/attacks/CSV_Injection
// A number below zero is none.
const formula = /^(?!-\d+(?:\.\d+)?$)[=+\-@\t\r\n＝＋－＠]/

const cellOf = (value: string): string => {
  const text = formula.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** A line of a file. No cell is a formula. */
export const csvLine = (cells: ReadonlyArray<string>): string => `${cells.map(cellOf).join(",")}\r\n`
