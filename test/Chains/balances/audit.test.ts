import { expect } from "@effect/vitest"
import { Clock, Effect, TestClock } from "effect"
import { getAddress, type Hex } from "viem"
import * as Audit from "../../../src/Chains/balances/AuditRepo.ts"
import type { RpcClient } from "../../../src/Chains/rpc/Rpc.ts"
import { makeMaintenance } from "../../../src/Chains/watcher/maintenance.ts"
import { Reader } from "../../../src/Sql.ts"
import { rows } from "../../lib/rows.ts"
import { soleProvider } from "../../lib/soleProvider.ts"
import { settings } from "../world.ts"
import { base, owe, scanTo, watchOf } from "./reconcileWorld.ts"
import { story } from "./story.ts"

const address = (n: number) => getAddress(`0x${(0xa0d17 * 2 ** 20 + n).toString(16).padStart(40, "0")}` as Hex)
const count = 1_001

story("the audit goes on after a restart, and asks for a thousand addresses in a call", [], function* (model) {
  for (let n = 0; n < count; n++) yield* owe(address(n), { chain: "base", currency: "USDC", endedAt: 1 })
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
  /** A daemon: so long after its start, it looks again. */
  const start = Effect.gen(function* () {
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
  yield* TestClock.adjust("30 days")
  const first = yield* start
  // Not while it starts.
  expect(yield* first("0 seconds")).toEqual([])
  expect(yield* first("5 minutes")).toEqual([1000])
  expect(yield* first("5 minutes")).toEqual([])
  const second = yield* start
  expect(yield* second("5 minutes")).toEqual([])
  expect(yield* second("1 hour")).toEqual([1])
  expect(yield* rows("SELECT audited FROM scans")).toEqual([{ audited: "" }])
  const reader = yield* Reader
  expect(yield* Audit.lastLook(reader, [base])).toBe(yield* Clock.currentTimeMillis)
  // As long as one chain waits for its first look, none is claimed.
  expect(yield* Audit.lastLook(reader, [base, { ...base, chain: "polygon" }])).toBe(0)
  expect(yield* second("1 hour")).toEqual([1000])
})
