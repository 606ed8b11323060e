import { Clock, Duration, Effect, Either, Option, type Scope } from "effect"
import { bodyText, makeHttpClient, type RequestFailed, readBody, tooLong } from "../../lib/httpClient.ts"
import { parseWithTexts } from "../../lib/Json.ts"
import { PriceSourceError } from "./PriceSource.ts"

/** For one request: connecting, sending, and reading the response to its end. */
const deadline = Duration.seconds(5)
/** Coinbase sends 20 KB for all its currencies. */
const maxAnswerBytes = 1024 * 1024

/** A JSON response, its numbers as strings, digit by digit as they were sent. */
export interface JsonResponse {
  readonly json: unknown
  /** When the source made it, Unix milliseconds: a cached response is older than its arrival. */
  readonly observedAt: number
}

/** Sends a GET request to a source. */
export type Get = (source: string, url: string) => Effect.Effect<JsonResponse, PriceSourceError>

const text = (header: unknown): string => (typeof header === "string" ? header : "")

/** RFC 9111, 4.2.3: the age of a response that was requested at `asked` and arrived at `came`. All in milliseconds. */
export const answerAgeOf = (headers: Readonly<Record<string, unknown>>, asked: number, came: number): number => {
  const date = Date.parse(text(headers.date))
  const apparent = Number.isNaN(date) ? 0 : Math.max(0, came - date)
  const said = /^\d{1,9}$/.test(text(headers.age)) ? Number(headers.age) * 1000 : 0
  return Math.max(apparent, said + came - asked)
}

const reasonOf = ({ code }: RequestFailed): string =>
  code === tooLong ? `more than ${maxAnswerBytes} bytes` : `no answer (${code || "no connection"})`

/** A client for price sources, until the scope closes. Redirects are not followed. */
export const makeGet: Effect.Effect<Get, never, Scope.Scope> = Effect.map(makeHttpClient("30 seconds"), (client) =>
  Effect.fn("PriceSource.get")(function* (source, url) {
    const failed = (reason: string) => new PriceSourceError({ source, reason })
    const asked = yield* Clock.currentTimeMillis
    const sent = client.send({
      url: new URL(url),
      method: "GET",
      headers: { accept: "application/json" },
      maxBytes: 2 * maxAnswerBytes
    })
    const { body, headers, status } = yield* sent.pipe(
      Effect.flatMap((response) =>
        readBody(response, async (body) => ({
          status: response.statusCode,
          headers: response.headers,
          body: await bodyText(body, maxAnswerBytes)
        }))
      ),
      Effect.mapError((cause) => failed(reasonOf(cause))),
      Effect.timeoutFail({
        duration: deadline,
        onTimeout: () => failed(`no answer within ${Duration.format(deadline)}`)
      })
    )
    if (status !== 200) return yield* failed(`HTTP ${status}`)
    const came = yield* Clock.currentTimeMillis
    const json = yield* Option.match(Either.getRight(parseWithTexts(body)), {
      onNone: () => failed("its answer is not JSON"),
      onSome: Effect.succeed
    })
    return { json, observedAt: came - answerAgeOf(headers, asked, came) }
  })
)
