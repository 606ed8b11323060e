import { expect, it } from "@effect/vitest"
import { Duration, Effect, TestClock } from "effect"
import { Settlement } from "../../../src/Chains/ledger/SettlementTag.ts"
import type { Payment } from "../../../src/Domain/Payment.ts"
import { temporaryDatabase } from "../../lib/store.ts"
import { address, aroundSomeReal, health, usdc, withTokens } from "../around.ts"
import { ModelChain, modelRpc, token } from "../ModelChain.ts"
import { pass, pay, paymentById, realSettlement, until, watch, world } from "../world.ts"

// Within the clock tolerance of 15 minutes: this machine's clock is 14 minutes slow, which nothing reports.

const tolerance = { clockTolerance: Duration.minutes(15) }
const ahead = 84
const patient = { ...withTokens, pollInterval: Duration.seconds(10) }
const [alice, bob] = [address(0xa11ce), address(0xb0b)]
const tenMinutes = (to: string) => pay(to, { currency: "USDC", amount: 5n, expiresIn: 600_000 })
const statusOf = ({ id }: Payment) => Effect.map(paymentById(id), (payment) => payment?.status)

const watched = Effect.gen(function* () {
  yield* Effect.forkScoped((yield* Settlement).expire)
  yield* watch
  yield* until(health, (now) => now?.lagBlocks === 0)
})

/** Two payments created after the watcher's first poll, or before it. */
const both = Effect.all([tenMinutes(alice), tenMinutes(bob)], { concurrency: 1 })
const made = {
  "after the first poll": Effect.zipRight(watched, both),
  "before the first poll": Effect.zipLeft(both, watched)
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
  "a payment of ten minutes that is created %s has exactly its ten minutes, and is paid in time in the ninth",
  (after) => {
    const chain = new ModelChain(ahead)
    return Effect.gen(function* () {
      const [payment, paid] = yield* made[after]
      yield* minutes(chain, 9)
      chain.mine(token(usdc, bob, 5n))
      yield* minutes(chain, 1)
      expect([yield* statusOf(payment), yield* statusOf(paid)]).toEqual(["pending", "confirmed"])
      // Its grace period of a minute, and the confirmations.
      yield* minutes(chain, 2)
      expect(yield* statusOf(payment)).toBe("expired")
    }).pipe(aroundSomeReal([chain], patient, tolerance))
  }
)

it.scoped("after a restart, only payments that the present run has created by its slow clock get more time", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    const chain = new ModelChain(ahead)
    const rpc = modelRpc({ "model:ethereum": chain })
    const run = <A, E, R>(test: Effect.Effect<A, E, R>) =>
      Effect.scoped(Effect.provide(test, world(path, [patient], rpc, realSettlement, tolerance)))
    const deadlines = ({ id }: Payment) =>
      Effect.map(paymentById(id), (payment) => [payment?.expiresAt, payment?.dueAt])
    yield* TestClock.setTime(840_000)
    const earlier = yield* run(Effect.zipRight(watched, tenMinutes(alice)))
    // The chain's head is at second 1,680 then, and its stored one is older than this clock.
    chain.mineMany(ahead)
    yield* TestClock.setTime(850_000)
    yield* run(
      Effect.gen(function* () {
        const later = yield* tenMinutes(bob)
        expect([later.createdHead, later.dueAt]).toEqual([ahead, undefined])
        yield* watched
        expect(yield* deadlines(earlier)).toEqual([1_440_000, undefined])
        expect(yield* deadlines(later)).toEqual([1_450_000, 2_280_000])
      })
    )
  })
)

// The chain's head is at second 840.
it.scoped.each([
  ["a payment created before the time of the head gets no more than its own time from there", 800_000, 1_440_000],
  ["a payment created after the time of the head keeps its deadline", 900_000, undefined]
] as const)("when the clock is set back before the first poll, %s", ([, createdAt, dueAt]) =>
  Effect.gen(function* () {
    yield* TestClock.setTime(createdAt)
    const { id } = yield* tenMinutes(alice)
    yield* TestClock.setTime(0)
    yield* watched
    const payment = yield* paymentById(id)
    expect([payment?.expiresAt, payment?.dueAt]).toEqual([createdAt + 600_000, dueAt])
  }).pipe(aroundSomeReal([new ModelChain(ahead)], patient, tolerance))
)
