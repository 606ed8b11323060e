import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect, Layer, TestClock } from "effect"
import { ObservedDuration } from "../../../src/Chains/providers/ObservedDuration.ts"
import { change } from "../../lib/rows.ts"
import { temporaryDatabase } from "../../lib/store.ts"
import { alice, next, upTo, usdc, watchedPayment, withTwo } from "../around.ts"
import { stateOf, untilOver, watchedUsdc } from "../lying.ts"
import { ModelChain, modelRpc, token } from "../ModelChain.ts"
import { ledger, notingSettlement, pass, paymentById, watch, world } from "../world.ts"
import { scene, seconds, verified } from "./scene.ts"

// How long other providers have been silent, and what the only one that responds decides then.

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
  for (const [title, meanwhile] of [
    ["while the chain stands still: the serving one does not decide alone", seconds(660)],
    ["while the process is stopped or the clock is set", TestClock.adjust("15 minutes")]
  ] as const) {
    scene(`is not silent ${title}`, { nodes: 2 }, function* (first, other) {
      const { id } = yield* watchedPayment(alice, { currency: "USDC", amount: 5n })
      const status = Effect.map(paymentById(id), (payment) => payment?.status)
      yield* next(first, token(usdc, alice, 5n))
      yield* seconds(1)
      expect(yield* status).toBe("detecting")
      yield* meanwhile
      // It starts to fail when the receipt has its confirmations.
      other.failure = "unreachable"
      yield* next(first)
      yield* next(first)
      yield* upTo(13)
      yield* seconds(20)
      expect(yield* status).toBe("detecting")
      // After ten minutes of failed requests, the sole provider decides.
      yield* pass("11 minutes")
      expect(yield* status).toBe("confirmed")
    })
  }
})

describe("a payment whose time is over while the other provider is gone", () => {
  scene("does not end, and ends once that one has no money for it either", { nodes: 2 }, function* (first, other) {
    const { id } = yield* watchedUsdc()
    other.failure = "unreachable"
    yield* untilOver(first)
    expect(yield* stateOf(id)).toBe("pending")
    other.failure = undefined
    yield* seconds(30)
    expect(yield* stateOf(id)).toBe("expired")
  })

  const settings = { pollInterval: Duration.seconds(30) }
  scene("ends ten minutes after that one has gone", { nodes: 2, settings }, function* (first, other) {
    const { id } = yield* watchedUsdc()
    other.failure = "unreachable"
    yield* untilOver(first)
    yield* pass("8 minutes")
    expect(yield* stateOf(id)).toBe("pending")
    yield* pass("4 minutes")
    expect(yield* stateOf(id)).toBe("expired")
  })

  scene("ends at once where that one has been gone for ten minutes", { nodes: 2, settings }, function* (first, other) {
    const { id } = yield* watchedUsdc()
    other.failure = "unreachable"
    yield* pass("12 minutes")
    expect(yield* stateOf(id)).toBe("pending")
    yield* untilOver(first)
    yield* pass("2 minutes")
    expect(yield* stateOf(id)).toBe("expired")
  })
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

scene(
  "a provider that decides alone does not do so on a transaction of which it denies another transfer itself",
  { nodes: 2 },
  function* (first, other) {
    const { id } = yield* watchedUsdc()
    first.distort = ({ method }, answer) =>
      method === "eth_getLogs" && Array.isArray(answer)
        ? answer.flatMap((log) => [log, { ...log, logIndex: "0x7" }])
        : answer
    yield* next(first, token(usdc, alice, 5n))
    yield* seconds(1)
    other.failure = "unreachable"
    yield* next(first)
    yield* next(first)
    yield* seconds(20)
    yield* pass("12 minutes")
    yield* seconds(5)
    expect(yield* stateOf(id)).toBe("detecting 10")
  }
)
