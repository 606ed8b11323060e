import { describe, expect, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { alice, around, health, readTo, second, upTo, withTokens } from "../around.ts"
import { coin, ModelChain } from "../ModelChain.ts"
import { committedTo, end, ledger, pay, paymentById, scanned, watch } from "../world.ts"

describe("a configured start block", () => {
  it.scoped("that is the chain's first block starts reading above it", () => {
    const chain = new ModelChain(0)
    chain.mine(coin(alice, 1n))
    chain.mineMany(4)
    return Effect.gen(function* () {
      const { id } = yield* pay(alice)
      yield* watch
      yield* committedTo(5)
      expect(yield* scanned).toMatchObject({ start_number: 1, head_number: 5 })
      expect((yield* paymentById(id))?.createdHead).toBe(0)
      expect((yield* ledger).map(({ block_number }) => block_number)).toEqual([1])
    }).pipe(around(chain, { ...withTokens, startBlock: 0 }))
  })

  it.scoped("that is the next block does not make the watcher wait", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      yield* pay(alice)
      yield* watch
      expect(yield* upTo(10)).not.toHaveProperty("reason")
      expect(yield* scanned).toMatchObject({ start_number: 11, head_number: 10 })
      chain.mine(coin(alice, 1n))
      yield* readTo(11)
      expect((yield* ledger).map(({ block_number }) => block_number)).toEqual([11])
      expect(yield* health).toMatchObject({ ready: true })
    }).pipe(around(chain, { ...withTokens, startBlock: 11 }))
  })
})

describe("the start block below the first head", () => {
  it.scoped("is the chain's first block if the chain is shorter than its confirmations", () => {
    const chain = new ModelChain(1)
    return Effect.gen(function* () {
      yield* watch
      yield* committedTo(1)
      expect(yield* scanned).toMatchObject({ start_number: 1, head_number: 1 })
    }).pipe(around(chain))
  })

  it.scoped("is below the confirmations also if a payment was just created", () => {
    // The block time is 10 seconds.
    const chain = new ModelChain(1_000)
    return Effect.gen(function* () {
      yield* TestClock.setTime(10_000_000)
      yield* pay(alice)
      yield* watch
      yield* Effect.raceFirst(upTo(1_000), Effect.forever(second))
      expect(yield* scanned).toMatchObject({ start_number: 801 })
    }).pipe(around(chain, { ...withTokens, confirmations: 200 }))
  })

  it.scoped("is below an ended payment too, while late money is still watched for", () => {
    const chain = new ModelChain(800)
    chain.mine(coin(alice, 1n))
    chain.mineMany(199)
    return Effect.gen(function* () {
      yield* TestClock.setTime(8_000_000)
      const { id } = yield* pay(alice)
      yield* TestClock.setTime(10_000_000)
      yield* end(id, 10_000_000)
      yield* watch
      yield* Effect.raceFirst(upTo(1_000), Effect.forever(second))
      expect((yield* ledger).map(({ block_number }) => block_number)).toEqual([801])
    }).pipe(around(chain))
  })
})
