import { Effect } from "effect"
import { claim } from "../../../src/Chains/repair/claim.ts"
import type { RpcClient } from "../../../src/Chains/rpc/Rpc.ts"
import { someProviders } from "../../lib/soleProvider.ts"
import type { BalanceModel, Deed } from "../balances/BalanceModel.ts"
import { depsOf, round, told, watchOf } from "../balances/reconcileWorld.ts"

/** A claim with these providers, of which the first serves. */
export const claimWith = (clients: readonly [RpcClient, ...Array<RpcClient>], hash: string | undefined) =>
  Effect.gen(function* () {
    const { provider, providers } = someProviders(...clients)
    const watch = yield* watchOf(providers)
    return yield* claim((work) => work(watch, provider), hash ?? "")
  })

export const claimOf = (model: BalanceModel, hash: string | undefined) => claimWith([model.client], hash)

/** As `told`, the transactions by their places in the block. */
export const ledger = (address: string, deeds: ReadonlyArray<{ readonly hash: string }>) =>
  Effect.map(told(address), (lines) =>
    lines.map((line) => deeds.reduce((text, { hash }, place) => text.replace(hash, `${place}`), line)).sort()
  )

/** A block with these transactions, compared with what is owed. */
export const looked = (model: BalanceModel, ...deeds: ReadonlyArray<Deed>) =>
  Effect.gen(function* () {
    const block = model.mine(deeds)
    yield* round(depsOf(model.client), model.head)
    return block.deeds
  })

/** A round with a provider that does not trace, as one whose operator has turned that on only later. */
export const roundUntraced = (model: BalanceModel) =>
  Effect.gen(function* () {
    model.traces = false
    yield* round(depsOf({ ...model.client }), model.head)
    model.traces = true
  })

/** The same of a block with these transactions: the one that names an address is taken to have brought all. */
export const lookedUntraced = (model: BalanceModel, ...deeds: ReadonlyArray<Deed>) =>
  Effect.map(
    Effect.tap(
      Effect.sync(() => model.mine(deeds)),
      () => roundUntraced(model)
    ),
    (block) => block.deeds
  )
