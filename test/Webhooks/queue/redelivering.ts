import { Clock, Effect } from "effect"
import type { EndpointId } from "../../../src/Domain/Ids.ts"
import { Reader, type StoreUnavailable, Tx, Writer } from "../../../src/Sql.ts"
import { DeliveryBell } from "../../../src/Webhooks/queue/DeliveryBell.ts"
import * as RedeliveryRepo from "../../../src/Webhooks/queue/RedeliveryRepo.ts"
import { newPayment, publish, untilRecorded } from "../../lib/webhooks.ts"
import { a, register } from "../endpoints.ts"

export const commit = <A>(order: (now: number) => Effect.Effect<A, StoreUnavailable, Tx>) =>
  Effect.gen(function* () {
    const writer = yield* Writer
    const bell = yield* DeliveryBell
    const now = yield* Clock.currentTimeMillis
    return yield* writer.write(Effect.zipLeft(order(now), bell.ring))
  })

/** An event for an endpoint, that was tried once. */
export const triedOnce = Effect.gen(function* () {
  yield* register(a)
  yield* publish(yield* newPayment(), "pending")
  yield* untilRecorded(1)
})

export const idOf = (sequence: number) =>
  Effect.gen(function* () {
    const reader = yield* Reader
    const row = yield* reader.get<{ id: string }>("SELECT id FROM deliveries WHERE sequence = ?", [sequence])
    return row?.id ?? ""
  })

export const redeliver = (sequence: number) =>
  Effect.flatMap(idOf(sequence), (id) => commit((now) => RedeliveryRepo.redeliver(id, now)))

/** Deliveries to `endpoint` in the store, made one a second, none of them due. */
export const addFailed = (endpoint: EndpointId, count: number, from: number) =>
  Effect.flatMap(Writer, (writer) =>
    writer.write(
      Effect.flatMap(Tx, (tx) =>
        tx.run(
          `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?)
           INSERT INTO deliveries (id, event_id, payment_id, account_id, mode, endpoint_id, own_url, target, url, status,
             attempts, created_at, done_at)
           SELECT 'dlv_' || i, event_id, payment_id, account_id, mode, ?, 0, ?, url, 'failed', 6, ? + i * 1000, 0
           FROM (SELECT * FROM deliveries WHERE sequence = 1), n`,
          [count, endpoint, endpoint, from]
        )
      )
    )
  )
