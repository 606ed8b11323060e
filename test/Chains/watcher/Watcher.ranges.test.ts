import { expect, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { alice, around, upTo, usdc, watchedPayment, withTokens } from "../around.ts"
import { coin, ModelChain, token } from "../ModelChain.ts"
import { ledger, pass } from "../world.ts"
import { onChain } from "./onChain.ts"

/** A chain that is read by logs and balances, without full blocks. */
const ofLogs = { ...withTokens, chain: "base" as const, confirmations: 5 }

onChain("a block that is replaced after its logs were requested loses no transfer", function* (chain) {
  yield* watchedPayment(alice)
  // More blocks than fit one batch: the last of them are read after the logs.
  chain.mineMany(15)
  let replaced = false
  chain.intercept = (batch) => {
    if (replaced || batch.some(({ method }) => method === "eth_getLogs")) return
    if (!batch.some(({ params: [number, full] }) => number === "0x19" && full === true)) return
    replaced = true
    chain.rollback(1)
    chain.mine(token(usdc, alice, 5n))
  }
  yield* pass("10 seconds")
  yield* upTo(25)
  expect(replaced).toBe(true)
  expect((yield* ledger).map(({ block_number }) => block_number)).toEqual([25])
})

onChain("receipts of a replaced branch are orphaned, however far the head is", ofLogs, function* (chain) {
  yield* watchedPayment(alice, { chain: "base", currency: "USDC" })
  chain.mine(token(usdc, alice, 5n))
  yield* pass("1 second")
  yield* upTo(11)
  // More blocks than one range: the end of the range is requested, and with it the last block that was read.
  let replaced = false
  chain.intercept = (batch) => {
    const numbers = batch.map(({ params: [number] }) => number)
    if (replaced || batch.length !== 2 || !numbers.includes("0xb") || numbers.includes("latest")) return
    replaced = true
    chain.rollback(chain.height - 10)
    chain.mineMany(2_101)
  }
  chain.mineMany(2_100)
  yield* pass("10 seconds")
  yield* upTo(2_111)
  expect(replaced).toBe(true)
  expect((yield* ledger).map(({ canonical }) => canonical)).toEqual([0])
})

it.scoped.each([ofLogs, withTokens])(
  "a range that was read from a branch that comes and goes is not stored on $chain",
  (settings) => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      yield* watchedPayment(alice, { chain: settings.chain, currency: "USDC" })
      chain.mine()
      let state = "before"
      chain.intercept = (batch) => {
        if (state === "during") {
          state = "after"
          chain.returnToLastBranch()
        } else if (state === "before" && batch.some(({ method }) => method === "eth_getLogs")) {
          state = "during"
          chain.rollback(1)
          chain.mine(token(usdc, alice, 5n))
        }
      }
      yield* pass("5 seconds")
      yield* upTo(12)
      expect(state).toBe("after")
      expect((yield* ledger).filter(({ canonical }) => canonical === 1)).toEqual([])
    }).pipe(around(chain, settings))
  }
)

/** The test clock, set back by `millis`. */
const setBack =
  (by: { millis: number }) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.flatMap(Effect.clock, (clock) =>
      Effect.withClock(
        effect,
        Object.assign(Object.create(clock), {
          currentTimeMillis: Effect.map(clock.currentTimeMillis, (now) => now - by.millis),
          unsafeCurrentTimeMillis: () => clock.unsafeCurrentTimeMillis() - by.millis
        })
      )
    )

it.scoped("a clock that is set back during a tick does not put the watcher to sleep", () => {
  const chain = new ModelChain(10)
  const by = { millis: 0 }
  const test = Effect.gen(function* () {
    yield* watchedPayment(alice)
    chain.intercept = () => {
      by.millis = 2 * 3_600_000
    }
    chain.mine(coin(alice, 1n))
    yield* TestClock.adjust("2 seconds")
    chain.mine(coin(alice, 2n))
    yield* TestClock.adjust("2 minutes")
    yield* upTo(12)
    expect((yield* ledger).map(({ block_number }) => block_number)).toEqual([11, 12])
  }).pipe(around(chain), setBack(by))
  return Effect.zipRight(TestClock.setTime(10 * 3_600_000), test)
})
