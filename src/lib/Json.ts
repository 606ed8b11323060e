import { randomUUID } from "node:crypto"
import { Either, Predicate, Record } from "effect"

/** JSON that the same value always has: members sorted by name, those that are undefined left out, no white space. */
export const canonicalJson = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`
  if (!Predicate.isRecord(value)) return JSON.stringify(value)
  const names = Object.keys(value).sort()
  const members = names.filter((name) => value[name] !== undefined)
  return `{${members.map((name) => `${JSON.stringify(name)}:${canonicalJson(value[name])}`).join(",")}}`
}

/** Those fields that have a value: a field of an object in the API is absent, and never undefined or null. */
export const present = <Fields extends Readonly<Record<string, unknown>>>(fields: Fields) =>
  Record.filter(fields, Predicate.isNotNullable) as { [Name in keyof Fields]?: NonNullable<Fields[Name]> }

/** A number of a JSON text. */
interface NumberToken {
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
const scanJsonText = (text: string): JsonTextScan => {
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

/** Arrays and objects may be nested this deep. */
const maxDepth = 64

/** A number may be this long: the largest amount, 2^256 - 1, has 78 digits. */
const maxNumberLength = 80

/** Replaces a number that a double cannot hold exactly in a parsed text, so that nothing is rounded silently. */
export const inexact: unique symbol = Symbol("inexact")

/** Digits that every double holds. */
const exactDigits = 15

/** The digits without zeros at their end. */
const significant = (digits: string): string => {
  let end = digits.length
  while (digits[end - 1] === "0") end--
  return digits.slice(0, end)
}

/** Significant digits and exponent: one form for each value. */
const canonical = (literal: string): string => {
  const [mantissa = "", exponent = "0"] = literal.toLowerCase().split("e")
  const [integer = "", fraction = ""] = mantissa.replace("-", "").split(".")
  const digits = `${integer}${fraction}`.replace(/^0+/, "")
  const kept = significant(digits)
  return kept === "" ? "0" : `${kept}e${Number(exponent) - fraction.length + digits.length - kept.length}`
}

/** Whether a double holds the number exactly. */
const isExact = ({ hasExponent, text }: NumberToken): boolean =>
  (text.length <= exactDigits && !hasExponent) || canonical(text) === canonical(String(Number(text)))

/** The text with other texts in place of some of its numbers. */
const withNumbers = (text: string, numbers: ReadonlyArray<NumberToken>, replaced: (of: NumberToken) => string) => {
  let at = 0
  const pieces = numbers.map((number) => {
    const before = text.slice(at, number.at)
    at = number.at + number.text.length
    return before + replaced(number)
  })
  return pieces.join("") + text.slice(at)
}

// Random for each process, so that no request can contain it.
const mark = randomUUID()

const parseMarked = (text: string, numbers: ReadonlyArray<NumberToken>): unknown =>
  JSON.parse(
    withNumbers(text, numbers, () => `"${mark}"`),
    (_, value) => (value === mark ? inexact : value)
  )

const membersOf = (value: unknown): number => {
  if (typeof value !== "object" || value === null) return 0
  const inner: ReadonlyArray<unknown> = Object.values(value)
  let members = Array.isArray(value) ? 0 : inner.length
  for (const one of inner) if (typeof one === "object") members += membersOf(one)
  return members
}

/** Most inexact numbers that are marked: each of them refuses the body. */
const mostMarked = 100

const hasLongNumber = (numbers: ReadonlyArray<NumberToken>): boolean =>
  numbers.some(({ text }) => text.length > maxNumberLength)

/** The first numbers that a double cannot hold exactly. */
const inexactOf = (numbers: ReadonlyArray<NumberToken>): ReadonlyArray<NumberToken> => {
  const found: Array<NumberToken> = []
  for (const number of numbers) {
    if (isExact(number)) continue
    found.push(number)
    if (found.length === mostMarked) break
  }
  return found
}

/** What the engine says of a text that is not JSON, without the text, which it quotes at the end. */
const faultOf = (error: unknown): string =>
  String(error).replace(/^SyntaxError: |(, (\.\.\.)?)?".*/gs, "") || "Unexpected text"

/** Parses a JSON text from outside. Left: what is wrong with it, without quoting it. Its time is linear in its length. */
export const parseJson = (text: string): Either.Either<unknown, string> => {
  if (text.trim() === "") return Either.left("The body is empty: send a JSON object.")
  const { depth, members, numbers } = scanJsonText(text)
  if (depth > maxDepth) return Either.left(`The body is nested deeper than ${maxDepth} levels.`)
  // Checked before anything converts the digits.
  if (hasLongNumber(numbers)) {
    return Either.left(`The body has a number of more than ${maxNumberLength} characters: send amounts as strings.`)
  }
  const marked = inexactOf(numbers)
  const parsed = Either.try({
    try: (): unknown => {
      // First as it is: a mark would hide a number that is none, such as 1.2.3e4.
      const value: unknown = JSON.parse(text)
      return marked.length === 0 ? value : parseMarked(text, marked)
    },
    catch: (error) => `The body is not valid JSON: ${faultOf(error)}.`
  })
  // Parsers disagree on which of two members with one name counts (RFC 8259, section 4).
  return Either.filterOrLeft(
    parsed,
    (value) => membersOf(value) === members,
    () => "An object of the body has a member twice: give each name once."
  )
}

/** Parses a JSON text with its numbers as strings, digit by digit: for amounts that must never become a double. */
export const parseWithTexts = (text: string): Either.Either<unknown, string> => {
  const { depth, numbers } = scanJsonText(text)
  if (depth > maxDepth) return Either.left(`The text is nested deeper than ${maxDepth} levels.`)
  if (hasLongNumber(numbers)) return Either.left(`The text has a number of more than ${maxNumberLength} characters.`)
  return Either.try({
    try: (): unknown => {
      // First as it is, for the same reason.
      JSON.parse(text)
      return JSON.parse(withNumbers(text, numbers, (number) => `"${number.text}"`))
    },
    catch: () => "The text is not valid JSON."
  })
}
