import { describe, expect, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { ObservedDuration } from "../../../src/Chains/providers/ObservedDuration.ts"
import { alice, aroundSomeReal, next, second, upTo, usdc, watchedPayment, withTokens } from "../around.ts"
import { ModelChain, token } from "../ModelChain.ts"
import { pass, paymentById } from "../world.ts"

const minute = 60_000

describe("an observed duration", () => {
  it("adds up the time between observations, at most five minutes each", () => {
    const lasting = new ObservedDuration()
    lasting.seen(0)
    expect(lasting.millis).toBe(0)
    for (let at = 10_000; at <= minute; at += 10_000) lasting.seen(at)
    expect(lasting.millis).toBe(minute)
    lasting.seen(11 * minute)
    expect(lasting.millis).toBe(6 * minute)
    lasting.end()
    lasting.seen(12 * minute)
    expect(lasting.millis).toBe(0)
  })

  it.each([11 * minute + 1, -1])(
    "starts again after a long gap between observations, or when the clock was set back: %s ms",
    (step) => {
      const lasting = new ObservedDuration()
      lasting.seen(0)
      lasting.seen(minute)
      lasting.seen(minute + step)
      expect(lasting.millis).toBe(0)
      lasting.seen(2 * minute + step)
      expect(lasting.millis).toBe(minute)
    }
  )
})

describe("a provider that was not asked", () => {
  /** The serving provider invents a receipt; the other one starts to fail when the receipt has its confirmations. */
  const failing = <R>(meanwhile: Effect.Effect<unknown, never, R>) => {
    const first = new ModelChain(10)
    const other = first.twin()
    return Effect.gen(function* () {
      const { id } = yield* watchedPayment(alice, { currency: "USDC", amount: 5n })
      yield* next(first, token(usdc, alice, 5n))
      yield* second
      expect((yield* paymentById(id))?.status).toBe("detecting")
      yield* meanwhile
      other.failure = "unreachable"
      yield* next(first)
      yield* next(first)
      yield* upTo(13)
      for (let i = 0; i < 20; i++) yield* second
      expect((yield* paymentById(id))?.status).toBe("detecting")
      // After ten minutes of failed requests, the sole provider decides.
      yield* pass("11 minutes")
      expect((yield* paymentById(id))?.status).toBe("confirmed")
    }).pipe(aroundSomeReal([first, other], { ...withTokens, chain: "ethereum" }))
  }

  it.scoped("is not silent while the chain stands still: the serving one does not decide alone", () =>
    failing(Effect.forEach(Array.from({ length: 660 }), () => second, { concurrency: 1, discard: true }))
  )

  it.scoped("is not silent while the process is stopped or the clock is set", () =>
    failing(TestClock.adjust("15 minutes"))
  )
})
