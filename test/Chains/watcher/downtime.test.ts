import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { commitBalances } from "../../../src/Chains/balances/commitBalances.ts"
import { reconcileBalances } from "../../../src/Chains/balances/reconcile.ts"
import * as Ledger from "../../../src/Chains/ledger/LedgerRepo.ts"
import { Settlement } from "../../../src/Chains/ledger/SettlementTag.ts"
import type { PaymentId } from "../../../src/Domain/Ids.ts"
import * as Exceptions from "../../../src/Payments/ExceptionsRepo.ts"
import * as Payments from "../../../src/Payments/PaymentsRepo.ts"
import * as Receipts from "../../../src/Payments/ReceiptsRepo.ts"
import { Reader } from "../../../src/Sql.ts"
import { write } from "../../lib/rows.ts"
import { layer, untilExpired } from "../../Payments/settling.ts"
import { type BalanceModel, inside } from "../balances/BalanceModel.ts"
import {
  alice,
  depsOf,
  inStore,
  ledgerLines,
  look,
  network,
  owe,
  owing,
  round,
  scanTo,
  wanted
} from "../balances/reconcileWorld.ts"

/**
 * The watcher returns after `before` + 1 + `after` blocks of 10 seconds, the middle one of which pays `to`, and
 * reconciles balances.
 */
const back = Effect.fnUntraced(function* (model: BalanceModel, before: number, after: number, ...to: Array<string>) {
  for (let i = 0; i < before; i++) model.mine([])
  model.mine(to.map((address) => inside(address, 100n)))
  for (let i = 0; i < after; i++) model.mine([])
  const settlement = yield* Settlement
  const { hash, number, time } = model.blocks[model.head.number - 2] ?? model.head
  yield* write(Ledger.keepBlocks(network, [{ hash, number, time }]))
  yield* scanTo(model.head)
  const reading = yield* reconcileBalances(depsOf(model.client), model.head, yield* wanted(model.head))
  yield* write(commitBalances(settlement, { ...reading, of: "round", corroborated: true }))
  yield* untilExpired
})

const receiptsOf = (id: PaymentId) =>
  Effect.gen(function* () {
    const reader = yield* Reader
    const payment = yield* Payments.byId(reader, id)
    return payment === undefined ? [] : yield* Receipts.ofPayment(reader, payment)
  })

const stateOf = (id: PaymentId) =>
  Effect.gen(function* () {
    const reader = yield* Reader
    const exceptions = yield* Exceptions.ofPayment(reader, id)
    return [
      (yield* Payments.byId(reader, id))?.status,
      ...exceptions.map(({ amount, kind, status }) => `${status} ${kind} ${amount}`).sort()
    ]
  })

describe("native coin in blocks whose states no provider has", () => {
  it.scoped(
    "waits for attribution or a decision if its interval began before the deadline, and is late otherwise",
    () =>
      Effect.gen(function* () {
        yield* Effect.forkScoped((yield* Settlement).expire)
        const model = yield* owing("downtime")
        // More blocks than are read for their transactions.
        model.states = 0
        const onTime = yield* owe(alice, { expiresAt: 4_000 })
        yield* back(model, 300, 300, alice)
        expect(yield* ledgerLines(alice)).toEqual(["601 unattributed 100"])
        expect(yield* stateOf(onTime)).toEqual(["detecting", "open unattributed 100"])
        const [receipt] = yield* receiptsOf(onTime)
        expect(receipt).toMatchObject({ blockNumber: 601, since: { number: 1, time: 0 } })

        // The deadline passes before the next round; later money is certainly late.
        yield* back(model, 0, 0)
        expect(yield* stateOf(onTime)).toEqual(["detecting", "open unattributed 100"])
        yield* back(model, 300, 300, alice)
        expect(yield* stateOf(onTime)).toEqual(["detecting", "open late 100", "open unattributed 100"])
      }).pipe(Effect.provide(layer))
  )

  it.scoped("keeps the earlier start of two intervals that end in one block", () =>
    Effect.gen(function* () {
      const model = yield* owing("parts")
      const id = yield* owe(alice)
      for (let i = 0; i < 20; i++) model.mine([])
      const { at, ...reading } = yield* reconcileBalances(depsOf(model.client), model.head, [])
      yield* scanTo(at)
      const part = (since: number, amount: bigint) => ({
        ...{ blockNumber: at.number, blockHash: at.hash, blockTime: at.time, txHash: undefined },
        ...{ position: "unattributed", address: alice, currency: "ETH", amount, since }
      })
      for (const [since, amount] of [
        [15, 3n],
        [5, 4n],
        [10, 5n]
      ] as const) {
        yield* look(depsOf(model.client), at, [], { ...reading, transfers: [part(since, amount)] })
      }
      const found = yield* receiptsOf(id)
      expect(found.map(({ amount, since }) => [amount, since])).toEqual([[12n, { number: 5, time: 0 }]])
    }).pipe(inStore)
  )

  it.scoped("has the interval of its own block if the states around that are known", () =>
    Effect.gen(function* () {
      const model = yield* owing("known")
      const id = yield* owe(alice)
      model.traces = false
      for (let i = 0; i < 20; i++) model.mine([])
      model.mine([inside(alice, 3n), inside(alice, 4n)])
      for (let i = 0; i < 20; i++) model.mine([])
      yield* round(depsOf(model.client), model.head)
      expect(yield* ledgerLines(alice)).toEqual(["21 unattributed 7"])
      expect((yield* receiptsOf(id)).map(({ since }) => since)).toEqual([undefined])
    }).pipe(inStore)
  )
})
