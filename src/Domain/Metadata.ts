import { Either, ParseResult, Schema } from "effect"
import { inLog } from "../lib/annotations.ts"
import { inexact } from "../lib/Json.ts"

const maxKeys = 50
const maxKeyLength = 40
const maxStringLength = 500
const maxDepth = 5
const maxBytes = 16 * 1024

interface Fault {
  readonly path: ReadonlyArray<PropertyKey>
  readonly message: string
}

/** Counts Unicode code points: an emoji outside the basic plane is one character, not two. */
const isLonger = (text: string, limit: number): boolean => text.length > limit && [...text].length > limit

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Faults that a response lists at most: a body may have thousands. */
const mostFaults = 20

/** Collects the faults of a value: the first ones in full, the others by their number. */
class Faults {
  readonly #first: Array<Fault> = []
  #more = 0

  add(path: ReadonlyArray<PropertyKey>, message: string): void {
    if (this.#first.length < mostFaults) this.#first.push({ path, message })
    else this.#more++
  }

  get listed(): ReadonlyArray<Fault> {
    return this.#more === 0 ? this.#first : [...this.#first, { path: [], message: `has ${this.#more} problems more` }]
  }
}

const checkValue = (faults: Faults, value: unknown, path: ReadonlyArray<PropertyKey>): void => {
  if (value === inexact) {
    faults.add(path, "is a number that a double cannot hold exactly: send it as a string")
  } else if (typeof value === "string") {
    if (isLonger(value, maxStringLength)) faults.add(path, `must have at most ${maxStringLength} characters`)
  } else if (typeof value === "object" && value !== null) {
    // The outermost object is the first level.
    if (path.length >= maxDepth) faults.add(path, `must not be nested deeper than ${maxDepth} levels`)
    else if (Array.isArray(value))
      for (const [index, item] of value.entries()) checkValue(faults, item, [...path, index])
    else checkEntries(faults, Object.entries(value), path)
  }
}

const checkEntries = (
  faults: Faults,
  entries: ReadonlyArray<readonly [key: string, value: unknown]>,
  path: ReadonlyArray<PropertyKey>
): void => {
  if (entries.length > maxKeys) faults.add(path, `must have at most ${maxKeys} keys`)
  for (const [key, value] of entries) {
    if (isLonger(key, maxKeyLength)) {
      faults.add([...path, key], `must have a key of at most ${maxKeyLength} characters`)
    }
    checkValue(faults, value, [...path, key])
  }
}

const isTooLarge = (text: string): boolean => Buffer.byteLength(text) > maxBytes
const tooLarge = `must have at most ${maxBytes / 1024} KiB as JSON`

const faultsOf = (value: unknown): ReadonlyArray<Fault> => {
  const faults = new Faults()
  checkValue(faults, value, [])
  return faults.listed
}

const rulesInWords = `At most ${maxKeys} keys of ${maxKeyLength} characters, strings of ${maxStringLength} characters, ${maxDepth} levels and ${maxBytes / 1024} KiB; a number that a double cannot hold exactly is refused.`

/** A merchant's own data: a JSON object within bounds, decoded to the JSON text that will be returned. */
export const Metadata = Schema.transformOrFail(
  Schema.Unknown.annotations({
    jsonSchema: {
      type: "object",
      maxProperties: maxKeys,
      description: `Your own data, returned as given. ${rulesInWords}`
    }
  }),
  Schema.String,
  {
    strict: true,
    decode: (value, _, ast) => {
      const issueOf = ({ message, path: [head, ...tail] }: Fault) => {
        const issue = new ParseResult.Type(ast, value, message)
        return head === undefined ? issue : new ParseResult.Pointer([head, ...tail], value, issue)
      }
      const faults = isRecord(value) ? faultsOf(value) : [{ path: [], message: "must be an object" }]
      const [first, ...others] = faults.map(issueOf)
      if (first !== undefined) return ParseResult.fail(new ParseResult.Composite(ast, value, [first, ...others]))
      const text = JSON.stringify(value)
      return isTooLarge(text) ? ParseResult.fail(issueOf({ path: [], message: tooLarge })) : ParseResult.succeed(text)
    },
    encode: (text) => ParseResult.succeed(JSON.parse(text) as unknown)
  }
).annotations(inLog("hidden"))

/** What changes metadata: keys with new values, within the same bounds. */
export const MetadataChange = Metadata.annotations({
  jsonSchema: {
    type: "object",
    description: `Each key gets its new value as a whole, and \`null\` removes it; the other keys stay. The outcome keeps the rules of a new payment. ${rulesInWords}`
  }
})

const entriesOf = (metadata: string) => Object.entries(JSON.parse(metadata) as Readonly<Record<string, unknown>>)

/** The metadata with its changed keys. Left: why that breaks the rules. Both are JSON texts that were decoded. */
export const merged = (metadata: string, change: string): Either.Either<string, string> => {
  const changed = new Map([...entriesOf(metadata), ...entriesOf(change)])
  for (const [key, value] of entriesOf(change)) if (value === null) changed.delete(key)
  if (changed.size > maxKeys) return Either.left(`must have at most ${maxKeys} keys, with those that it has already`)
  const text = JSON.stringify(Object.fromEntries(changed))
  return isTooLarge(text) ? Either.left(`${tooLarge}, with what it has already`) : Either.right(text)
}

/** The longest value by which metadata is found, in UTF-16 code units: an entry of the index does not overflow its page. */
export const longestTerm = 100

/**
 * By what metadata is found: a key of its first level and a text, number or boolean there, as text in lower case, unless that
 * is longer than `longestTerm`.
 */
export const termsOf = (metadata: string): ReadonlyArray<readonly [key: string, value: string]> =>
  entriesOf(metadata).flatMap(([key, value]) => {
    const text = typeof value === "object" ? undefined : String(value).toLowerCase()
    return text === undefined || text.length > longestTerm ? [] : [[key, text] as const]
  })
