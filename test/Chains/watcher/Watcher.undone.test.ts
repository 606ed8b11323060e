import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import {
  alice,
  aroundReal,
  aroundSomeReal,
  next,
  second,
  upTo,
  usdc,
  watchedPayment,
  withReceipts,
  withTokens
} from "../around.ts"
import { stateOf, watchedUsdc } from "../lying.ts"
import { coin, ModelChain, token } from "../ModelChain.ts"
import { Announced, ledger, pass, paymentById, until } from "../world.ts"

it.scoped("a reorg is followed even if the balances after it cannot be read", () => {
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

describe("a reorg that removes the only, confirmed payment", () => {
  /** The new branch has been read up to block 15, and block 8 is final. `again`: its money is mined again. */
  const followed = (nodes: readonly [ModelChain, ...ReadonlyArray<ModelChain>], again: boolean) =>
    Effect.gen(function* () {
      const [first] = nodes
      for (const node of nodes) node.finalized = 8
      const payment = yield* watchedUsdc()
      const paid = token(usdc, alice, 5n)
      yield* next(first, paid)
      yield* next(first)
      yield* next(first)
      yield* until(stateOf(payment.id), (state) => state === "confirmed 5")
      first.rollback(3)
      first.mine(...(again ? [paid] : []))
      first.mineMany(4)
      yield* pass("4 minutes")
      yield* upTo(15)
      return payment
    })
  const two = () => {
    const first = new ModelChain(10)
    return [first, first.twin()] as const
  }
  const one = () => [new ModelChain(10)] as const

  it.scoped.each([
    ["one provider", one],
    ["two providers", two]
  ] as const)("makes it fail soon after the new branch is final, though no payment is open: %s", ([, providers]) => {
    const nodes = providers()
    return Effect.gen(function* () {
      const { id } = yield* followed(nodes, false)
      yield* pass("5 minutes")
      expect(yield* stateOf(id)).toBe("confirmed 5")
      // One provider can invent the tag: alone it makes no shallow block final.
      for (const node of nodes) node.finalized = 11
      nodes[0].mine()
      yield* pass("5 minutes")
      expect(yield* stateOf(id)).toBe("confirmed 5")
      nodes[0].mineMany(8)
      yield* pass("1 minute")
      nodes[0].mine()
      yield* pass("4 minutes")
      expect(yield* stateOf(id)).toBe("failed reorged")
      // The chain is polled slowly again.
      const asked = nodes[0].batches.length
      yield* pass("3 minutes")
      expect(nodes[0].batches.length - asked).toBeLessThan(20)
    }).pipe(aroundSomeReal(nodes))
  })

  it.scoped("and mines its money again lets the chain be polled slowly again", () => {
    const nodes = two()
    return Effect.gen(function* () {
      const { id } = yield* followed(nodes, true)
      const asked = nodes[0].batches.length
      yield* pass("3 minutes")
      expect(nodes[0].batches.length - asked).toBeLessThan(20)
      expect(yield* stateOf(id)).toBe("confirmed 5")
    }).pipe(aroundSomeReal(nodes))
  })
})
