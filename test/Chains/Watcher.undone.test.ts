import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { alice, aroundReal, second, upTo, watchedPayment, withReceipts, withTokens } from "./around.ts"
import { coin, ModelChain } from "./ModelChain.ts"
import { Announced, ledger, paymentById, until } from "./world.ts"

it.scoped("a reorg is followed though the balances that it may have left cannot be read", () => {
  const chain = new ModelChain(10)
  withReceipts(chain)
  return Effect.gen(function* () {
    const payment = yield* watchedPayment(alice, { chain: "base" })
    const announced = yield* Announced
    chain.mine(coin(alice, 100n))
    yield* Effect.raceFirst(
      until(paymentById(payment.id), (now) => now?.status === "detecting"),
      Effect.forever(second)
    )
    let asked = 0
    chain.intercept = (batch) => {
      const ofBalance = batch.some(({ method }) => method === "eth_getBalance")
      chain.failure = ofBalance ? "refused" : undefined
      if (ofBalance) asked++
    }
    chain.rollback(1)
    chain.mineMany(3)
    yield* Effect.raceFirst(upTo(13), Effect.forever(second))
    expect(asked).toBeGreaterThan(0)
    expect((yield* ledger).map(({ canonical }) => canonical)).toEqual([0])
    expect((yield* paymentById(payment.id))?.status).toBe("pending")
    expect(announced).toEqual(["detecting"])
  }).pipe(aroundReal(chain, { ...withTokens, chain: "base", confirmations: 30 }))
})
