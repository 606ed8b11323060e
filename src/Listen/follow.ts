import type { Readable } from "node:stream"
import { Clock, Effect, Schedule, Stream } from "effect"
import type { EventKind } from "../Domain/Event.ts"
import type { HttpClient } from "../lib/httpClient.ts"
import { type SigningKey, signatureHeaders } from "../Webhooks/signature.ts"
import { readStart, webhookHeaders } from "../Webhooks/transport/DeliveryClient.ts"
import { ApiRefused, ApiUnavailable, askApi, type ListenApi, reasonOf } from "./askApi.ts"

/** An event of the stream. */
export interface Message {
  /** The position to resume after. */
  readonly id: string
  readonly data: string
}

/**
 * A server-sent event of the stream. An id without data is the position where the stream begins; without either it is a
 * keep-alive.
 */
interface EventBlock {
  readonly id: string | undefined
  readonly data: string | undefined
}

/** Parses server-sent events from text cut anywhere, in the form that tilld writes: lines end with \n. */
const makeParser = () => {
  let rest = ""
  return (piece: string): ReadonlyArray<EventBlock> => {
    const [last = "", ...whole] = `${rest}${piece}`.split("\n\n").reverse()
    rest = last
    return whole.reverse().map(parse)
  }
}

const parse = (block: string): EventBlock => {
  const lines = block.split("\n")
  // No regular expression: its dot stops at U+2028, which JSON strings may hold.
  const valueOf = (name: string) => lines.find((line) => line.startsWith(name))?.slice(name.length)
  return { id: valueOf("id: "), data: valueOf("data: ") }
}

/** Callbacks for an account's events, each once and in order. A call ends before the next begins. */
export interface Follower<E> {
  /** The event after which it begins; undefined: now. */
  readonly after: string | undefined
  /** Only these kinds; otherwise all that report a payment's new status. */
  readonly kinds?: ReadonlyArray<EventKind> | undefined
  /** Connected: events after `position` follow. It differs from the position asked for where that is no longer stored. */
  readonly onOpen: (position: string) => Effect.Effect<unknown>
  readonly onEvent: (event: Message) => Effect.Effect<unknown>
  /** The connection was lost, and why. It connects again unless this fails. */
  readonly onLost: (why: string) => Effect.Effect<void, E>
}

/** The stream has a keep-alive every 15 seconds. */
const silence = "40 seconds"

const backOff = Schedule.exponential("500 millis").pipe(Schedule.union(Schedule.spaced("15 seconds")))

/** Waits for the next text of the stream; can be interrupted meanwhile. */
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

const connect = (api: ListenApi, { kinds }: Pick<Follower<never>, "kinds">, after: string | undefined) =>
  Stream.unwrapScoped(
    Effect.gen(function* () {
      const headers = { accept: "text/event-stream", ...(after === undefined ? {} : { "last-event-id": after }) }
      // An acquisition cannot be interrupted by itself, and this one must end at its deadline, and with the command.
      const path = `/v1/events/stream${kinds === undefined ? "" : `?events=${kinds.join(",")}`}`
      const asked = Effect.interruptible(askApi(api, "GET", path, { headers }))
      const body = yield* Effect.acquireRelease(asked, (answer) => Effect.sync(() => answer.destroy()))
      if (body.headers["content-type"] !== "text/event-stream") {
        return yield* new ApiRefused({ message: `${api.url} answers, and not with a stream of events: is it a tilld?` })
      }
      const lost = (why: unknown) => new ApiUnavailable({ message: `${api.url} was lost: ${reasonOf(why)}` })
      body.setEncoding("utf8")
      return Stream.repeatEffect(nextPiece(body, lost)).pipe(
        Stream.timeoutFail(() => lost(`nothing came for ${silence}`), silence),
        Stream.mapConcat(makeParser())
      )
    })
  )

/** Follows an account's events until it is interrupted. After a lost connection it resumes behind the last event. */
export const follow = <E>(api: ListenApi, follower: Follower<E>): Effect.Effect<never, ApiRefused | E> =>
  Effect.gen(function* () {
    const { onEvent, onLost, onOpen } = follower
    const pause = yield* Schedule.driver(backOff)
    let { after } = follower
    const hear = ({ data, id }: EventBlock) =>
      Effect.gen(function* () {
        yield* pause.reset
        // A keep-alive.
        if (id === undefined) return
        yield* data === undefined ? onOpen(id) : onEvent({ id, data })
        after = id
      })
    const once = Effect.suspend(() => Stream.runForEach(connect(api, follower, after), hear))
    const lost = ({ message }: ApiUnavailable) => Effect.zipRight(onLost(message), Effect.ignore(pause.next(undefined)))
    return yield* Effect.forever(Effect.catchTag(once, "ApiUnavailable", lost))
  })

/** The deadline of a real delivery for the status, which alone decides. */
const statusDeadline = "30 seconds"

/** Outcome of forwarding an event: the server's status, or why there is none. */
export interface Forwarded {
  readonly status: number | undefined
  readonly error: string | undefined
  readonly durationMillis: number
}

/** Posts an event as its webhook would be: the same bytes and headers. */
export const forward = Effect.fn("Listen.forward")(function* (
  client: HttpClient,
  url: URL,
  key: SigningKey,
  event: { readonly id: string; readonly data: string }
) {
  const startedAt = yield* Clock.currentTimeMillis
  const body = Buffer.from(event.data, "utf8")
  const signed = signatureHeaders(key, event.id, body, startedAt)
  const headers = { ...webhookHeaders, ...signed }
  const outcome = yield* client.send({ url, method: "POST", headers, body, maxBytes: 64 * 1024 }).pipe(
    Effect.mapError(reasonOf),
    Effect.timeoutFail({ duration: statusDeadline, onTimeout: () => `no answer within ${statusDeadline}` }),
    Effect.tap(readStart),
    Effect.match({
      onSuccess: (response) => ({ status: response.statusCode, error: undefined }),
      onFailure: (error) => ({ status: undefined, error })
    })
  )
  const endedAt = yield* Clock.currentTimeMillis
  return { ...outcome, durationMillis: endedAt - startedAt } satisfies Forwarded
})
