import { expect, it } from "@effect/vitest"
import { Effect, Fiber, HashMap, Layer, Logger, LogLevel, Option, TestClock } from "effect"
import type { AddressHistory } from "../../../src/Chains/balances/AddressHistory.ts"
import { Addresses } from "../../../src/Payments/addresses/Addresses.ts"
import { temporaryDatabase } from "../../lib/store.ts"
import { owner, runningWith, take, wallet } from "./addressing.ts"

const indexOf = new Map(Array.from({ length: 2000 }, (_, index) => [wallet.address(index), index]))
const settled = Effect.repeatN(
  Effect.promise(() => new Promise((resolve) => setImmediate(resolve))),
  500
)

/** A chain of which one provider alone reports a history of all addresses; the last index of each question. */
const alone = (path: string) => {
  const asked: Array<number> = []
  const errors: Array<unknown> = []
  const vet: AddressHistory["Type"]["vet"] = (_mode, addresses, found) =>
    Effect.sync(() => {
      asked.push(indexOf.get(addresses.at(-1) ?? "") ?? Number.NaN)
      found({ chain: "base", addresses, isConfirmed: false })
      return []
    })
  const logger = Logger.make(({ annotations, logLevel }) => {
    if (logLevel === LogLevel.Error) errors.push(Option.getOrUndefined(HashMap.get(annotations, "chain")))
  })
  return { asked, errors, layer: Layer.provideMerge(runningWith(path, vet), Logger.add(logger)) }
}

it.effect("uncorroborated reports of a provider skip 1,000 indexes in all, however many payments follow", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    const { asked, errors, layer } = alone(path)
    yield* Effect.gen(function* () {
      const addresses = yield* Addresses
      yield* Effect.forkScoped(addresses.run)
      yield* addresses.ready(owner)
      const indexes: Array<number> = []
      for (let i = 0; i < 3; i++) {
        indexes.push((yield* take).index)
        yield* TestClock.adjust("1 hour")
        yield* settled
      }
      expect(indexes).toEqual([1000, 1001, 1002])
      expect(asked.length).toBeGreaterThan(3)
      expect(Math.max(...asked)).toBeLessThan(1300)
      expect(errors).toEqual(["base"])
    }).pipe(Effect.scoped, Effect.provide(layer))
  }).pipe(Effect.scoped)
)

it.effect("an uninterruptible create waits until the chains have responded, and no longer", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    yield* Effect.gen(function* () {
      const addresses = yield* Addresses
      const caller = yield* Effect.fork(Effect.uninterruptible(addresses.ready(owner)))
      yield* settled
      const ended = yield* Fiber.poll(caller)
      yield* TestClock.adjust("5 seconds")
      yield* Fiber.join(caller)
      expect(Option.isSome(ended)).toBe(true)
    }).pipe(Effect.provide(runningWith(path, () => Effect.succeed([]))))
  }).pipe(Effect.scoped)
)
