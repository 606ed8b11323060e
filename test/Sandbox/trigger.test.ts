import { describe, expect } from "@effect/vitest"
import { Duration, Effect, Fiber, Queue, TestClock, TestContext } from "effect"
import { listenClient } from "../../src/Listen/askApi.ts"
import { NotTriggered, triggerEvents } from "../../src/Sandbox/trigger.ts"
import { confirmations, localChain, makeHome, mineAt, serveHere } from "../lib/daemon.ts"
import { liveTest } from "../lib/scopedTest.ts"

/** A trigger beside a daemon whose chain mines only on request, and so confirms nothing. */
const waiting = Effect.gen(function* () {
  const chain = yield* localChain("base")
  const home = yield* makeHome({ chains: new Map([["base", chain]]) })
  const { key, url } = yield* serveHere(home)
  const printed = yield* Queue.unbounded<string>()
  const triggered = triggerEvents({
    api: { url, key, client: yield* listenClient },
    kind: "payment.confirmed",
    chain: { name: "base", rpcUrl: chain.url, tokens: new Map() },
    currency: "ETH",
    settleGrace: Duration.zero,
    tell: (what) => Effect.asVoid(Queue.offer(printed, what))
  })
  /** Waits until the payment is paid; returns its id. */
  const paid = Effect.gen(function* () {
    const [, id = ""] = /^created (pay_\S+) on base/.exec(yield* Queue.take(printed)) ?? []
    expect(yield* Queue.take(printed)).toMatch(/^paid in 0x/)
    return id
  })
  return { chain, triggered, paid, printed }
})

describe("a trigger whose event does not come", () => {
  liveTest("says that it waits, and ends after two minutes", function* () {
    const { paid, printed, triggered } = yield* waiting
    yield* Effect.gen(function* () {
      const fiber = yield* Effect.fork(triggered)
      const id = yield* paid
      yield* TestClock.adjust("10 seconds")
      expect(yield* Queue.take(printed)).toBe("waiting for payment.confirmed: 10 s, at most 120 s")
      yield* TestClock.adjust("110 seconds")
      expect(yield* Effect.flip(Fiber.join(fiber))).toEqual(
        new NotTriggered({
          message: `payment.confirmed of ${id} did not come within 2m: is base read? See /readyz and the log`
        })
      )
    }).pipe(Effect.provide(TestContext.TestContext))
  })

  liveTest("says what came in its place", function* () {
    const { chain, paid, triggered } = yield* waiting
    const fiber = yield* Effect.fork(triggered)
    const id = yield* paid
    // As if it had never been sent; then two hours pass.
    yield* chain.rpc("anvil_dropAllTransactions")
    yield* mineAt(chain, (yield* chain.head).timestamp + 7_200, confirmations)
    expect(yield* Effect.flip(Fiber.join(fiber))).toEqual(
      new NotTriggered({ message: `${id} came to payment.expired, and not to payment.confirmed` })
    )
  })
})
