import type { Readable } from "node:stream"
import { Effect, Schedule, Stream } from "effect"
import type { EventKind } from "../Domain/Event.ts"
import { ApiRefused, ApiUnavailable, askApi, type ListenApi, reasonOf } from "./askApi.ts"
import { type EventBlock, type Message, makeParser } from "./messages.ts"

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
