/**
 * From a request to its reply: the checks of every request in the order that the API promises (route, key and the address
 * that it is used from, rate limit, method, permission, body, idempotency key, schema), then the handler. Every error
 * becomes a reply with a JSON body; only an interruption, when the server shuts down, is passed on. `requests.ts` calls it
 * once a request's headers have arrived; the body is received when the checks before it have passed.
 */
import type { IncomingMessage } from "node:http"
import { Cause, Effect, Either, Option } from "effect"
import { forbiddenTo, makeAuthenticate } from "../Auth/authenticate.ts"
import { hashOf, shownPrefix } from "../Auth/keyFormat.ts"
import type { Allowance } from "../Auth/rateLimitWindows.ts"
import { RateLimits } from "../Auth.ts"
import { ApiError } from "../Domain/ApiError.ts"
import { type ApiKey, isPluginKey } from "../Domain/ApiKey.ts"
import { BoundedMap } from "../lib/BoundedMap.ts"
import { Windows } from "../lib/Windows.ts"
import { Settings } from "../Settings.ts"
import { StoreUnavailable } from "../Sql.ts"
import { LogLimit } from "../Telemetry/LogLimit.ts"
import { type Body, noBytes, parseBody } from "./body.ts"
import { clientAddressOf, networkOf } from "./clientAddress.ts"
import type { HttpAnswer } from "./Handler.ts"
import { errorReply, type HttpReply, isPieces, unlessKept } from "./HttpReply.ts"
import { Idempotency, type StoreReplay } from "./idempotency.ts"
import type { Hold, ObservedRoute, Page, Pages } from "./PageHandler.ts"
import { type AnsweredRequest, loggedRequest, type NoteRequest } from "./RequestLog.ts"
import { type Observe, traceRequests } from "./requestMetrics.ts"
import { allowOf, type Match, type Route, type Router, type ServedOperation } from "./routes.ts"
import { overloaded, type Turns } from "./turns.ts"

const noHost = new ApiError({ code: "BAD_REQUEST", message: "The Host header is missing." })

const manyHosts = new ApiError({ code: "BAD_REQUEST", message: "There is more than one Host header." })

/** Node keeps the first of several Host headers. A proxy in front may have looked at another one (RFC 9112, 3.2). */
const hostProblem = ({ headers, httpVersion, rawHeaders }: IncomingMessage): ApiError | undefined => {
  if (headers.host === undefined) return httpVersion === "1.1" ? noHost : undefined
  let hosts = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.length === 4 && rawHeaders[i]?.toLowerCase() === "host") hosts += 1
  }
  return hosts > 1 ? manyHosts : undefined
}

const nothingThere = new ApiError({ code: "NOT_FOUND", message: "There is nothing at this path." })

/** A base URL without `/v1` or with it twice, and a slash at the end, are common mistakes: the message has the right path. */
const noRoute = (path: string, router: Router): ApiError => {
  const trimmed = path.replace(/\/$/, "")
  const [meant] = [trimmed, `/v1${trimmed.replace(/^(?:\/v1)+(?=\/)/, "")}`].flatMap((each) => router(each) ?? [])
  if (meant === undefined) return nothingThere
  return new ApiError({ code: "NOT_FOUND", message: `There is nothing at this path: it is ${meant.route.path}.` })
}

const methodNotAllowed = (route: Route) => {
  const allow = allowOf(route)
  return new ApiError({ code: "METHOD_NOT_ALLOWED", message: `This path takes ${allow}.`, headers: { allow } })
}

/** The scope of an idempotency key: a method and a path with its ids. */
const scopeOf = (method: string, { path }: Route, params: Readonly<Record<string, string>>): string =>
  `${method} ${path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(params[name] ?? ""))}`

const forPlugins = new ApiError({
  code: "FORBIDDEN",
  message:
    "This key is for shop plugins, which send it to /api/v1: make one for this API in the portal, under Keys (/portal)."
})

const storeUnavailable = new ApiError({
  code: "STORE_UNAVAILABLE",
  message: "The store cannot be used at the moment, and nothing was changed: try again soon.",
  headers: { "retry-after": "5" }
})

const internal = new ApiError({
  code: "INTERNAL",
  message: "Something went wrong here, not with the request: the operator finds it in the log by this request id."
})

/** The state of the tightest limit, of the key or its account, on every reply to an authenticated request. */
const limitHeaders = ({ limit, remaining, resetAt }: Allowance): Readonly<Record<string, string>> => ({
  "x-ratelimit-limit": String(limit),
  "x-ratelimit-remaining": String(remaining),
  // Rounded up: at the start of that second the window would not have ended yet.
  "x-ratelimit-reset": String(Math.ceil(resetAt / 1000))
})

const rateLimited = ({ limit, of, resetAt, window }: Allowance, now: number) =>
  new ApiError({
    code: "RATE_LIMITED",
    message:
      `${of === "key" ? "This key" : "All keys of this account together"} may make ${limit} requests ` +
      `a${window === "hour" ? "n hour" : " minute"}: wait as long as Retry-After says.`,
    details: { window, limit },
    headers: { "retry-after": String(Math.max(1, Math.ceil((resetAt - now) / 1000))) }
  })

/** While the store is down every request fails. */
const storeLogs = { perKey: 6, inAll: 6 }

/** By the client's network: a client that guesses keys must not fill the log. */
const refusedKeyLogs = { perKey: 3, inAll: 60 }

/**
 * Refusals that a key beyond its rate, and failed authentications that a network, may have in so many milliseconds. Further ones
 * are answered at their end, so that they take no time from others.
 */
const refusalWindow = 5_000
const mostRefusals = 50
const mostFailures = 5

/** People who are signed in, by their cookies, in memory. */
const mostSignedIn = 10_000

/** The request target without the `http://host` that a proxy may put before it (RFC 9112, 3.2.2). */
const targetOf = ({ url = "/" }: IncomingMessage): readonly [path: string, search: string] => {
  const target = url.startsWith("/") ? url : url.replace(/^https?:\/\/[^/?]*/i, "")
  const mark = target.indexOf("?")
  return mark === -1 ? [target, ""] : [target.slice(0, mark), target.slice(mark + 1)]
}

const headerOf = ({ headers }: IncomingMessage, name: string): string | undefined => {
  const value = headers[name]
  return typeof value === "string" ? value : undefined
}

/** Continues synchronously, without a fiber's steps: most checks need not wait. */
const whenChecked = <A, E, B, E2>(checked: Effect.Effect<A, E>, next: (value: A) => Effect.Effect<B, E2>) => {
  if (!Either.isEither(checked)) return Effect.flatMap(checked, next)
  // Sound: an Either is the effect of its own type.
  const either = checked as Either.Either<A, E>
  return Either.isRight(either) ? next(either.right) : Either.left(either.left)
}

const replyOf = (
  { contentType, successStatus }: ServedOperation,
  { body, headers = {}, status = successStatus }: HttpAnswer<unknown>
): HttpReply => {
  if (contentType === undefined) return { status, headers, text: JSON.stringify(body) }
  const typed = { status, headers: { ...headers, "content-type": contentType } }
  return isPieces(body) ? { ...typed, text: "", rest: body } : { ...typed, text: String(body) }
}

const encoded = new WeakMap<HttpAnswer<unknown>, HttpReply>()

/** The same; a shared answer is encoded once. */
const sharedReplyOf = (operation: ServedOperation, answer: HttpAnswer<unknown>): HttpReply => {
  if (answer.isShared !== true) return replyOf(operation, answer)
  const cached = encoded.get(answer)
  if (cached !== undefined) return cached
  const reply = replyOf(operation, answer)
  const shared = { ...reply, bytes: [Buffer.from(reply.text)] }
  encoded.set(answer, shared)
  return shared
}

/** The results of a request's checks. The reply and the metrics need it even when a later check fails. */
interface Findings {
  /** When the last of the request arrived: the time that a slow client takes is not the server's. */
  startedAt: bigint
  /** Headers for the reply, whatever its status. */
  headers: Readonly<Record<string, string>>
  route: ObservedRoute | undefined
  key: ApiKey | undefined
  sent: AnsweredRequest["sent"]
}

/**
 * Replies to a request, once its headers have arrived. Never fails: errors and defects are replies too. `hold` is called to slow
 * a refusal down, or after the body has been received.
 */
export type Respond = (
  request: IncomingMessage,
  /** Receives the body, if it is wanted. */
  body: Effect.Effect<Body>,
  requestId: string,
  hold?: Hold
) => Effect.Effect<HttpReply>

/** How an API is spoken: where a request has its key, which keys it takes, and how its errors are written. */
export interface Dialect {
  readonly keyOf: (request: IncomingMessage) => string | undefined
  /** Fails for a key of another API. An `Either`, unless the store has to be asked. */
  readonly admit: (key: ApiKey) => Effect.Effect<ApiKey, ApiError | StoreUnavailable>
  readonly errorReply: (error: ApiError, requestId: string) => HttpReply
}

const ownDialect: Dialect = {
  keyOf: (request) => headerOf(request, "x-api-key"),
  admit: (key) => (isPluginKey(key) ? Either.left(forPlugins) : Either.right(key)),
  errorReply
}

/**
 * Makes the function that replies. `turns` says when requests are worked on, least of all those without an accepted key;
 * `pages` answer their own paths; `note` logs authenticated requests.
 */
export const makeRespond = Effect.fnUntraced(function* (
  router: Router,
  observe: Observe = () => {},
  turns?: Turns,
  pages: Pages = () => undefined,
  note: NoteRequest = () => {},
  dialect: Dialect = ownDialect
) {
  const authenticate = yield* makeAuthenticate
  const limits = yield* RateLimits
  const idempotency = yield* Idempotency
  const { server } = yield* Settings
  const clientAddress = clientAddressOf(server.trustedProxies)
  const clock = yield* Effect.clock
  const refusals = new Windows(refusalWindow)
  const signedIn = new BoundedMap<string, true>(mostSignedIn)
  const storeErrors = new LogLimit(storeLogs)
  const refusedKeys = new LogLimit(refusedKeyLogs)

  /** Delays the reply to repeated authentication failures from one network, and closes the connection after it. */
  const delayFailure = (request: IncomingMessage, requestId: string, error: ApiError, hold: Hold) =>
    Effect.gen(function* () {
      const network = networkOf(clientAddress(request))
      const presented = dialect.keyOf(request)
      if (presented !== undefined && error.code === "UNAUTHORIZED") {
        const about = { prefix: shownPrefix(presented), network, requestId }
        yield* refusedKeys.write(network, Effect.annotateLogs(Effect.logWarning("an API key was refused"), about))
      }
      const wait = refusals.excess(network, mostFailures, clock.unsafeCurrentTimeMillis())
      if (wait === 0) return yield* error
      yield* hold(Effect.sleep(wait))
      const { code, message } = error
      return yield* new ApiError({ code, message, headers: { connection: "close" } })
    })

  // A wrong address is a failed authentication, and does not count for the key: otherwise a thief of the key could use
  // up its rate limit.
  const authenticated = (request: IncomingMessage, requestId: string, hold: Hold) =>
    authenticate(
      dialect.keyOf(request),
      () => clientAddress(request),
      (error) => atTurn(false, hold, delayFailure(request, requestId, error, hold), overloaded)
    )

  /** Runs work for a request without an accepted key, at its turn. */
  const atTurn = <A, E>(isKnown: boolean, hold: Hold, work: Effect.Effect<A, E>, refused: Effect.Effect<A, E>) =>
    turns === undefined ? work : turns.run(isKnown, hold, work, refused)

  const pageOf = (page: Page, request: IncomingMessage, form: Body, requestId: string, hold: Hold) => {
    const [path, search] = targetOf(request)
    const { headers, method = "" } = request
    const client = clientAddress(request)
    const cookies = hashOf(headers.cookie ?? "").toString("base64url")
    const recognised = () => void signedIn.set(cookies, true)
    // A cookie that no page has verified counts for nothing.
    const isKnown = headers.cookie !== undefined && signedIn.has(cookies)
    const asked = { method, path, search, headers, body: form, client, requestId, hold, recognised }
    const inTurns = (reply: HttpReply): HttpReply =>
      reply.rest === undefined || turns === undefined ? reply : { ...reply, rest: turns.inTurns(reply.rest) }
    return atTurn(isKnown, hold, Effect.map(page.reply(asked), inTurns), page.overloaded)
  }

  const handle = (
    request: IncomingMessage,
    body: Effect.Effect<Body>,
    requestId: string,
    findings: Findings,
    hold: Hold
  ) =>
    Effect.suspend((): Effect.Effect<HttpReply, ApiError | StoreUnavailable> => {
      const [path] = targetOf(request)
      const page = pages(path)
      findings.route = page?.route
      const problem = hostProblem(request)
      if (page !== undefined && problem === undefined) {
        // Before its turn: a body that was not asked for is dropped while a request waits.
        const form = request.method === "POST" ? body : Effect.succeed(noBytes)
        return Effect.flatMap(form, (received) => pageOf(page, request, received, requestId, hold))
      }
      const match = router(path)
      const work = problem ?? answerOf(match, request, body, requestId, findings, hold)
      if (match?.route.isPublic === false) return work
      return atTurn(false, hold, work, overloaded)
    })

  /** The checks between the key and the body: an `Either`, unless the refusal is delayed. */
  const allowed = (request: IncomingMessage, route: Route, key: ApiKey | undefined, findings: Findings, hold: Hold) => {
    if (key !== undefined) {
      // Every authenticated request counts, also one that fails a later check.
      const now = clock.unsafeCurrentTimeMillis()
      const allowance = limits.spend(key, now)
      findings.headers = limitHeaders(allowance)
      if (!allowance.allowed) {
        const wait = turns === undefined ? 0 : refusals.excess(key.id, mostRefusals, now)
        const refusal = rateLimited(allowance, now + wait)
        return wait > 0 ? Effect.zipRight(hold(Effect.sleep(wait)), refusal) : Either.left(refusal)
      }
    }
    const operation = route.operations.get(request.method ?? "")
    if (operation === undefined) return Either.left(methodNotAllowed(route))
    const forbidden = key && forbiddenTo(key, operation.permissions)
    return forbidden === undefined ? Either.right(operation) : Either.left(forbidden)
  }

  /** Handles a request that has passed the checks. */
  const answerTo = (
    request: IncomingMessage,
    { params, route }: Match,
    operation: ServedOperation,
    payload: unknown,
    { key }: Findings
  ) => {
    const { headers } = request
    const work = (storeReplay?: StoreReplay) => {
      const replayOf = (answer: HttpAnswer<unknown>) => sharedReplyOf(operation, answer)
      const kept = storeReplay && ((answer: HttpAnswer<unknown>) => storeReplay(replayOf(answer)))
      const [, search] = targetOf(request)
      return Effect.map(operation.handle({ key, path: params, search, headers, payload, storeReplay: kept }), replayOf)
    }
    const idempotencyKey = operation.takesBody ? headerOf(request, "idempotency-key") : undefined
    return key === undefined || idempotencyKey === undefined
      ? work()
      : idempotency.once(key, scopeOf(request.method ?? "", route, params), idempotencyKey, payload, work)
  }

  const answerOf = (
    match: Match | undefined,
    request: IncomingMessage,
    body: Effect.Effect<Body>,
    requestId: string,
    findings: Findings,
    hold: Hold
  ): Effect.Effect<HttpReply, ApiError | StoreUnavailable> => {
    if (match === undefined) return noRoute(targetOf(request)[0], router)
    const { route } = match
    findings.route = route
    const authentication = route.isPublic ? Either.right(undefined) : authenticated(request, requestId, hold)
    return whenChecked(authentication, (key) => {
      findings.key = key
      const admitted = key === undefined ? Either.right(key) : dialect.admit(key)
      return whenChecked(
        whenChecked(admitted, () => allowed(request, route, key, findings, hold)),
        (operation) => {
          const work = () => {
            if (!operation.takesBody) return answerTo(request, match, operation, undefined, findings)
            return Effect.flatMap(body, (received) =>
              whenChecked(parseBody(request.headers, received), (payload) => {
                findings.sent = { payload, redact: operation.redact }
                return answerTo(request, match, operation, payload, findings)
              })
            )
          }
          const turn = key && turns?.ofAccount(key.account)
          return turn === undefined ? work() : Effect.flatMap(turn, work)
        }
      )
    })
  }

  const replyTo = (cause: Cause.Cause<ApiError | StoreUnavailable>, request: IncomingMessage, requestId: string) => {
    const error = Option.getOrUndefined(Cause.failureOption(cause))
    if (error instanceof ApiError) return Effect.succeed(dialect.errorReply(error, requestId))
    if (error instanceof StoreUnavailable) {
      const line = Effect.annotateLogs(Effect.logError(error.message), { requestId })
      return Effect.as(storeErrors.write("", line), dialect.errorReply(storeUnavailable, requestId))
    }
    // The handler was interrupted: the server is shutting down, and `requests.ts` replies with 503.
    if (Cause.isInterruptedOnly(cause)) return Effect.interrupt
    const [path] = targetOf(request)
    return Effect.logError("a request failed", cause).pipe(
      Effect.annotateLogs({ requestId, method: request.method, path }),
      Effect.as(dialect.errorReply(internal, requestId))
    )
  }

  const traced = yield* traceRequests

  const respond: Respond = (request, body, requestId, hold = (wait) => wait) =>
    Effect.suspend(() => {
      const startedAt = clock.unsafeCurrentTimeNanos()
      const findings: Findings = { startedAt, headers: {}, route: undefined, key: undefined, sent: undefined }
      const arrived = Effect.map(body, (received) => {
        findings.startedAt = clock.unsafeCurrentTimeNanos()
        return received
      })
      const finish = (full: HttpReply): HttpReply => {
        const reply = unlessKept(request, { ...full, headers: Object.assign({}, findings.headers, full.headers) })
        const seconds = Number(clock.unsafeCurrentTimeNanos() - findings.startedAt) / 1e9
        observe(findings.route, request.method, reply.status, seconds)
        const { key, route, sent } = findings
        if (key !== undefined && route !== undefined) {
          const at = clock.unsafeCurrentTimeMillis()
          const { method = "" } = request
          note(() => loggedRequest({ id: requestId, at, key, method, path: route.path, seconds, sent }, reply))
        }
        return reply
      }
      const replied = Effect.catchAllCause(handle(request, arrived, requestId, findings, hold), (cause) =>
        replyTo(cause, request, requestId)
      )
      return Effect.map(traced(replied, request, requestId, findings), finish)
    })
  return respond
})
