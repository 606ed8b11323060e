import { expect } from "@effect/vitest"
import { TestClock } from "effect"
import { makeEndingSearch } from "../../../src/Chains/corroboration/endingSearch.ts"
import * as Ledger from "../../../src/Chains/ledger/LedgerRepo.ts"
import * as Dust from "../../../src/Payments/DustRepo.ts"
import { change, rows, write } from "../../lib/rows.ts"
import { someProviders } from "../../lib/soleProvider.ts"
import { usdc } from "../around.ts"
import { direct } from "../balances/BalanceModel.ts"
import { alice, base, network, owe, scanTo, watchOf } from "../balances/reconcileWorld.ts"
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

story("dust that two deny has the payment searched once more, without it, before it may end", [], function* (model) {
  const payment = yield* owe(alice, { currency: "ETH", expiresAt: 1 })
  const { hash: blockHash, number: blockNumber, time: blockTime } = model.mine([])
  for (let i = 0; i < base.confirmations; i++) {
    model.mine([], 10_000 + i)
    yield* scanTo(model.head)
  }
  yield* change("UPDATE scans SET checked_number = head_number, checked_time = head_time")
  const money = { address: alice, amount: 2n, currency: "ETH" }
  const txHash = `0x${"f".repeat(64)}`
  const receipt = { ...money, blockHash, blockNumber, blockTime, position: "tx:9", txHash }
  const sum = { ...money, ...network, payment, txHash, kind: "paying", corroborated: false, transfers: 1 } as const
  const newest = { number: blockNumber, time: blockTime }
  yield* write(Ledger.keepReceipts(network, [receipt], false))
  yield* write(Dust.keep({ ...sum, newest, orphaned: undefined, decided: undefined }))
  yield* change("UPDATE receipts SET dust = 'paying'")

  const { provider, providers } = someProviders(model.client, { ...model.client }, { ...model.client })
  const search = makeEndingSearch(yield* watchOf(providers))
  const searched = rows("SELECT payment_id AS id FROM searches")
  yield* search.run(provider, model.head)
  expect(yield* rows("SELECT canonical, refuted FROM receipts")).toEqual([{ canonical: 0, refuted: 1 }])
  expect(yield* searched).toEqual([])
  yield* TestClock.adjust(base.pollInterval)
  yield* search.run(provider, model.head)
  expect(yield* searched).toEqual([{ id: payment }])
})
