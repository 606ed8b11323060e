import { expect } from "@effect/vitest"
import { makeEndingSearch } from "../../../src/Chains/corroboration/endingSearch.ts"
import { change, rows } from "../../lib/rows.ts"
import { someProviders } from "../../lib/soleProvider.ts"
import { usdc } from "../around.ts"
import { direct } from "../balances/BalanceModel.ts"
import { alice, base, owe, scanTo, watchOf } from "../balances/reconcileWorld.ts"
import { story } from "../balances/story.ts"
import { distorted } from "../twisted.ts"
import { logTo } from "./scene.ts"

story(
  "a token log that only the second provider has does not count as a dispute about coins, and is stored",
  [],
  function* (model) {
    yield* owe(alice, { currency: "ETH", expiresAt: 1 })
    const paid = model.mine([direct(alice, 3n)])
    for (let i = 0; i < base.confirmations; i++) {
      model.mine([], 10_000 + i)
      yield* scanTo(model.head)
    }
    yield* change("UPDATE scans SET checked_number = head_number, checked_time = head_time")
    const withLog = distorted(model.client, ({ method }, answer) =>
      method === "eth_getLogs" ? [logTo(alice, paid)] : answer
    )
    // The serving provider is searched last.
    const { provider, providers } = someProviders(withLog, model.client)
    const watch = { ...(yield* watchOf(providers)), contracts: new Map([[usdc, "USDC"]]) }
    yield* makeEndingSearch(watch).run(provider, model.head)
    expect(yield* rows("SELECT currency, amount FROM receipts ORDER BY currency")).toEqual([
      { currency: "ETH", amount: "3" },
      { currency: "USDC", amount: "5" }
    ])
  }
)
