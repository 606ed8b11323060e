import type { IncomingHttpHeaders } from "node:http"
import { Effect, Either, Option, type ParseResult, Predicate, Schema, SchemaAST } from "effect"
import { CurrentKey } from "../Auth/Api.ts"
import type { FieldProblem } from "../Domain/ApiError.ts"
import type { ApiKey } from "../Domain/ApiKey.ts"
import { type Fields, problemsOf } from "./problems.ts"

/**
 * Decodes one part of a request, or says everything that is wrong with it. An `Either`, which is an effect too, whenever
 * nothing has to be waited for.
 */
export type Decode<In> = (input: In, key: ApiKey | undefined) => Effect.Effect<unknown, ReadonlyArray<FieldProblem>>

const compile = (schema: Schema.Schema.All, kind: Fields["kind"]) => {
  // The definition's types keep what a schema decodes to, and not that a few ask for the request's key.
  const typed = schema as Schema.Schema<unknown, unknown, CurrentKey>
  const decode = Schema.decodeUnknown(typed, { errors: "all", onExcessProperty: "error" })
  const known = SchemaAST.getPropertySignatures(Schema.encodedSchema(typed).ast).map(({ name }) => String(name))
  const problems = (error: ParseResult.ParseError) => problemsOf(error, { kind, known })
  const complete: Decode<unknown> = (input, key) => {
    const decoded = decode(input)
    // To provide a service costs as much as the decoding: only where that did not come to its end without.
    if (Either.isEither(decoded))
      return Either.mapLeft(decoded as Either.Either<unknown, ParseResult.ParseError>, problems)
    const provided = key === undefined ? decoded : Effect.provideService(decoded, CurrentKey, key)
    return Effect.mapError(provided as Effect.Effect<unknown, ParseResult.ParseError>, problems)
  }
  return { decode: complete, known }
}

const noBody: Decode<unknown> = () => Either.void

/** No field takes more items. */
const maxItems = 100

/** Before a schema says of each of tens of thousands of items what is wrong with it. */
const tooLong = (body: unknown): ReadonlyArray<FieldProblem> =>
  Object.entries(Predicate.isRecord(body) ? body : {}).flatMap(([path, value]) =>
    Array.isArray(value) && value.length > maxItems ? [{ path, message: `must have at most ${maxItems} items` }] : []
  )

export const payloadDecoder = (schema: Option.Option<Schema.Schema.All>): Decode<unknown> =>
  Option.match(schema, {
    onNone: () => noBody,
    onSome: (some) => {
      const { decode } = compile(some, "field")
      return (body, key) => {
        const problems = tooLong(body)
        return problems.length > 0 ? Either.left(problems) : decode(body, key)
      }
    }
  })

const noHeaders: Decode<IncomingHttpHeaders> = () => Either.right({})

/** Of a request's headers only those that the schema names are looked at. */
export const headersDecoder = (schema: Option.Option<Schema.Schema.All>): Decode<IncomingHttpHeaders> => {
  if (Option.isNone(schema)) return noHeaders
  const { decode, known } = compile(schema.value, "header")
  return (headers, key) => {
    const present = known.filter((name) => headers[name] !== undefined)
    return decode(Object.fromEntries(present.map((name) => [name, headers[name]])), key)
  }
}

/** By name; what was given more than once is an array, which no parameter takes. */
const parseSearch = (search: string): Readonly<Record<string, unknown>> => {
  if (search === "") return {}
  const values = new Map<string, unknown>()
  for (const [name, value] of new URLSearchParams(search)) values.set(name, values.has(name) ? [] : value)
  return Object.fromEntries(values)
}

// An empty struct would take any field.
const noParameters: Decode<Readonly<Record<string, unknown>>> = (query) => {
  const names = Object.keys(query)
  return names.length === 0
    ? Either.right(query)
    : Either.left(names.map((path) => ({ path, message: "is not a query parameter: this endpoint takes none" })))
}

export const queryDecoder = (schema: Option.Option<Schema.Schema.All>): Decode<string> => {
  const decode = Option.match(schema, {
    onNone: () => noParameters,
    onSome: (some) => compile(some, "query parameter").decode
  })
  return (search, key) => decode(parseSearch(search), key)
}
