import { Duration, Effect } from "effect"
import type { Mode } from "../../Domain/Chain.ts"
import type { EventKind } from "../../Domain/Event.ts"
import { type AccountId, DeliveryId, type EndpointId, type EventId, type PaymentId } from "../../Domain/Ids.ts"
import { type Db, type StoreUnavailable, Tx } from "../../Sql.ts"
import type { AttemptOutcome } from "../transport/DeliveryClient.ts"
import { type DeliveryTarget, targetsOf } from "../transport/targets.ts"
import * as EndpointsRepo from "./EndpointsRepo.ts"
import { afterAttempt, retryDelays, succeeded } from "./retryPolicy.ts"

/** What a delivery needs to know of its event. */
export interface EventRef {
  readonly id: EventId
  readonly account: AccountId
  readonly mode: Mode
  readonly paymentId: PaymentId
  readonly kind: EventKind
}

// It begins with the event's own token, so that the event's index finds it.
const deliveryId = (event: EventId, endpoint: EndpointId | undefined): DeliveryId =>
  DeliveryId.make(`dlv_${event.slice(4)}_${endpoint === undefined ? "own" : endpoint.slice(3, 15)}`, true)

interface Unattempted {
  readonly sequence: number
  readonly endpoint_id: string | null
  readonly own_url: 0 | 1
}

/** Deliveries of a payment whose first attempt has not ended yet, newest first. */
const unattempted = (tx: Db, payment: PaymentId) =>
  tx.all<Unattempted>(
    `SELECT sequence, endpoint_id, own_url FROM deliveries
     WHERE payment_id = ? AND status = 'pending' AND attempts = 0 ORDER BY sequence DESC`,
    [payment]
  )

const isSameTarget = (row: Unattempted, target: DeliveryTarget) =>
  (row.own_url === 1 && target.isOwnUrl) || (row.endpoint_id !== null && row.endpoint_id === target.endpoint)

/**
 * Queues an event for every target it is owed to, and tells for how many. `at` in Unix milliseconds. To one target the
 * first attempts of a payment's events keep the order of the events: each waits until the one before has ended,
 * whatever its outcome.
 */
export const enqueue = (
  tx: Db,
  event: EventRef,
  webhookUrl: string | undefined,
  at: number
): Effect.Effect<number, StoreUnavailable> =>
  Effect.flatMap(EndpointsRepo.list(tx, event), (endpoints) => {
    const targets = targetsOf(event, endpoints, event.kind, webhookUrl)
    return targets.length === 0 ? Effect.succeed(0) : enqueueTo(tx, targets, event, at)
  })

const enqueueTo = (tx: Db, targets: ReadonlyArray<DeliveryTarget>, event: EventRef, at: number) =>
  Effect.gen(function* () {
    // Nothing comes before a payment's creation.
    const before = event.kind === "payment.created" ? [] : yield* unattempted(tx, event.paymentId)
    for (const target of targets) {
      const previous = before.find((row) => isSameTarget(row, target))
      yield* tx.run(
        `INSERT INTO deliveries (id, event_id, payment_id, account_id, mode, endpoint_id, own_url, target, url, status,
           attempts, next_attempt_at, after_sequence, created_at)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending', 0, ?, ?, ?)`,
        [
          deliveryId(event.id, target.endpoint),
          event.id,
          event.paymentId,
          event.account,
          event.mode,
          target.endpoint ?? null,
          target.isOwnUrl ? 1 : 0,
          target.lane,
          target.url,
          previous === undefined ? at : null,
          previous?.sequence ?? null,
          at
        ]
      )
    }
    return targets.length
  })

/** A delivery and what is to be sent, byte for byte. */
export interface DueDelivery {
  readonly sequence: number
  readonly eventId: EventId
  readonly account: AccountId
  readonly mode: Mode
  /** Whose secret signs; undefined: the account's default secret. */
  readonly endpoint: EndpointId | undefined
  readonly url: string
  readonly body: string
  /** Attempts of the schedule made so far. */
  readonly attempts: number
  /** The attempt that is due was asked for by somebody, besides the schedule. */
  readonly isRedelivery: boolean
}

interface DueRow {
  readonly sequence: number
  readonly event_id: EventId
  readonly account_id: AccountId
  readonly mode: Mode
  readonly endpoint_id: EndpointId | null
  readonly url: string
  readonly body: string
  readonly attempts: number
  readonly redelivery: 0 | 1
}

/** The delivery, undefined when no attempt of it is ahead: it was cancelled meanwhile. */
export const dueDelivery = (db: Db, sequence: number) =>
  Effect.map(
    db.get<DueRow>(
      `SELECT d.sequence, d.event_id, d.account_id, d.mode, d.endpoint_id, d.url, e.body, d.attempts, d.redelivery
       FROM deliveries AS d JOIN events AS e ON e.id = d.event_id
       WHERE d.sequence = ? AND d.next_attempt_at IS NOT NULL`,
      [sequence]
    ),
    (row): DueDelivery | undefined =>
      row && {
        sequence: row.sequence,
        eventId: row.event_id,
        account: row.account_id,
        mode: row.mode,
        endpoint: row.endpoint_id ?? undefined,
        url: row.url,
        body: row.body,
        attempts: row.attempts,
        isRedelivery: row.redelivery === 1
      }
  )

/** An attempt that has ended. Times in Unix milliseconds. */
export interface Attempt extends AttemptOutcome {
  readonly sequence: number
  /** Attempts of the schedule, with this one if it is one. */
  readonly attempts: number
  readonly isRedelivery: boolean
  readonly startedAt: number
  readonly endedAt: number
}

/** So much of an answer's body is stored, and of the addresses that were tried; bytes. */
const storedBody = 512
const storedAddress = 128

/** The start of a text, of at most so many bytes in UTF-8. */
const startOf = (text: string | undefined, bytes: number): string | null => {
  if (text === undefined) return null
  const encoded = Buffer.from(text, "utf8")
  // A character that the limit cuts is left out, and so is what stands in the place of its half.
  return encoded.length <= bytes ? text : new TextDecoder().decode(encoded.subarray(0, bytes), { stream: true })
}

// The log counts every attempt; the delivery's own row is as it was before this one.
const logAttempt = (tx: Db, attempt: Attempt) => {
  const body = startOf(attempt.bodyStart, storedBody)
  return tx.run(
    `INSERT INTO attempts (delivery, number, redelivery, started_at, ended_at, address, status, error, body_start, body_of)
     SELECT sequence, number, ?, ?, ?, ?, ?, ?, iif(same IS NULL, ?, NULL), same FROM (
       SELECT sequence, attempts + redeliveries + 1 AS number,
         (SELECT number FROM attempts WHERE delivery = sequence AND body_start = ?) AS same
       FROM deliveries WHERE sequence = ?)`,
    [
      attempt.isRedelivery ? 1 : 0,
      attempt.startedAt,
      attempt.endedAt,
      startOf(attempt.address, storedAddress),
      attempt.status ?? null,
      attempt.error ?? null,
      body,
      body,
      attempt.sequence
    ]
  )
}

/** Attempts of a delivery that are kept besides its first, and those whose answer a later one repeats. */
const keptAttempts = 10

/** Redeliveries can be many: only the first attempt and the last ones tell anything. */
const forgetMiddle = (tx: Db, { sequence }: Attempt) =>
  tx.run(
    `DELETE FROM attempts WHERE delivery = ? AND number > 1
       AND number <= (SELECT attempts + redeliveries - ${keptAttempts} FROM deliveries WHERE sequence = ?)
       AND number NOT IN (SELECT body_of FROM attempts WHERE delivery = ? AND body_of IS NOT NULL)`,
    [sequence, sequence, sequence]
  )

/**
 * Moves a delivery on in its schedule. One that was cancelled during the attempt has no further one; a redelivery that
 * was asked for during it has been made with it.
 */
const advance = (tx: Db, { attempts, endedAt, sequence, status }: Attempt) => {
  const next = afterAttempt(attempts, status, endedAt)
  const nextAt = next.nextAttemptAt ?? null
  return tx.run(
    `UPDATE deliveries SET attempts = ?, redelivery = 0, resume_at = NULL,
       status = iif(next_attempt_at IS NULL AND ? <> 'delivered', status, ?),
       next_attempt_at = iif(next_attempt_at IS NULL, NULL, ?),
       done_at = iif(next_attempt_at IS NULL OR ? IS NULL, coalesce(done_at, ?), NULL)
     WHERE sequence = ?`,
    [attempts, next.status, next.status, nextAt, nextAt, endedAt, sequence]
  )
}

/** How long the schedule waits for the next attempt at most, by those that were made, in SQL; milliseconds. */
const scheduledWait = `CASE attempts
  ${retryDelays.map((delay, i) => `WHEN ${i + 1} THEN ${Duration.toMillis(delay)}`).join(" ")} ELSE 0 END`

/** The same, and what was ordered besides waits for nothing. */
const nextWait = `iif(redelivery = 1, 0, ${scheduledWait})`

/** A redelivery that succeeds ends the schedule; otherwise that goes on as if there had been none. */
const advanceBesides = (tx: Db, { endedAt, sequence, status }: Attempt) =>
  tx.run(
    succeeded(status)
      ? `UPDATE deliveries SET redeliveries = redeliveries + 1, redelivery = 0, status = 'delivered',
           next_attempt_at = NULL, resume_at = NULL, done_at = coalesce(done_at, ?) WHERE sequence = ?`
      : `UPDATE deliveries SET redeliveries = redeliveries + 1, redelivery = 0,
           next_attempt_at = min(resume_at, ? + ${scheduledWait}), resume_at = NULL,
           done_at = iif(resume_at IS NULL, coalesce(done_at, ?), NULL) WHERE sequence = ?`,
    succeeded(status) ? [endedAt, sequence] : [endedAt, endedAt, sequence]
  )

/**
 * What is planned further ahead than the schedule waits is planned anew, from `now` on: the clock that planned it was ahead,
 * and has been set back since. Lanes whose turn such a clock has put off have it now.
 */
export const replan = (now: number) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    // By index, lane by lane: what has been due for long is not read.
    yield* tx.run(
      `UPDATE deliveries SET next_attempt_at = ? + ${nextWait} WHERE sequence IN (
         SELECT d.sequence FROM lanes AS l CROSS JOIN deliveries AS d ON d.target = l.target
         WHERE d.redelivery IN (0, 1) AND d.next_attempt_at > ? AND d.next_attempt_at > ? + ${nextWait})`,
      [now, now, now]
    )
    yield* tx.run(
      `UPDATE lanes SET next_at = ? WHERE next_at > ? AND EXISTS (
         SELECT 1 FROM deliveries AS d
         WHERE d.target = lanes.target AND d.redelivery IN (0, 1) AND d.next_attempt_at <= ?)`,
      [now, now, now]
    )
  })

/** Stores an attempt and the delivery's next state. */
const recordAttempt = (tx: Db, attempt: Attempt) =>
  Effect.zipRight(
    logAttempt(tx, attempt),
    attempt.isRedelivery
      ? Effect.zipRight(advanceBesides(tx, attempt), forgetMiddle(tx, attempt))
      : advance(tx, attempt)
  )

/** What waits for these deliveries is due `now`: their first attempt is over, or will never be. */
export const releaseBehind = (sequences: ReadonlyArray<number>, now: number) =>
  Effect.gen(function* () {
    if (sequences.length === 0) return
    const tx = yield* Tx
    yield* tx.run(
      `UPDATE deliveries SET next_attempt_at = ?, after_sequence = NULL
       WHERE after_sequence IN (SELECT value FROM json_each(?))`,
      [now, JSON.stringify(sequences)]
    )
  })

/** Stores attempts, what becomes of their deliveries, and that those which waited for a first attempt are due `now`. */
export const recordAttempts = (attempts: ReadonlyArray<Attempt>, now: number) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    for (const attempt of attempts) yield* recordAttempt(tx, attempt)
    // A redelivery may come before the schedule's first attempt, which it then spares: it lets them go too.
    yield* releaseBehind(
      attempts.filter((attempt) => attempt.attempts <= 1).map(({ sequence }) => sequence),
      now
    )
  })
