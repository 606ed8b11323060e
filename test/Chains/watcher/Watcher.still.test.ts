import { describe, expect, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { makeIsStalled } from "../../../src/Chains/providers/stalledHead.ts"
import { someProviders } from "../../lib/soleProvider.ts"
import { alice, aroundTwo, health, next, second, upTo, usdc, watchedPayment } from "../around.ts"
import { ModelChain, token } from "../ModelChain.ts"
import { ledger, pass } from "../world.ts"

/** Mines a block that the provider does not report. */
const without = (still: ModelChain) =>
  Effect.sync(() => {
    still.mine()
    still.behind++
  })

describe("a provider whose head is stalled", () => {
  it.scoped("while another one continues goes into cooldown after 15 seconds, and the newer blocks are read", () => {
    const first = new ModelChain(10)
    const other = first.twin()
    return Effect.gen(function* () {
      yield* watchedPayment(alice, { currency: "USDC" })
      yield* next(first)
      first.mine(token(usdc, alice, 5n))
      first.behind = 1
      yield* without(first)
      for (let i = 0; i < 14; i++) yield* second
      expect(yield* upTo(11)).toMatchObject({ ready: true, providers: [{ healthy: true }, { healthy: true }] })
      yield* second
      yield* second
      expect(yield* upTo(13)).toMatchObject({ providers: [{ healthy: false }, { healthy: true }] })
      expect((yield* health)?.providers[0]?.reason).toContain("its head stands at 11, and another provider's at 13")
      expect((yield* ledger).map(({ amount }) => amount)).toEqual(["5"])
    }).pipe(aroundTwo(first, other))
  })

  it.scoped("continues serving if the other one is at most one block ahead, or does not respond", () => {
    const first = new ModelChain(10)
    const other = first.twin()
    return Effect.gen(function* () {
      yield* watchedPayment(alice)
      yield* without(first)
      yield* pass("20 seconds")
      expect(yield* upTo(10)).toMatchObject({ ready: true, providers: [{ healthy: true }, { healthy: true }] })
      other.failure = "timeout"
      yield* without(first)
      yield* pass("20 seconds")
      expect(yield* upTo(10)).toMatchObject({ ready: true, providers: [{ healthy: true }, {}] })
      other.failure = undefined
      // It is checked again every 15 seconds.
      yield* pass("30 seconds")
      yield* upTo(12)
    }).pipe(aroundTwo(first, other))
  })
})

it.effect("a stalled provider counts as lagging only for blocks above its head", () => {
  const chain = new ModelChain(10)
  const { aside, provider, providers } = someProviders(chain.client, new ModelChain(12).client)
  const standsStill = makeIsStalled(providers)
  return Effect.gen(function* () {
    // The whole chain may have stopped.
    for (let i = 0; i < 3; i++) {
      expect(yield* standsStill(provider, 10)).toBe(false)
      yield* TestClock.adjust("1 minute")
    }
    expect(yield* standsStill(provider, 11)).toBe(true)
    expect(aside).toEqual(["behind"])
  })
})
