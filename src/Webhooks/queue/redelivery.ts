/**
 * Orders for deliveries to be sent again, as merchants and operators give them: stored with one command of the writer, and
 * the dispatcher is woken. The HTTP handlers and the operator's commands call it.
 */
import { Clock, Effect } from "effect"
import { keepWithin } from "../../Auth/UsageRepo.ts"
import type { Endpoint } from "../../Domain/Webhook.ts"
import { Settings } from "../../Settings.ts"
import { type CommitWith, type StoreUnavailable, type Tx, Writer } from "../../Sql.ts"
import { DeliveryBell } from "./DeliveryBell.ts"
import type { Selection } from "./DeliveryLogRepo.ts"
import * as RedeliveryRepo from "./RedeliveryRepo.ts"

/** Most deliveries that one command of the writer orders: a long range must not block other writes. */
const orderedAtOnce = 500

/** Stores an order and wakes the dispatcher. Deliveries that it adds, to the endpoint `to`, count towards its owner's quota. */
const commit = Effect.fnUntraced(function* <A>(
  to: Endpoint | undefined,
  order: (now: number) => Effect.Effect<A, StoreUnavailable, Tx>
) {
  const bell = yield* DeliveryBell
  const writer = yield* Writer
  const { quotaBytes } = (yield* Settings).accounts
  const now = yield* Clock.currentTimeMillis
  const bounded = to === undefined ? order(now) : Effect.zipLeft(order(now), keepWithin(to.account, quotaBytes))
  return yield* writer.write(Effect.zipLeft(bounded, bell.ring))
})

/**
 * Orders one delivery again, or its event to the endpoint `to` of the same owner. Undefined when there is none of that id.
 * Fails with `QuotaExceeded` when that would be a delivery more than the account may store.
 */
export const redeliver = (
  id: string,
  to: Endpoint | undefined,
  commitWith: CommitWith<RedeliveryRepo.Ordered> = () => Effect.void
) =>
  commit(to, (now) =>
    Effect.tap(RedeliveryRepo.redeliver(id, now, to), (ordered) =>
      ordered === undefined || ordered.result === "refused" ? Effect.void : commitWith(ordered)
    )
  )

/** Orders one page of a range again, oldest first, from `after` on. Fails as `redeliver` does. */
export const redeliverPage = (
  selection: Selection,
  to: Endpoint | undefined,
  after: RedeliveryRepo.RedeliveryCursor | undefined
) => commit(to, (now) => RedeliveryRepo.redeliverSome(selection, after, orderedAtOnce, now, to))
