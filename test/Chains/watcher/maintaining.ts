import { Clock, Effect, TestClock } from "effect"
import { AddressSet } from "../../../src/Chains/ledger/AddressSet.ts"
import type { RpcClient } from "../../../src/Chains/rpc/Rpc.ts"
import { makeMaintenance } from "../../../src/Chains/watcher/maintenance.ts"
import type { BlockRef } from "../../../src/Domain/Receipt.ts"
import { change } from "../../lib/rows.ts"
import { someProviders } from "../../lib/soleProvider.ts"
import type { BalanceModel } from "../balances/BalanceModel.ts"
import { alice, base, receipts, scanTo, watchOf } from "../balances/reconcileWorld.ts"
import { settings } from "../world.ts"

/**
 * The maintenance of a watcher that has read the whole model, and whose first provider serves. `run` does what is due,
 * and gives what is wrong, `mined` after a new block, and `next` after a new block and the time of a round; `aside` has the reasons of cooldowns.
 */
export const choring = Effect.fnUntraced(function* (
  model: BalanceModel,
  ...clients: readonly [RpcClient, ...Array<RpcClient>]
) {
  const { aside, provider, providers } = someProviders(...clients)
  const watched = new AddressSet()
  watched.add(alice)
  const watch = { ...(yield* watchOf(providers)), watched }
  const maintenance = makeMaintenance(watch, settings([base]).payments)
  /** The audit has suites of its own: it is never due. */
  const audited = Effect.flatMap(Clock.currentTimeMillis, (now) => change("UPDATE scans SET audited_at = ?", now))
  const run = (head: BlockRef) =>
    audited.pipe(
      Effect.zipRight(maintenance.run(provider, head, true)),
      Effect.map(() => watch.troubles.reason)
    )
  const mined = (deeds: Parameters<BalanceModel["mine"]>[0], time?: number) =>
    Effect.gen(function* () {
      model.mine(deeds, time)
      yield* scanTo(model.head)
      return yield* run(model.head)
    })
  const next = (...deeds: Parameters<BalanceModel["mine"]>[0]) =>
    Effect.zipRight(TestClock.adjust(base.balanceInterval), mined(deeds))
  return { aside, mined, next, run }
})

/** Address, position and amount of each canonical receipt, by block and position. */
export const kept = Effect.map(receipts, (rows) => rows.map((row) => [row.address, row.position, row.amount]))
