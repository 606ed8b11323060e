/** Upper bounds for a JSON text from outside. */
export interface JsonBounds {
  readonly bytes: number
  /** Nesting levels of arrays and objects. */
  readonly depth: number
  /** Elements of arrays and members of objects, all together; empty ones count as one. */
  readonly values: number
}

/** The bound that a text exceeds. */
export type Excess = keyof JsonBounds

const quote = 0x22
const comma = 0x2c
const openArray = 0x5b
const backslash = 0x5c
const closeArray = 0x5d
const openObject = 0x7b
const closeObject = 0x7d

/** The number of consecutive backslashes of `part` right before `end`, down to `start`. */
const backslashesBefore = (part: Uint8Array, start: number, end: number): number => {
  let at = end
  while (at > start && part[at - 1] === backslash) at--
  return end - at
}

/**
 * Checks the bounds of a JSON text on its bytes, part by part as they arrive, before it is parsed: a parser builds every value
 * that it reads, and code that recurses into a deep value runs out of stack. Exact for valid JSON only.
 */
export class JsonScan {
  readonly #bounds: JsonBounds
  #bytes = 0
  #depth = 0
  #values = 0
  #isInString = false
  #isEscaped = false

  constructor(bounds: JsonBounds) {
    this.#bounds = bounds
  }

  /** Takes the next part. Gives the bound that the text exceeds with it, if any. */
  take(part: Uint8Array): Excess | undefined {
    this.#bytes += part.length
    if (this.#bytes > this.#bounds.bytes) return "bytes"
    for (let at = 0; at < part.length; at++) {
      if (this.#isInString) {
        at = this.#endOfString(part, at)
        continue
      }
      const byte = part[at]
      if (byte === quote) this.#isInString = true
      else if (byte === comma) this.#values++
      else if (byte === openArray || byte === openObject) {
        this.#values++
        if (++this.#depth > this.#bounds.depth) return "depth"
      } else if (byte === closeArray || byte === closeObject) this.#depth--
    }
    return this.#values > this.#bounds.values ? "values" : undefined
  }

  /** The end of the string that continues at `from`: its closing quote, or the end of the part. */
  #endOfString(part: Uint8Array, from: number): number {
    const start = this.#isEscaped ? from + 1 : from
    this.#isEscaped = false
    for (let end = part.indexOf(quote, start); end >= 0; end = part.indexOf(quote, end + 1)) {
      if (backslashesBefore(part, start, end) % 2 === 1) continue
      this.#isInString = false
      return end
    }
    this.#isEscaped = backslashesBefore(part, start, part.length) % 2 === 1
    return part.length
  }
}
