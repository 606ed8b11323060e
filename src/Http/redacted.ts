/** Most bytes of a request's body that its log keeps, and most characters of a text in it. */
const mostBytes = 1024
const longestText = 64

/** What may be secret, or is the merchant's own. */
const hidden = /secret|password|token|metadata|webhook_?url|api_?key/i

const keep = (name: string, value: unknown): unknown => {
  if (hidden.test(name)) return "[redacted]"
  if (typeof value !== "string") return value
  // The path and the query of a URL may contain a secret of the merchant.
  if (/^https?:/i.test(value) && URL.canParse(value)) return cut(`${new URL(value).origin}/…`)
  return cut(value)
}

const cut = (text: string): string => (text.length <= longestText ? text : `${text.slice(0, longestText)}…`)

/** Shortens a text to at most `mostBytes` of UTF-8, between two characters. */
export const cutToBytes = (text: string): string => {
  const bytes = Buffer.from(text)
  if (bytes.length <= mostBytes) return text
  // A character that is cut in two would become U+FFFD.
  return bytes
    .subarray(0, mostBytes - 3)
    .toString("utf8")
    .replace(/\uFFFD$/, "")
    .concat("…")
    .slice(0, mostBytes)
}

/**
 * The JSON of a request's body for its log: texts are cut at 64 characters, URLs to their origin, and what may be secret is
 * left out; at most 1,024 bytes, after which it is cut.
 */
export const redacted = (payload: unknown): string => cutToBytes(JSON.stringify(payload, keep) ?? "")
