/**
 * Texts without half a surrogate pair, such as half an emoji. JSON writes one as an escape that decoders of PHP, .NET and
 * Rust refuse, with all that the JSON text has.
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
  // `stream: true` leaves out a character that the limit cuts in half, instead of decoding it to U+FFFD.
  return (
    new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(0, most - Buffer.byteLength(end)), {
      stream: true
    }) + end
  )
}

/** A text of `JSON.stringify`, which escapes no surrogate but half of a pair, with U+FFFD in place of each. */
export const wellFormedJson = (text: string): string =>
  text.includes("\\ud") ? text.replace(/\\(?:u(d[89a-f]..)|.)/g, (all, half) => (half ? "\uFFFD" : all)) : text

/** Where a JSON value has such a half, in a text or in a name. */
export const illFormedIn = (
  value: unknown,
  path: ReadonlyArray<string | number> = []
): ReadonlyArray<ReadonlyArray<string | number>> => {
  if (typeof value === "string") return value.isWellFormed() ? [] : [path]
  if (typeof value !== "object" || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) => {
    const at = [...path, Array.isArray(value) ? Number(name) : name]
    return name.isWellFormed() ? illFormedIn(inner, at) : [at]
  })
}
