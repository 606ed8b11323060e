import { randomUUID } from "node:crypto"
import { Either } from "effect"
import { JsonScan } from "./JsonScan.ts"

/** Arrays and objects may be nested this deep. */
const maxDepth = 64

/** Replaces a number that a double cannot hold exactly in a parsed text, so that nothing is rounded silently. */
export const inexact: unique symbol = Symbol("inexact")

/** Numbers that a double may not hold exactly; with up to 15 significant digits it always does. */
const suspicious = /\d[\d.]{15}|\d[eE]/

// A string, to skip it, or a number. Correct for every text that JSON.parse accepts.
const stringOrNumber = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g

/** Significant digits and exponent: one form for each value. */
const canonical = (literal: string): string => {
  const [mantissa = "", exponent = "0"] = literal.toLowerCase().split("e")
  const [integer = "", fraction = ""] = mantissa.replace("-", "").split(".")
  const digits = `${integer}${fraction}`.replace(/^0+/, "")
  const significant = digits.replace(/0+$/, "")
  return significant === ""
    ? "0"
    : `${significant}e${Number(exponent) - fraction.length + digits.length - significant.length}`
}

/** Whether a double holds the number exactly. */
const isExact = (literal: string): boolean => canonical(literal) === canonical(String(Number(literal)))

// Random for each process, so that no request can contain it.
const mark = randomUUID()

const parseMarked = (text: string): unknown =>
  JSON.parse(
    text.replace(stringOrNumber, (found) => (found.startsWith('"') || isExact(found) ? found : `"${mark}"`)),
    (_, value) => (value === mark ? inexact : value)
  )

const depthOnly = { bytes: Number.POSITIVE_INFINITY, depth: maxDepth, values: Number.POSITIVE_INFINITY }

/** The number of members of all objects of a text, and whether it is nested deeper than `maxDepth`. */
const scanOf = (text: string) => {
  const scan = new JsonScan(depthOnly)
  const isTooDeep = scan.take(new TextEncoder().encode(text)) !== undefined
  return { isTooDeep, members: scan.members }
}

const membersOf = (value: unknown): number => {
  if (typeof value !== "object" || value === null) return 0
  const inner: ReadonlyArray<unknown> = Object.values(value)
  return inner.reduce((sum: number, one) => sum + membersOf(one), Array.isArray(value) ? 0 : inner.length)
}

/** Parses a JSON text from outside. Left: what is wrong with it, without quoting it. */
export const parseJson = (text: string): Either.Either<unknown, string> => {
  if (text.trim() === "") return Either.left("The body is empty: send a JSON object.")
  const { isTooDeep, members } = scanOf(text)
  if (isTooDeep) return Either.left(`The body is nested deeper than ${maxDepth} levels.`)
  const parsed = Either.try({
    try: () => {
      const value: unknown = JSON.parse(text)
      return suspicious.test(text) ? parseMarked(text) : value
    },
    catch: () => "The body is not valid JSON."
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
  if (scanOf(text).isTooDeep) return Either.left(`The text is nested deeper than ${maxDepth} levels.`)
  return Either.try({
    try: (): unknown => {
      JSON.parse(text)
      return JSON.parse(text.replace(stringOrNumber, (found) => (found.startsWith('"') ? found : `"${found}"`)))
    },
    catch: () => "The text is not valid JSON."
  })
}
