import { HttpApi, HttpApiSchema, HttpMethod } from "@effect/platform"
import { Option, type Schema, SchemaAST } from "effect"
import { Api } from "../Api.ts"
import { ApiKeyAuth, requiredPermissions } from "../Auth/Api.ts"
import { type ErrorCode, errorCodes, statusOf } from "../Domain/ApiError.ts"
import type { Permission } from "../Domain/ApiKey.ts"
import { exampleError, meanings } from "./errors.ts"
import { type OperationExamples, operationExamples } from "./examples.ts"
import {
  type HeaderObject,
  type JsonSchema,
  type OperationObject,
  type Parameter,
  type Reference,
  type Response,
  refer
} from "./openApi.ts"
import { type OperationId, operationTexts } from "./texts.ts"

const integer = (minimum = 0): JsonSchema => ({ type: "integer", minimum })

/** `required`: every response that refers to the header has it. */
export const headers = {
  "X-Request-Id": {
    description: "Identifies this request in the operator's log.",
    required: true,
    schema: { type: "string", pattern: "^req_[A-Za-z0-9_-]{22}$" },
    example: "req_q3LmJ8kPzQ1v6ySFhS9X0w"
  },
  "X-RateLimit-Limit": {
    description:
      "The limit of the window with the fewest requests left: a minute or an hour, of the key or its account.",
    required: true,
    schema: integer(1),
    example: 100
  },
  "X-RateLimit-Remaining": {
    description: "Requests left in that window.",
    required: true,
    schema: integer(),
    example: 99
  },
  "X-RateLimit-Reset": {
    description: "When that window ends, in Unix seconds.",
    required: true,
    schema: integer(),
    example: 1769860860
  },
  "Retry-After": {
    description: "Seconds to wait before the next request.",
    required: true,
    schema: integer(1),
    example: 12
  },
  Allow: {
    description: "The methods that the path supports.",
    required: true,
    schema: { type: "string" },
    example: "GET, HEAD, POST"
  },
  Location: {
    description: "Path of the created object.",
    required: true,
    schema: { type: "string", format: "uri-reference" },
    example: "/v1/payments/pay_AZwT7J4AzuLMDHceQUS_fJMjoFEeWQ"
  },
  ETag: {
    description: "Identifies this version of the response: send it as `If-None-Match`.",
    required: true,
    schema: { type: "string", pattern: '^"[A-Za-z0-9_-]{22}"$' },
    example: '"q3LmJ8kPzQ1v6ySFhS9X0w"'
  },
  "Idempotent-Replayed": {
    description: "`true` if this is the stored response to an earlier request with the same `Idempotency-Key`.",
    required: false,
    schema: { type: "string", const: "true" },
    example: "true"
  }
} satisfies Record<string, HeaderObject>
type HeaderName = keyof typeof headers

/** The headers of every response to a key, after the one of every response. */
const rateHeaders: ReadonlyArray<HeaderName> = ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"]

/** The headers of a response, and whether it always has each. */
const named = (always: ReadonlyArray<HeaderName>, sometimes: ReadonlyArray<HeaderName>): Response["headers"] => ({
  ...Object.fromEntries(always.map((name) => [name, refer("headers", name)])),
  ...Object.fromEntries(sometimes.map((name) => [name, optionally(name)]))
})

/** A header that a response has only in some cases. */
const optionally = (name: HeaderName): HeaderObject | Reference =>
  headers[name].required ? { ...headers[name], required: false } : refer("headers", name)

const successHeaders = (keyed: boolean, always: ReadonlyArray<HeaderName>, sometimes: ReadonlyArray<HeaderName>) =>
  named(["X-Request-Id", ...(keyed ? rateHeaders : []), ...always], sometimes)

/** Errors before the rate limit, some of them also after it. */
const beforeTheLimit: ReadonlySet<ErrorCode> = new Set([
  "BAD_REQUEST",
  "FORBIDDEN",
  "SHUTTING_DOWN",
  "TOO_MANY_CONNECTIONS",
  "OVERLOADED",
  "STORE_UNAVAILABLE"
])

const withRetryAfter: ReadonlySet<ErrorCode> = new Set([
  "RATE_LIMITED",
  "TOO_MANY_STREAMS",
  "IDEMPOTENCY_KEY_IN_USE",
  "RATE_UNAVAILABLE",
  "SHUTTING_DOWN",
  "TOO_MANY_CONNECTIONS",
  "OVERLOADED",
  "STORE_UNAVAILABLE"
])

const errorHeaders = (codes: ReadonlyArray<ErrorCode>, keyed: boolean) => {
  const always: Array<HeaderName> = ["X-Request-Id"]
  const sometimes: Array<HeaderName> = []
  const add = (name: HeaderName, has: (code: ErrorCode) => boolean) => {
    if (codes.every(has)) always.push(name)
    else if (codes.some(has)) sometimes.push(name)
  }
  if (keyed) {
    const isLate = codes.every((code) => !beforeTheLimit.has(code) && code !== "UNAUTHORIZED")
    if (isLate) always.push(...rateHeaders)
    else if (!codes.includes("UNAUTHORIZED")) sometimes.push(...rateHeaders)
  }
  add("Retry-After", (code) => withRetryAfter.has(code))
  add("Allow", (code) => code === "METHOD_NOT_ALLOWED")
  return named(always, sometimes)
}

const errorSchemaName = (code: ErrorCode): string => `Error.${code}`

const referTo = (code: ErrorCode): Reference => refer("schemas", errorSchemaName(code))

/** A response with two possible bodies: `/readyz` is 503 with its report, or with an error. */
export const either = (success: Response | undefined, error: Response): Response => {
  const [own, other] = [success, error].map((response) => response?.content?.["application/json"])
  if (success === undefined || own === undefined || other === undefined) return error
  const added = (Object.keys(error.headers ?? {}) as ReadonlyArray<HeaderName>).filter(
    (name) => success.headers?.[name] === undefined
  )
  return {
    description: `${success.description}\n\n${error.description}`,
    headers: { ...success.headers, ...named([], added) },
    content: {
      "application/json": {
        schema: anyOf([own.schema, ...(other.schema.anyOf ?? [other.schema])]),
        examples: { ...own.examples, ...other.examples }
      }
    }
  }
}

/** The error response for several codes of one status, on an operation with or without a key. */
const errorResponse = (codes: ReadonlyArray<ErrorCode>, keyed: boolean): Response => ({
  description: codes.map((code) => `- \`${code}\`: ${meanings[code]}`).join("\n"),
  headers: errorHeaders(codes, keyed) ?? {},
  content: {
    "application/json": {
      schema: anyOf(codes.map(referTo)),
      examples: Object.fromEntries(codes.map((code) => [code, { value: exampleError(code) }]))
    }
  }
})

const anyOf = (schemas: ReadonlyArray<JsonSchema>): JsonSchema => {
  const [only] = schemas
  return schemas.length === 1 && only !== undefined ? only : { anyOf: schemas }
}

/** Errors of every operation: before it is reached, or by an error of the server. */
const failures: ReadonlyArray<ErrorCode> = ["REQUEST_TIMEOUT", "HEADERS_TOO_LARGE", "INTERNAL"]

/** The responses that are the same on every operation with a key, by name. */
const shared: Readonly<Record<string, ReadonlyArray<ErrorCode>>> = {
  Unauthorized: ["UNAUTHORIZED"],
  Forbidden: ["FORBIDDEN"],
  NotFound: ["NOT_FOUND"],
  MethodNotAllowed: ["METHOD_NOT_ALLOWED"],
  PayloadTooLarge: ["PAYLOAD_TOO_LARGE"],
  UnsupportedMediaType: ["UNSUPPORTED_MEDIA_TYPE"],
  RateLimited: ["RATE_LIMITED"],
  Unavailable: ["SHUTTING_DOWN", "TOO_MANY_CONNECTIONS", "OVERLOADED", "STORE_UNAVAILABLE"]
}

const notModified = "Your copy, identified by `If-None-Match`, is current."

const failure: Response = {
  ...errorResponse(failures, false),
  description: [
    "Refused before it reached the operation, or an error of this server.\n",
    ...failures.map((code) => `- ${statusOf[code]} \`${code}\`: ${meanings[code]}`)
  ].join("\n")
}

export const sharedResponses: Readonly<Record<string, Response>> = {
  ...Object.fromEntries(Object.entries(shared).map(([name, codes]) => [name, errorResponse(codes, true)])),
  NotModified: {
    description: notModified,
    headers: named(["X-Request-Id", "ETag"], []) ?? {}
  },
  Failure: failure
}

const notModifiedToKey: Response = {
  description: notModified,
  headers: named(["X-Request-Id", "ETag", ...rateHeaders], []) ?? {}
}

/** The errors of an operation, by status, and `default`. */
const errorResponses = (
  codes: ReadonlyArray<ErrorCode>,
  keyed: boolean
): Readonly<Record<string, Response | Reference>> => {
  const statuses = Array.from(new Set(codes.map((code) => statusOf[code])))
  const own = statuses.map((status) => {
    const some = codes.filter((code) => statusOf[code] === status)
    const name = Object.keys(shared).find((each) => keyed && String(shared[each]) === String(some))
    return [String(status), name === undefined ? errorResponse(some, keyed) : refer("responses", name)] as const
  })
  return { ...Object.fromEntries(own), default: refer("responses", "Failure") }
}

type Endpoint = Parameters<Parameters<typeof HttpApi.reflect>[1]["onEndpoint"]>[0]

/** Makes JSON Schemas, the named ones into `definitions`. */
export type ToJsonSchema = (ast: SchemaAST.AST) => JsonSchema

const parametersOf = (
  schema: Option.Option<Schema.Schema.All>,
  place: Parameter["in"],
  toJsonSchema: ToJsonSchema
): ReadonlyArray<Parameter> => {
  if (Option.isNone(schema)) return []
  const { properties = {}, required = [] } = toJsonSchema(schema.value.ast)
  return Object.entries(properties).map(([name, { description = "", ...rest }]) => ({
    name,
    in: place,
    required: required.includes(name),
    description,
    ...(rest.type === "object" ? ({ style: "deepObject", explode: true } as const) : {}),
    schema: rest
  }))
}

/** The codes that a definition declares: each is a schema by the name of `Error.<code>`. */
const declaredCodes = ({ errors }: Endpoint): ReadonlyArray<ErrorCode> =>
  Array.from(errors.values()).flatMap(({ ast }) =>
    ast.pipe(
      Option.map((some) => (SchemaAST.isUnion(some) ? some.types : [some])),
      Option.getOrElse(() => []),
      (types) => types.map((type) => Option.getOrElse(SchemaAST.getIdentifierAnnotation(type), () => "")),
      (names) => errorCodes.filter((code) => names.includes(`Error.${code}`))
    )
  )

/** The error codes of an operation in the order of the checks: its own, and those of all requests of its kind. */
const codesOf = (declared: ReadonlyArray<ErrorCode>, keyed: boolean, takesBody: boolean): ReadonlyArray<ErrorCode> => {
  const possible: ReadonlyArray<ErrorCode> = [
    "BAD_REQUEST",
    "VALIDATION_ERROR",
    "METHOD_NOT_ALLOWED",
    "SHUTTING_DOWN",
    "TOO_MANY_CONNECTIONS",
    "OVERLOADED",
    ...(keyed ? (["UNAUTHORIZED", "FORBIDDEN", "RATE_LIMITED", "STORE_UNAVAILABLE"] as const) : []),
    ...(takesBody ? (["INVALID_JSON", "PAYLOAD_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE"] as const) : []),
    ...declared
  ]
  return errorCodes.filter((code) => possible.includes(code))
}

/** Headers of a response, in addition to those that all have. */
const extraHeaders = (id: OperationId, takesBody: boolean, mayBeKept: boolean) => ({
  always: [
    ...(id === "payments.create" || id === "invoices.create" ? (["Location"] satisfies ReadonlyArray<HeaderName>) : []),
    ...(mayBeKept ? (["ETag"] satisfies ReadonlyArray<HeaderName>) : [])
  ],
  sometimes: takesBody ? (["Idempotent-Replayed"] satisfies ReadonlyArray<HeaderName>) : []
})

/** The media type without its parameters, as OpenAPI names it. */
const mediaType = (ast: SchemaAST.AST): string => HttpApiSchema.getEncoding(ast).contentType.split(";")[0] ?? ""

const successes = (
  { successes }: Endpoint,
  id: OperationId,
  { answers }: OperationExamples,
  toJsonSchema: ToJsonSchema,
  headersOfSuccess: Response["headers"]
): Readonly<Record<string, Response>> =>
  Object.fromEntries(
    Array.from(successes, ([status, { ast }]) => {
      const examples = answers[status]
      if (Option.isNone(ast) || examples === undefined) throw new Error(`${id} has no example of its ${status}`)
      const [first] = Object.values(examples)
      const content = { [mediaType(ast.value)]: { schema: toJsonSchema(ast.value), examples } }
      return [String(status), { description: `${first?.summary}.`, headers: headersOfSuccess ?? {}, content }]
    })
  )

const merge = (
  good: Readonly<Record<string, Response>>,
  bad: Readonly<Record<string, Response | Reference>>
): OperationObject["responses"] => ({
  ...good,
  ...Object.fromEntries(
    Object.entries(bad).map(([status, response]) => [
      status,
      "$ref" in response ? response : either(good[status], response)
    ])
  )
})

const needs = (permissions: ReadonlyArray<Permission>): string =>
  `Needs the permission${permissions.length === 1 ? "" : "s"} ${permissions.map((each) => `\`${each}\``).join(" and ")}.`

/** Whether a request needs a body: no body counts as an object without fields. */
const isRequired = ({ ast }: Schema.Schema.All): boolean =>
  SchemaAST.getPropertySignatures(SchemaAST.encodedAST(ast)).some(({ isOptional }) => !isOptional)

const operationOf = (reflected: Endpoint, toJsonSchema: ToJsonSchema): OperationObject => {
  const { endpoint, group, mergedAnnotations, middleware } = reflected
  const operationId = `${group.identifier}.${endpoint.name}` as OperationId
  const { description, summary } = operationTexts[operationId]
  const examples: OperationExamples = operationExamples[operationId]
  const permissions = requiredPermissions(mergedAnnotations)
  const keyed = Array.from(middleware).some(({ key }) => key === ApiKeyAuth.key)
  const takesBody = HttpMethod.hasBody(endpoint.method) && Option.isSome(endpoint.payloadSchema)
  // Responses that change only with the version and the configuration.
  const mayBeKept = group.identifier === "documents" || operationId === "payments.currencies"
  const { always, sometimes } = extraHeaders(operationId, takesBody, mayBeKept)
  const parameters = [
    ...parametersOf(endpoint.pathSchema, "path", toJsonSchema),
    ...parametersOf(endpoint.urlParamsSchema, "query", toJsonSchema),
    ...parametersOf(endpoint.headersSchema, "header", toJsonSchema),
    ...(takesBody ? [refer("parameters", "Idempotency-Key")] : []),
    ...(mayBeKept ? [refer("parameters", "If-None-Match")] : [])
  ]
  const good = successes(reflected, operationId, examples, toJsonSchema, successHeaders(keyed, always, sometimes))
  const codes = codesOf(declaredCodes(reflected), keyed, takesBody)
  return {
    operationId,
    tags: [group.identifier],
    summary,
    description: permissions.length === 0 ? description : `${description}\n\n${needs(permissions)}`,
    security: keyed ? [{ apiKey: permissions }] : [],
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(Option.isSome(endpoint.payloadSchema) && takesBody
      ? {
          requestBody: {
            required: isRequired(endpoint.payloadSchema.value),
            content: {
              "application/json": {
                schema: toJsonSchema(endpoint.payloadSchema.value.ast),
                ...(examples.request === undefined ? {} : { examples: examples.request })
              }
            }
          }
        }
      : {}),
    responses: {
      ...merge(good, errorResponses(codes, keyed)),
      ...(mayBeKept ? { 304: keyed ? notModifiedToKey : refer("responses", "NotModified") } : {})
    }
  }
}

/** Every operation of the definition, by path and method. */
export const operations = (
  toJsonSchema: ToJsonSchema
): Readonly<Record<string, Readonly<Record<string, OperationObject>>>> => {
  const paths: Record<string, Record<string, OperationObject>> = {}
  HttpApi.reflect(Api, {
    onGroup: () => {},
    onEndpoint: (reflected) => {
      const { method, path } = reflected.endpoint
      const template = path.replace(/:(\w+)/g, "{$1}")
      paths[template] = { ...paths[template], [method.toLowerCase()]: operationOf(reflected, toJsonSchema) }
    }
  })
  return paths
}
