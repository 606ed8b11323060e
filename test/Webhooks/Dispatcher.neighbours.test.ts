import { expect, it } from "@effect/vitest"
import { Effect, Layer, Queue, TestClock } from "effect"
import type { AttemptOutcome, DeliveryRequest } from "../../src/Webhooks/transport/DeliveryClient.ts"
import { temporaryDatabase } from "../lib/store.ts"
import {
  besideDispatcher,
  deliveries,
  dispatching,
  neighbour,
  newPayment,
  publish,
  stubClient,
  untilRecorded,
  webhooksOn
} from "../lib/webhooks.ts"
import { b, c, hangs, register } from "./endpoints.ts"

// The clock stands still while a neighbour's receivers hang: an attempt that begins beside them has waited for no time at
// all, and one that waits for a slot of theirs never begins, and the test ends at its limit.

const blackHoles = (count: number) => Array.from({ length: count }, (_, i) => `https://hole${i}.example/`)

/** A client whose black holes hang, and that tells of every attempt when it begins. */
const receivers = (answers: (url: string) => Effect.Effect<AttemptOutcome>) => {
  const sent: Array<string> = []
  const begun = Effect.runSync(Queue.unbounded<void>())
  const to = (urls: ReadonlyArray<string>) => sent.filter((url) => urls.includes(url)).length
  const post = ({ url }: DeliveryRequest) =>
    Effect.suspend(() => {
      sent.push(url)
      begun.unsafeOffer(undefined)
      return answers(url)
    })
  /** Waits until so many attempts to these have begun. */
  const until = (count: number, ...urls: ReadonlyArray<string>) =>
    Effect.repeat(Queue.take(begun), { until: () => to(urls) >= count })
  return { layer: stubClient(post), to, until }
}

const answered = Effect.succeed<AttemptOutcome>({ status: 204 })
const hanging = (...urls: ReadonlyArray<string>) => receivers((url) => (urls.includes(url) ? hangs : answered))

it.scoped("a receiver is not delayed by another account's hanging receiver on the same host", () => {
  const [hole, good] = ["https://pages.example/hole", "https://pages.example/good"]
  const client = hanging(hole)
  return dispatching(
    client,
    Effect.gen(function* () {
      for (let i = 0; i < 20; i++) yield* publish(yield* newPayment(hole, neighbour), "pending")
      yield* client.until(1, hole)
      yield* TestClock.adjust("31 seconds")
      // It is known as slow now, and hangs in all the slots of its lane.
      yield* client.until(1 + 8, hole)
      for (let i = 0; i < 20; i++) yield* publish(yield* newPayment(good), "pending")
      yield* client.until(20, good)
      expect(client.to([hole])).toBe(9)
    })
  )
})

it.scoped("a new receiver is not delayed by 99 hanging receivers that one key creates within a minute", () => {
  const holes = blackHoles(99)
  const client = hanging(...holes)
  return dispatching(
    client,
    Effect.gen(function* () {
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
  )
})

it.scoped("after a restart, with all receivers in probation, one that answers is not delayed by others that hang", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    const holes = blackHoles(99)
    const client = hanging(...holes)
    const on = webhooksOn(path, client.layer)
    // Everything was due while tilld was stopped; the black holes' longer than what is owed to others.
    yield* Effect.gen(function* () {
      for (const url of holes) for (let i = 0; i < 3; i++) yield* publish(yield* newPayment(url, neighbour), "pending")
      for (let i = 0; i < 50; i++) yield* publish(yield* newPayment(c), "pending", 1)
    }).pipe(Effect.provide(on))
    yield* TestClock.adjust("1 minute")
    yield* besideDispatcher(client.until(50, c)).pipe(Effect.provide(Layer.fresh(on)))
    expect(client.to(holes)).toBeLessThanOrEqual(32)
  })
)

it.scoped("receivers that become healthy, fill all slots and then hang do not take slots that others need", () => {
  const holes = blackHoles(8)
  let isHanging = false
  const client = receivers((url) => (isHanging && holes.includes(url) ? hangs : answered))
  return dispatching(
    client,
    Effect.gen(function* () {
      for (const url of holes) yield* publish(yield* newPayment(url, neighbour), "pending")
      yield* untilRecorded(8)
      isHanging = true
      for (const url of holes) for (let i = 0; i < 9; i++) yield* publish(yield* newPayment(url, neighbour), "pending")
      // All eight hold all of their eight slots: 64, which is all that there are to share.
      yield* client.until(8 + 64, ...holes)
      for (let i = 0; i < 10; i++) yield* publish(yield* newPayment(c), "pending")
      yield* client.until(10, c)
    })
  )
})

it.scoped("a stop also waits for an attempt in an account's reserve", () => {
  const [one = "", other = "", waits = ""] = blackHoles(3)
  const client = receivers(() => Effect.as(Effect.sleep("1 second"), { status: 200 }))
  return Effect.gen(function* () {
    const path = yield* temporaryDatabase
    yield* Effect.gen(function* () {
      yield* besideDispatcher(
        Effect.gen(function* () {
          yield* publish(yield* newPayment(one, neighbour), "pending")
          yield* publish(yield* newPayment(other), "pending")
          yield* publish(yield* newPayment(waits), "pending")
          yield* client.until(2, one, other)
        })
      )
      expect((yield* deliveries).map(({ status }) => status)).toEqual(["delivered", "delivered", "pending"])
    }).pipe(Effect.provide(webhooksOn(path, client.layer, { concurrency: 1, concurrencyPerEndpoint: 1 })))
  })
})
