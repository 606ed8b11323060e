import { randomUUID } from "node:crypto"
import { Either } from "effect"
import { JsonScan } from "./JsonScan.ts"

/** Arrays and objects may be nested this deep. */
const maxDepth = 64

/** Stands in a parsed text where a number was that a double cannot hold: nothing is rounded behind anybody's back. */
export const inexact: unique symbol = Symbol("inexact")

/** What may be a double and what may not, in decimal: 15 significant digits always are one. */
const suspicious = /\d[\d.]{15}|\d[eE]/

// A string, to step over it, or a number. Right for every text that JSON.parse accepts.
const stringOrNumber = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g

/** The digits without zeros at either end, and the power of ten of the last one: one form for each value. */
const canonical = (literal: string): string => {
  const [mantissa = "", exponent = "0"] = literal.toLowerCase().split("e")
  const [integer = "", fraction = ""] = mantissa.replace("-", "").split(".")
  const digits = `${integer}${fraction}`.replace(/^0+/, "")
  const significant = digits.replace(/0+$/, "")
  return significant === ""
    ? "0"
    : `${significant}e${Number(exponent) - fraction.length + digits.length - significant.length}`
}

/** Whether reading the number and writing it again gives the same value. */
const isExact = (literal: string): boolean => canonical(literal) === canonical(String(Number(literal)))

// Nobody can send it: it is made anew with every process.
const mark = randomUUID()

const parseMarked = (text: string): unknown =>
  JSON.parse(
    text.replace(stringOrNumber, (found) => (found.startsWith('"') || isExact(found) ? found : `"${mark}"`)),
    (_, value) => (value === mark ? inexact : value)
  )

const depthOnly = { bytes: Number.POSITIVE_INFINITY, depth: maxDepth, values: Number.POSITIVE_INFINITY }

/** A look through a text; `isTooDeep` where it is nested deeper than `maxDepth`. */
const look = (text: string) => {
  const scan = new JsonScan(depthOnly)
  const isTooDeep = scan.take(new TextEncoder().encode(text)) !== undefined
  return { isTooDeep, members: scan.members }
}

const membersOf = (value: unknown): number => {
  if (typeof value !== "object" || value === null) return 0
  const inner: ReadonlyArray<unknown> = Object.values(value)
  return inner.reduce((sum: number, one) => sum + membersOf(one), Array.isArray(value) ? 0 : inner.length)
}

/** Reads a JSON text from outside. Left: what is wrong with it, without showing it. */
export const parseJson = (text: string): Either.Either<unknown, string> => {
  if (text.trim() === "") return Either.left("The body is empty: send a JSON object.")
  const { isTooDeep, members } = look(text)
  if (isTooDeep) return Either.left(`The body is nested deeper than ${maxDepth} levels.`)
  const parsed = Either.try({
    try: () => {
      const value: unknown = JSON.parse(text)
      return suspicious.test(text) ? parseMarked(text) : value
    },
    catch: () => "The body is not valid JSON."
  })
  // Of two members of one name each reader may take another one (RFC 8259, section 4).
  return Either.filterOrLeft(
    parsed,
    (value) => membersOf(value) === members,
    () => "An object of the body has a member twice: give each name once."
  )
}

/** Reads a JSON text with its numbers as texts, digit for digit: for amounts that must never have been a double. */
export const parseWithTexts = (text: string): Either.Either<unknown, string> => {
  if (look(text).isTooDeep) return Either.left(`The text is nested deeper than ${maxDepth} levels.`)
  return Either.try({
    try: (): unknown => {
      JSON.parse(text)
      return JSON.parse(text.replace(stringOrNumber, (found) => (found.startsWith('"') ? found : `"${found}"`)))
    },
    catch: () => "The text is not valid JSON."
  })
}
