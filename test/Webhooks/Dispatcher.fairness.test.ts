import { expect, it } from "@effect/vitest"
import { Effect, Layer, TestClock } from "effect"
import type { AttemptOutcome } from "../../src/Webhooks/transport/DeliveryClient.ts"
import { clockTest } from "../lib/scopedTest.ts"
import { rows, temporaryDatabase } from "../lib/store.ts"
import {
  besideDispatcher,
  deliveries,
  dispatching,
  neighbour,
  newPayment,
  publish,
  rememberingClient,
  untilRecorded,
  webhooksOn
} from "../lib/webhooks.ts"
import { a, b, c, hangs, publishMany, register, scripted } from "./endpoints.ts"

// The clock stands still while receivers hang: an attempt that begins beside them has waited for no time at all, and one
// that waits for a slot of theirs never begins, and the test ends at its limit.

const blackHoles = (count: number) => Array.from({ length: count }, (_, i) => `https://hole${i}.example/`)

const allWith = (urls: ReadonlyArray<string>, answer: Effect.Effect<AttemptOutcome>) =>
  scripted(Object.fromEntries(urls.map((url) => [url, answer])))

it.scoped("a receiver is not delayed by another account's hanging receiver on the same host", () => {
  const [hole, good] = ["https://pages.example/hole", "https://pages.example/good"]
  const client = allWith([hole], hangs)
  return dispatching(client, function* () {
    for (let i = 0; i < 20; i++) yield* publish(yield* newPayment(hole, neighbour), "pending")
    yield* client.until(1, hole)
    yield* TestClock.adjust("31 seconds")
    // It is known as slow now, and hangs in all the slots of its lane.
    yield* client.until(1 + 8, hole)
    for (let i = 0; i < 20; i++) yield* publish(yield* newPayment(good), "pending")
    yield* client.until(20, good)
    expect(client.to(hole)).toBe(9)
  })
})

it.scoped("a new receiver is not delayed by 99 hanging receivers that one key creates within a minute", () => {
  const holes = blackHoles(99)
  const client = allWith(holes, hangs)
  return dispatching(client, function* () {
    for (const url of holes) for (let i = 0; i < 3; i++) yield* publish(yield* newPayment(url, neighbour), "pending")
    yield* client.until(32, ...holes)
    yield* register(b)
    for (let i = 0; i < 10; i++) yield* publish(yield* newPayment(c), "pending")
    yield* client.until(20, b, c)
    // And so it is when they have shown what they are.
    yield* TestClock.adjust("31 seconds")
    yield* client.until(64, ...holes)
    for (let i = 0; i < 10; i++) yield* publish(yield* newPayment(c), "pending")
    yield* client.until(40, b, c)
  })
})

it.scoped("however many new targets hang, a healthy target is not delayed", () => {
  const holes = blackHoles(40)
  const client = allWith(holes, hangs)
  return dispatching({ ...client, webhooks: { concurrency: 8, concurrencyPerEndpoint: 2 } }, function* () {
    yield* publishMany(1, c)
    yield* untilRecorded(1)
    for (const url of holes) yield* publishMany(1, url)
    yield* publishMany(10, c)
    yield* untilRecorded(11)
    expect([client.to(c), client.sent.length]).toEqual([11, 11 + 4])
    // They hang a second time, as slow ones: there are slots for others that are new.
    yield* TestClock.adjust("30 seconds")
    yield* untilRecorded(15)
    yield* publishMany(1, c)
    yield* untilRecorded(16)
    expect(client.to(c)).toBe(12)
  })
})

it.scoped("more targets than slots, and a backlog longer than what is read at once, all get their turn", () => {
  const client = scripted({})
  return dispatching({ ...client, webhooks: { concurrency: 2, concurrencyPerEndpoint: 1 } }, function* () {
    yield* register(a)
    for (let i = 0; i < 60; i++) yield* publishMany(1, `https://shop${i}.example/`)
    yield* untilRecorded(120)
    expect(new Set(client.sent.map(({ url }) => url)).size).toBe(61)
    expect(new Set((yield* deliveries).map((row) => row.status))).toEqual(new Set(["delivered"]))
    expect(yield* rows("SELECT * FROM lanes")).toEqual([])
  })
})

clockTest("targets with long backlogs take turns with targets that were queued after them", function* () {
  const client = scripted({})
  yield* Effect.gen(function* () {
    for (const url of [a, b]) yield* publishMany(20, url)
    yield* publish(yield* newPayment(c), "pending", 1)
    yield* TestClock.adjust("1 second")
    yield* besideDispatcher(untilRecorded(41))
    expect(client.sent.findIndex(({ url }) => url === c)).toBeLessThan(15)
  }).pipe(
    Effect.provide(webhooksOn(yield* temporaryDatabase, client.layer, { concurrency: 1, concurrencyPerEndpoint: 1 }))
  )
})

clockTest(
  "after a restart, with all receivers in probation, one that answers is not delayed by others that hang",
  function* () {
    const holes = blackHoles(99)
    const client = allWith(holes, hangs)
    const on = webhooksOn(yield* temporaryDatabase, client.layer)
    // Everything was due while tilld was stopped; the black holes' longer than what is owed to others.
    yield* Effect.gen(function* () {
      for (const url of holes) yield* publishMany(3, url, neighbour)
      for (let i = 0; i < 50; i++) yield* publish(yield* newPayment(c), "pending", 1)
    }).pipe(Effect.provide(on))
    yield* TestClock.adjust("1 minute")
    yield* besideDispatcher(client.until(50, c)).pipe(Effect.provide(Layer.fresh(on)))
    expect(client.to(...holes)).toBeLessThanOrEqual(32)
  }
)

it.scoped("receivers that become healthy, fill all slots and then hang do not take slots that others need", () => {
  const holes = blackHoles(8)
  let answer: Effect.Effect<AttemptOutcome> = Effect.succeed({ status: 204 })
  const client = allWith(
    holes,
    Effect.suspend(() => answer)
  )
  return dispatching(client, function* () {
    for (const url of holes) yield* publishMany(1, url, neighbour)
    yield* untilRecorded(8)
    answer = hangs
    for (const url of holes) yield* publishMany(9, url, neighbour)
    // All eight hold all of their eight slots: 64, which is all that there are to share.
    yield* client.until(8 + 64, ...holes)
    yield* publishMany(10, c)
    yield* client.until(10, c)
  })
})

clockTest(
  "a stop lets running attempts end and stores them, also one in an account's reserve, and begins no other",
  function* () {
    const [one = "", other = "", waits = ""] = blackHoles(3)
    const client = allWith([one, other, waits], Effect.as(Effect.sleep("1 second"), { status: 200 }))
    yield* Effect.gen(function* () {
      yield* besideDispatcher(
        Effect.gen(function* () {
          yield* publishMany(1, one, neighbour)
          yield* publishMany(1, other)
          yield* publishMany(1, waits)
          yield* client.until(2, one, other)
        })
      )
      expect((yield* deliveries).map(({ status }) => status)).toEqual(["delivered", "delivered", "pending"])
    }).pipe(
      Effect.provide(webhooksOn(yield* temporaryDatabase, client.layer, { concurrency: 1, concurrencyPerEndpoint: 1 }))
    )
  }
)

it.scoped("an account whose attempts need new connections opens 25 a second after a burst, and delays no other", () => {
  const client = rememberingClient(({ url }) => Effect.succeed({ status: 204, isNewConnection: url === a }))
  const to = (target: string) => client.sent.filter(({ url }) => url === target).length
  return dispatching({ ...client, webhooks: { concurrency: 4, concurrencyPerEndpoint: 4 } }, function* () {
    yield* publishMany(40, a)
    yield* untilRecorded(8)
    yield* publishMany(10, b, neighbour)
    yield* untilRecorded(18)
    expect([to(a), to(b)]).toEqual([8, 10])
    yield* TestClock.adjust(319)
    expect(to(a)).toBe(8)
    yield* TestClock.adjust(1)
    yield* untilRecorded(26)
    expect(to(a)).toBe(16)
    // All are free at once where the clock is set back.
    yield* TestClock.setTime(0)
    yield* publishMany(1, b, neighbour)
    yield* untilRecorded(26 + 1 + 8)
  })
})

it.scoped("a new connection's slot is held from the end of its attempt", () => {
  const answer = Effect.delay(Effect.succeed({ status: 204, isNewConnection: true }), "200 millis")
  const client = scripted({ [a]: answer })
  return dispatching({ ...client, webhooks: { concurrency: 4, concurrencyPerEndpoint: 4 } }, function* () {
    yield* publishMany(20, a)
    yield* client.until(1, a)
    yield* TestClock.adjust(200)
    yield* client.until(5, a)
    yield* TestClock.adjust(200)
    yield* untilRecorded(5)
    yield* client.until(8, a)
    yield* TestClock.adjust(119)
    expect(client.to(a)).toBe(8)
    yield* TestClock.adjust(1)
    yield* client.until(9, a)
  })
})
