/**
 * The events of an account and mode as server-sent events, from any event that is kept or from now on. Each stream
 * reads the committed events from the store in order: it misses and repeats none. Called by `GET /v1/events`.
 */
import { Clock, Context, Data, Duration, Effect, Layer, Option, Stream } from "effect"
import { Keys } from "../Auth.ts"
import type { Owner } from "../Domain/Account.ts"
import type { ApiKey } from "../Domain/ApiKey.ts"
import { type EventKind, type Position, StatusEventKind, streamStart } from "../Domain/Event.ts"
import type { AccountId, EventId } from "../Domain/Ids.ts"
import { wellFormedJson } from "../lib/text.ts"
import { waitAtMost } from "../lib/waiting.ts"
import { Settings } from "../Settings.ts"
import { type Db, oneValue, Reader, type StoreUnavailable } from "../Sql.ts"
import { Outbox } from "./Outbox.ts"

/** Streams that an account may have open, in both modes together. */
const mostStreams = 20

/** Events in one chunk of a stream at most: it stays in memory for a client that reads slowly. */
const pageSize = 32

/** Interval of keep-alive comments. */
const heartbeat = "15 seconds"

/** The account has the maximum of streams open. */
export class TooManyStreams extends Data.TaggedError("TooManyStreams")<{ readonly limit: number }> {}

const message = ({ body, id, kind }: StoredEvent): string =>
  `id: ${id}\nevent: ${kind}\ndata: ${wellFormedJson(body)}\n\n`

/** Where a stream begins, and its first message: clients remember an id without data and raise no event. */
interface Beginning {
  readonly after: number
  readonly said: string
}

/** A comment, so that proxies and clients can tell a quiet stream from a dead one. */
const keepAlive = ":\n\n"

const atPosition = (id: string): string => `id: ${id}\n\n`

const makeEventStreams = Effect.gen(function* () {
  const reader = yield* Reader
  const keys = yield* Keys
  const outbox = yield* Outbox
  const retention = Duration.toMillis((yield* Settings).retention.deliveries)
  const streams = new Map<AccountId, number>()

  const countOf = (account: AccountId): number => streams.get(account) ?? 0
  const change = (account: AccountId, by: 1 | -1) =>
    Effect.sync(() => {
      const count = countOf(account) + by
      if (count === 0) streams.delete(account)
      else streams.set(account, count)
    })

  const beginning = Effect.fnUntraced(function* (key: ApiKey, position: Position | undefined) {
    if (position === streamStart) return { after: 0, said: atPosition(streamStart) } satisfies Beginning
    const { id, sequence } = (yield* newestEvent(reader, key)) ?? { id: streamStart, sequence: 0 }
    // The newest event is always a valid position: after it nothing can have been deleted, however old it is.
    if (position === undefined || position === id) return { after: sequence, said: atPosition(id) } satisfies Beginning
    // After an older event some may have been deleted, while others with pending deliveries are kept.
    const since = (yield* Clock.currentTimeMillis) - retention
    const place = yield* eventPlace(reader, key, position, since)
    if (place !== undefined) return { after: place.sequence, said: atPosition(position) } satisfies Beginning
    const why = `: ${position} is not kept any more: from the oldest event that is\n`
    return { after: 0, said: why + atPosition(streamStart) } satisfies Beginning
  })

  /**
   * Every event of the key's owner after a position, once and in order; without a position, from now on. The stream ends
   * when the key is revoked or expires or its list of addresses changes, and when the store cannot be read: the client
   * then reconnects.
   *
   * @param kinds the kinds it has; those that report a new status unless given
   */
  const open = Effect.fn("EventStreams.open")(function* (
    key: ApiKey,
    position: Position | undefined,
    kinds: ReadonlyArray<EventKind> = StatusEventKind.literals
  ) {
    const { after, said } = yield* beginning(key, position)
    // Checked last, so that no other stream is opened between this check and the count.
    if (countOf(key.account) >= mostStreams) return yield* new TooManyStreams({ limit: mostStreams })
    const follow = Effect.gen(function* () {
      yield* Effect.acquireRelease(change(key.account, 1), () => change(key.account, -1))
      const changed = yield* outbox.listen(key)

      /** Waits for the next chunk after a sequence number: events, or a keep-alive comment. */
      const next = (behind: number): Effect.Effect<Option.Option<readonly [string, number]>, StoreUnavailable> =>
        Effect.gen(function* () {
          if (!(yield* keys.isLive(key))) return Option.none()
          const page = yield* eventPage(reader, key, behind, pageSize)
          const last = page.at(-1)
          if (last !== undefined) {
            const text = page.filter(({ kind }) => kinds.includes(kind)).map(message)
            return Option.some([text.length === 0 ? keepAlive : text.join(""), last.sequence] as const)
          }
          const woken = yield* waitAtMost(changed, heartbeat)
          return Option.isSome(woken) ? yield* next(behind) : Option.some([keepAlive, behind] as const)
        })

      return Stream.concat(Stream.make(said), Stream.unfoldEffect(after, next))
    })
    return Stream.unwrapScoped(follow).pipe(
      Stream.catchTag("StoreUnavailable", (error) => Stream.drain(Stream.fromEffect(Effect.logWarning(error.message))))
    )
  })

  return { open }
})

export class EventStreams extends Context.Tag("tilld/Events/EventStreams")<
  EventStreams,
  Effect.Effect.Success<typeof makeEventStreams>
>() {
  static readonly layer = Layer.effect(EventStreams, makeEventStreams)
}

/** A stored event. `body` is the body of its webhooks, `sequence` its position in the order of all commits. */
interface StoredEvent {
  readonly sequence: number
  readonly id: EventId
  readonly kind: EventKind
  readonly body: string
}

/** The owner's events after a sequence number, in commit order. */
const eventPage = (db: Db, { account, mode }: Owner, after: number, limit: number) =>
  db.all<StoredEvent>(
    `SELECT sequence, id, kind, body FROM events INDEXED BY events_owner
     WHERE account_id = ? AND mode = ? AND sequence > ? ORDER BY sequence LIMIT ?`,
    [account, mode, after, limit]
  )

/** The id of an event and its sequence number. */
type EventCursor = Pick<StoredEvent, "sequence" | "id">

/** The owner's event of this id, made after `since` (Unix milliseconds); undefined where there is none. */
const eventPlace = (db: Db, { account, mode }: Owner, id: EventId, since: number) =>
  db.get<EventCursor>(
    "SELECT sequence, id FROM events WHERE id = ? AND account_id = ? AND mode = ? AND created_at > ?",
    [id, account, mode, since]
  )

/** The owner's newest event, undefined before the first. */
const newestEvent = (db: Db, { account, mode }: Owner) =>
  db.get<EventCursor>(
    `SELECT sequence, id FROM events INDEXED BY events_owner
     WHERE account_id = ? AND mode = ? ORDER BY sequence DESC LIMIT 1`,
    [account, mode]
  )

/** What every attempt to deliver an event sends, byte for byte; undefined where the owner has no such event. */
export const eventBody = (db: Db, { account, mode }: Owner, id: string) =>
  Effect.map(
    oneValue<string>(db, "SELECT body FROM events WHERE id = ? AND account_id = ? AND mode = ?", [id, account, mode]),
    (body) => body && wellFormedJson(body)
  )
