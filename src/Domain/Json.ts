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

const isNestedTooDeep = (text: string): boolean =>
  new JsonScan(depthOnly).take(new TextEncoder().encode(text)) !== undefined

/** Reads a JSON text from outside. Left: what is wrong with it, without showing it. */
export const parseJson = (text: string): Either.Either<unknown, string> => {
  if (text.trim() === "") return Either.left("The body is empty: send a JSON object.")
  if (isNestedTooDeep(text)) return Either.left(`The body is nested deeper than ${maxDepth} levels.`)
  return Either.try({
    try: () => {
      const value: unknown = JSON.parse(text)
      return suspicious.test(text) ? parseMarked(text) : value
    },
    catch: () => "The body is not valid JSON."
  })
}

/** Reads a JSON text with its numbers as texts, digit for digit: for amounts that must never have been a double. */
export const parseWithTexts = (text: string): Either.Either<unknown, string> => {
  if (isNestedTooDeep(text)) return Either.left(`The text is nested deeper than ${maxDepth} levels.`)
  return Either.try({
    try: (): unknown => {
      JSON.parse(text)
      return JSON.parse(text.replace(stringOrNumber, (found) => (found.startsWith('"') ? found : `"${found}"`)))
    },
    catch: () => "The text is not valid JSON."
  })
}
