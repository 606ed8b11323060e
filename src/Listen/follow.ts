import type { Readable } from "node:stream"
import { Data, Duration, Effect, Schedule, Stream } from "effect"
import type { Agent } from "undici"
import { type Message, makeParser } from "./messages.ts"

/** Where an API is, and who asks. */
export interface Api {
  readonly url: string
  readonly key: string
  readonly agent: Agent
}

/** The server will not do it, now or later. `message` is what it says. */
export class ApiRefused extends Data.TaggedError("ApiRefused")<{ readonly status: number; readonly message: string }> {}

/** No answer, or one that may be another in a moment. */
export class ApiUnavailable extends Data.TaggedError("ApiUnavailable")<{ readonly message: string }> {}

/** To the answer's headers. */
const answerDeadline = "10 seconds"
/** A sign of life comes every 15 seconds. */
const silence = "40 seconds"

const backOff = Schedule.exponential("500 millis").pipe(Schedule.union(Schedule.spaced("15 seconds")))

export const reasonOf = (cause: unknown): string => {
  const { code, message } = (cause ?? {}) as { readonly code?: string; readonly message?: string }
  return code ?? message ?? String(cause)
}

/** Asks the API. Fails with what it says instead, unless it answers 2xx. */
export const ask = Effect.fn("Listen.ask")(function* (
  { agent, key, url }: Api,
  method: "GET" | "POST",
  path: string,
  more: { readonly headers?: Readonly<Record<string, string>>; readonly body?: string } = {}
) {
  const unavailable = (why: unknown) => new ApiUnavailable({ message: `${url} does not answer: ${reasonOf(why)}` })
  const { origin, pathname } = new URL(url)
  const headers = { "x-api-key": key, "user-agent": "tilld", ...more.headers }
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
  }).pipe(Effect.timeoutFail({ duration: answerDeadline, onTimeout: () => unavailable("no answer in time") }))
  const { body, statusCode: status } = response
  if (status >= 200 && status < 300) return body
  const text = yield* Effect.tryPromise({ try: () => body.text(), catch: unavailable }).pipe(
    Effect.timeoutFail({ duration: answerDeadline, onTimeout: () => unavailable("no answer in time") })
  )
  const message = `${url} answered ${status}: ${saidIn(text)}`
  return yield* status === 429 || status >= 500 ? new ApiUnavailable({ message }) : new ApiRefused({ status, message })
})

/** The message of an error body, or the start of whatever else came. */
const saidIn = (text: string): string => /"message":"((?:[^"\\]|\\.)*)"/.exec(text)?.[1] ?? text.slice(0, 200)

/** What has come since the last piece, once there is something. An interruption does not wait for it. */
const nextPiece = (body: Readable, lost: (why: unknown) => ApiUnavailable) =>
  Effect.async<string, ApiUnavailable>((resume) => {
    const look = () => {
      const piece: string | null = body.read()
      if (piece === null && !body.readableEnded && !body.destroyed) return
      stop()
      resume(piece === null ? lost(body.errored ?? "the server ended the stream") : Effect.succeed(piece))
    }
    const stop = () => void body.off("readable", look).off("close", look)
    body.on("readable", look).on("close", look)
    look()
    return Effect.sync(stop)
  })

const connect = (api: Api, after: string | undefined) =>
  Stream.unwrapScoped(
    Effect.gen(function* () {
      const headers = { accept: "text/event-stream", ...(after === undefined ? {} : { "last-event-id": after }) }
      const body = yield* Effect.acquireRelease(ask(api, "GET", "/v1/events/stream", { headers }), (body) =>
        Effect.sync(() => body.on("error", () => undefined).destroy())
      )
      const lost = (why: unknown) => new ApiUnavailable({ message: `${api.url} was lost: ${reasonOf(why)}` })
      body.setEncoding("utf8")
      return Stream.repeatEffect(nextPiece(body, lost)).pipe(
        Stream.timeoutFail(() => lost(`nothing came for ${silence}`), silence),
        Stream.mapConcat(makeParser())
      )
    })
  )

/**
 * Follows the account's events until it is interrupted, each once and in order: what is lost in between is asked for
 * again. `each` has done with a message before the next is read; one
 * without data says that it listens. `onLost` hears why it has to connect again, and when.
 */
export const follow = (
  api: Api,
  each: (message: Message) => Effect.Effect<void>,
  onLost: (why: string) => Effect.Effect<void>
): Effect.Effect<never, ApiRefused> =>
  Effect.suspend(() => {
    let after: string | undefined
    const take = (message: Message) =>
      Effect.zipRight(
        each(message),
        Effect.sync(() => {
          if (message.id !== "") after = message.id
        })
      )
    let wait: Schedule.ScheduleDriver<unknown, unknown, never> | undefined
    const once = Effect.gen(function* () {
      wait ??= yield* Schedule.driver(backOff)
      const driver = wait
      const heard = (message: Message) => Effect.zipRight(driver.reset, take(message))
      yield* Stream.runForEach(connect(api, after), heard).pipe(
        Effect.catchTag("ApiUnavailable", ({ message }) =>
          Effect.zipRight(onLost(message), Effect.ignore(driver.next(undefined)))
        )
      )
    })
    return Effect.forever(once)
  })

/** Connections that end with the scope. */
export const makeAgent = Effect.acquireRelease(
  Effect.map(
    Effect.promise(() => import("undici")),
    ({ Agent: Connections }) => new Connections({ connect: { timeout: Duration.toMillis(answerDeadline) } })
  ),
  (agent) => Effect.promise(() => agent.destroy())
)
