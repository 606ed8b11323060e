import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect, Layer } from "effect"
import { ObservedDuration } from "../../../src/Chains/providers/ObservedDuration.ts"
import { change } from "../../lib/rows.ts"
import { temporaryDatabase } from "../../lib/store.ts"
import { alice, usdc, watchedPayment, withTwo } from "../around.ts"
import { ModelChain, modelRpc, token } from "../ModelChain.ts"
import { ledger, notingSettlement, pass, watch, world } from "../world.ts"
import { verified } from "./scene.ts"

// How long other providers have been silent; what the only one that responds decides is told by test/sim/tales/time.test.ts.

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

it.scoped(
  "after a start, the verification pass waits ten minutes for a second provider, and reads again with it",
  () => {
    const first = new ModelChain(10)
    const other = first.twin()
    const settings = { ...withTwo, pollInterval: Duration.seconds(20) }
    const found = Effect.map(Effect.zip(verified, ledger), ([number, all]) => [number, all.map(({ amount }) => amount)])
    const started = Effect.gen(function* () {
      yield* watch
      yield* pass("1 minute")
      expect(yield* found).toEqual([0, ["5"]])
      yield* change("DELETE FROM receipts")
      yield* pass("8 minutes")
      expect(yield* found).toEqual([0, []])
      yield* pass("2 minutes")
      expect(yield* found).toEqual([0, ["5"]])
      other.failure = undefined
      yield* pass("2 minutes")
      expect(yield* verified).toBe(28)
    })
    return Effect.gen(function* () {
      const rpc = modelRpc({ "model:first": first, "model:second": other })
      const daemon = Layer.fresh(world(yield* temporaryDatabase, [settings], rpc, notingSettlement))
      yield* Effect.scoped(Effect.provide(watchedPayment(alice), daemon))
      other.failure = "unreachable"
      first.mine(token(usdc, alice, 5n))
      first.mineMany(29)
      yield* Effect.scoped(Effect.provide(started, daemon))
    })
  }
)
