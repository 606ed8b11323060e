import { expect, it } from "@effect/vitest"
import { Deferred, Duration, Effect, Exit, Fiber, Logger, Redacted, Scope, TestClock } from "effect"
import type { EventKind } from "../../src/Domain/Event.ts"
import { verifySignature } from "../../src/Sandbox/Receiver.ts"
import { Reader, Tx, Writer } from "../../src/Sql.ts"
import { defaultSecrets } from "../../src/Webhooks/DefaultSecrets.ts"
import type { Outcome } from "../../src/Webhooks/DeliveryClient.ts"
import { Dispatcher } from "../../src/Webhooks/Dispatcher.ts"
import { SigningKeys } from "../../src/Webhooks/SigningKeys.ts"
import { Webhooks } from "../../src/Webhooks.ts"
import { temporaryDatabase } from "../lib/store.ts"
import {
  attempts,
  besideDispatcher,
  deliveries,
  dispatching,
  merchant,
  newPayment,
  publish,
  rememberingClient,
  stubClient,
  untilRecorded,
  webhooksOn
} from "../lib/webhooks.ts"

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
const events: ReadonlyArray<EventKind> = ["payment.created", "payment.detecting", "payment.confirmed"]
const second = 1_000
const minute = 60 * second
const hour = 60 * minute

const a = "https://a.example/hook"
const b = "https://b.example/hook"
const c = "https://c.example/hook"

const register = (url: string) =>
  Effect.flatMap(Webhooks, (webhooks) => webhooks.create(merchant, { url, events, secret: Redacted.make(secret) }))

/** A client whose answers the test decides, by URL. */
const scripted = (answers: Readonly<Record<string, Effect.Effect<Outcome>>>) => {
  const { layer, sent } = rememberingClient(({ url }) => answers[url] ?? Effect.succeed({ status: 204 }))
  return { layer, sent, to: (url: string) => sent.filter((request) => request.url === url).length }
}

const ok = Effect.succeed({ status: 200 })
const refused = Effect.succeed({ status: 500, bodyStart: "no" })
const hangs = Effect.as(Effect.sleep("30 seconds"), { error: "timeout" })

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
  let answer: Effect.Effect<Outcome> = refused
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
    const gate = yield* Deferred.make<Outcome>()
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
        expect(kinds).toEqual(events)
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

it.scoped("a target that hangs delays no other", () => {
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

it.scoped("targets that hang leave half of the slots to the others, before and after it is known that they do", () => {
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

it.scoped("however many new targets hang, one that has answered before is not delayed", () => {
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

it.scoped(
  "an attempt that ended before the clock was set back is stored when others end, however many are under way",
  () => {
    let answer: Effect.Effect<Outcome> = ok
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

it.scoped("targets with long backlogs take turns with those that came after them", () =>
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

it.scoped("signs with the endpoint's secret, and a payment's own URL with the account's default", () => {
  const client = scripted({})
  return dispatching(
    client,
    Effect.gen(function* () {
      yield* register(a)
      yield* publish(yield* newPayment(b), "pending")
      yield* untilRecorded(2)
      const own = Redacted.value((yield* defaultSecrets(merchant)).current)
      const [row] = yield* deliveries
      for (const { url, headers, body } of client.sent) {
        const signed = { "x-service-signature": headers["X-Service-Signature"] }
        expect(verifySignature({ headers: signed, body: Buffer.from(body) }, url === a ? secret : own)).toBe(true)
        expect(headers["webhook-id"]).toBe(row?.event_id)
        expect(headers["webhook-timestamp"]).toBe("0")
        expect(JSON.parse(body.toString()).data.metadata).toEqual({ note: "ünïcödé 💶" })
      }
    })
  )
})

it.scoped("a retry is signed with the secret of its own time", () => {
  const client = scripted({ [b]: refused })
  return dispatching(
    client,
    Effect.gen(function* () {
      yield* publish(yield* newPayment(b), "pending")
      yield* untilRecorded(1)
      const keys = yield* SigningKeys
      const before = (yield* defaultSecrets(merchant)).current
      const after = (yield* keys.rotate(merchant, Duration.zero)).current
      yield* TestClock.adjust("1 minute")
      yield* untilRecorded(2)
      const [first, second] = client.sent.map(({ body, headers }) => ({
        headers: { "x-service-signature": headers["X-Service-Signature"] },
        time: headers["webhook-timestamp"],
        id: headers["webhook-id"],
        body: Buffer.from(body)
      }))
      if (first === undefined || second === undefined) return expect.fail("there were two attempts")
      expect([first.id, first.body]).toEqual([second.id, second.body])
      expect([first.time, second.time]).toEqual(["0", "60"])
      expect(verifySignature(first, Redacted.value(before))).toBe(true)
      expect(verifySignature(second, Redacted.value(after))).toBe(true)
    })
  )
})

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
      const stop = yield* Effect.fork(Fiber.interrupt(worker))
      yield* TestClock.adjust("5 seconds")
      yield* Fiber.join(stop)
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
      const stop = yield* Effect.fork(Fiber.interrupt(worker))
      yield* TestClock.adjust("2 seconds")
      yield* Fiber.join(stop)
      expect(client.to(a)).toBe(1)
      expect((yield* deliveries).map((row) => row.status)).toEqual(["delivered", "pending"])
    }).pipe(Effect.provide(webhooksOn(path, client.layer, { concurrency: 1 })))
  })
)

it.scoped("while the store is full nothing is lost, and nothing is stored twice", () => {
  const client = scripted({})
  return dispatching(
    client,
    Effect.gen(function* () {
      const writer = yield* Writer
      const reader = yield* Reader
      const pages = (limit: number) =>
        writer.write(Effect.flatMap(Tx, (tx) => tx.all(`PRAGMA max_page_count = ${limit}`)))
      yield* register(a)
      const payment = yield* newPayment()
      const { page_count: used = 0 } = (yield* reader.get<{ page_count: number }>("PRAGMA page_count")) ?? {}
      yield* publish(payment, "pending")
      yield* pages(used)
      yield* TestClock.adjust("1 minute")
      yield* pages(1_000_000)
      yield* TestClock.adjust("5 seconds")
      yield* untilRecorded(1)
      expect(client.to(a)).toBe(1)
    })
  )
})

it.scoped("an endpoint that is deleted during an attempt gets no other", () =>
  Effect.gen(function* () {
    const gate = yield* Deferred.make<Outcome>()
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

it.scoped("health tells the backlog and its age", () =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    yield* Effect.gen(function* () {
      const { health } = yield* Dispatcher
      expect(yield* health).toEqual({ due: 0, oldestDueMillis: 0 })
      yield* register(a)
      yield* register(b)
      yield* publish(yield* newPayment(), "pending", 0)
      yield* publish(yield* newPayment(), "pending", 7 * second)
      yield* publish(yield* newPayment(), "pending", hour)
      yield* TestClock.adjust("10 seconds")
      expect(yield* health).toEqual({ due: 4, oldestDueMillis: 10 * second })
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

it.scoped("a secret that does not open fails its own attempts, with a remedy in the log, and nobody else's", () => {
  const client = scripted({})
  const logged: Array<string> = []
  const log = Logger.make(({ logLevel, message }) => {
    if (logLevel._tag === "Error") logged.push(String(message))
  })
  const damage = (sql: string) =>
    Effect.flatMap(Writer, (writer) => writer.write(Effect.flatMap(Tx, (tx) => tx.run(sql))))
  return dispatching(
    client,
    Effect.gen(function* () {
      const damaged = yield* register(a)
      yield* register(c)
      yield* defaultSecrets(merchant)
      yield* damage("UPDATE endpoints SET secret = zeroblob(60) WHERE rowid = 1")
      yield* damage("UPDATE default_secrets SET secret = zeroblob(60)")
      yield* publish(yield* newPayment(b), "pending")
      yield* untilRecorded(3)
      expect(client.sent.map(({ url }) => url)).toEqual([c])
      const error = "secret unreadable"
      expect(yield* attempts).toMatchObject([{ error }, { status: 204, error: null }, { error }])
      expect((yield* deliveries).map((row) => row.next_attempt_at)).toEqual([minute, null, minute])
      expect(logged.toSorted()).toEqual([
        expect.stringContaining("default webhook secret of account default, mode test"),
        expect.stringContaining(`webhook endpoint ${damaged.id}`)
      ])
      expect(logged.every((line) => /POST \/v1\/webhooks|--rotate --overlap 0s/.test(line))).toBe(true)
      // The remedy, with nothing restarted.
      const keys = yield* SigningKeys
      yield* keys.rotate(merchant, Duration.zero)
      yield* TestClock.adjust("1 minute")
      yield* untilRecorded(5)
      expect(client.to(b)).toBe(1)
    })
  ).pipe(Effect.provide(Logger.add(log)))
})

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
