import type { IncomingHttpHeaders } from "node:http"
import { Effect, Either, Option, type ParseResult, Predicate, Schema, SchemaAST } from "effect"
import { CurrentKey } from "../Auth/Api.ts"
import type { ApiKey } from "../Domain/ApiKey.ts"
import { boundUnknown, type Fields, foundBy, type Problems, shorten } from "./validationProblems.ts"

/**
 * Decodes one part of a request, or fails with all its problems. The effect is an `Either` when decoding is synchronous:
 * the caller can then use the result without a fiber.
 */
export type Decode<In> = (input: In, key: ApiKey | undefined) => Effect.Effect<unknown, Problems>

/** Maximum items of any field of a body, and maximum characters of any header or parameter. */
const most = { items: 100, characters: 1_024 } as const

const sizeOf = {
  items: (value: unknown) => (Array.isArray(value) ? value.length : 0),
  characters: (value: unknown) => (typeof value === "string" ? value.length : 0)
} as const

/** Checked first, so that a schema does not look for problems in tens of thousands of items. */
const tooLong = (input: unknown, known: ReadonlyArray<string>, unit: keyof typeof most): Problems | undefined => {
  if (!Predicate.isRecord(input)) return undefined
  const first = known.filter((name) => sizeOf[unit](input[name]) > most[unit])
  if (first.length === 0) return undefined
  return { first: first.map((path) => ({ path, message: `must have at most ${most[unit]} ${unit}` })), more: 0 }
}

const compile = (schema: Schema.Schema.All, kind: Fields["kind"]) => {
  const unit = kind === "field" ? "items" : "characters"
  // `HttpApi` erases a schema's context. A few schemas need the request's key.
  const typed = schema as Schema.Schema<unknown, unknown, CurrentKey>
  const decode = Schema.decodeUnknown(typed, { errors: "all", onExcessProperty: "error" })
  // First only up to the first problem, which takes half the time: most requests have none.
  const decodeValid = Schema.decodeUnknown(typed, { errors: "first", onExcessProperty: "error" })
  const known = SchemaAST.getPropertySignatures(Schema.encodedSchema(typed).ast).map(({ name }) => String(name))
  const names = new Set(known)
  const complete: Decode<unknown> = (received, key) => {
    const excess = tooLong(received, known, unit)
    if (excess !== undefined) return Either.left(excess)
    const valid = decodeValid(received)
    // Sound: an Either is the effect of its own type.
    if (Either.isEither(valid) && Either.isRight(valid)) return valid as Either.Either<unknown>
    const { input, more } = boundUnknown(received, names)
    const problems = (error: ParseResult.ParseError) => foundBy(error, { kind, known }, more)
    const decoded = decode(input)
    // Providing a service costs as much as decoding: done only if the schema did not decode without it.
    if (Either.isEither(decoded))
      return Either.mapLeft(decoded as Either.Either<unknown, ParseResult.ParseError>, problems)
    const provided = key === undefined ? decoded : Effect.provideService(decoded, CurrentKey, key)
    return Effect.mapError(provided as Effect.Effect<unknown, ParseResult.ParseError>, problems)
  }
  return { decode: complete, known }
}

const noBody: Decode<unknown> = () => Either.void

export const payloadDecoder = (schema: Option.Option<Schema.Schema.All>): Decode<unknown> =>
  Option.match(schema, {
    onNone: () => noBody,
    onSome: (some) => compile(some, "field").decode
  })

const noHeaders: Decode<IncomingHttpHeaders> = () => Either.right({})

/** Decodes the headers that the schema names; others are ignored. */
export const headersDecoder = (schema: Option.Option<Schema.Schema.All>): Decode<IncomingHttpHeaders> => {
  if (Option.isNone(schema)) return noHeaders
  const { decode, known } = compile(schema.value, "header")
  return (headers, key) => {
    const present = known.filter((name) => headers[name] !== undefined)
    return decode(Object.fromEntries(present.map((name) => [name, headers[name]])), key)
  }
}

/** Values by name. A repeated parameter becomes an array, which no schema accepts. */
const parseSearch = (search: string): Readonly<Record<string, unknown>> => {
  if (search === "") return {}
  const values = new Map<string, unknown>()
  for (const [name, value] of new URLSearchParams(search)) values.set(name, values.has(name) ? [] : value)
  return Object.fromEntries(values)
}

// A Schema.Struct({}) would accept any parameter.
const noParameters: Decode<Readonly<Record<string, unknown>>> = (query) => {
  const { input, more } = boundUnknown(query, new Set())
  const names = Object.keys(input)
  if (names.length === 0) return Either.right(query)
  const message = "is not a query parameter: this endpoint takes none"
  return Either.left({ first: names.map((name) => ({ path: shorten(name), message })), more })
}

/** Maximum characters of a query: decoding an invalid escape takes microseconds. */
const longestQuery = 4_096

const queryTooLong: Problems = {
  first: [{ path: "", message: `the query must have at most ${longestQuery} characters` }],
  more: 0
}

export const queryDecoder = (schema: Option.Option<Schema.Schema.All>): Decode<string> => {
  const decode = Option.match(schema, {
    onNone: () => noParameters,
    onSome: (some) => compile(some, "query parameter").decode
  })
  return (search, key) => (search.length > longestQuery ? Either.left(queryTooLong) : decode(parseSearch(search), key))
}
