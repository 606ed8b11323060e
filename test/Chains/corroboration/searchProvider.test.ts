import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import { type SearchPage, searchProvider } from "../../../src/Chains/corroboration/searchProvider.ts"
import { BlockRange } from "../../../src/Chains/providers/BlockRange.ts"
import type { RpcClient } from "../../../src/Chains/rpc/Rpc.ts"
import { newPaymentId } from "../../../src/Domain/Ids.ts"
import type { BlockRef } from "../../../src/Domain/Receipt.ts"
import { change } from "../../lib/rows.ts"
import { soleProvider, someProviders } from "../../lib/soleProvider.ts"
import { alice, usdc } from "../around.ts"
import type { BalanceModel } from "../balances/BalanceModel.ts"
import { bob, network, scanTo, watchOf } from "../balances/reconcileWorld.ts"
import { failing, ofState, story } from "../balances/story.ts"
import { ModelChain, token } from "../ModelChain.ts"
import { distorted, richer } from "../twisted.ts"

/** A search for one payment to the address, which was made at the block `after`. */
const pageOf = (to: string, after: number, settled: BlockRef): SearchPage => ({
  due: [
    {
      payment: newPaymentId(0),
      address: to.toLowerCase(),
      createdHead: after,
      deadline: 0,
      own: true,
      everyRound: true,
      withNonce: false
    }
  ],
  undated: [],
  after,
  settled
})

story("token logs are searched without a gap between the block ranges of a provider", [], function* () {
  const chain = new ModelChain(10)
  const amounts = Array.from({ length: 15 }, (_, i) => BigInt(i + 1))
  for (const amount of amounts) chain.mine(token(usdc, alice, amount))
  const settled = chain.mine()
  const { provider, providers } = soleProvider(chain.client)
  const watch = { ...(yield* watchOf(providers)), contracts: new Map([[usdc, "USDC"]]) }
  const found = yield* searchProvider(
    watch,
    [],
    { ...provider, blockRange: new BlockRange(4) },
    pageOf(alice, 10, settled)
  )
  expect("transfers" in found ? found.transfers.map(({ amount }) => amount) : found.error).toEqual(amounts)
})

/** What the search of a provider finds that invents coins, beside two others; a stored balance contradicts it. */
const foundBeside = Effect.fnUntraced(function* (model: BalanceModel, ...others: ReadonlyArray<RpcClient>) {
  model.mine([])
  model.mine([])
  yield* scanTo(model.head)
  yield* change("INSERT INTO balances VALUES (?, ?, ?, 1, '7', 0)", network.chain, network.mode, bob)
  const { provider, providers } = someProviders(richer(model, 99n), ...others)
  const found = yield* searchProvider(yield* watchOf(providers), [], provider, pageOf(bob, 0, model.head))
  if ("error" in found) return yield* found.error
  return { amounts: found.transfers.map(({ amount }) => amount), compared: found.compared }
})

describe("unattributed coins that a provider finds, against a stored balance", () => {
  story("are dropped where two others deny them, and the stored balance stays", [bob], function* (model) {
    expect(yield* foundBeside(model, model.client, { ...model.client })).toEqual({ amounts: [], compared: [] })
  })

  story("are kept where two others do not have their block, and the stored balance goes", [bob], function* (model) {
    const lacking = distorted(failing(model.client, ofState), ({ method }, answer) =>
      method === "eth_getBlockByNumber" ? null : answer
    )
    expect(yield* foundBeside(model, lacking, { ...lacking })).toEqual({
      amounts: [99n],
      compared: [{ address: bob, replaced: [] }]
    })
  })
})
