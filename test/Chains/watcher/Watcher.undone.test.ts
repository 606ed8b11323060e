import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { alice, aroundSomeReal, next, second, upTo, usdc, watchedPayment, withReceipts } from "../around.ts"
import { stateOf, watchedUsdc } from "../lying.ts"
import { coin, ModelChain, token } from "../ModelChain.ts"
import { Announced, ledger, pass, paymentById, until } from "../world.ts"
import { onRealChain } from "./onChain.ts"

onRealChain(
  "a reorg is followed even if the balances after it cannot be read",
  { chain: "base", confirmations: 30 },
  function* (chain) {
    withReceipts(chain)
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
  }
)

it.scoped.each([1, 2])(
  "a reorg that removes the only, confirmed payment makes it fail once the new branch is final: providers: %d",
  (count) => {
    const first = new ModelChain(10)
    const nodes = [first, ...(count === 2 ? [first.twin()] : [])] as const
    return Effect.gen(function* () {
      for (const node of nodes) node.finalized = 8
      const { id } = yield* watchedUsdc()
      yield* next(first, token(usdc, alice, 5n))
      yield* next(first)
      yield* next(first)
      yield* until(stateOf(id), (state) => state === "confirmed 5")
      first.rollback(3)
      first.mineMany(5)
      yield* pass("4 minutes")
      yield* upTo(15)
      yield* pass("5 minutes")
      expect(yield* stateOf(id)).toBe("confirmed 5")
      // One provider can invent the tag: alone it makes no shallow block final.
      for (const node of nodes) node.finalized = 11
      first.mine()
      yield* pass("5 minutes")
      expect(yield* stateOf(id)).toBe("confirmed 5")
      first.mineMany(8)
      yield* pass("1 minute")
      first.mine()
      yield* pass("4 minutes")
      expect(yield* stateOf(id)).toBe("failed reorged")
      // The chain is polled slowly again.
      const asked = first.batches.length
      yield* pass("3 minutes")
      expect(first.batches.length - asked).toBeLessThan(20)
    }).pipe(aroundSomeReal(nodes))
  }
)
