import type { IncomingHttpHeaders } from "node:http"
import { HttpApi, type HttpApiGroup, HttpApiSchema } from "@effect/platform"
import { Effect, Either, Option } from "effect"
import { ApiKeyAuth, requiredPermissions } from "../Auth/Api.ts"
import { type ApiError, type FieldProblem, invalid } from "../Domain/ApiError.ts"
import type { ApiKey, Permission } from "../Domain/ApiKey.ts"
import type { CommitWith, StoreUnavailable } from "../Sql.ts"
import { headersDecoder, payloadDecoder, queryDecoder } from "./decode.ts"
import type { Handlers, HttpAnswer } from "./Handler.ts"

type Params = Readonly<Record<string, string>>

/** What a client sent, read but not checked. */
interface Received {
  /** Undefined where none is asked for. */
  readonly key: ApiKey | undefined
  readonly path: Params
  /** The query string, without the question mark. */
  readonly search: string
  /** By name in lower case, as Node gives them. */
  readonly headers: IncomingHttpHeaders
  /** The JSON value of the body; undefined for an operation that takes none. */
  readonly payload: unknown
  /** Keeps the answer for a repeated request; undefined where none is to be kept. */
  readonly remember: CommitWith<HttpAnswer<unknown>> | undefined
}

/** An endpoint of the definition with its handler, ready to be served. */
export interface Operation {
  /** What the key must be allowed to; nothing where none is asked for. */
  readonly permissions: ReadonlyArray<Permission>
  readonly takesBody: boolean
  readonly successStatus: number
  /** The header of what it answers, unless that is JSON. */
  readonly contentType?: string | undefined
  /** Checks the request, naming every problem at once, and handles it. */
  readonly handle: (received: Received) => Effect.Effect<HttpAnswer<unknown>, ApiError | StoreUnavailable>
}

/** A path with what can be done there. */
export interface Route {
  /** As the definition writes it. */
  readonly path: string
  readonly isPublic: boolean
  readonly operations: ReadonlyMap<string, Operation>
}

/** The methods of a route, as the `Allow` header names them. */
export const allowOf = ({ operations }: Route): string => Array.from(operations.keys()).sort().join(", ")

export interface Match {
  readonly route: Route
  readonly params: Params
}

/** Finds the route of a path; undefined where there is none. */
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

type Decoded = Effect.Effect<unknown, ReadonlyArray<FieldProblem>>
type Outcome = Either.Either<unknown, ReadonlyArray<FieldProblem>>

/** Whether nothing of it has to be waited for: what is there already needs no steps of a fiber. */
const areSettled = (parts: readonly [Decoded, Decoded, Decoded]): parts is readonly [Outcome, Outcome, Outcome] =>
  parts.every(Either.isEither)

const operationOf = ({ endpoint, mergedAnnotations, successes }: Endpoint, handler: AnyHandler): Operation => {
  const decodeHeaders = headersDecoder(endpoint.headersSchema)
  const decodeQuery = queryDecoder(endpoint.urlParamsSchema)
  const decodePayload = payloadDecoder(endpoint.payloadSchema)
  const [[successStatus, { ast }] = [200, { ast: Option.none() }]] = successes
  const encoding = Option.map(ast, HttpApiSchema.getEncoding)
  return {
    permissions: requiredPermissions(mergedAnnotations),
    takesBody: Option.isSome(endpoint.payloadSchema),
    successStatus,
    contentType: Option.isSome(encoding) && encoding.value.kind === "Text" ? encoding.value.contentType : undefined,
    handle: (received) =>
      Effect.gen(function* () {
        const { key, path, remember, search } = received
        const parts = [
          decodeHeaders(received.headers, key),
          decodeQuery(search, key),
          decodePayload(received.payload, key)
        ] as const
        const [headers, query, payload] = areSettled(parts)
          ? parts
          : yield* Effect.all(parts, { mode: "either", concurrency: 1 })
        if (Either.isRight(headers) && Either.isRight(query) && Either.isRight(payload)) {
          const input = { key, path, headers: headers.right, query: query.right, payload: payload.right, remember }
          // The schemas have just made it what the handler takes.
          return yield* handler(input as never)
        }
        return yield* invalid([headers, query, payload].flatMap((part) => (Either.isLeft(part) ? part.left : [])))
      })
  }
}

const paramsOf = (pattern: ReadonlyArray<string>, segments: ReadonlyArray<string>): Params | undefined => {
  if (pattern.length !== segments.length) return undefined
  const params: Array<readonly [name: string, value: string]> = []
  for (const [i, part] of pattern.entries()) {
    const segment = segments[i] ?? ""
    if (part.startsWith(":") && segment !== "") params.push([part.slice(1), decodeSegment(segment)])
    else if (part !== segment) return undefined
  }
  return Object.fromEntries(params)
}

/** A segment that is not well encoded stays as it is: it names nothing. */
const decodeSegment = (segment: string): string =>
  Either.getOrElse(
    Either.try(() => decodeURIComponent(segment)),
    () => segment
  )

/** Puts the definition and its handlers together. */
export const makeRouter = <Id extends string, Groups extends HttpApiGroup.HttpApiGroup.Any, Error, R>(
  api: HttpApi.HttpApi<Id, Groups, Error, R>,
  handlers: AnyHandlers
): Router => {
  const routes = new Map<string, { path: string; isPublic: boolean; operations: Map<string, Operation> }>()
  HttpApi.reflect(api, {
    onGroup: () => {},
    onEndpoint: (reflected) => {
      const { endpoint, group, middleware } = reflected
      const handler = handlers[group.identifier]?.[endpoint.name]
      if (handler === undefined) throw new Error(`${group.identifier}.${endpoint.name} has no handler`)
      const isPublic = !Array.from(middleware).some(({ key }) => key === ApiKeyAuth.key)
      const route = routes.get(endpoint.path) ?? { path: endpoint.path, isPublic, operations: new Map() }
      const operation = operationOf(reflected, handler)
      // Whoever forgets one or the other must not open a door.
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
      const params = paramsOf(pattern, segments)
      if (params !== undefined) return { route, params }
    }
    return undefined
  }
}
