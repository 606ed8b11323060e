/** A number of a JSON text. */
export interface NumberToken {
  /** Where it begins in the text. */
  readonly at: number
  readonly text: string
  readonly hasExponent: boolean
}

/** What a JSON text has outside its strings. */
interface JsonTextScan {
  /** The deepest nesting of arrays and objects. */
  readonly depth: number
  /** Members of all objects; those of one object with the same name each count. */
  readonly members: number
  readonly numbers: ReadonlyArray<NumberToken>
}

const quote = 0x22
const plus = 0x2b
const minus = 0x2d
const point = 0x2e
const zero = 0x30
const nine = 0x39
const colon = 0x3a
const openArray = 0x5b
const backslash = 0x5c
const closeArray = 0x5d
const openObject = 0x7b
const closeObject = 0x7d
/** `E` and `e` differ by this bit. */
const lowerCase = 0x20
const exponent = 0x65

/** The index of the quote that ends the string after `from`, or of the text's end. */
const endOfString = (text: string, from: number): number => {
  let at = from + 1
  for (; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === quote) break
    if (code === backslash) at++
  }
  return at
}

const isDigit = (code: number): boolean => code >= zero && code <= nine

const numberAt = (text: string, at: number): NumberToken => {
  let end = at + 1
  let hasExponent = false
  for (; end < text.length; end++) {
    const code = text.charCodeAt(end)
    if ((code | lowerCase) === exponent) hasExponent = true
    else if (!isDigit(code) && code !== point && code !== plus && code !== minus) break
  }
  return { at, text: text.slice(at, end), hasExponent }
}

/** Looks at each character of a JSON text once, before it is parsed. Exact for valid JSON only. */
export const scanJsonText = (text: string): JsonTextScan => {
  const numbers: Array<NumberToken> = []
  let depth = 0
  let deepest = 0
  let members = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === quote) at = endOfString(text, at)
    else if (code === colon) members++
    else if (code === openArray || code === openObject) deepest = Math.max(deepest, ++depth)
    else if (code === closeArray || code === closeObject) depth--
    else if (code === minus || isDigit(code)) {
      const number = numberAt(text, at)
      numbers.push(number)
      at += number.text.length - 1
    }
  }
  return { depth: deepest, members, numbers }
}
