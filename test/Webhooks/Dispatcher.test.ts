import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Layer, Scope, TestClock } from "effect"
import { Dispatcher } from "../../src/Webhooks/Dispatcher.ts"
import type { AttemptOutcome } from "../../src/Webhooks/transport/DeliveryClient.ts"
import { Webhooks } from "../../src/Webhooks.ts"
import { temporaryDatabase } from "../lib/store.ts"
import {
  attempts,
  besideDispatcher,
  deliveries,
  dispatching,
  FullStore,
  merchant,
  newPayment,
  publish,
  stopped,
  stubClient,
  untilRecorded,
  webhooksOn
} from "../lib/webhooks.ts"
import { a, b, hangs, hour, minute, ok, onStore, refused, register, scripted, second } from "./endpoints.ts"

it.scoped("six attempts, each timed from the end of the one before; failed after the fifth", () =>
  dispatching(
    scripted({ [a]: hangs }),
    Effect.gen(function* () {
      yield* register(a)
      yield* publish(yield* newPayment(), "pending")
      yield* TestClock.adjust("30 seconds")
      yield* untilRecorded(1)
      const statuses = [(yield* deliveries)[0]?.status]
      for (const [made, delay] of [minute, 5 * minute, 30 * minute, 2 * hour, 24 * hour].entries()) {
        yield* TestClock.adjust(delay + 30 * second - 1)
        expect(yield* attempts).toHaveLength(made + 1)
        yield* TestClock.adjust(1)
        yield* untilRecorded(made + 2)
        statuses.push((yield* deliveries)[0]?.status)
      }
      const starts = [0, minute, 6 * minute, 36 * minute, 2 * hour + 36 * minute, 26 * hour + 36 * minute]
      expect((yield* attempts).map((attempt) => attempt.started_at)).toEqual(
        starts.map((start, i) => start + i * 30 * second)
      )
      expect((yield* attempts).map((attempt) => attempt.error)).toEqual(Array(6).fill("timeout"))
      expect(statuses).toEqual(["pending", "pending", "pending", "pending", "failed", "failed"])
      yield* TestClock.adjust("30 days")
      expect(yield* attempts).toHaveLength(6)
    })
  )
)

it.scoped("attempts at exactly 0, 1 m, 6 m, 36 m, 2 h 36 m, 26 h 36 m; a sixth success delivers", () => {
  let answer: Effect.Effect<AttemptOutcome> = refused
  return dispatching(
    scripted({ [a]: Effect.suspend(() => answer) }),
    Effect.gen(function* () {
      yield* register(a)
      yield* publish(yield* newPayment(), "pending")
      yield* untilRecorded(1)
      for (const [made, delay] of [minute, 5 * minute, 30 * minute, 2 * hour].entries()) {
        yield* TestClock.adjust(delay)
        yield* untilRecorded(made + 2)
      }
      expect(yield* deliveries).toMatchObject([
        { status: "failed", attempts: 5, next_attempt_at: 26 * hour + 36 * minute }
      ])
      answer = ok
      yield* TestClock.adjust("24 hours")
      yield* untilRecorded(6)
      expect((yield* attempts).map((attempt) => attempt.started_at)).toEqual([
        0,
        minute,
        6 * minute,
        36 * minute,
        2 * hour + 36 * minute,
        26 * hour + 36 * minute
      ])
      expect(yield* deliveries).toMatchObject([{ status: "delivered", attempts: 6, next_attempt_at: null }])
      expect((yield* attempts)[0]).toMatchObject({ status: 500, error: null, body_start: "no" })
    })
  )
})

it.scoped("one target's first attempts keep the order of a payment's events; retries hold nobody", () =>
  Effect.gen(function* () {
    const gate = yield* Deferred.make<AttemptOutcome>()
    const client = scripted({ [a]: Deferred.await(gate) })
    yield* dispatching(
      client,
      Effect.gen(function* () {
        yield* register(a)
        yield* register(b)
        const payment = yield* newPayment()
        yield* publish(payment, "pending")
        yield* publish(payment, "detecting")
        yield* publish(payment, "confirmed")
        // The other target is not held up, and gets them one after the other.
        yield* untilRecorded(3)
        expect([client.to(a), client.to(b)]).toEqual([1, 3])
        const kinds = client.sent.filter(({ url }) => url === b).map(({ body }) => JSON.parse(body.toString()).event)
        expect(kinds).toEqual(["payment.created", "payment.detecting", "payment.confirmed"])
        // A failed attempt has ended too: the next event goes, and the retry comes a minute later.
        yield* Deferred.succeed(gate, { status: 500 })
        yield* untilRecorded(6)
        expect(client.to(a)).toBe(3)
        yield* TestClock.adjust("1 minute")
        yield* untilRecorded(9)
        expect(client.to(a)).toBe(6)
      })
    )
  })
)

it.scoped(
  "an attempt that ended before the clock was set back is stored when others end, however many are under way",
  () => {
    let answer: Effect.Effect<AttemptOutcome> = ok
    const client = scripted({ [b]: Effect.suspend(() => answer) })
    return dispatching(
      client,
      Effect.gen(function* () {
        yield* TestClock.setTime(hour)
        yield* publish(yield* newPayment(b), "pending", hour)
        yield* untilRecorded(1)
        answer = Effect.never
        // As many as make attempts that end wait for each other.
        for (let i = 0; i < 8; i++) yield* publish(yield* newPayment(b), "pending", hour)
        yield* publish(yield* newPayment(a), "pending", hour)
        while (client.sent.length < 10) yield* Effect.yieldNow()
        yield* TestClock.setTime(0)
        yield* publish(yield* newPayment(a), "pending", 0)
        yield* untilRecorded(2)
        expect((yield* attempts).map((attempt) => attempt.ended_at)).toEqual([hour, hour])
      })
    )
  }
)

it.scoped("an attempt that a stop cuts off does not count, and the next start sends the same id and bytes", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    const cut = scripted({ [a]: Effect.never })
    yield* Effect.gen(function* () {
      yield* register(a)
      yield* publish(yield* newPayment(), "pending")
      const worker = yield* Effect.fork(Effect.flatMap(Dispatcher, (dispatcher) => dispatcher.run))
      yield* TestClock.adjust("1 second")
      expect(cut.to(a)).toBe(1)
      yield* stopped(worker, "5 seconds")
      expect(yield* attempts).toEqual([])
    }).pipe(Effect.provide(webhooksOn(path, cut.layer)))

    const again = scripted({})
    yield* besideDispatcher(untilRecorded(1)).pipe(
      Effect.zipRight(deliveries),
      Effect.map((rows) => expect(rows).toMatchObject([{ status: "delivered", attempts: 1 }])),
      Effect.provide(webhooksOn(path, again.layer))
    )
    const [first] = cut.sent
    const [repeated] = again.sent
    expect(repeated?.headers["webhook-id"]).toBe(first?.headers["webhook-id"])
    expect(Buffer.compare(Buffer.from(repeated?.body ?? []), Buffer.from(first?.body ?? []))).toBe(0)
  })
)

it.scoped("a stop lets an attempt end that is about to, and stores it", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    const client = scripted({ [a]: Effect.as(Effect.sleep("3 seconds"), { status: 200 }) })
    yield* Effect.gen(function* () {
      yield* register(a)
      yield* publish(yield* newPayment(), "pending")
      yield* publish(yield* newPayment(), "pending")
      const worker = yield* Effect.fork(Effect.flatMap(Dispatcher, (dispatcher) => dispatcher.run))
      yield* TestClock.adjust("1 second")
      yield* stopped(worker, "2 seconds")
      expect(client.to(a)).toBe(1)
      expect((yield* deliveries).map((row) => row.status)).toEqual(["delivered", "pending"])
    }).pipe(Effect.provide(webhooksOn(path, client.layer, { concurrency: 1 })))
  })
)

it.scoped(
  "the result of an attempt that meets a full store is stored once there is room, and nothing is sent again",
  () => {
    const store = { isFull: false, refused: 0 }
    const fillsUp = Effect.sync(() => {
      store.isFull = true
      return { status: 200 }
    })
    const client = scripted({ [a]: fillsUp })
    return dispatching(
      client,
      Effect.gen(function* () {
        yield* register(a)
        yield* publish(yield* newPayment(), "pending")
        yield* TestClock.adjust("1 minute")
        expect(store.refused).toBeGreaterThan(1)
        expect(yield* deliveries).toMatchObject([{ status: "pending", attempts: 0 }])
        store.isFull = false
        yield* TestClock.adjust("5 seconds")
        yield* untilRecorded(1)
        expect(yield* deliveries).toMatchObject([{ status: "delivered", attempts: 1 }])
        expect(client.to(a)).toBe(1)
      })
    ).pipe(Effect.provide(Layer.succeed(FullStore, store)))
  }
)

it.scoped("an endpoint that is deleted during an attempt gets no other", () =>
  Effect.gen(function* () {
    const gate = yield* Deferred.make<AttemptOutcome>()
    const client = scripted({ [a]: Deferred.await(gate) })
    yield* dispatching(
      client,
      Effect.gen(function* () {
        const webhooks = yield* Webhooks
        const endpoint = yield* register(a)
        const payment = yield* newPayment()
        yield* publish(payment, "pending")
        yield* publish(payment, "detecting")
        yield* TestClock.adjust("1 second")
        expect(client.to(a)).toBe(1)
        yield* webhooks.remove(merchant, endpoint.id)
        yield* Deferred.succeed(gate, { status: 500 })
        yield* untilRecorded(1)
        yield* TestClock.adjust("2 days")
        expect((yield* deliveries).map((row) => [row.status, row.attempts])).toEqual([
          ["cancelled", 1],
          ["cancelled", 0]
        ])
        expect(client.to(a)).toBe(1)
      })
    )
  })
)

it.scoped("health reports the backlog and its age", () =>
  onStore(
    Effect.gen(function* () {
      const { health } = yield* Dispatcher
      expect(yield* health).toEqual({ due: 0, oldestDueMillis: 0 })
      yield* register(a)
      yield* register(b)
      yield* publish(yield* newPayment(), "pending", 0)
      yield* publish(yield* newPayment(), "pending", 7 * second)
      yield* publish(yield* newPayment(), "pending", hour)
      yield* TestClock.adjust("10 seconds")
      expect(yield* health).toEqual({ due: 4, oldestDueMillis: 10 * second })
    })
  )
)

it.scoped("a defect in an attempt ends the worker", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    const scope = yield* Scope.make()
    yield* Effect.gen(function* () {
      yield* register(a)
      yield* publish(yield* newPayment(), "pending")
      const dispatcher = yield* Dispatcher
      const exit = yield* Effect.exit(dispatcher.run)
      expect(Exit.isFailure(exit) && exit.cause.toString()).toContain("bug")
    }).pipe(
      Effect.provide(
        webhooksOn(
          path,
          stubClient(() => Effect.die("bug"))
        )
      ),
      Scope.extend(scope)
    )
    yield* Scope.close(scope, Exit.void)
  })
)
