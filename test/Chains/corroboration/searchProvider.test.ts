import { expect } from "@effect/vitest"
import { searchProvider } from "../../../src/Chains/corroboration/searchProvider.ts"
import { BlockRange } from "../../../src/Chains/providers/BlockRange.ts"
import { newPaymentId } from "../../../src/Domain/Ids.ts"
import { soleProvider } from "../../lib/soleProvider.ts"
import { alice, usdc } from "../around.ts"
import { watchOf } from "../balances/reconcileWorld.ts"
import { story } from "../balances/story.ts"
import { ModelChain, token } from "../ModelChain.ts"

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
    {
      due: [
        {
          payment: newPaymentId(0),
          address: alice.toLowerCase(),
          createdHead: 10,
          dueAt: 0,
          own: true,
          everyRound: true,
          withNonce: false
        }
      ],
      singleSourced: { dust: [], undated: [] },
      after: 10,
      settled,
      headers: new Map()
    }
  )
  expect("transfers" in found ? found.transfers.map(({ amount }) => amount) : found.error).toEqual(amounts)
})
