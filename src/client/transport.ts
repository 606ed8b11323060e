// The client runs in other people's programs, without Effect: the platform's own fetch and timers are all it has.
// @effect-diagnostics globalFetch:off globalTimers:off
import type { ClientOptions } from "./client.ts"
import { TilldConnectionError, TilldError } from "./errors.ts"

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The JSON object that a text is; undefined when it is something else. */
export const parseObject = (text: string): Readonly<Record<string, unknown>> | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Seconds. A date, as proxies may send it, counts from the answer's own: the clock here may be another one. */
const retryAfterOf = (headers: Headers): number | undefined => {
  const value = headers.get("retry-after")
  if (value === null) return undefined
  if (/^\d+$/.test(value)) return Number(value)
  const seconds = (Date.parse(value) - Date.parse(headers.get("date") ?? "")) / 1_000
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds)
}

const foreign = ({ headers, status }: Response): string => {
  const where = headers.get("location")
  if (status >= 300 && status < 400) {
    return `The answer is a redirect (status ${status}${where === null ? "" : ` to ${where}`}), which is not followed, so that the API key goes nowhere else: baseUrl must be where tilld itself answers.`
  }
  const type = headers.get("content-type") ?? "no content type"
  return `The answer (status ${status}, ${type}) is not one of tilld: it comes from something else at baseUrl, or from a proxy before it.`
}

/** What an answer carries, or the error that it is. `text` is its whole body; `hide` takes out what nobody may read. */
const contentOf = (
  response: Response,
  text: string,
  hide: (text: string) => string
): Readonly<Record<string, unknown>> => {
  const content = parseObject(response.ok ? text : hide(text))
  if (response.ok && content !== undefined) return content
  const error = isRecord(content?.["error"]) ? content["error"] : {}
  const { code, details, message, requestId } = error
  const isOurs = !response.ok && typeof code === "string" && typeof message === "string"
  throw new TilldError({
    status: response.status,
    code: isOurs ? code : "INVALID_RESPONSE",
    message: isOurs ? message : hide(foreign(response)),
    details: isOurs ? details : undefined,
    requestId: typeof requestId === "string" ? requestId : (response.headers.get("x-request-id") ?? undefined),
    retryAfter: retryAfterOf(response.headers)
  })
}

// The client runs in other people's programs, without Effect: the platform's own timers are all it has.
// @effect-diagnostics globalTimers:off

/** Waits, unless `signal` aborts it: then it rejects with the signal's reason. */
export const sleep = (millis: number, signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve, reject) => {
    signal?.throwIfAborted()
    const abort = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort)
      resolve()
    }, millis)
    signal?.addEventListener("abort", abort, { once: true })
  })

/**
 * Gives `work` a signal that aborts with the caller's, or after `millis` with `late`, and does not wait for work that
 * goes on in spite of it.
 */
const withDeadline = async <A>(
  millis: number,
  late: Error,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<A>
): Promise<A> => {
  signal?.throwIfAborted()
  const controller = new AbortController()
  const abort = () => controller.abort(signal?.reason)
  const timer = setTimeout(() => controller.abort(late), millis)
  signal?.addEventListener("abort", abort, { once: true })
  try {
    return await new Promise<A>((resolve, reject) => {
      controller.signal.addEventListener("abort", () => reject(controller.signal.reason), { once: true })
      work(controller.signal).then(resolve, reject)
    })
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener("abort", abort)
  }
}

const firstDelay = 500
const longestDelay = 8_000

/** Longest `Retry-After` that is waited for, in seconds; beyond, the error says when to come back. */
const longestRetryAfter = 60

const transient: ReadonlySet<number> = new Set([429, 500, 502, 503, 504])

/** Whether asking again may be answered otherwise. */
const isTransient = (error: TilldError | TilldConnectionError): boolean =>
  error instanceof TilldConnectionError || transient.has(error.status) || error.code === "IDEMPOTENCY_KEY_IN_USE"

/**
 * How long to wait, in milliseconds, before the `retry`-th time of asking again, from 1 on; undefined where asking again
 * is of no use. Doubling from half a second, and each time by chance up to one half less, so that clients that failed
 * together do not come back together. `random` is in [0, 1).
 */
const delayBefore = (retry: number, error: unknown, random: number): number | undefined => {
  if (!(error instanceof TilldError || error instanceof TilldConnectionError) || !isTransient(error)) return undefined
  const retryAfter = error instanceof TilldError ? (error.retryAfter ?? 0) : 0
  if (retryAfter > longestRetryAfter) return undefined
  return retryAfter * 1_000 + Math.min(firstDelay * 2 ** (retry - 1), longestDelay) * (1 - random / 2)
}

/** Who answers so has changed nothing. */
const untouched: ReadonlySet<string> = new Set([
  "SHUTTING_DOWN",
  "STORE_UNAVAILABLE",
  "TOO_MANY_CONNECTIONS",
  "OVERLOADED"
])

/** Whether the request may have been carried out although it failed. */
const mayHaveHappened = (error: unknown): boolean =>
  error instanceof TilldConnectionError
    ? !/\((?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN)\)$/.test(error.message)
    : error instanceof TilldError && error.status >= 500 && !untouched.has(error.code)

/** How the client waits, and by which chance. */
export interface Waiting {
  readonly sleep: (millis: number, signal: AbortSignal | undefined) => Promise<void>
  /** In [0, 1). */
  readonly random: () => number
}

export interface Call {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE"
  /** From `/v1` on, with its query. */
  readonly path: string
  /** Sent as JSON. */
  readonly body?: unknown
  readonly idempotencyKey?: string | undefined
  readonly signal?: AbortSignal | undefined
  /** The answer where the attempt before, whose own answer got lost, may be why there is nothing there any more. */
  readonly ifGone?: object
}

/** Answered with what the API's schemas promise for the call: the caller names it. */
export type Send = <A>(call: Call) => Promise<A>

const longestTimer = 2 ** 31 - 1

/** Everything before `/v1`. */
const rootOf = (baseUrl: string): string => {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.search !== "" || url.hash !== "") {
    throw new TypeError("baseUrl must be an absolute http or https URL without query, such as https://pay.example.com")
  }
  if (url.username !== "" || url.password !== "") throw new TypeError("baseUrl must have no user info")
  if (/\/v1\/*$/.test(url.pathname)) throw new TypeError("baseUrl must not end in /v1: the client adds it")
  return url.origin + url.pathname.replace(/(?<!\/)\/+$/, "")
}

/** The options with their defaults. An error says what is wrong without the value: it may be a key. */
const checked = ({ apiKey, baseUrl, maxRetries = 2, timeoutMs = 30_000, ...options }: ClientOptions) => {
  const root = rootOf(baseUrl)
  if (!/^svc_(?:live|test)_[0-9A-Za-z]+$/.test(apiKey)) {
    throw new TypeError("apiKey must be svc_live_ or svc_test_ followed by letters and digits")
  }
  if (!(timeoutMs > 0 && timeoutMs <= longestTimer)) {
    throw new TypeError(`timeoutMs must be above 0 and at most ${longestTimer}`)
  }
  if (!Number.isInteger(maxRetries) || maxRetries < 0) throw new TypeError("maxRetries must be an integer from 0 on")
  // Looked up with each call: programs that trace requests may put theirs in its place later.
  const { fetch = (url, init) => globalThis.fetch(url, init) } = options
  return { root, apiKey, fetch, timeoutMs, maxRetries }
}

/** `ECONNREFUSED` and the like. Only that, since nobody knows what else a message of another's may tell. */
const reasonOf = (error: unknown): string => {
  const causes = error instanceof Error ? [error, error.cause] : []
  const codes = causes.map((cause) => (cause instanceof Error && "code" in cause ? cause.code : undefined))
  const code = codes.find((each) => typeof each === "string" && /^[A-Z][A-Z0-9_]*$/.test(each))
  return code === undefined ? "" : ` (${code})`
}

/** Sends requests, each until it is answered for good. */
export const makeSend = (options: ClientOptions, { random, sleep }: Waiting): Send => {
  const { apiKey, fetch, maxRetries, root, timeoutMs } = checked(options)
  const { host } = new URL(root)
  const hide = (text: string) => text.replaceAll(apiKey, "[API key]")

  const initOf = ({ body, idempotencyKey, method }: Call): RequestInit => ({
    method,
    headers: {
      accept: "application/json",
      "x-api-key": apiKey,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...(idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey })
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    // To another origin fetch would take the API key along: it drops Authorization only.
    // https://github.com/nodejs/undici/issues/4917
    redirect: "manual"
  })

  const attempt = async (url: string, init: RequestInit, signal: AbortSignal | undefined) => {
    const late = new TilldConnectionError(`tilld at ${host} did not answer within ${timeoutMs} ms`)
    try {
      const exchange = async (abort: AbortSignal) => {
        const response = await fetch(url, { ...init, signal: abort })
        return [response, await response.text()] as const
      }
      return await withDeadline(timeoutMs, late, signal, exchange)
    } catch (cause) {
      signal?.throwIfAborted()
      if (cause === late) throw cause
      throw new TilldConnectionError(`The connection to tilld at ${host} failed${reasonOf(cause)}`, { cause })
    }
  }

  return async <A>(call: Call): Promise<A> => {
    const init = initOf(call)
    let happened = false
    for (let retry = 1; ; retry++) {
      try {
        const [response, text] = await attempt(root + call.path, init, call.signal)
        return contentOf(response, text, hide) as A
      } catch (error) {
        const isGone = happened && error instanceof TilldError && error.code === "NOT_FOUND"
        if (isGone && call.ifGone !== undefined) return call.ifGone as A
        const delay = retry > maxRetries ? undefined : delayBefore(retry, error, random())
        if (delay === undefined) throw error
        happened ||= mayHaveHappened(error)
        await sleep(delay, call.signal)
      }
    }
  }
}
