import { ParseResult, Schema } from "effect"
import { inexact } from "./Json.ts"

const maxKeys = 50
const maxKeyLength = 40
const maxStringLength = 500
const maxDepth = 5
const maxBytes = 16 * 1024

interface Fault {
  readonly path: ReadonlyArray<PropertyKey>
  readonly message: string
}

/** Characters as people count them: an emoji outside the basic plane is one, not two. */
const isLonger = (text: string, limit: number): boolean => text.length > limit && [...text].length > limit

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const faultsOf = (value: unknown, path: ReadonlyArray<PropertyKey>): ReadonlyArray<Fault> => {
  if (value === inexact) {
    return [{ path, message: "is a number that a double cannot hold exactly: send it as a string" }]
  }
  if (typeof value === "string") {
    return isLonger(value, maxStringLength)
      ? [{ path, message: `must have at most ${maxStringLength} characters` }]
      : []
  }
  if (typeof value !== "object" || value === null) return []
  // The object that holds all others is the first level.
  if (path.length >= maxDepth) return [{ path, message: `must not be nested deeper than ${maxDepth} levels` }]
  return Array.isArray(value)
    ? value.flatMap((item, index) => faultsOf(item, [...path, index]))
    : faultsOfEntries(Object.entries(value), path)
}

const faultsOfEntries = (
  entries: ReadonlyArray<readonly [key: string, value: unknown]>,
  path: ReadonlyArray<PropertyKey>
): ReadonlyArray<Fault> => [
  ...(entries.length > maxKeys ? [{ path, message: `must have at most ${maxKeys} keys` }] : []),
  ...entries.flatMap(([key, value]) => [
    ...(isLonger(key, maxKeyLength)
      ? [{ path: [...path, key], message: `must have a key of at most ${maxKeyLength} characters` }]
      : []),
    ...faultsOf(value, [...path, key])
  ])
]

/** A merchant's own data: a JSON object within bounds. Decoded it is JSON text, as it will be returned. */
export const Metadata = Schema.transformOrFail(
  Schema.Unknown.annotations({
    jsonSchema: {
      type: "object",
      maxProperties: maxKeys,
      description: `Your own data, returned as given. At most ${maxKeys} keys of ${maxKeyLength} characters, strings of ${maxStringLength} characters, ${maxDepth} levels and ${maxBytes / 1024} KiB; a number that a double cannot hold exactly is refused.`
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
      const faults = isRecord(value) ? faultsOf(value, []) : [{ path: [], message: "must be an object" }]
      const [first, ...others] = faults.map(issueOf)
      if (first !== undefined) return ParseResult.fail(new ParseResult.Composite(ast, value, [first, ...others]))
      const text = JSON.stringify(value)
      return Buffer.byteLength(text) <= maxBytes
        ? ParseResult.succeed(text)
        : ParseResult.fail(issueOf({ path: [], message: `must have at most ${maxBytes / 1024} KiB as JSON` }))
    },
    encode: (text) => ParseResult.succeed(JSON.parse(text) as unknown)
  }
)
