import { Effect, Option, Schema, SchemaAST } from "effect"
import type { CurrentKey } from "../Auth/Api.ts"
import type { Problem } from "../Domain/ApiError.ts"
import { type Fields, problemsOf } from "./problems.ts"

/** Decodes one part of a request, or says everything that is wrong with it. */
export type Decode<In> = (input: In) => Effect.Effect<unknown, ReadonlyArray<Problem>, CurrentKey>

const compile = (schema: Schema.Schema.All, kind: Fields["kind"]): Decode<unknown> => {
  // The definition's types keep the decoded type; what the schemas may need is a request's key.
  const decode = Schema.decodeUnknown(schema as Schema.Schema<unknown, unknown, CurrentKey>, {
    errors: "all",
    onExcessProperty: "error"
  })
  const encoded = Schema.encodedSchema(schema as Schema.Schema<unknown>)
  const known = SchemaAST.getPropertySignatures(encoded.ast).map(({ name }) => String(name))
  return (input) => Effect.mapError(decode(input), (error) => problemsOf(error, { kind, known }))
}

const noBody: Decode<unknown> = () => Effect.succeed(undefined)

export const payloadDecoder = (schema: Option.Option<Schema.Schema.All>): Decode<unknown> =>
  Option.match(schema, { onNone: () => noBody, onSome: (some) => compile(some, "field") })

/** By name; what was given more than once is an array, which no parameter takes. */
const parseSearch = (search: string): Readonly<Record<string, unknown>> => {
  const values = new Map<string, unknown>()
  for (const [name, value] of new URLSearchParams(search)) values.set(name, values.has(name) ? [] : value)
  return Object.fromEntries(values)
}

// An empty struct would take any field.
const noParameters: Decode<Readonly<Record<string, unknown>>> = (query) => {
  const names = Object.keys(query)
  return names.length === 0
    ? Effect.succeed(query)
    : Effect.fail(names.map((path) => ({ path, message: "is not a query parameter: this endpoint takes none" })))
}

export const queryDecoder = (schema: Option.Option<Schema.Schema.All>): Decode<string> => {
  const decode = Option.match(schema, {
    onNone: () => noParameters,
    onSome: (some) => compile(some, "query parameter")
  })
  return (search) => decode(parseSearch(search))
}
