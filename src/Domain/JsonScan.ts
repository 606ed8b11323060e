/** What a JSON text from outside may be at most. */
export interface JsonBounds {
  readonly bytes: number
  /** Levels that arrays and objects are nested. */
  readonly depth: number
  /** Elements of arrays and members of objects, all together; empty ones count as one. */
  readonly values: number
}

/** The bound that a text passes. */
export type Excess = keyof JsonBounds

const quote = 0x22
const comma = 0x2c
const colon = 0x3a
const openArray = 0x5b
const backslash = 0x5c
const closeArray = 0x5d
const openObject = 0x7b
const closeObject = 0x7d

/** Backslashes of `part` right before `end`, down to `start`. */
const backslashesBefore = (part: Uint8Array, start: number, end: number): number => {
  let at = end
  while (at > start && part[at - 1] === backslash) at--
  return end - at
}

/**
 * Looks through a text's bytes, part by part as they come, before anything reads it: parsers build what they read, and code
 * that walks down a value runs out of stack where it is deep. Right for every text that is JSON, whatever it says of others.
 */
export class JsonScan {
  readonly #bounds: JsonBounds
  #bytes = 0
  #depth = 0
  #values = 0
  #members = 0
  #isInString = false
  #isEscaped = false

  constructor(bounds: JsonBounds) {
    this.#bounds = bounds
  }

  /** Members of all objects so far, those of one name in one object counted each. */
  get members(): number {
    return this.#members
  }

  /** Takes the next part; the bound that the text passes with it, if any. */
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
      else if (byte === colon) this.#members++
      else if (byte === openArray || byte === openObject) {
        this.#values++
        if (++this.#depth > this.#bounds.depth) return "depth"
      } else if (byte === closeArray || byte === closeObject) this.#depth--
    }
    return this.#values > this.#bounds.values ? "values" : undefined
  }

  /** Where the string that goes on at `from` ends: at its quote, or with the part. */
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
