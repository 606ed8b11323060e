import { expect, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { Settlement } from "../../src/Chains/ledger/SettlementTag.ts"
import { Writer } from "../../src/Sql.ts"
import { alice, second, upTo, withTokens } from "../Chains/around.ts"
import { ModelChain, modelRpc } from "../Chains/ModelChain.ts"
import { pay, paymentById, realSettlement, watch, world } from "../Chains/world.ts"
import { temporaryDatabase } from "../lib/store.ts"

it.scoped(
  "a payment ends with the block whose predecessor past its time has the confirmations, and not one sooner",
  () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      // The time of block 10.
      yield* TestClock.setTime(100_000)
      const { id } = yield* pay(alice, { currency: "USDC" })
      const settlement = yield* Settlement
      yield* Effect.forkScoped(settlement.expire)
      yield* watch
      yield* upTo(10)
      // Its hour and the minute of grace end with the time of block 376.
      chain.mineMany(365)
      const writer = yield* Writer
      const statuses: Array<string | undefined> = []
      for (const head of [375, 376, 377, 378, 379]) {
        // No one looks often once it is over.
        if (statuses.some((status) => status !== "pending")) break
        if (head > 375) chain.mine()
        for (let i = 0; i < 2; i++) yield* second
        yield* upTo(head)
        for (let i = 0; i < 2; i++) yield* second
        yield* Effect.repeatN(writer.write(Effect.void), 5)
        statuses.push((yield* paymentById(id))?.status)
      }
      expect(statuses).toEqual(["pending", "pending", "pending", "pending", "expired"])
    }).pipe((test) =>
      Effect.flatMap(temporaryDatabase, (path) =>
        Effect.provide(test, world(path, [withTokens], modelRpc({ "model:ethereum": chain }), realSettlement))
      )
    )
  }
)
