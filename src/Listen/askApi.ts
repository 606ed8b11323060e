import { Data, Effect } from "effect"
import { bodyText, type HttpClient, makeHttpClient, readBody } from "../lib/httpClient.ts"
import { cut } from "../lib/text.ts"

/** An API with the key for it. */
export interface ListenApi {
  readonly url: string
  readonly key: string
  readonly client: HttpClient
}

/** The API refused the request permanently. `message` has its error. */
export class ApiRefused extends Data.TaggedError("ApiRefused")<{ readonly message: string }> {}

/** No response, or a retryable one. */
export class ApiUnavailable extends Data.TaggedError("ApiUnavailable")<{ readonly message: string }> {}

/** Until the response's headers. */
const answerDeadline = "10 seconds"

/** Of an error's body. */
const maxErrorBytes = 64 * 1024

/** The client of an API, whose connections close with the scope. */
export const listenClient = makeHttpClient("4 seconds")

/** Status codes worth a retry, in addition to those from 500 on. */
const retryable = new Set([408, 425, 429])

/** Error code or message of a failed connection. */
export const reasonOf = (cause: unknown): string => {
  const { code, message } = (cause ?? {}) as { readonly code?: string; readonly message?: string }
  return code ?? message ?? String(cause)
}

/** Sends a request to the API. Fails with `ApiUnavailable` or `ApiRefused` unless the response is a 2xx. */
export const askApi = Effect.fn("Listen.ask")(function* (
  { client, key, url }: ListenApi,
  method: "GET" | "POST",
  path: string,
  more: { readonly headers?: Readonly<Record<string, string>>; readonly body?: string } = {}
) {
  const unavailable = (why: unknown) => new ApiUnavailable({ message: `${url} does not answer: ${reasonOf(why)}` })
  const headers = { "x-api-key": key, "accept-encoding": "identity", ...more.headers }
  const inTime = Effect.timeoutFail({ duration: answerDeadline, onTimeout: () => unavailable("no answer in time") })
  const target = new URL(url.replace(/\/$/, "") + path)
  const request = { url: target, method, headers, ...(more.body === undefined ? {} : { body: more.body }) }
  const sent = client.send({ ...request, maxBytes: Number.POSITIVE_INFINITY })
  const response = yield* sent.pipe(Effect.mapError(unavailable), inTime)
  const { statusCode: status = 0 } = response
  if (status >= 200 && status < 300) return response
  const read = readBody(response, (body) => bodyText(body, maxErrorBytes))
  const text = yield* read.pipe(Effect.mapError(unavailable), inTime)
  const message = `${url} answered ${status}: ${saidIn(text)}`
  return yield* retryable.has(status) || status >= 500 ? new ApiUnavailable({ message }) : new ApiRefused({ message })
})

/** The message of an error body, or the first 200 characters of any other body. */
const saidIn = (text: string): string => /"message":"((?:[^"\\]|\\.)*)/.exec(text)?.[1] ?? cut(text, 200)
