import { Data, Duration, Effect } from "effect"
import type { Agent } from "undici"
import { cut } from "../Domain/wellFormed.ts"

/** An API with the key for it. */
export interface ListenApi {
  readonly url: string
  readonly key: string
  readonly agent: Agent
}

/** The API refused the request permanently. `message` has its error. */
export class ApiRefused extends Data.TaggedError("ApiRefused")<{ readonly message: string }> {}

/** No response, or a retryable one. */
export class ApiUnavailable extends Data.TaggedError("ApiUnavailable")<{ readonly message: string }> {}

/** Until the response's headers. */
const answerDeadline = "10 seconds"

/** Status codes worth a retry, in addition to those from 500 on. */
const retryable = new Set([408, 425, 429])

/** Error code or message of a failed connection. */
export const reasonOf = (cause: unknown): string => {
  const { code, message } = (cause ?? {}) as { readonly code?: string; readonly message?: string }
  return code ?? message ?? String(cause)
}

/** Sends a request to the API. Fails with `ApiUnavailable` or `ApiRefused` unless the response is a 2xx. */
export const askApi = Effect.fn("Listen.ask")(function* (
  { agent, key, url }: ListenApi,
  method: "GET" | "POST",
  path: string,
  more: { readonly headers?: Readonly<Record<string, string>>; readonly body?: string } = {}
) {
  const unavailable = (why: unknown) => new ApiUnavailable({ message: `${url} does not answer: ${reasonOf(why)}` })
  const { origin, pathname } = new URL(url)
  const headers = { "x-api-key": key, "user-agent": "tilld", ...more.headers }
  const inTime = Effect.timeoutFail({ duration: answerDeadline, onTimeout: () => unavailable("no answer in time") })
  const response = yield* Effect.tryPromise({
    try: (signal) =>
      agent.request({
        origin,
        path: pathname.replace(/\/$/, "") + path,
        method,
        headers,
        body: more.body ?? null,
        headersTimeout: 0,
        bodyTimeout: 0,
        signal
      }),
    catch: unavailable
  }).pipe(inTime)
  const { body, statusCode: status } = response
  if (status >= 200 && status < 300) return response
  const text = yield* Effect.tryPromise({ try: () => body.text(), catch: unavailable }).pipe(inTime)
  const message = `${url} answered ${status}: ${saidIn(text)}`
  return yield* retryable.has(status) || status >= 500 ? new ApiUnavailable({ message }) : new ApiRefused({ message })
})

/** The message of an error body, or the first 200 characters of any other body. */
const saidIn = (text: string): string => /"message":"((?:[^"\\]|\\.)*)/.exec(text)?.[1] ?? cut(text, 200)

/** Connections that close with the scope. */
export const makeAgent = Effect.acquireRelease(
  Effect.map(
    Effect.promise(() => import("undici")),
    ({ Agent: Connections }) => new Connections({ connect: { timeout: Duration.toMillis(answerDeadline) } })
  ),
  (agent) => Effect.promise(() => agent.destroy())
)
