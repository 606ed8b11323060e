import { expect, it } from "@effect/vitest"
import { Clock, Deferred, Effect, Fiber, Queue, Redacted, TestClock } from "effect"
import type { EventKind } from "../../src/Domain/Event.ts"
import type { EndpointId } from "../../src/Domain/Ids.ts"
import { Outbox } from "../../src/Events/Outbox.ts"
import { verifySignature } from "../../src/Sandbox/Receiver.ts"
import { Reader, type StoreUnavailable, Tx, Writer } from "../../src/Sql.ts"
import { defaultSecrets } from "../../src/Webhooks/DefaultSecrets.ts"
import type { DeliveryRequest, Outcome } from "../../src/Webhooks/DeliveryClient.ts"
import * as LogRepo from "../../src/Webhooks/DeliveryLogRepo.ts"
import { Dispatcher } from "../../src/Webhooks/Dispatcher.ts"
import * as LanesRepo from "../../src/Webhooks/LanesRepo.ts"
import * as RedeliveryRepo from "../../src/Webhooks/RedeliveryRepo.ts"
import { Webhooks } from "../../src/Webhooks.ts"
import { temporaryDatabase } from "../lib/store.ts"
import {
  attempts,
  besideDispatcher,
  deliveries,
  dispatching,
  explained,
  merchant,
  newPayment,
  publish,
  rememberingClient,
  stubClient,
  untilRecorded,
  webhooksOn
} from "../lib/webhooks.ts"

const events: ReadonlyArray<EventKind> = ["payment.created", "payment.detecting"]
const a = "https://a.example/hook"
const b = "https://b.example/hook"
const second = 1_000
const minute = 60 * second

const register = (url: string) =>
  Effect.flatMap(Webhooks, (webhooks) =>
    webhooks.create(merchant, { url, events, secret: Redacted.make("whsec_0123456789abcdef") })
  )

const commit = <A>(order: (now: number) => Effect.Effect<A, StoreUnavailable, Tx>) =>
  Effect.gen(function* () {
    const writer = yield* Writer
    const outbox = yield* Outbox
    const now = yield* Clock.currentTimeMillis
    return yield* writer.write(Effect.zipLeft(order(now), outbox.announce))
  })

const idOf = (sequence: number) =>
  Effect.gen(function* () {
    const reader = yield* Reader
    const row = yield* reader.get<{ id: string }>("SELECT id FROM deliveries WHERE sequence = ?", [sequence])
    return row?.id ?? ""
  })

const redeliver = (sequence: number) =>
  Effect.flatMap(idOf(sequence), (id) => commit((now) => RedeliveryRepo.redeliver(id, now)))

const ok = Effect.succeed<Outcome>({ status: 200 })
const no = Effect.succeed<Outcome>({ status: 500, bodyStart: "no" })

it.scoped("what was delivered is sent once more, the same id and bytes, and stays delivered when that fails", () => {
  let answer = ok
  const client = rememberingClient(() => answer)
  return dispatching(
    client,
    Effect.gen(function* () {
      yield* register(a)
      yield* publish(yield* newPayment(), "pending")
      yield* untilRecorded(1)
      yield* TestClock.adjust("1 hour")
      answer = no
      expect(yield* redeliver(1)).toBe("ordered")
      yield* untilRecorded(2)
      yield* TestClock.adjust("3 days")
      const [first, again] = client.sent
      expect(client.sent).toHaveLength(2)
      expect(again?.headers["webhook-id"]).toBe(first?.headers["webhook-id"])
      expect(Buffer.compare(Buffer.from(again?.body ?? []), Buffer.from(first?.body ?? []))).toBe(0)
      expect(yield* deliveries).toMatchObject([
        { status: "delivered", attempts: 1, redeliveries: 1, next_attempt_at: null, done_at: 60 * minute }
      ])
      expect(yield* attempts).toMatchObject([
        { number: 1, redelivery: 0, status: 200 },
        { number: 2, redelivery: 1, status: 500, started_at: 60 * minute }
      ])
    })
  )
})

it.scoped("one that fails leaves the schedule as it was, and one that succeeds ends it", () => {
  let answer = no
  const client = rememberingClient(() => answer)
  return dispatching(
    client,
    Effect.gen(function* () {
      yield* register(a)
      yield* publish(yield* newPayment(), "pending")
      yield* untilRecorded(1)
      yield* TestClock.adjust("30 seconds")
      expect(yield* redeliver(1)).toBe("ordered")
      yield* untilRecorded(2)
      expect(yield* deliveries).toMatchObject([
        { status: "pending", attempts: 1, next_attempt_at: minute, resume_at: null }
      ])
      yield* TestClock.adjust("30 seconds")
      yield* untilRecorded(3)
      expect(yield* deliveries).toMatchObject([{ status: "pending", attempts: 2, next_attempt_at: 6 * minute }])
      answer = ok
      yield* TestClock.adjust("1 minute")
      expect(yield* redeliver(1)).toBe("ordered")
      yield* untilRecorded(4)
      yield* TestClock.adjust("3 days")
      expect((yield* attempts).map((attempt) => [attempt.number, attempt.redelivery, attempt.started_at])).toEqual([
        [1, 0, 0],
        [2, 1, 30 * second],
        [3, 0, minute],
        [4, 1, 2 * minute]
      ])
      expect(yield* deliveries).toMatchObject([
        { status: "delivered", attempts: 2, redeliveries: 2, next_attempt_at: null, done_at: 2 * minute }
      ])
    })
  )
})

it.scoped("a failed one keeps its last attempt, and is delivered when a redelivery succeeds after that", () => {
  let answer = no
  return dispatching(
    rememberingClient(() => answer),
    Effect.gen(function* () {
      yield* register(a)
      yield* publish(yield* newPayment(), "pending")
      for (const [made, delay] of ["0 seconds", "1 minute", "5 minutes", "30 minutes", "2 hours"].entries()) {
        yield* TestClock.adjust(delay as "1 minute")
        yield* untilRecorded(made + 1)
      }
      const last = (yield* deliveries)[0]?.next_attempt_at
      yield* redeliver(1)
      yield* untilRecorded(6)
      expect(yield* deliveries).toMatchObject([{ status: "failed", attempts: 5, next_attempt_at: last }])
      yield* TestClock.adjust("24 hours")
      yield* untilRecorded(7)
      expect(yield* deliveries).toMatchObject([{ status: "failed", attempts: 6, next_attempt_at: null, done_at: last }])
      answer = ok
      yield* redeliver(1)
      yield* untilRecorded(8)
      expect(yield* deliveries).toMatchObject([{ status: "delivered", attempts: 6, redeliveries: 2 }])
    })
  )
})

it.scoped("to ask again while it is due or under way adds nothing", () =>
  Effect.gen(function* () {
    const gate = yield* Deferred.make<Outcome>()
    let answer: Effect.Effect<Outcome> = ok
    const client = rememberingClient(() => answer)
    yield* dispatching(
      client,
      Effect.gen(function* () {
        yield* register(a)
        yield* publish(yield* newPayment(), "pending")
        yield* untilRecorded(1)
        answer = Deferred.await(gate)
        yield* TestClock.adjust("1 second")
        expect(yield* redeliver(1)).toBe("ordered")
        yield* TestClock.adjust("1 second")
        expect(client.sent).toHaveLength(2)
        expect(yield* redeliver(1)).toBe("due")
        // The event behind it has its first attempt ahead.
        const payment = yield* newPayment()
        yield* publish(payment, "pending", 2 * second)
        yield* publish(payment, "detecting", 2 * second)
        expect([yield* redeliver(2), yield* redeliver(3)]).toEqual(["due", "due"])
        yield* Deferred.succeed(gate, { status: 200 })
        yield* untilRecorded(4)
        yield* TestClock.adjust("3 days")
        expect(client.sent).toHaveLength(4)
      })
    )
    expect(yield* commitNothing).toBeUndefined()
  })
)

it.scoped("one that comes before the first attempt of the schedule lets the payment's next events go", () => {
  const client = rememberingClient(() => ok)
  return dispatching(
    client,
    Effect.gen(function* () {
      yield* register(a)
      const payment = yield* newPayment()
      // The clock was an hour ahead when they were queued.
      yield* publish(payment, "pending", 60 * minute)
      yield* publish(payment, "detecting", 60 * minute)
      expect([yield* redeliver(1), yield* redeliver(2)]).toEqual(["ordered", "due"])
      yield* untilRecorded(2)
      expect(yield* deliveries).toMatchObject([
        { status: "delivered", attempts: 0, redeliveries: 1 },
        { status: "delivered", attempts: 1, after_sequence: null }
      ])
    })
  )
})

/** An id that is no delivery's. */
const commitNothing = Effect.flatMap(temporaryDatabase, (path) =>
  commit((now) => RedeliveryRepo.redeliver("dlv_aaaaaaaaaaaaaaaaaaaaaa_own", now)).pipe(
    Effect.provide(
      webhooksOn(
        path,
        stubClient(() => ok)
      )
    )
  )
)

it.scoped("one that a stop cuts off is made after the next start, and the schedule goes on behind it", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    let answer: Effect.Effect<Outcome> = no
    const client = rememberingClient(() => answer)
    yield* Effect.gen(function* () {
      yield* register(a)
      yield* publish(yield* newPayment(), "pending")
      const worker = yield* Effect.fork(Effect.flatMap(Dispatcher, (dispatcher) => dispatcher.run))
      yield* untilRecorded(1)
      answer = Effect.never
      yield* redeliver(1)
      yield* TestClock.adjust("1 second")
      const stop = yield* Effect.fork(Fiber.interrupt(worker))
      yield* TestClock.adjust("5 seconds")
      yield* Fiber.join(stop)
      expect(yield* deliveries).toMatchObject([{ redelivery: 1, next_attempt_at: 0, resume_at: minute }])
    }).pipe(Effect.provide(webhooksOn(path, client.layer)))
    answer = no
    yield* besideDispatcher(
      Effect.gen(function* () {
        yield* untilRecorded(2)
        expect(yield* deliveries).toMatchObject([{ status: "pending", attempts: 1, next_attempt_at: minute }])
      })
    ).pipe(Effect.provide(webhooksOn(path, client.layer)))
  })
)

/** A test beside a dispatcher, with an endpoint that takes everything, and what was sent. */
const withEndpoint = <A, E, R>(
  test: (endpoint: { readonly id: EndpointId }, sent: ReadonlyArray<DeliveryRequest>) => Effect.Effect<A, E, R>
) => {
  const { layer, sent } = rememberingClient(() => ok)
  return dispatching(
    { layer },
    Effect.flatMap(register(a), (endpoint) => test(endpoint, sent))
  )
}

const isSignedWith = ({ body, headers }: DeliveryRequest, secret: string) =>
  verifySignature({ headers: Object.fromEntries(new Headers(headers)), body: Buffer.from(body) }, secret)

it.scoped("nothing goes to a deleted endpoint again, but for what a payment's own URL is owed", () =>
  withEndpoint((endpoint, sent) =>
    Effect.gen(function* () {
      const webhooks = yield* Webhooks
      yield* publish(yield* newPayment(), "pending")
      yield* publish(yield* newPayment(a), "pending")
      yield* untilRecorded(2)
      // Ordered, and then the endpoint goes: both stay what they were.
      yield* TestClock.adjust("1 minute")
      yield* webhooks.remove(merchant, endpoint.id)
      expect([yield* redeliver(1), yield* redeliver(2)]).toEqual(["refused", "ordered"])
      yield* untilRecorded(3)
      const own = Redacted.value((yield* defaultSecrets(merchant)).current)
      const [, , again] = sent
      if (again === undefined) return expect.unreachable()
      expect(isSignedWith(again, own)).toBe(true)
      expect(yield* deliveries).toMatchObject([
        { endpoint_id: endpoint.id, status: "delivered" },
        { endpoint_id: null, target: "https://a.example", status: "delivered", redeliveries: 1 }
      ])
    })
  )
)

it.scoped("what a payment's own URL is owed again is signed by the endpoint that took a deleted one's place", () =>
  withEndpoint((endpoint, sent) =>
    Effect.gen(function* () {
      const webhooks = yield* Webhooks
      yield* publish(yield* newPayment(a), "pending")
      yield* untilRecorded(1)
      const secret = "whsec_fedcba9876543210"
      const next = yield* webhooks.create(merchant, { url: a, events, secret: Redacted.make(secret) })
      yield* webhooks.remove(merchant, endpoint.id)
      expect(yield* redeliver(1)).toBe("ordered")
      yield* untilRecorded(2)
      const again = sent.at(-1)
      if (again === undefined) return expect.unreachable()
      expect(isSignedWith(again, secret)).toBe(true)
      expect(yield* deliveries).toMatchObject([{ endpoint_id: next.id, target: next.id, redeliveries: 1 }])
    })
  )
)

it.scoped("a deletion takes back what was ordered for the endpoint, and what was delivered stays delivered", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    let answer: Effect.Effect<Outcome> = ok
    const client = rememberingClient(() => answer)
    yield* Effect.gen(function* () {
      const webhooks = yield* Webhooks
      const endpoint = yield* register(a)
      yield* besideDispatcher(
        Effect.gen(function* () {
          yield* publish(yield* newPayment(), "pending")
          yield* untilRecorded(1)
          answer = no
          yield* publish(yield* newPayment(), "pending")
          yield* untilRecorded(2)
        })
      )
      expect([yield* redeliver(1), yield* redeliver(2)]).toEqual(["ordered", "ordered"])
      yield* webhooks.remove(merchant, endpoint.id)
      const now = yield* Clock.currentTimeMillis
      const rest = { redelivery: 0, resume_at: null, next_attempt_at: null, done_at: now }
      expect(yield* deliveries).toMatchObject([
        { status: "delivered", ...rest },
        { status: "cancelled", ...rest }
      ])
    }).pipe(Effect.provide(webhooksOn(path, client.layer)))
  })
)

/** Deliveries to `endpoint` in the store, made one a second, none of them due. */
const addFailed = (endpoint: EndpointId, count: number, from: number) =>
  Effect.flatMap(Writer, (writer) =>
    writer.write(
      Effect.flatMap(Tx, (tx) =>
        tx.run(
          `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?)
           INSERT INTO deliveries (id, event_id, payment_id, account_id, mode, endpoint_id, own_url, target, url, status,
             attempts, created_at, done_at)
           SELECT 'dlv_' || i, event_id, payment_id, account_id, mode, ?, 0, ?, url, 'failed', 6, ? + i * 1000, 0
           FROM (SELECT * FROM deliveries WHERE sequence = 1), n`,
          [count, endpoint, endpoint, from]
        )
      )
    )
  )

it.scoped("a range is ordered in parts, oldest first, and what is outside stays as it is", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    yield* Effect.gen(function* () {
      const [one, other] = [yield* register(a), yield* register(b)]
      yield* publish(yield* newPayment(), "pending", 50 * second)
      yield* addFailed(one.id, 100, 0)
      yield* addFailed(other.id, 100, 0)
      yield* TestClock.adjust("1 hour")
      const wanted = {
        owner: merchant,
        endpoint: one.id,
        status: "failed" as const,
        since: 10 * second,
        until: 90 * second
      }
      const run = (selection: LogRepo.Selection) =>
        Effect.gen(function* () {
          const parts: Array<number> = []
          let after: RedeliveryRepo.Place | undefined
          do {
            const part = yield* commit((now) => RedeliveryRepo.redeliverSome(selection, after, 32, now))
            parts.push(part.ordered)
            after = part.next
          } while (after !== undefined)
          return parts
        })
      expect(yield* run(wanted)).toEqual([32, 32, 16])
      // The second time they are due already; the pending one of the event itself was never failed.
      expect(yield* run(wanted)).toEqual([0, 0, 0])
      const ordered = (yield* deliveries).filter((row) => row.redelivery === 1)
      expect(ordered.map((row) => row.sequence)).toEqual(Array.from({ length: 80 }, (_, i) => 13 + i))
      // Of the whole account: the rest of the first endpoint's, and all of the other's in this time.
      const all = { ...wanted, endpoint: undefined, since: 0 }
      expect((yield* run(all)).reduce((sum, part) => sum + part, 0)).toBe(10 + 90)
      expect(yield* run({ ...all, owner: { ...merchant, mode: "live" } })).toEqual([0])
    }).pipe(
      Effect.provide(
        webhooksOn(
          path,
          stubClient(() => Effect.never)
        )
      )
    )
  })
)

it.scoped("new events and retries go before a long range, and that goes out all the same", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    const count = 60
    const begun = yield* Queue.unbounded<void>()
    const answers = yield* Queue.unbounded<Outcome>()
    let answer: Effect.Effect<Outcome> = ok
    const client = rememberingClient(() => answer)
    yield* besideDispatcher(
      Effect.gen(function* () {
        yield* register(a)
        for (let i = 0; i < count; i++) yield* publish(yield* newPayment(), "pending")
        yield* untilRecorded(count)
        answer = no
        yield* publish(yield* newPayment(), "pending")
        yield* untilRecorded(count + 1)

        answer = Effect.zipRight(Queue.offer(begun, undefined), Queue.take(answers))
        const range = { owner: merchant, endpoint: undefined, status: "delivered" as const, since: 0, until: minute }
        const ordered = yield* commit((now) => RedeliveryRepo.redeliverSome(range, undefined, 2 * count, now))
        expect(ordered).toMatchObject({ ordered: count })
        yield* Queue.take(begun)
        yield* TestClock.adjust("1 minute")
        yield* publish(yield* newPayment(), "pending", minute)
        for (let more = count + 1; more > 0; more--) {
          yield* Queue.offer(answers, { status: 200 })
          yield* Queue.take(begun)
        }
        yield* Queue.offer(answers, { status: 200 })
        yield* untilRecorded(2 * count + 3)

        const rows = yield* deliveries
        const sent = client.sent
          .slice(count + 1)
          .map(({ headers }) => rows.findIndex((row) => row.event_id === headers["webhook-id"]) + 1)
        // One is on its way when they are due.
        const [retried, fresh] = [sent.indexOf(count + 1), sent.indexOf(count + 2)]
        expect(Math.max(retried, fresh)).toBe(2)
        expect(sent.toSorted((x, y) => x - y)).toEqual(Array.from({ length: count + 2 }, (_, n) => n + 1))
        expect(new Set(rows.map(({ status }) => status))).toEqual(new Set(["delivered"]))
      })
    ).pipe(Effect.provide(webhooksOn(path, client.layer, { concurrencyPerEndpoint: 1 })))
  })
)

it.scoped("the head of a lane is found by its index, whatever else is due or waits", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    yield* Effect.gen(function* () {
      const endpoint = yield* register(a)
      yield* publish(yield* newPayment(), "pending")
      yield* addFailed(endpoint.id, 50, 0)
      const reader = yield* Reader
      const writer = yield* Writer
      yield* writer.write(
        Effect.flatMap(Tx, (tx) =>
          // Many retries that are not due hide no redelivery, and many redeliveries no retry.
          tx.run(
            `UPDATE deliveries SET status = iif(sequence % 2, status, 'pending'), redelivery = sequence % 2, done_at = NULL,
               next_attempt_at = iif(sequence % 2, 1, 1000) WHERE sequence > 1`
          )
        )
      )
      const plans: Array<string> = []
      const db = explained(reader, reader, plans)
      const headAt = (now: number, limit: number) =>
        Effect.map(LanesRepo.head(db, endpoint.id, limit, now), (places) => places.map(({ sequence }) => sequence))
      expect(yield* headAt(1, 4)).toEqual([1, 3, 5, 7])
      expect(yield* headAt(1_000, 4)).toEqual([1, 2, 4, 6])
      expect(yield* headAt(0, 100)).toHaveLength(51)
      expect(yield* LanesRepo.backlog(db, 1)).toEqual({ due: 26, oldestDueMillis: 1 })
      yield* writer.write(
        Effect.flatMap(Tx, (tx) =>
          Effect.provideService(LanesRepo.endTurn(endpoint.id, false, 0), Tx, {
            ...tx,
            ...explained(tx, reader, plans)
          })
        )
      )
      const steps = plans.filter((step) => step.includes("deliveries") || step.includes("TEMP B-TREE"))
      for (const step of steps) {
        expect(step).toMatch(
          /^SEARCH (d|deliveries) USING (COVERING )?INDEX deliveries_due \(target=\? AND redelivery=\?/
        )
      }
      expect(steps.length).toBeGreaterThan(8)
    }).pipe(
      Effect.provide(
        webhooksOn(
          path,
          stubClient(() => Effect.never)
        )
      )
    )
  })
)

it.scoped("lists and redeliveries find their rows by an index, in its order", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    yield* Effect.gen(function* () {
      const { id: endpoint } = yield* register(a)
      const payment = yield* newPayment()
      yield* publish(payment, "pending")
      const reader = yield* Reader
      const plans: Array<string> = []
      const db = explained(reader, reader, plans)
      const selection = { owner: merchant, endpoint: undefined, status: "pending" as const, since: 0, until: 1 }
      yield* LogRepo.list(db, [selection], 20)
      yield* LogRepo.list(db, [{ ...selection, endpoint }], 20)
      yield* LogRepo.byId(db, yield* idOf(1))
      const writer = yield* Writer
      const watched = <A, E>(command: Effect.Effect<A, E, Tx>) =>
        writer.write(
          Effect.flatMap(Tx, (tx) => Effect.provideService(command, Tx, { ...tx, ...explained(tx, reader, plans) }))
        )
      yield* watched(RedeliveryRepo.redeliverSome(selection, { createdAt: 0, sequence: 0 }, 20, 1))
      yield* watched(RedeliveryRepo.redeliverSome({ ...selection, endpoint }, undefined, 20, 1))
      yield* watched(RedeliveryRepo.redeliver(yield* idOf(1), 1))
      expect(plans.filter((step) => /SCAN (?!json_each)|TEMP B-TREE/.test(step))).toEqual([])
      // The few of one payment are sorted.
      yield* LogRepo.ofPayment(db, payment.id)
      expect(plans.filter((step) => /SCAN (?!json_each)/.test(step))).toEqual([])
      for (const index of ["deliveries_list", "deliveries_list_endpoint", "deliveries_event"]) {
        expect(plans.some((step) => step.includes(`INDEX ${index} `))).toBe(true)
      }
    }).pipe(
      Effect.provide(
        webhooksOn(
          path,
          stubClient(() => Effect.never)
        )
      )
    )
  })
)
