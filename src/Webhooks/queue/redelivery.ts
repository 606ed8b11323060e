/**
 * Redelivery orders of merchants and operators: stored with one command of the writer, which wakes the dispatcher. The
 * HTTP handlers and the operator's commands call it.
 */
import { Clock, Effect } from "effect"
import { keepWithin } from "../../Auth/UsageRepo.ts"
import type { Owner } from "../../Domain/Account.ts"
import type { Endpoint } from "../../Domain/Webhook.ts"
import { Settings } from "../../Settings.ts"
import { type CommitWith, type StoreUnavailable, type Tx, Writer } from "../../Sql.ts"
import { DeliveryBell } from "./DeliveryBell.ts"
import type { Selection } from "./DeliveryLogRepo.ts"
import * as RedeliveryRepo from "./RedeliveryRepo.ts"

/** Maximum deliveries that one command of the writer orders: a long range must not block other writes. */
const orderedAtOnce = 500

/**
 * Finds the endpoint to send to; undefined: where each delivery went. In the transaction of the order, so that nothing is sent
 * to an endpoint that is deleted meanwhile.
 */
export type FindTarget<E> = Effect.Effect<Endpoint | undefined, E, Tx>

/** Stores an order and wakes the dispatcher. Each attempt is a row of the account, which is kept within its quota. */
const commit = Effect.fnUntraced(function* <A, E>(
  owner: Owner,
  target: FindTarget<E>,
  order: (now: number, to: Endpoint | undefined) => Effect.Effect<A, StoreUnavailable, Tx>
) {
  const bell = yield* DeliveryBell
  const writer = yield* Writer
  const { quotaBytes } = (yield* Settings).accounts
  const now = yield* Clock.currentTimeMillis
  return yield* writer.write(
    Effect.gen(function* () {
      yield* keepWithin(owner, quotaBytes)
      const to = yield* target
      const ordered = yield* order(now, to)
      yield* bell.ring
      return ordered
    })
  )
})

/**
 * Orders one delivery again, or its event to the endpoint `target` of the same owner. Undefined when there is none of that id.
 * Fails with `QuotaExceeded` when its account has used up its quota.
 */
export const redeliver = <E>(
  owner: Owner,
  id: string,
  target: FindTarget<E>,
  commitWith: CommitWith<RedeliveryRepo.Ordered> = () => Effect.void
) =>
  commit(owner, target, (now, to) =>
    Effect.tap(RedeliveryRepo.redeliver(id, now, to), (ordered) =>
      ordered === undefined || ordered.result === "refused" ? Effect.void : commitWith(ordered)
    )
  )

/** The result of a page of a range, and where the next one begins. */
export type RangePage = Effect.Effect.Success<ReturnType<typeof RedeliveryRepo.redeliverSome>>

/** Orders one page of a range again, oldest first, from `after` on. Fails as `redeliver` does. */
export const redeliverPage = <E>(
  selection: Selection,
  target: FindTarget<E>,
  after: RedeliveryRepo.RedeliveryCursor | undefined,
  commitWith: CommitWith<RangePage> = () => Effect.void
) =>
  commit(selection.owner, target, (now, to) =>
    Effect.tap(RedeliveryRepo.redeliverSome(selection, after, orderedAtOnce, now, to), commitWith)
  )
