import { describe, expect } from "@effect/vitest"
import { Effect, Fiber, TestClock } from "effect"
import { LookLatch } from "../../../src/Chains/watcher/watcherState.ts"
import { Chains } from "../../../src/Chains.ts"
import { readChain } from "../../../src/Payments/addresses/addressOperations.ts"
import { clockTest } from "../../lib/scopedTest.ts"
import { address, alice, forget, readTo } from "../around.ts"
import { committedTo, pay, watch } from "../world.ts"
import { onChain } from "./onChain.ts"

const operator = { actor: { via: "socket", who: "bob" }, isOperator: true } as const

const isOver = (fiber: Fiber.RuntimeFiber<void>) =>
  Effect.flatMap(Effect.yieldNow(), () => Effect.map(Fiber.poll(fiber), (exit) => exit._tag === "Some"))

describe("the end of the next tick", () => {
  clockTest("ends the wait of all earlier callers; later ones wait for the tick after", function* () {
    const look = new LookLatch()
    const [first, second] = [yield* Effect.fork(look.wait), yield* Effect.fork(look.wait)]
    yield* Effect.yieldNow()
    look.end()
    yield* Fiber.joinAll([first, second])
    const later = yield* Effect.fork(look.wait)
    expect(yield* isOver(later)).toBe(false)
    look.end()
    yield* Fiber.join(later)
  })

  clockTest("is waited for two seconds at most", function* () {
    const waits = yield* Effect.fork(new LookLatch().wait)
    yield* TestClock.adjust("1999 millis")
    expect(yield* isOver(waits)).toBe(false)
    yield* TestClock.adjust("1 millis")
    yield* Fiber.join(waits)
  })

  onChain("comes at once on an idle chain when a payment is about to be created there", function* (chain) {
    yield* watch
    yield* committedTo(10)
    yield* forget(chain)
    chain.mineMany(5)
    const { refresh } = yield* Chains
    const network = { chain: "ethereum", mode: "test" } as const
    yield* refresh(network)
    expect((yield* pay(alice)).createdHead).toBe(15)
    chain.mine()
    yield* readTo(16)
    // A busy watcher polls often enough: no caller waits for it, though the test clock stands still.
    chain.mine()
    yield* refresh(network)
    expect((yield* pay(address(2))).createdHead).toBe(16)
  })

  onChain(
    "comes once in five seconds on an idle chain, however often an operator asks up to where it is read",
    function* (chain) {
      yield* watch
      yield* committedTo(10)
      yield* forget(chain)
      const read = readChain.run({ chain: "ethereum", mode: "test" }, operator, () => undefined)
      const head = Effect.map(read, (answer) => answer.head)
      chain.mine()
      expect(yield* head).toBe(11)
      chain.mine()
      let calls = 0
      chain.distort = (_, answer) => {
        calls += 1
        return answer
      }
      expect(yield* Effect.replicateEffect(head, 50)).toEqual(Array.from({ length: 50 }, () => 11))
      expect(calls).toBe(0)
      yield* TestClock.adjust("5 seconds")
      expect(yield* head).toBe(12)
    }
  )
})
