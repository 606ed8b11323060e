/** Most bytes of a request's body that its log keeps, and most characters of a text in it. */
const mostBytes = 1024
const longestText = 64

/** What may be secret, or is the merchant's own. */
const hidden = /secret|password|token|metadata|webhook_?url|api_?key/i

const keep = (name: string, value: unknown): unknown => {
  if (hidden.test(name)) return "[redacted]"
  if (typeof value !== "string") return value
  // User, path and query of a URL may contain a secret of the merchant, also of one that is mistyped.
  return cut(value.replace(urls, "$1$2/…"))
}

const urls = /(https?:\/\/)(?:[^\s/?#]*@)?([^\s/?#]*)\S*/gi

/** Keys and signing secrets, wherever they were put by mistake: in texts and in names of fields. */
const secrets = /\b(svc_(?:live|test)|whsec)_[^"\\\s]+/g

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
export const redacted = (payload: unknown): string =>
  cutToBytes((JSON.stringify(payload, keep) ?? "").replace(secrets, "$1_[redacted]"))
