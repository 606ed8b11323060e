import { expect } from "@effect/vitest"
import { Clock, Effect, TestClock } from "effect"
import { getAddress, type Hex } from "viem"
import * as Audit from "../../../src/Chains/balances/AuditRepo.ts"
import { holdingKey } from "../../../src/Chains/balances/holdings.ts"
import type { RpcClient } from "../../../src/Chains/rpc/Rpc.ts"
import { makeMaintenance } from "../../../src/Chains/watcher/maintenance.ts"
import { Reader } from "../../../src/Sql.ts"
import { change, rows } from "../../lib/rows.ts"
import { soleProvider } from "../../lib/soleProvider.ts"
import { settings } from "../world.ts"
import { type BalanceModel, inside } from "./BalanceModel.ts"
import { alice, base, depsOf, network, owe, round, scanTo, watchOf } from "./reconcileWorld.ts"
import { story } from "./story.ts"

const address = (n: number) => getAddress(`0x${(0xa0d17 * 2 ** 20 + n).toString(16).padStart(40, "0")}` as Hex)
const count = 1_001

/** Daemons, one after the other: for how many addresses each asks, so long after the time before. */
const daemonOn = (model: BalanceModel) => {
  const asked: Array<number> = []
  const client: RpcClient = {
    ...model.client,
    send: (calls) => {
      for (const { method, params } of calls) {
        const [call] = params
        if (method === "eth_call") asked.push(((call as { readonly data: string }).data.length - 2) / 40)
      }
      return model.client.send(calls)
    }
  }
  const { provider, providers } = soleProvider(client)
  return Effect.gen(function* () {
    const maintenance = makeMaintenance(yield* watchOf(providers), settings([base]).payments)
    const after = (duration: "0 seconds" | "5 minutes" | "1 hour") =>
      Effect.gen(function* () {
        yield* TestClock.adjust(duration)
        model.mine([])
        yield* scanTo(model.head)
        yield* maintenance.run(provider, model.head, true)
        return asked.splice(0)
      })
    yield* after("0 seconds")
    return after
  })
}

story("the audit goes on after a restart, and asks for a thousand addresses in a call", [], function* (model) {
  for (let n = 0; n < count; n++) yield* owe(address(n), { chain: "base", currency: "USDC", endedAt: 1 })
  yield* change("UPDATE payments SET mode = 'live' WHERE address = ?", address(0))
  // Only what was found in its own mode is looked at sooner.
  yield* change("INSERT INTO unaccounted VALUES ('base', 'live', ?, 'USDC', '1', 1, 1)", address(0))
  const start = daemonOn(model)
  yield* TestClock.adjust("30 days")
  const first = yield* start
  // Not while it starts.
  expect(yield* first("0 seconds")).toEqual([])
  expect(yield* first("5 minutes")).toEqual([999])
  expect(yield* first("5 minutes")).toEqual([])
  const second = yield* start
  expect(yield* second("5 minutes")).toEqual([])
  expect(yield* second("1 hour")).toEqual([1])
  expect(yield* rows("SELECT audited FROM scans")).toEqual([{ audited: "" }])
  const reader = yield* Reader
  expect(yield* Audit.lastLook(reader, [base])).toBe(yield* Clock.currentTimeMillis)
  // As long as one chain waits for its first look, none is claimed.
  expect(yield* Audit.lastLook(reader, [base, { ...base, chain: "polygon" }])).toBe(0)
  expect(yield* second("1 hour")).toEqual([999])
})

story("what has no transaction counts from the first block in which it may have come", [alice], function* (model) {
  model.traces = false
  model.mine([inside(alice, 3n)])
  model.mine([])
  yield* round(depsOf(model.client), model.head)
  yield* change("UPDATE receipts SET since_number = 1, since_time = 1, block_number = 2")
  const at = (number: number) =>
    Effect.map(
      Effect.flatMap(Reader, (reader) =>
        Audit.recorded(reader, network, [getAddress(alice as Hex)], { ...model.head, number }, holdingKey)
      ),
      (sums) => sums.get(holdingKey("ETH", alice))
    )
  expect([yield* at(0), yield* at(1)]).toEqual([undefined, 3n])
})

story(
  "the audit leaves an address out that a stranger has sent thousands of tokens to, and no other",
  [],
  function* (model) {
    for (let n = 0; n < 4; n++) yield* owe(address(n), { chain: "base", currency: "USDC", endedAt: 1 })
    yield* change(
      `INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, tx_hash, currency, amount,
       payment_id, canonical, corroborated, seen_at)
     WITH RECURSIVE many (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM many WHERE n < ?)
     SELECT 'base', 'test', '0x' || n, lower(address), 'log:1', n, 1, '0x', 'USDC', '1', id, 1, 1, 1 FROM payments, many
     WHERE address = ?`,
      Audit.mostReceipts,
      address(1)
    )
    const after = yield* daemonOn(model)
    yield* TestClock.adjust("30 days")
    expect([yield* after("1 hour"), yield* after("1 hour"), yield* after("1 hour")]).toEqual([[1], [], [2]])
  }
)
