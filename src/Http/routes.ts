/**
 * Combines the API's definition and its handlers. `makeRouter` reflects every endpoint once, at the start, into an
 * operation with its permissions and decoders; the router then finds the route of a path without looking at the
 * definition again. It fails at the start when an endpoint has no handler, or has a permission without a key or the
 * other way round.
 */
import type { IncomingHttpHeaders } from "node:http"
import { HttpApi, type HttpApiGroup, HttpApiSchema } from "@effect/platform"
import { Context, Effect, Either, Option, type ParseResult, Predicate, Schema, SchemaAST } from "effect"
import { ApiKeyAuth, CurrentKey, RequiredPermission, requiredPermissions } from "../Auth/Api.ts"
import { type ApiError, invalid } from "../Domain/ApiError.ts"
import type { ApiKey, Permission } from "../Domain/ApiKey.ts"
import { parametersIn } from "../lib/parameters.ts"
import type { CommitWith, StoreUnavailable } from "../Sql.ts"
import type { Handlers, HttpAnswer } from "./Handler.ts"
import { type Redact, redactor } from "./redacted.ts"
import { boundUnknown, type Fields, fieldProblemsOf, foundBy, type Problems, shorten } from "./validationProblems.ts"

/**
 * Decodes one part of a request, or fails with all its problems. The effect is an `Either` when decoding is synchronous:
 * the caller can then use the result without a fiber.
 */
type Decode<In> = (input: In, key: ApiKey | undefined) => Effect.Effect<unknown, Problems>

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
const headersDecoder = (schema: Option.Option<Schema.Schema.All>): Decode<IncomingHttpHeaders> => {
  if (Option.isNone(schema)) return noHeaders
  const { decode, known } = compile(schema.value, "header")
  return (headers, key) => {
    const present = known.filter((name) => headers[name] !== undefined)
    return decode(Object.fromEntries(present.map((name) => [name, headers[name]])), key)
  }
}

/**
 * Values by name. A repeated parameter becomes an array, which no schema accepts. `metadata[email]` is of a record, where the
 * endpoint takes one of that name.
 */
const parseSearch = (search: string, known: ReadonlyArray<string>): Readonly<Record<string, unknown>> => {
  if (search === "") return {}
  const values = new Map<string, unknown>()
  const records = new Map<string, Map<string, unknown>>()
  const put = (into: Map<string, unknown>, name: string, value: unknown) => into.set(name, into.has(name) ? [] : value)
  for (const [name, value] of new URLSearchParams(search)) {
    const [, record = "", key = ""] = /^(\w+)\[(.*)\]$/s.exec(name) ?? []
    if (known.includes(record)) records.set(record, put(records.get(record) ?? new Map(), key, value))
    else put(values, name, value)
  }
  for (const [name, entries] of records) put(values, name, Object.fromEntries(entries))
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
  const { decode, known } = Option.match(schema, {
    onNone: () => ({ decode: noParameters, known: [] }),
    onSome: (some) => compile(some, "query parameter")
  })
  return (search, key) =>
    search.length > longestQuery ? Either.left(queryTooLong) : decode(parseSearch(search, known), key)
}

type Params = Readonly<Record<string, string>>

/** A request, parsed but not decoded by the endpoint's schemas. */
interface Received {
  /** Undefined on public routes. */
  readonly key: ApiKey | undefined
  readonly path: Params
  /** The query string, without the question mark. */
  readonly search: string
  /** Names in lower case, as Node provides them. */
  readonly headers: IncomingHttpHeaders
  /** The JSON value of the body; undefined for an operation that takes none. */
  readonly payload: unknown
  /** Stores the answer for a repeated request; undefined when the request has no idempotency key. */
  readonly storeReplay: CommitWith<HttpAnswer<unknown>> | undefined
}

/** An endpoint of the definition with its handler, ready to be served. */
export interface ServedOperation {
  /** The permissions that the key needs; empty on public routes, and where any key may. */
  readonly permissions: ReadonlyArray<Permission>
  readonly takesBody: boolean
  /** The redacted body for the log of requests. */
  readonly redact: Redact
  readonly successStatus: number
  /** The Content-Type of its success, unless that is JSON. */
  readonly contentType?: string | undefined
  /** Checks the request, naming every problem at once, and handles it. */
  readonly handle: (received: Received) => Effect.Effect<HttpAnswer<unknown>, ApiError | StoreUnavailable>
}

/** A path with its operations by method. */
export interface Route {
  /** As in the definition, e.g. `/v1/webhooks/:id`. */
  readonly path: string
  readonly isPublic: boolean
  readonly operations: ReadonlyMap<string, ServedOperation>
}

/** The methods of a route, as the `Allow` header names them. */
export const allowOf = ({ operations }: Route): string => Array.from(operations.keys()).sort().join(", ")

export interface Match {
  readonly route: Route
  readonly params: Params
}

/** Finds the route of a path; undefined when there is none. */
export type Router = (path: string) => Match | undefined

/** The handlers of every group of an API, by name. */
export type AllHandlers<Api> =
  Api extends HttpApi.HttpApi<infer _Id, infer Groups, infer _Error, infer _R>
    ? {
        readonly [Name in HttpApiGroup.HttpApiGroup.Name<Groups>]: Handlers<
          HttpApiGroup.HttpApiGroup.WithName<Groups, Name>
        >
      }
    : never

type AnyHandler = (input: never) => Effect.Effect<HttpAnswer<unknown>, ApiError | StoreUnavailable>
type AnyHandlers = Readonly<Record<string, Readonly<Record<string, AnyHandler>>>>

type Endpoint = Parameters<Parameters<typeof HttpApi.reflect>[1]["onEndpoint"]>[0]

type Decoded = Effect.Effect<unknown, Problems>
type Done = Either.Either<unknown, Problems>

/** Whether all parts were decoded synchronously. Then no fiber has to run for them. */
const areDone = (parts: readonly [Decoded, Decoded, Decoded]): parts is readonly [Done, Done, Done] =>
  parts.every(Either.isEither)

const operationOf = ({ endpoint, mergedAnnotations, successes }: Endpoint, handler: AnyHandler): ServedOperation => {
  const decodeHeaders = headersDecoder(endpoint.headersSchema)
  const decodeQuery = queryDecoder(endpoint.urlParamsSchema)
  const decodePayload = payloadDecoder(endpoint.payloadSchema)
  const [[successStatus, { ast }] = [200, { ast: Option.none() }]] = successes
  const encoding = Option.map(ast, HttpApiSchema.getEncoding)
  return {
    permissions: requiredPermissions(mergedAnnotations),
    takesBody: Option.isSome(endpoint.payloadSchema),
    redact: redactor(endpoint.payloadSchema),
    successStatus,
    contentType: Option.isSome(encoding) && encoding.value.kind === "Text" ? encoding.value.contentType : undefined,
    handle: ({ headers: sent, key, path, payload: body, search, storeReplay }) => {
      const parts = [decodeHeaders(sent, key), decodeQuery(search, key), decodePayload(body, key)] as const
      const handled = ([headers, query, payload]: readonly [Done, Done, Done]) => {
        if (Either.isRight(headers) && Either.isRight(query) && Either.isRight(payload)) {
          const input = { key, path, headers: headers.right, query: query.right, payload: payload.right, storeReplay }
          // Sound: the endpoint's schemas have just decoded it to the handler's input type.
          return handler(input as never)
        }
        const problems = [headers, query, payload].flatMap((part) => (Either.isLeft(part) ? [part.left] : []))
        return invalid(fieldProblemsOf(problems))
      }
      return areDone(parts)
        ? handled(parts)
        : Effect.flatMap(Effect.all(parts, { mode: "either", concurrency: 1 }), handled)
    }
  }
}

/** Throws when an endpoint has no handler, or only one of ApiKeyAuth and RequiredPermission. */
export const makeRouter = <Id extends string, Groups extends HttpApiGroup.HttpApiGroup.Any, Error, R>(
  api: HttpApi.HttpApi<Id, Groups, Error, R>,
  handlers: AnyHandlers
): Router => {
  const routes = new Map<string, { path: string; isPublic: boolean; operations: Map<string, ServedOperation> }>()
  HttpApi.reflect(api, {
    onGroup: () => {},
    onEndpoint: (reflected) => {
      const { endpoint, group, middleware } = reflected
      const handler = handlers[group.identifier]?.[endpoint.name]
      if (handler === undefined) throw new Error(`${group.identifier}.${endpoint.name} has no handler`)
      const isPublic = !Array.from(middleware).some(({ key }) => key === ApiKeyAuth.key)
      const route = routes.get(endpoint.path) ?? { path: endpoint.path, isPublic, operations: new Map() }
      const operation = operationOf(reflected, handler)
      const isGuarded = Option.isSome(Context.getOption(reflected.mergedAnnotations, RequiredPermission))
      // An endpoint that lacks one of the two by mistake must not be served without authentication.
      if (isPublic === isGuarded || isPublic !== route.isPublic) {
        throw new Error(`${endpoint.path} needs ApiKeyAuth and a RequiredPermission, or neither`)
      }
      route.operations.set(endpoint.method, operation)
      if (endpoint.method === "GET") route.operations.set("HEAD", operation)
      routes.set(endpoint.path, route)
    }
  })
  const patterns = Array.from(routes, ([path, route]) => ({ pattern: path.split("/"), route }))
  return (path) => {
    const exact = routes.get(path)
    if (exact !== undefined) return { route: exact, params: {} }
    const segments = path.split("/")
    for (const { pattern, route } of patterns) {
      const params = parametersIn(pattern, segments)
      if (params !== undefined) return { route, params }
    }
    return undefined
  }
}
