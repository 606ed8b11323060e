/**
 * Combines the API's definition and its handlers. `makeRouter` reflects every endpoint once, at the start, into an
 * operation with its permissions and decoders; the router then finds the route of a path without looking at the
 * definition again. It fails at the start when an endpoint has no handler, or has a permission without a key or the
 * other way round.
 */
import type { IncomingHttpHeaders } from "node:http"
import { HttpApi, type HttpApiGroup, HttpApiSchema } from "@effect/platform"
import { Effect, Either, Option } from "effect"
import { ApiKeyAuth, requiredPermissions } from "../Auth/Api.ts"
import { type ApiError, invalid } from "../Domain/ApiError.ts"
import type { ApiKey, Permission } from "../Domain/ApiKey.ts"
import { parametersIn } from "../lib/parameters.ts"
import type { CommitWith, StoreUnavailable } from "../Sql.ts"
import { headersDecoder, payloadDecoder, queryDecoder } from "./decode.ts"
import type { Handlers, HttpAnswer } from "./Handler.ts"
import { type Redact, redactor } from "./redacted.ts"
import { fieldProblemsOf, type Problems } from "./validationProblems.ts"

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
  /** The permissions that the key needs; empty on public routes. */
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
      // An endpoint that lacks one of the two by mistake must not be served without authentication.
      if (isPublic !== (operation.permissions.length === 0) || isPublic !== route.isPublic) {
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
