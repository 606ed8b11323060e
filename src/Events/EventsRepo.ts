import { Effect } from "effect"
import type { Owner } from "../Domain/Account.ts"
import type { EventKind } from "../Domain/Event.ts"
import type { EventId } from "../Domain/Ids.ts"
import { wellFormedJson } from "../lib/text.ts"
import { type Db, oneValue } from "../Sql.ts"

/** A stored event. `body` is the body of its webhooks, `sequence` its position in the order of all commits. */
export interface StoredEvent {
  readonly sequence: number
  readonly id: EventId
  readonly kind: EventKind
  readonly body: string
}

/** The owner's events after a sequence number, in commit order. */
export const page = (db: Db, { account, mode }: Owner, after: number, limit: number) =>
  db.all<StoredEvent>(
    `SELECT sequence, id, kind, body FROM events INDEXED BY events_owner
     WHERE account_id = ? AND mode = ? AND sequence > ? ORDER BY sequence LIMIT ?`,
    [account, mode, after, limit]
  )

/** The id of an event and its sequence number. */
export type EventCursor = Pick<StoredEvent, "sequence" | "id">

/** The owner's event of this id, made after `since` (Unix milliseconds); undefined where there is none. */
export const placeOf = (db: Db, { account, mode }: Owner, id: EventId, since: number) =>
  db.get<EventCursor>(
    "SELECT sequence, id FROM events WHERE id = ? AND account_id = ? AND mode = ? AND created_at > ?",
    [id, account, mode, since]
  )

/** The owner's newest event, undefined before the first. */
export const newest = (db: Db, { account, mode }: Owner) =>
  db.get<EventCursor>(
    `SELECT sequence, id FROM events INDEXED BY events_owner
     WHERE account_id = ? AND mode = ? ORDER BY sequence DESC LIMIT 1`,
    [account, mode]
  )

/** What every attempt to deliver an event sends, byte for byte; undefined where the owner has no such event. */
export const bodyOf = (db: Db, { account, mode }: Owner, id: string) =>
  Effect.map(
    oneValue<string>(db, "SELECT body FROM events WHERE id = ? AND account_id = ? AND mode = ?", [id, account, mode]),
    (body) => body && wellFormedJson(body)
  )
