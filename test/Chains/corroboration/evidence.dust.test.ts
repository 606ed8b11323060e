import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { Settlement } from "../../../src/Chains/ledger/SettlementTag.ts"
import { Reader } from "../../../src/Sql.ts"
import { alice, aroundSomeReal, second, usdc, watchedPayment, withReceipts, withTokens } from "../around.ts"
import { inventing, stateOf, untilOver, watchedUsdc } from "../lying.ts"
import { coin, ModelChain, token } from "../ModelChain.ts"
import { ledger, pass } from "../world.ts"

// Dust is settled as a sum and not corroborated one by one: what one of two providers can do to the end of a payment.

const exceptions = Effect.flatMap(Reader, (reader) => reader.all("SELECT kind FROM exceptions"))

describe("a payment that has received only dust", () => {
  it.scoped("expires where one provider has invented it", () => {
    const liar = new ModelChain(10)
    inventing(liar, 371, 1n)
    return Effect.gen(function* () {
      const { id } = yield* watchedUsdc(5_000n)
      yield* untilOver(liar)
      for (let i = 0; i < 30; i++) yield* second
      expect(yield* stateOf(id)).toBe("expired")
      expect(yield* exceptions).toEqual([])
    }).pipe(aroundSomeReal([liar, liar.twin()]))
  })

  it.scoped("fails where both have it, before its block is final", () => {
    const first = new ModelChain(10)
    return Effect.gen(function* () {
      const { id } = yield* watchedUsdc(5_000n)
      first.mineMany(350)
      first.mine(token(usdc, alice, 1n), token(usdc, alice, 2n))
      yield* untilOver(first)
      for (let i = 0; i < 30; i++) yield* second
      expect(yield* stateOf(id)).toBe("failed insufficient_amount 3")
    }).pipe(aroundSomeReal([first, first.twin()]))
  })

  it.scoped("fails where the serving provider left it out and the other one reports it at the end", () => {
    const liar = new ModelChain(10)
    const honest = liar.twin()
    liar.distort = ({ method }, answer) => (method === "eth_getLogs" ? [] : answer)
    return Effect.gen(function* () {
      const { id } = yield* watchedUsdc(5_000n)
      liar.mineMany(350)
      liar.mine(token(usdc, alice, 1n))
      yield* untilOver(liar)
      for (let i = 0; i < 30; i++) yield* second
      expect(yield* stateOf(id)).toBe("failed insufficient_amount 1")
    }).pipe(aroundSomeReal([liar, honest]))
  })

  it.scoped.each([1, 2])("fails where two of three providers have it, and number %i hides it", (hiding) => {
    const first = new ModelChain(10)
    const nodes = [first, first.twin(), first.twin()]
    const liar = nodes[hiding]
    if (liar !== undefined) {
      liar.distort = ({ method }, answer) => {
        if (method === "eth_getLogs") return []
        return method === "eth_getTransactionReceipt" ? { ...(answer as object), logs: [] } : answer
      }
    }
    return Effect.gen(function* () {
      const { id } = yield* watchedUsdc(5_000n)
      first.mineMany(350)
      first.mine(token(usdc, alice, 1n))
      yield* untilOver(first)
      for (let i = 0; i < 30; i++) yield* second
      expect(yield* stateOf(id)).toBe("failed insufficient_amount 1")
    }).pipe(aroundSomeReal(nodes))
  })

  it.scoped("fails where both have it as coins", () => {
    const first = new ModelChain(10)
    const other = first.twin()
    withReceipts(first)
    withReceipts(other)
    return Effect.gen(function* () {
      const { expire } = yield* Settlement
      yield* Effect.forkScoped(expire)
      const { id } = yield* watchedPayment(alice, { amount: 5_000n })
      first.mineMany(350)
      first.mine(coin(alice, 1n))
      yield* untilOver(first)
      for (let i = 0; i < 30; i++) yield* second
      expect(yield* ledger).toMatchObject([{ position: "tx:0", amount: "1" }])
      expect(yield* stateOf(id)).toBe("failed insufficient_amount 1")
    }).pipe(aroundSomeReal([first, other]))
  })

  it.scoped("fails by the only provider that responds, after payments.sole_provider_patience", () => {
    const first = new ModelChain(10)
    const other = first.twin()
    return Effect.gen(function* () {
      const { id } = yield* watchedUsdc(5_000n)
      first.mineMany(350)
      first.mine(token(usdc, alice, 1n))
      other.failure = "unreachable"
      yield* untilOver(first)
      expect(yield* stateOf(id)).toBe("detecting 1")
      yield* pass("75 minutes")
      expect(yield* stateOf(id)).toBe("failed insufficient_amount 1")
    }).pipe(aroundSomeReal([first, other], { ...withTokens, pollInterval: Duration.seconds(30) }))
  })
})
