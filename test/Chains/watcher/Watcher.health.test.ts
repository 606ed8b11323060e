import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, TestClock } from "effect"
import { Chains } from "../../../src/Chains.ts"
import { alice, around, health, second, upTo, watchedPayment } from "../around.ts"
import { coin, ModelChain } from "../ModelChain.ts"
import { committedTo, pass, pay, watch } from "../world.ts"

describe("a chain is ready", () => {
  it.scoped("between two polls four minutes apart while no payment is open", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      yield* watch
      yield* committedTo(10)
      yield* upTo(10)
      yield* pass("239 seconds")
      expect(yield* health).toMatchObject({ ready: true, head: 10 })
    }).pipe(around(chain))
  })

  it.scoped("for 20 seconds after its last successful poll, and again after the next one", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      yield* watchedPayment(alice)
      yield* upTo(10)
      chain.failure = "unreachable"
      yield* pass("20 seconds")
      expect(yield* health).toMatchObject({
        ready: true,
        reason: "any at model failed (unreachable): as the test wants"
      })
      yield* pass("2 seconds")
      expect(yield* health).toMatchObject({ ready: false, head: 10, providers: [{ healthy: false }] })
      chain.failure = undefined
      chain.mine()
      yield* pass("15 seconds")
      const now = yield* upTo(11)
      expect(now).toMatchObject({ ready: true, providers: [{ healthy: true }] })
      expect(now).not.toHaveProperty("reason")
    }).pipe(around(chain))
  })

  it.scoped("no longer once a poll has failed, even if it is polled every four minutes", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      yield* watch
      yield* committedTo(10)
      yield* upTo(10)
      chain.failure = "unreachable"
      yield* pass("239 seconds")
      expect(yield* health).toMatchObject({ ready: true })
      yield* pass("2 seconds")
      expect(yield* health).toMatchObject({ ready: false, reason: expect.stringContaining("unreachable") })
    }).pipe(around(chain))
  })

  it.scoped("not because of a response from before the clock was set back", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      const chains = yield* Chains
      const gas = chains.gas({ chain: "ethereum", mode: "test" })
      yield* TestClock.setTime(86_400_000)
      yield* watchedPayment(alice)
      expect(yield* upTo(10)).toMatchObject({ ready: true })
      expect(yield* gas).toBeDefined()
      yield* TestClock.setTime(0)
      expect(yield* health).toMatchObject({ ready: false })
      chain.failure = "unreachable"
      expect(yield* gas).toBeUndefined()
    }).pipe(around(chain))
  })

  it.scoped("only if its node does not lag, which is not counted as a lag of the chain", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      yield* watchedPayment(alice)
      yield* upTo(10)
      chain.behind = 4
      yield* second
      expect(yield* health).toMatchObject({ ready: true, head: 10, lagBlocks: 0, providers: [{ healthy: false }] })
      expect((yield* health)?.reason).toContain("its head is 6")
      yield* pass("40 seconds")
      expect(yield* health).toMatchObject({ ready: false, head: 10 })
    }).pipe(around(chain))
  })

  it.scoped("only while its ticks end: one that hangs is reported after 20 seconds", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      yield* watchedPayment(alice)
      yield* upTo(10)
      chain.delay = () => Effect.never
      yield* TestClock.adjust("20 seconds")
      expect(yield* health).toMatchObject({ ready: true })
      yield* TestClock.adjust("2 seconds")
      expect(yield* health).toMatchObject({ ready: false, reason: "nothing has been finished for 22 seconds" })
    }).pipe(around(chain))
  })

  it.scoped("only while maintenance ends too, though its head has been read", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      yield* watchedPayment(alice)
      yield* upTo(10)
      // Until the balances are due again.
      const hung = yield* Deferred.make<void>()
      chain.delay = (batch) =>
        batch.some(({ method }) => method === "eth_getBalance")
          ? Effect.zipRight(Deferred.succeed(hung, undefined), Effect.never)
          : Effect.void
      chain.mine()
      yield* Effect.raceFirst(Deferred.await(hung), Effect.forever(second))
      yield* committedTo(11)
      yield* TestClock.adjust("20 seconds")
      expect(yield* health).toMatchObject({ ready: true })
      yield* TestClock.adjust("1 second")
      expect(yield* health).toMatchObject({ ready: false, reason: "nothing has been finished for 21 seconds" })
    }).pipe(around(chain))
  })

  it.scoped("for 20 seconds after a payment has woken it, though its polls are minutes apart", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      yield* watch
      yield* committedTo(10)
      yield* upTo(10)
      yield* pass("10 seconds")
      chain.delay = () => Effect.never
      yield* pay(alice)
      yield* TestClock.adjust("20 seconds")
      expect(yield* health).toMatchObject({ ready: true })
      yield* TestClock.adjust("1 second")
      expect(yield* health).toMatchObject({ ready: false })
    }).pipe(around(chain))
  })

  it.scoped("all the time while a provider takes most of its 5 seconds for each response", () => {
    const chain = new ModelChain(10)
    chain.finalized = 5
    return Effect.gen(function* () {
      yield* watchedPayment(alice)
      yield* upTo(10)
      chain.delay = () => Effect.sleep("4900 millis")
      chain.mineMany(300)
      const readiness: Array<boolean | undefined> = []
      for (let i = 0; i < 300; i++) {
        if (i % 10 === 0) chain.mine(coin(alice, 1n))
        yield* second
        readiness.push((yield* health)?.ready)
      }
      expect(new Set(readiness)).toEqual(new Set([true]))
      expect((yield* health)?.head).toBeGreaterThan(320)
    }).pipe(around(chain))
  })
})
