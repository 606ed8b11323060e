import { expect, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { Reader } from "../../src/Sql.ts"
import { temporaryDatabase } from "../lib/store.ts"
import {
  besideDispatcher,
  deliveries,
  dispatching,
  newPayment,
  publish,
  untilRecorded,
  webhooksOn
} from "../lib/webhooks.ts"
import { a, b, c, hangs, register, scripted } from "./endpoints.ts"

it.scoped("a target that hangs does not delay other targets", () => {
  const client = scripted({ [a]: hangs })
  return dispatching(
    client,
    Effect.gen(function* () {
      yield* register(a)
      for (let i = 0; i < 20; i++) yield* publish(yield* newPayment(), "pending")
      yield* register(b)
      for (let i = 0; i < 20; i++) yield* publish(yield* newPayment(), "pending")
      // Not a tick of the clock: 20 of b's are through while the first of a's 40 hangs.
      yield* untilRecorded(20)
      expect([client.to(a), client.to(b)]).toEqual([1, 20])
      yield* TestClock.adjust("30 seconds")
      yield* untilRecorded(21)
      expect(client.to(a)).toBe(3)
    }),
    { concurrency: 4, concurrencyPerEndpoint: 2 }
  )
})

it.scoped("targets that hang leave half of the slots to others, in probation and when they are slow", () => {
  const client = scripted({ [a]: hangs, [b]: hangs })
  return dispatching(
    client,
    Effect.gen(function* () {
      yield* register(a)
      yield* register(b)
      for (let i = 0; i < 10; i++) yield* publish(yield* newPayment(), "pending")
      yield* publish(yield* newPayment(c), "pending")
      yield* untilRecorded(1)
      expect([client.to(a), client.to(b), client.to(c)]).toEqual([1, 1, 1])
      yield* TestClock.adjust("30 seconds")
      yield* untilRecorded(3)
      yield* publish(yield* newPayment(c), "pending")
      yield* untilRecorded(4)
      expect(client.to(c)).toBe(2)
      expect([client.to(a), client.to(b)]).toEqual([3, 3])
    }),
    { concurrency: 8, concurrencyPerEndpoint: 2 }
  )
})

it.scoped("however many new targets hang, a healthy target is not delayed", () => {
  const silent = Array.from({ length: 40 }, (_, i) => `https://silent${i}.example/`)
  const client = scripted(Object.fromEntries(silent.map((url) => [url, hangs])))
  return dispatching(
    client,
    Effect.gen(function* () {
      yield* publish(yield* newPayment(c), "pending")
      yield* untilRecorded(1)
      for (const url of silent) yield* publish(yield* newPayment(url), "pending")
      for (let i = 0; i < 10; i++) yield* publish(yield* newPayment(c), "pending")
      yield* untilRecorded(11)
      expect([client.to(c), client.sent.length]).toEqual([11, 11 + 4])
      // They hang a second time, as slow ones: there are slots for others that are new.
      yield* TestClock.adjust("30 seconds")
      yield* untilRecorded(15)
      yield* publish(yield* newPayment(c), "pending")
      yield* untilRecorded(16)
      expect(client.to(c)).toBe(12)
    }),
    { concurrency: 8, concurrencyPerEndpoint: 2 }
  )
})

it.scoped("more targets than slots, and a backlog longer than what is read at once, all get their turn", () => {
  const client = scripted({})
  return dispatching(
    client,
    Effect.gen(function* () {
      yield* register(a)
      for (let i = 0; i < 60; i++) yield* publish(yield* newPayment(`https://shop${i}.example/`), "pending")
      yield* untilRecorded(120)
      expect(new Set(client.sent.map(({ url }) => url)).size).toBe(61)
      expect(new Set((yield* deliveries).map((row) => row.status))).toEqual(new Set(["delivered"]))
      const reader = yield* Reader
      expect(yield* reader.all("SELECT * FROM lanes")).toEqual([])
    }),
    { concurrency: 2, concurrencyPerEndpoint: 1 }
  )
})

it.scoped("targets with long backlogs take turns with targets that were queued after them", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    const client = scripted({})
    yield* Effect.gen(function* () {
      for (const url of [a, b]) for (let i = 0; i < 20; i++) yield* publish(yield* newPayment(url), "pending", 0)
      yield* publish(yield* newPayment(c), "pending", 1)
      yield* TestClock.adjust("1 second")
      yield* besideDispatcher(untilRecorded(41))
      expect(client.sent.findIndex(({ url }) => url === c)).toBeLessThan(15)
    }).pipe(Effect.provide(webhooksOn(path, client.layer, { concurrency: 1, concurrencyPerEndpoint: 1 })))
  })
)
