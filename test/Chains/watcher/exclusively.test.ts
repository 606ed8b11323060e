import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, TestClock } from "effect"
import { RpcError } from "../../../src/Chains/rpc/RpcError.ts"
import { Chains } from "../../../src/Chains.ts"
import { alice, around, aroundTwo, health, upTo, watchedPayment } from "../around.ts"
import { coin, ModelChain } from "../ModelChain.ts"
import { committedTo, ledger } from "../world.ts"

const turnOf = Effect.map(Chains, (chains) => chains.exclusively({ chain: "ethereum", mode: "test" }))

describe("work on the rows of a network", () => {
  it.scoped("has exclusive access: the watcher waits until it is done", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      const turn = yield* turnOf
      yield* watchedPayment(alice)
      yield* upTo(10)
      const done = yield* Deferred.make<string>()
      const begun = yield* Deferred.make<void>()
      const work = yield* Effect.fork(
        turn(() => Effect.zipRight(Deferred.succeed(begun, undefined), Deferred.await(done)))
      )
      yield* Deferred.await(begun)
      chain.batches.length = 0
      chain.mine(coin(alice, 1n))
      yield* TestClock.adjust("5 seconds")
      expect(chain.batches).toEqual([])
      yield* Deferred.succeed(done, "done")
      expect(yield* Fiber.join(work)).toBe("done")
      yield* committedTo(11)
      expect((yield* ledger).map(({ block_number }) => block_number)).toEqual([11])
    }).pipe(around(chain))
  })

  it.scoped("that fails because of a provider puts it into cooldown, and the next work gets another one", () => {
    const first = new ModelChain(10)
    return Effect.gen(function* () {
      const turn = yield* turnOf
      yield* watchedPayment(alice)
      yield* upTo(10)
      const error = new RpcError({ host: "model", method: "any", reason: "timeout", detail: "as the test wants" })
      expect(yield* Effect.flip(turn((_, { index }) => Effect.zipRight(Effect.succeed(index), error)))).toBe(error)
      expect((yield* health)?.providers.map(({ healthy }) => healthy)).toEqual([false, true])
      expect(yield* turn((_, { index }) => Effect.succeed(index))).toBe(1)
    }).pipe(aroundTwo(first, first.twin()))
  })
})
