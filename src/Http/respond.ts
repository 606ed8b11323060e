import type { IncomingMessage } from "node:http"
import { Cause, Clock, Effect, Option } from "effect"
import { FailedAttempts } from "../Auth/FailedAttempts.ts"
import { forbiddenTo, makeAuthenticate } from "../Auth/Http.ts"
import type { Allowance } from "../Auth/rateWindows.ts"
import { RateLimits } from "../Auth.ts"
import { ApiError } from "../Domain/ApiError.ts"
import { Settings } from "../Settings.ts"
import { StoreUnavailable } from "../Sql.ts"
import { type Body, parseBody } from "./body.ts"
import { clientAddressOf, networkOf } from "./clientAddress.ts"
import type { HttpAnswer } from "./Handler.ts"
import { Idempotency, type Remember } from "./idempotency.ts"
import type { Observe } from "./observe.ts"
import { errorReply, type HttpReply, isPieces } from "./reply.ts"
import { unlessKept } from "./revalidation.ts"
import { allowOf, type Operation, type Route, type Router } from "./routes.ts"
import type { UnauthenticatedBudget } from "./UnauthenticatedBudget.ts"

const noHost = new ApiError({ code: "BAD_REQUEST", message: "The Host header is missing." })

const noRoute = new ApiError({ code: "NOT_FOUND", message: "There is nothing at this path." })

const methodNotAllowed = (route: Route) => {
  const allow = allowOf(route)
  return new ApiError({ code: "METHOD_NOT_ALLOWED", message: `This path takes ${allow}.`, headers: { allow } })
}

const storeUnavailable = new ApiError({
  code: "STORE_UNAVAILABLE",
  message: "The store cannot be used at the moment, and nothing was changed: try again soon.",
  headers: { "retry-after": "5" }
})

const internal = new ApiError({
  code: "INTERNAL",
  message: "Something went wrong here, not with the request: the operator finds it in the log by this request id."
})

/** The limit that a key's owner must mind, on every answer to the key. */
const limitHeaders = ({ limit, remaining, resetAt }: Allowance): Readonly<Record<string, string>> => ({
  "x-ratelimit-limit": String(limit),
  "x-ratelimit-remaining": String(remaining),
  // A second that has begun is over only with its end.
  "x-ratelimit-reset": String(Math.ceil(resetAt / 1000))
})

const rateLimited = ({ limit, resetAt, window }: Allowance, now: number) =>
  new ApiError({
    code: "RATE_LIMITED",
    message: `This key may make ${limit} requests a${window === "hour" ? "n hour" : " minute"}: wait as long as Retry-After says.`,
    details: { window, limit },
    headers: { "retry-after": String(Math.max(1, Math.ceil((resetAt - now) / 1000))) }
  })

/** A store that is down refuses every request: the log hears of it this often. */
const storeLogMillis = 10_000

/** The request's target without the `http://host` that proxies may put before it (RFC 9112, 3.2.2). */
const targetOf = ({ url = "/" }: IncomingMessage): readonly [path: string, search: string] => {
  const target = url.startsWith("/") ? url : url.replace(/^https?:\/\/[^/?]*/i, "")
  const mark = target.indexOf("?")
  return mark === -1 ? [target, ""] : [target.slice(0, mark), target.slice(mark + 1)]
}

const headerOf = ({ headers }: IncomingMessage, name: string): string | undefined => {
  const value = headers[name]
  return typeof value === "string" ? value : undefined
}

const replyOf = (
  { contentType, successStatus }: Operation,
  { body, headers = {}, status = successStatus }: HttpAnswer<unknown>
): HttpReply => {
  if (contentType === undefined) return { status, headers, text: JSON.stringify(body) }
  const typed = { status, headers: { ...headers, "content-type": contentType } }
  return isPieces(body) ? { ...typed, text: "", rest: body } : { ...typed, text: String(body) }
}

const encoded = new WeakMap<HttpAnswer<unknown>, HttpReply>()

/** The same, from memory where the very same answer is given again. */
const sharedReplyOf = (operation: Operation, given: HttpAnswer<unknown>): HttpReply => {
  if (given.isShared !== true) return replyOf(operation, given)
  const known = encoded.get(given)
  if (known !== undefined) return known
  const reply = replyOf(operation, given)
  const made = { ...reply, bytes: Buffer.from(reply.text) }
  encoded.set(given, made)
  return made
}

/** What is known of a request, whatever becomes of it. */
interface Noted {
  /** Of its answer. */
  headers: Readonly<Record<string, string>>
  route: Route | undefined
}

/** Lets a request wait, in milliseconds; others need not wait for its connection. */
type Hold = (millis: number) => Effect.Effect<void>

/** Answers a request, whatever comes: all but its interruption is a reply. */
export type Respond = (request: IncomingMessage, body: Body, requestId: string, hold?: Hold) => Effect.Effect<HttpReply>

/** The checks of every request, in the order in which the API promises them, and then its handler. */
export const makeRespond = Effect.fnUntraced(function* (
  router: Router,
  observe: Observe = () => {},
  strangers?: UnauthenticatedBudget
) {
  const authenticate = yield* makeAuthenticate
  const limits = yield* RateLimits
  const idempotency = yield* Idempotency
  const { server } = yield* Settings
  const clientAddress = clientAddressOf(server.trustedProxies)
  const clock = yield* Effect.clock
  const failures = new FailedAttempts()
  let storeLoggedAt = Number.NEGATIVE_INFINITY

  /** Repeated failures from one address are answered late, each on a connection of its own. */
  const late = (request: IncomingMessage, error: ApiError, hold: Hold) =>
    Effect.gen(function* () {
      const delay = failures.failed(networkOf(clientAddress(request)), clock.unsafeCurrentTimeMillis())
      if (delay === 0) return yield* error
      yield* hold(delay)
      const { code, message } = error
      return yield* new ApiError({ code, message, headers: { connection: "close" } })
    })

  const authenticated = (request: IncomingMessage, hold: Hold) =>
    authenticate(headerOf(request, "x-api-key"), (error) => late(request, error, hold))

  const handle = (request: IncomingMessage, received: Body, noted: Noted, hold: Hold) =>
    Effect.gen(function* () {
      const [path, search] = targetOf(request)
      const match = router(path)
      if (strangers !== undefined && match?.route.isPublic !== false) {
        const wait = strangers.wait(networkOf(clientAddress(request)), clock.unsafeCurrentTimeMillis())
        if (wait > 0) yield* hold(wait)
      }
      if (request.headers.host === undefined && request.httpVersion === "1.1") return yield* noHost
      if (match === undefined) return yield* noRoute
      const { params, route } = match
      noted.route = route
      const key = route.isPublic ? undefined : yield* authenticated(request, hold)
      if (key !== undefined) {
        // Every authenticated request counts, whatever is wrong with it.
        const now = clock.unsafeCurrentTimeMillis()
        const allowance = limits.spend(key.id, now)
        noted.headers = limitHeaders(allowance)
        if (!allowance.allowed) {
          const wait = strangers?.wait(key.id, now) ?? 0
          if (wait > 0) yield* hold(wait)
          return yield* rateLimited(allowance, now + wait)
        }
      }
      const operation = route.operations.get(request.method ?? "")
      if (operation === undefined) return yield* methodNotAllowed(route)
      const forbidden = key && forbiddenTo(key, operation.permissions)
      if (forbidden !== undefined) return yield* forbidden
      const payload = operation.takesBody ? yield* parseBody(request.headers, received) : undefined
      const { headers } = request
      const work = (remember?: Remember) => {
        const replayOf = (answer: HttpAnswer<unknown>) => sharedReplyOf(operation, answer)
        const kept = remember && ((answer: HttpAnswer<unknown>) => remember(replayOf(answer)))
        return Effect.map(operation.handle({ key, path: params, search, headers, payload, remember: kept }), replayOf)
      }
      const idempotencyKey = operation.takesBody ? headerOf(request, "idempotency-key") : undefined
      return key === undefined || idempotencyKey === undefined
        ? yield* work()
        : yield* idempotency.once(key, route.path, idempotencyKey, payload, work)
    })

  const logStore = (error: StoreUnavailable) =>
    Effect.gen(function* () {
      const now = clock.unsafeCurrentTimeMillis()
      if (now - storeLoggedAt < storeLogMillis) return
      storeLoggedAt = now
      yield* Effect.logError(error.message)
    })

  const replyTo = (cause: Cause.Cause<ApiError | StoreUnavailable>, request: IncomingMessage, requestId: string) => {
    const error = Option.getOrUndefined(Cause.failureOption(cause))
    if (error instanceof ApiError) return Effect.succeed(errorReply(error, requestId))
    if (error instanceof StoreUnavailable) return Effect.as(logStore(error), errorReply(storeUnavailable, requestId))
    // What the handler waited for has ended before it: the server is shutting down, and says so.
    if (Cause.isInterruptedOnly(cause)) return Effect.interrupt
    const [path] = targetOf(request)
    return Effect.logError("a request failed", cause).pipe(
      Effect.annotateLogs({ requestId, method: request.method, path }),
      Effect.as(errorReply(internal, requestId))
    )
  }

  const respond: Respond = (request, body, requestId, hold = Clock.sleep) =>
    Effect.suspend(() => {
      const noted: Noted = { headers: {}, route: undefined }
      const began = clock.unsafeCurrentTimeNanos()
      return Effect.map(
        Effect.catchAllCause(handle(request, body, noted, hold), (cause) => replyTo(cause, request, requestId)),
        (given): HttpReply => {
          const reply = unlessKept(request, { ...given, headers: Object.assign({}, noted.headers, given.headers) })
          observe(noted.route, request.method, reply.status, Number(clock.unsafeCurrentTimeNanos() - began) / 1e9)
          return reply
        }
      )
    })
  return respond
})
