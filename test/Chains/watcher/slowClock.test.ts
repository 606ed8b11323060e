import { expect, it } from "@effect/vitest"
import { Duration, Effect, TestClock } from "effect"
import { Settlement } from "../../../src/Chains/ledger/SettlementTag.ts"
import type { Payment } from "../../../src/Domain/Payment.ts"
import { temporaryDatabase } from "../../lib/store.ts"
import { alice, aroundSomeReal, health, usdc, withTokens } from "../around.ts"
import { ModelChain, modelRpc, token } from "../ModelChain.ts"
import { pass, pay, paymentById, realSettlement, until, watch, world } from "../world.ts"

// Within the clock tolerance of 15 minutes: this machine's clock is 14 minutes slow, which nothing reports.

const tolerance = { clockTolerance: Duration.minutes(15) }
const ahead = 84
const patient = { ...withTokens, pollInterval: Duration.seconds(10) }
const tenMinutes = pay(alice, { currency: "USDC", amount: 5n, expiresIn: 600_000 })
const statusOf = ({ id }: Payment) => Effect.map(paymentById(id), (payment) => payment?.status)

const watched = Effect.gen(function* () {
  yield* Effect.forkScoped((yield* Settlement).expire)
  yield* watch
  yield* until(health, (now) => now?.head === ahead)
})

/** A payment created after the watcher's first poll, or before it. */
const made = {
  "after the first poll": Effect.zipRight(watched, tenMinutes),
  "before the first poll": Effect.zipLeft(tenMinutes, watched)
}

/** Advances this clock and the chain's by `count` minutes. */
const minutes = (chain: ModelChain, count: number) =>
  Effect.repeatN(
    Effect.suspend(() => {
      chain.mine()
      return pass("10 seconds")
    }),
    count * 6 - 1
  )

it.scoped.each(["after the first poll", "before the first poll"] as const)(
  "a payment of ten minutes that is created %s has exactly its ten minutes",
  (after) => {
    const chain = new ModelChain(ahead)
    return Effect.gen(function* () {
      const payment = yield* made[after]
      yield* minutes(chain, 10)
      expect(yield* statusOf(payment)).toBe("pending")
      // Its grace period of a minute, and the confirmations.
      yield* minutes(chain, 2)
      expect(yield* statusOf(payment)).toBe("expired")
    }).pipe(aroundSomeReal([chain], patient, tolerance))
  }
)

it.scoped.each(["after the first poll", "before the first poll"] as const)(
  "a payment of ten minutes that is created %s is paid in time nine minutes later",
  (after) => {
    const chain = new ModelChain(ahead)
    return Effect.gen(function* () {
      const payment = yield* made[after]
      yield* minutes(chain, 9)
      chain.mine(token(usdc, alice, 5n))
      yield* minutes(chain, 1)
      expect(yield* statusOf(payment)).toBe("confirmed")
    }).pipe(aroundSomeReal([chain], patient, tolerance))
  }
)

it.scoped("a payment that an earlier run created with a right clock keeps its deadline", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    const rpc = modelRpc({ "model:ethereum": new ModelChain(ahead) })
    const run = <A, E, R>(test: Effect.Effect<A, E, R>) =>
      Effect.scoped(Effect.provide(test, world(path, [patient], rpc, realSettlement, tolerance)))
    yield* TestClock.setTime(840_000)
    const { id } = yield* run(made["after the first poll"])
    yield* TestClock.setTime(0)
    const payment = yield* run(Effect.zipRight(watched, paymentById(id)))
    expect([payment?.expiresAt, payment?.dueAt]).toEqual([1_440_000, undefined])
  })
)

it.scoped(
  "a clock that is set back between a payment and the first poll adds no more than the payment's own time",
  () => {
    const chain = new ModelChain(ahead)
    return Effect.gen(function* () {
      yield* TestClock.setTime(800_000)
      const { id } = yield* tenMinutes
      yield* TestClock.setTime(0)
      yield* watched
      const payment = yield* paymentById(id)
      // The chain's head is at second 840 by then: it needs at most ten minutes from there.
      expect([payment?.expiresAt, payment?.dueAt]).toEqual([1_400_000, 1_440_000])
    }).pipe(aroundSomeReal([chain], patient, tolerance))
  }
)

it.scoped(
  "a payment created after the time of the head, by a clock that has been set back since, keeps its deadline",
  () => {
    const chain = new ModelChain(ahead)
    return Effect.gen(function* () {
      yield* TestClock.setTime(900_000)
      const { id } = yield* tenMinutes
      yield* TestClock.setTime(0)
      yield* watched
      const payment = yield* paymentById(id)
      expect([payment?.expiresAt, payment?.dueAt]).toEqual([1_500_000, undefined])
    }).pipe(aroundSomeReal([chain], patient, tolerance))
  }
)
