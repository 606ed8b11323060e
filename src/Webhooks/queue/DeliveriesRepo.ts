/**
 * Deliveries in the store: queued with their event, read for an attempt, moved on when an attempt has ended. To one
 * target the first attempts of a payment's events keep the order of the events. The outbox calls `enqueue` in the
 * transaction of the event; `DueQueue` records attempts; the other repositories of this folder release, list and
 * redeliver.
 */

import { Duration, Effect } from "effect"
import { isFull } from "../../Auth/UsageRepo.ts"
import type { Mode } from "../../Domain/Chain.ts"
import { type DeliveryStatus, mostAttempts, retryDelays } from "../../Domain/DeliveryObject.ts"
import { isPluginEventKind, type OutboxEventKind } from "../../Domain/Event.ts"
import {
  type AccountId,
  DeliveryId,
  type EndpointId,
  type EventId,
  type InvoiceId,
  type PaymentId
} from "../../Domain/Ids.ts"
import { cutToBytes, wellFormedJson } from "../../lib/text.ts"
import { allValues, changedRows, type Db, execute, oneRow, Tx } from "../../Sql.ts"
import type { AttemptOutcome } from "../transport/DeliveryClient.ts"
import { type DeliveryTarget, targetsOf } from "../transport/deliveryTargets.ts"
import * as EndpointsRepo from "./EndpointsRepo.ts"
import { firstDueAt } from "./LanesRepo.ts"
import { afterAttempt, succeeded } from "./retryPolicy.ts"

/** The parts of an event that a delivery stores or is chosen by. */
export interface EventRef {
  readonly id: EventId
  readonly account: AccountId
  readonly mode: Mode
  /** What it tells of. */
  readonly paymentId: PaymentId | InvoiceId
  readonly kind: OutboxEventKind
}

// The id begins with the event's token, so that the index on event_id finds a delivery by its id.
export const deliveryId = (event: EventId, endpoint: EndpointId | undefined): DeliveryId =>
  DeliveryId.make(`dlv_${event.slice(4)}_${endpoint === undefined ? "own" : endpoint.slice(3, 15)}`, true)

interface Unattempted {
  readonly sequence: number
  readonly endpoint_id: string | null
  readonly own_url: 0 | 1
}

/** Deliveries of a payment or an invoice whose first attempt has not ended yet, newest first. */
const unattempted = (db: Db, payment: PaymentId | InvoiceId) =>
  db.all<Unattempted>(
    `SELECT sequence, endpoint_id, own_url FROM deliveries
     WHERE payment_id = ? AND status = 'pending' AND attempts = 0 ORDER BY sequence DESC`,
    [payment]
  )

const isSameTarget = (row: Unattempted, target: DeliveryTarget) =>
  (row.own_url === 1 && target.isOwnUrl) || (row.endpoint_id !== null && row.endpoint_id === target.endpoint)

/** The targets that get an event. */
export const targetsFor = (event: EventRef, webhookUrl: string | undefined) =>
  Effect.flatMap(Tx, (tx) =>
    Effect.map(EndpointsRepo.list(tx, event), (endpoints) => targetsOf(event, endpoints, event.kind, webhookUrl))
  )

/**
 * Queues an event for its targets. `at` in Unix milliseconds. To one target the first attempts of a payment's events keep the
 * order of the events: each waits until the first attempt before it has ended, whatever its outcome.
 */
export const enqueue = (targets: ReadonlyArray<DeliveryTarget>, event: EventRef, at: number) =>
  Effect.gen(function* () {
    if (targets.length === 0) return
    const tx = yield* Tx
    // payment.created is a payment's first event: no delivery can be before it.
    const earlier = event.kind === "payment.created" ? [] : yield* unattempted(tx, event.paymentId)
    const isOfPlugin = isPluginEventKind(event.kind) ? 1 : 0
    for (const target of targets) {
      const previous = earlier.find((row) => isSameTarget(row, target))
      yield* tx.run(
        `INSERT INTO deliveries (id, event_id, payment_id, account_id, mode, endpoint_id, own_url, plugin, target, url,
           status, attempts, next_attempt_at, after_sequence, created_at)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending', 0, ?, ?, ?)`,
        [
          deliveryId(event.id, target.endpoint),
          event.id,
          event.paymentId,
          event.account,
          event.mode,
          target.endpoint ?? null,
          target.isOwnUrl ? 1 : 0,
          isOfPlugin,
          target.lane,
          target.url,
          previous === undefined ? at : null,
          previous?.sequence ?? null,
          at
        ]
      )
    }
  })

/** A delivery with the exact body to send. */
export interface DueDelivery {
  readonly sequence: number
  readonly eventId: EventId
  readonly account: AccountId
  readonly mode: Mode
  /** The endpoint whose secret signs; undefined: the account's default secret. */
  readonly endpoint: EndpointId | undefined
  readonly url: string
  /** The endpoint has got another URL since the last attempt. */
  readonly hasMoved: boolean
  readonly body: string
  /** Its status before the attempt. */
  readonly status: DeliveryStatus
  /** Scheduled attempts made so far. */
  readonly attempts: number
  /** The due attempt is a redelivery that an operator ordered, outside the retry schedule. */
  readonly isRedelivery: boolean
  /** Whether others follow if the attempt fails. */
  readonly isRetried: boolean
  /** It goes to a shop plugin's endpoint, which verifies another signature. */
  readonly isOfPlugin: boolean
}

interface DueRow extends Omit<DueDelivery, "hasMoved" | "isOfPlugin" | "isRedelivery" | "isRetried"> {
  readonly id: string
  readonly plugin: 0 | 1
  /** Of its endpoint, where a shop plugin registered that. */
  readonly automaticRedelivery: 0 | 1 | undefined
  readonly endpointUrl: string | undefined
  readonly redelivery: 0 | 1
}

/** What is sent to a shop plugin's endpoint: the event's body, of at least one field, behind what is of the delivery. */
export const pluginBody = (delivery: string, endpoint: string, body: string): string =>
  `{"deliveryId":"${delivery}","webhookId":"${endpoint}","originalDeliveryId":"${delivery}","isRedelivery":false,${body.slice(1)}`

const toDue = ({ automaticRedelivery, endpointUrl, id, plugin, redelivery, ...row }: DueRow): DueDelivery => ({
  ...row,
  body: wellFormedJson(plugin === 1 ? pluginBody(id, row.endpoint ?? "", row.body) : row.body),
  url: endpointUrl ?? row.url,
  hasMoved: endpointUrl !== undefined && endpointUrl !== row.url,
  isRedelivery: redelivery === 1,
  isRetried: automaticRedelivery !== 0,
  isOfPlugin: plugin === 1
})

/** The delivery to a target; undefined when nothing is due there of it, because it was cancelled or moved meanwhile. */
export const dueDelivery = (db: Db, target: string, sequence: number, now: number) =>
  Effect.map(
    oneRow<DueRow>(
      db,
      `SELECT d.sequence, d.id, d.event_id AS eventId, d.account_id AS account, d.mode, d.endpoint_id AS endpoint, d.url,
         p.url AS endpointUrl, e.body, d.status, d.attempts, d.redelivery,
         d.plugin, CAST(p.plugin ->> 'automaticRedelivery' AS BIGINT) AS automaticRedelivery
       FROM deliveries AS d JOIN events AS e ON e.id = d.event_id LEFT JOIN endpoints AS p ON p.id = d.endpoint_id
       WHERE d.sequence = ? AND d.target = ? AND d.next_attempt_at <= ?`,
      [sequence, target, now]
    ),
    (row) => row && toDue(row)
  )

/** An attempt that has ended. Times in Unix milliseconds. */
export interface Attempt extends AttemptOutcome {
  readonly sequence: number
  /** Where it went, when that is not where the attempt before went. */
  readonly movedTo?: string
  /** Scheduled attempts, including this one unless it is a redelivery. */
  readonly attempts: number
  readonly isRedelivery: boolean
  readonly isRetried: boolean
  readonly startedAt: number
  readonly endedAt: number
}

/** How much is stored of a response's body and of the addresses that were tried. Bytes. */
const storedBody = 512
const storedAddress = 128

const startOf = (text: string | undefined, bytes: number) => (text === undefined ? null : cutToBytes(text, bytes))

// Runs before the delivery's row is updated: its counts are still without this attempt. `number` counts all attempts,
// redeliveries too. A body that an earlier attempt has is stored once, by reference; of an account beyond its quota none is.
const logAttempt = (attempt: Attempt, quotaBytes: number) => {
  const body = startOf(attempt.bodyStart, storedBody)
  return execute(
    `INSERT INTO attempts (delivery, number, redelivery, started_at, ended_at, address, status, error, body_start, body_of)
     SELECT sequence, number, ?, ?, ?, ?, ?, ?, iif(same IS NULL AND NOT ${isFull("account_id", "?")}, ?, NULL), same FROM (
       SELECT sequence, account_id, attempts + redeliveries + 1 AS number,
         (SELECT number FROM attempts WHERE delivery = sequence AND body_start = ?) AS same
       FROM deliveries WHERE sequence = ?)`,
    [
      attempt.isRedelivery ? 1 : 0,
      attempt.startedAt,
      attempt.endedAt,
      startOf(attempt.address, storedAddress),
      attempt.status ?? null,
      attempt.error ?? null,
      quotaBytes,
      body,
      body,
      attempt.sequence
    ]
  )
}

/**
 * Latest attempts that are kept of a delivery, in addition to its first and to those whose body a later one refers to.
 */
const keptAttempts = 10

/** Redeliveries can be many. Only the first attempt and the last ones are useful. */
const deleteMiddleAttempts = ({ sequence }: Attempt) =>
  execute(
    `DELETE FROM attempts WHERE delivery = ? AND number > 1
       AND number <= (SELECT attempts + redeliveries - ${keptAttempts} FROM deliveries WHERE sequence = ?)
       AND number NOT IN (SELECT body_of FROM attempts WHERE delivery = ? AND body_of IS NOT NULL)`,
    [sequence, sequence, sequence]
  )

/**
 * Moves a delivery on in its retry schedule. If the delivery was cancelled during the attempt, no attempt follows. If a
 * redelivery was ordered during the attempt, this attempt counts as that redelivery.
 */
const storeState = ({ attempts, endedAt, isRetried, sequence, status }: Attempt) => {
  const next = afterAttempt(isRetried ? attempts : mostAttempts, status, endedAt)
  const nextAt = next.nextAttemptAt ?? null
  return execute(
    `UPDATE deliveries SET attempts = ?, redelivery = 0, resume_at = NULL,
       status = iif(next_attempt_at IS NULL AND ? <> 'delivered', status, ?),
       next_attempt_at = iif(next_attempt_at IS NULL, NULL, CAST(? AS BIGINT)),
       done_at = iif(next_attempt_at IS NULL OR CAST(? AS BIGINT) IS NULL, coalesce(done_at, ?), NULL)
     WHERE sequence = ?`,
    [attempts, next.status, next.status, nextAt, nextAt, endedAt, sequence]
  )
}

/** The schedule's delay before the next attempt, by the attempts made so far, in SQL. Milliseconds. */
const scheduledWait = `CASE attempts
  ${retryDelays.map((delay, i) => `WHEN ${i + 1} THEN ${Duration.toMillis(delay)}`).join(" ")} ELSE 0 END`

/** The delay before the next attempt: none for a redelivery. */
const nextWait = `iif(redelivery = 1, 0, ${scheduledWait})`

/**
 * A redelivery that succeeds ends the retry schedule. After one that fails the schedule goes on as if it had not been.
 */
const advanceRedelivery = ({ endedAt, sequence, status }: Attempt) =>
  execute(
    succeeded(status)
      ? `UPDATE deliveries SET redeliveries = redeliveries + 1, redelivery = 0, status = 'delivered',
           next_attempt_at = NULL, resume_at = NULL, done_at = coalesce(done_at, ?) WHERE sequence = ?`
      : `UPDATE deliveries SET redeliveries = redeliveries + 1, redelivery = 0,
           next_attempt_at = min(resume_at, ? + ${scheduledWait}), resume_at = NULL,
           done_at = iif(resume_at IS NULL, coalesce(done_at, ?), NULL) WHERE sequence = ?`,
    succeeded(status) ? [endedAt, sequence] : [endedAt, endedAt, sequence]
  )

/**
 * Reschedules, from `now` on, attempts that are planned further ahead than the schedule's delay: the clock was ahead when
 * they were planned, and has been set back since. Lanes whose turn was put off by that clock get their turn now.
 */
export const replan = (now: number) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    // By index, lane by lane, so that deliveries that are due already are not read.
    yield* tx.run(
      `UPDATE deliveries SET next_attempt_at = ? + ${nextWait} WHERE sequence IN (
         SELECT d.sequence FROM lanes AS l CROSS JOIN deliveries AS d ON d.target = l.target
         WHERE d.redelivery IN (0, 1) AND d.next_attempt_at > ? AND d.next_attempt_at > ? + ${nextWait})`,
      [now, now, now]
    )
    yield* tx.run(
      `UPDATE lanes SET next_at = max(?, ${firstDueAt("lanes.target")}) WHERE next_at > ? AND ${firstDueAt("lanes.target")} < next_at`,
      [now, now]
    )
  })

/** Stores an attempt and the delivery's next state. */
const recordAttempt = (attempt: Attempt, quotaBytes: number) =>
  Effect.zipRight(
    logAttempt(attempt, quotaBytes),
    attempt.isRedelivery
      ? Effect.zipRight(advanceRedelivery(attempt), deleteMiddleAttempts(attempt))
      : storeState(attempt)
  )

/** Deliveries that wait for these become due `now`: the first attempt of these has ended, or will never be made. */
export const releaseBehind = (sequences: ReadonlyArray<number>, now: number) =>
  Effect.gen(function* () {
    if (sequences.length === 0) return
    const tx = yield* Tx
    yield* tx.run(
      `UPDATE deliveries SET next_attempt_at = ?, after_sequence = NULL
       WHERE after_sequence IN (SELECT CAST(value AS BIGINT) FROM json_each(?))`,
      [now, JSON.stringify(sequences)]
    )
  })

/**
 * Stores attempts and the next state of their deliveries. Deliveries that waited for a first attempt become due `now`.
 *
 * @param quotaBytes as configured: above this use of an account, its receivers' responses are not stored
 */
export const recordAttempts = (attempts: ReadonlyArray<Attempt>, now: number, quotaBytes: number) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    for (const attempt of attempts) {
      const { movedTo, sequence } = attempt
      // Not where its endpoint was deleted meanwhile: the next attempt goes to the payment's own URL.
      const moved = "UPDATE deliveries SET url = ? WHERE sequence = ? AND endpoint_id IS NOT NULL"
      if (movedTo !== undefined) yield* tx.run(moved, [movedTo, sequence])
      yield* recordAttempt(attempt, quotaBytes)
    }
    // A redelivery may come before the first scheduled attempt. It releases the waiting deliveries too.
    yield* releaseBehind(
      attempts.filter((attempt) => attempt.attempts <= 1).map(({ sequence }) => sequence),
      now
    )
  })

// Deletes old rows, a bounded number at a time: after a full page there may be more.

/**
 * Deletes deliveries that were done up to `until` (Unix milliseconds), with their attempts; true when there may be more.
 * A delivery with any attempt ahead is not done.
 */
export const forgetDeliveries = (until: number, limit: number) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const done = yield* allValues<number>(
      tx,
      "SELECT sequence FROM deliveries WHERE done_at <= ? ORDER BY done_at LIMIT ?",
      [until, limit]
    )
    const sequences = JSON.stringify(done)
    yield* tx.run("DELETE FROM attempts WHERE delivery IN (SELECT CAST(value AS BIGINT) FROM json_each(?))", [
      sequences
    ])
    yield* tx.run("DELETE FROM deliveries WHERE sequence IN (SELECT CAST(value AS BIGINT) FROM json_each(?))", [
      sequences
    ])
    return done.length === limit
  })

/**
 * Looks at the next `limit` events after the `sequence` of one, in the order in which they were stored, and deletes those without
 * deliveries that were created up to `until` (Unix milliseconds). Returns the last that it looked at, undefined when there are no
 * more as old: the clock may have been set meanwhile, so a whole page has to be newer.
 */
export const forgetEvents = (until: number, after = 0, limit: number) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const page = yield* tx.all<{ readonly id: string; readonly createdAt: number; readonly sequence: number }>(
      "SELECT id, created_at AS createdAt, sequence FROM events WHERE sequence > ? ORDER BY sequence LIMIT ?",
      [after, limit]
    )
    const old = page.filter(({ createdAt }) => createdAt <= until)
    // The newest event of each owner stays: a stream client that has seen it has missed nothing, and its number must not
    // be used again.
    yield* tx.run(
      `DELETE FROM events WHERE id IN (SELECT value FROM json_each(?))
         AND sequence < (SELECT max(sequence) FROM events AS e WHERE e.account_id = events.account_id AND e.mode = events.mode)
         AND NOT EXISTS (SELECT 1 FROM deliveries WHERE event_id = events.id)`,
      [JSON.stringify(old.map(({ id }) => id))]
    )
    return page.length === limit && old.length > 0 ? page.at(-1)?.sequence : undefined
  })

/**
 * Removes up to `limit` endpoints that were deleted up to `until` (Unix milliseconds) and have no deliveries left; true
 * when there may be more.
 */
export const forgetEndpoints = (until: number, limit: number) =>
  Effect.map(
    changedRows(
      `DELETE FROM endpoints WHERE id IN (
         SELECT id FROM endpoints AS e WHERE deleted_at <= ?
           AND NOT EXISTS (SELECT 1 FROM deliveries WHERE endpoint_id = e.id) LIMIT ?)`,
      [until, limit]
    ),
    (count) => count === limit
  )
