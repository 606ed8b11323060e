import { type ErrorCode, statusOf } from "../Domain/ApiError.ts"
import { exampleError, meanings } from "./errors.ts"
import { type HeaderObject, type JsonSchema, type Reference, type Response, refer } from "./openApi.ts"

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
export type HeaderName = keyof typeof headers

const rateHeaders: ReadonlyArray<HeaderName> = ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"]
/** The headers of every response, and of every response to a key. */
export const commonHeaders: ReadonlySet<string> = new Set<HeaderName>(["X-Request-Id", ...rateHeaders])

/** The headers of a response, and whether it always has each. */
const named = (always: ReadonlyArray<HeaderName>, sometimes: ReadonlyArray<HeaderName>): Response["headers"] => ({
  ...Object.fromEntries(always.map((name) => [name, refer("headers", name)])),
  ...Object.fromEntries(sometimes.map((name) => [name, optionally(name)]))
})

/** A header that a response has only in some cases. */
const optionally = (name: HeaderName): HeaderObject | Reference =>
  headers[name].required ? { ...headers[name], required: false } : refer("headers", name)

export const successHeaders = (
  keyed: boolean,
  always: ReadonlyArray<HeaderName>,
  sometimes: ReadonlyArray<HeaderName>
) => named(["X-Request-Id", ...(keyed ? rateHeaders : []), ...always], sometimes)

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

export const errorSchemaName = (code: ErrorCode): string => `Error.${code}`

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
export const errorResponse = (codes: ReadonlyArray<ErrorCode>, keyed: boolean): Response => ({
  description: codes.map((code) => `- \`${code}\`: ${meanings[code].when}`).join("\n"),
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

const failure: Response = {
  ...errorResponse(failures, false),
  description: [
    "Refused before it reached the operation, or an error of this server.\n",
    ...failures.map((code) => `- ${statusOf[code]} \`${code}\`: ${meanings[code].when}`)
  ].join("\n")
}

export const sharedResponses: Readonly<Record<string, Response>> = {
  ...Object.fromEntries(Object.entries(shared).map(([name, codes]) => [name, errorResponse(codes, true)])),
  NotModified: {
    description: "Your copy, identified by `If-None-Match`, is current.",
    headers: named(["X-Request-Id", "ETag"], []) ?? {}
  },
  Failure: failure
}

/** The errors of an operation, by status, and `default`. */
export const errorResponses = (
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
