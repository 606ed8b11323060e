import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, TestClock } from "effect"
import { Heads } from "../../../src/Chains/providers/Heads.ts"
import { Chains } from "../../../src/Chains.ts"
import { someProviders } from "../../lib/soleProvider.ts"
import { alice, health, next, second, upTo, usdc, watchedPayment } from "../around.ts"
import { coin, ModelChain, token } from "../ModelChain.ts"
import { committedTo, ledger, pass, pay, watch } from "../world.ts"
import { onChain, onTwo } from "./onChain.ts"

onTwo("a provider that does not serve is looked at every four minutes", function* (_, standby) {
  yield* watchedPayment(alice)
  yield* upTo(10)
  const usable = Effect.map(health, (chain) => chain?.providers.map(({ healthy }) => healthy))
  standby.failure = "unreachable"
  yield* pass("4 minutes")
  expect(yield* usable).toEqual([true, false])
  standby.failure = undefined
  yield* pass("4 minutes")
  expect(yield* usable).toEqual([true, true])
})

describe("a chain is ready", () => {
  onChain("for 20 seconds after its last successful poll, and again after the next one", function* (chain) {
    yield* watchedPayment(alice)
    yield* upTo(10)
    chain.failure = "unreachable"
    yield* pass("20 seconds")
    expect(yield* health).toMatchObject({
      ready: true,
      reason:
        "any at model failed (unreachable): as the test wants. Remedy: check the address in rpc_urls and that the node runs"
    })
    yield* pass("2 seconds")
    expect(yield* health).toMatchObject({ ready: false, head: 10, providers: [{ healthy: false }] })
    chain.failure = undefined
    chain.mine()
    yield* pass("15 seconds")
    const now = yield* upTo(11)
    expect(now).toMatchObject({ ready: true, providers: [{ healthy: true }] })
    expect(now).not.toHaveProperty("reason")
  })

  onChain("no longer once a poll has failed, even if it is polled every four minutes", function* (chain) {
    yield* watch
    yield* committedTo(10)
    yield* upTo(10)
    chain.failure = "unreachable"
    yield* pass("239 seconds")
    expect(yield* health).toMatchObject({ ready: true })
    yield* pass("2 seconds")
    expect(yield* health).toMatchObject({ ready: false, reason: expect.stringContaining("unreachable") })
  })

  onChain("not because of a response from before the clock was set back", function* (chain) {
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
  })

  onChain("only if its node does not lag, which is not counted as a lag of the chain", function* (chain) {
    yield* watchedPayment(alice)
    yield* upTo(10)
    chain.behind = 4
    yield* second
    expect(yield* health).toMatchObject({ ready: true, head: 10, lagBlocks: 0, providers: [{ healthy: false }] })
    expect((yield* health)?.reason).toContain("its head is 6")
    yield* pass("40 seconds")
    expect(yield* health).toMatchObject({ ready: false, head: 10 })
  })

  onChain("only while its ticks end: one that hangs is reported after 20 seconds", function* (chain) {
    yield* watchedPayment(alice)
    yield* upTo(10)
    chain.delay = () => Effect.never
    yield* TestClock.adjust("3 seconds")
    expect(yield* health).not.toHaveProperty("reason")
    yield* TestClock.adjust("1 second")
    expect(yield* health).toMatchObject({ ready: true, reason: "a provider has not responded for 3 seconds" })
    yield* TestClock.adjust("16 seconds")
    expect(yield* health).toMatchObject({ ready: true })
    yield* TestClock.adjust("2 seconds")
    expect(yield* health).toMatchObject({ ready: false, reason: "nothing has been finished for 22 seconds" })
  })

  onChain("never before its provider has responded, which is named after 3 seconds", function* (chain) {
    const asked = yield* Deferred.make<void>()
    chain.delay = () => Effect.zipRight(Deferred.succeed(asked, undefined), Effect.never)
    yield* watch
    yield* Deferred.await(asked)
    yield* TestClock.adjust("3 seconds")
    expect(yield* health).toMatchObject({ ready: false, reason: "a provider has not responded for 3 seconds" })
  })

  onChain("only while maintenance ends too, though its head has been read", function* (chain) {
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
  })

  onChain("for 20 seconds after a payment has woken it, though its polls are minutes apart", function* (chain) {
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
  })

  onChain("all the time while a provider takes most of its 5 seconds for each response", function* (chain) {
    chain.finalized = 5
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
  })
})

onTwo(
  "a provider whose head is stalled while another one continues goes into cooldown after 15 seconds",
  function* (first) {
    yield* watchedPayment(alice, { currency: "USDC" })
    yield* next(first)
    first.mine(token(usdc, alice, 5n))
    first.mine()
    first.behind = 2
    yield* Effect.repeatN(second, 13)
    expect(yield* upTo(11)).toMatchObject({ ready: true, providers: [{ healthy: true }, { healthy: true }] })
    yield* second
    yield* second
    expect(yield* upTo(13)).toMatchObject({ providers: [{ healthy: false }, { healthy: true }] })
    expect((yield* health)?.providers[0]?.reason).toContain("its head stands at 11, and another provider's at 13")
    expect((yield* ledger).map(({ amount }) => amount)).toEqual(["5"])
  }
)

it.effect("a stalled provider counts as lagging only for blocks above its head", () => {
  const chain = new ModelChain(10)
  const { aside, provider, providers } = someProviders(chain.client, new ModelChain(12).client)
  const heads = new Heads(providers, 3)
  return Effect.gen(function* () {
    // The whole chain may have stopped.
    for (let i = 0; i < 3; i++) {
      expect(yield* heads.isStalled(provider, 10)).toBe(false)
      yield* TestClock.adjust("1 minute")
    }
    expect(yield* heads.isStalled(provider, 11)).toBe(true)
    expect(aside).toEqual(["behind"])
  })
})
