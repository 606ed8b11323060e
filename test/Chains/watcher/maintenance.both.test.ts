import { describe, expect, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import type { RpcClient } from "../../../src/Chains/rpc/Rpc.ts"
import { Reader } from "../../../src/Sql.ts"
import { direct, inside } from "../balances/BalanceModel.ts"
import { alice, bob, depsOf, hiding, inStore, owing, refusing, round, scan } from "../balances/reconcileWorld.ts"
import { errorOf } from "../providing.ts"
import { choring, kept } from "./maintaining.ts"

const quiet = Effect.provide(Logger.remove(Logger.defaultLogger))

describe("native coin of an address that one provider cannot attribute", () => {
  it.scoped("is read from another one, and the reports of both are stored", () =>
    Effect.gen(function* () {
      const model = yield* owing("both", alice, bob)
      const { next } = yield* choring(
        model,
        refusing(model, () => [1]),
        model.client
      )
      model.mine([direct(alice, 5n)])
      yield* next(direct(bob, 6n))
      expect(yield* kept).toEqual([
        [alice, "tx:0", "5"],
        [bob, "tx:0", "6"]
      ])
      expect((yield* scan)?.checked?.number).toBe(2)
      const reader = yield* Reader
      expect(yield* reader.all("SELECT address FROM balances WHERE number = 2 ORDER BY address")).toEqual([
        { address: alice },
        { address: bob }
      ])
    }).pipe(quiet, inStore)
  )

  it.scoped.each([
    ["both", [2]],
    ["only the other one", [1, 2]]
  ] as const)("counts once, where %s can tell the transaction of older money by now", ([, refused]) =>
    Effect.gen(function* () {
      const model = yield* owing("at last", alice)
      model.traces = false
      model.mine([direct(alice, 3n), inside(alice, 4n)])
      yield* round(depsOf(hiding(model)), model.head)
      expect(yield* kept).toEqual([[alice, "unattributed", "7"]])
      const { next } = yield* choring(
        model,
        refusing(model, () => refused),
        model.client
      )
      yield* next(direct(alice, 5n))
      expect(yield* kept).toEqual([
        [alice, "tx:0", "3"],
        [alice, "unattributed", "4"],
        [alice, "tx:0", "5"]
      ])
    }).pipe(quiet, inStore)
  )

  it.scoped("does not block other addresses permanently if the other provider fails too", () =>
    Effect.gen(function* () {
      const model = yield* owing("useless", alice, bob)
      const useless: RpcClient = { ...model.client, send: () => errorOf("useless", "refused") }
      const { next } = yield* choring(
        model,
        refusing(model, () => [1]),
        useless
      )
      yield* next(direct(alice, 5n))
      yield* next()
      expect((yield* scan)?.checked).toBeUndefined()
      yield* next()
      expect(yield* kept).toEqual([[alice, "unattributed", "5"]])
      expect((yield* scan)?.checked?.number).toBe(3)
    }).pipe(quiet, inStore)
  )
})
