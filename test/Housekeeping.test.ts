import { expect } from "@effect/vitest"
import { Duration, Effect, Layer, Logger, Redacted, TestClock } from "effect"
import type { EventKind } from "../src/Domain/Event.ts"
import { Housekeeping } from "../src/Housekeeping.ts"
import { eventLoopTurn } from "../src/lib/waiting.ts"
import * as QuotesRepo from "../src/Quotes/QuotesRepo.ts"
import { Reader, Tx, Writer } from "../src/Sql.ts"
import * as RetentionRepo from "../src/Webhooks/queue/DeliveriesRepo.ts"
import { Webhooks } from "../src/Webhooks.ts"
import { scopedTest } from "./lib/scopedTest.ts"
import { temporaryDatabase } from "./lib/store.ts"
import {
  attempts,
  besideDispatcher,
  deliveries,
  explained,
  merchant,
  newPayment,
  publish,
  stubClient,
  untilRecorded,
  untilStored,
  webhooksOn
} from "./lib/webhooks.ts"

const url = "https://shop.example/hook"
const kinds: ReadonlyArray<EventKind> = ["payment.created", "payment.detecting"]
const day = Duration.toMillis("1 day")

const test = scopedTest(
  Layer.unwrapScoped(
    Effect.map(temporaryDatabase, (path) =>
      Layer.provideMerge(
        Housekeeping.layer,
        webhooksOn(
          path,
          stubClient(() => Effect.succeed({ status: 200 }))
        )
      )
    )
  )
)

const registerAt = (url: string) =>
  Effect.flatMap(Webhooks, (webhooks) =>
    webhooks.create(merchant, { url, events: kinds, secret: Redacted.make("whsec_0123456789abcdef") })
  )
const register = registerAt(url)

const run = (sql: string, ...params: ReadonlyArray<string | number>) =>
  Effect.flatMap(Writer, (writer) => writer.write(Effect.flatMap(Tx, (tx) => tx.run(sql, params))))

const count = (table: string) =>
  Effect.gen(function* () {
    const reader = yield* Reader
    return (yield* reader.get<{ n: number }>(`SELECT count(*) AS n FROM ${table}`))?.n ?? 0
  })

/** Waits until a table has so many rows. */
const untilRows = (table: string, rows: number) => untilStored(Effect.map(count(table), (n) => n === rows))

/** The same, as hours pass: the step before may still be under way, and its worker sleeps only after it. */
const untilHourly = (table: string, rows: number) =>
  untilStored(
    Effect.zipRight(
      TestClock.adjust("1 hour"),
      Effect.map(count(table), (n) => n === rows)
    )
  )

/** Two events of a payment are delivered on the second day. */
const deliverTwo = Effect.gen(function* () {
  const payment = yield* newPayment()
  yield* TestClock.adjust("1 day")
  yield* besideDispatcher(
    Effect.gen(function* () {
      yield* publish(payment, "pending", day)
      yield* publish(payment, "detecting", day)
      yield* untilRecorded(2)
    })
  )
})

/** A test beside the worker. */
const cleaning = <A, E, R>(test: Effect.Effect<A, E, R>) =>
  Effect.flatMap(Housekeeping, ({ run }) => Effect.raceFirst(test, run))

const eventIds = Effect.flatMap(Reader, (reader) =>
  Effect.map(reader.all<{ id: string }>("SELECT id FROM events ORDER BY sequence"), (rows) => rows.map(({ id }) => id))
)

test("90 days after they were over, deliveries go with their attempts and events; payments stay", function* () {
  yield* register
  yield* publish(yield* newPayment(), "confirmed", 0)
  yield* deliverTwo
  const [doneAt = 0] = (yield* deliveries).map((row) => row.done_at)
  expect(doneAt).toBe(day)
  yield* TestClock.setTime(91 * day - 1)
  yield* cleaning(
    Effect.gen(function* () {
      // Not a millisecond early: an older event without deliveries goes. Then within the hour.
      yield* untilRows("events", 2)
      expect(yield* count("deliveries")).toBe(2)
      yield* untilHourly("deliveries", 0)
      // The newest of all stays, so that its number does not come again.
      yield* untilRows("events", 1)
    })
  )
  expect([yield* count("deliveries"), yield* count("attempts")]).toEqual([0, 0])
  expect([yield* count("payments"), yield* count("transitions"), yield* count("endpoints")]).toEqual([2, 3, 1])
})

test("a clock that is years ahead of the chains expires nothing", function* () {
  yield* register
  yield* deliverTwo
  const readTo = (time: number) =>
    run(
      `INSERT OR REPLACE INTO scans (chain, mode, start_number, head_number, head_hash, head_time, verified_number)
       VALUES ('base', 'test', 0, 1, '0x1', ?, 0)`,
      time / 1000
    )
  const left = Effect.all([count("deliveries"), count("attempts"), count("events")], { concurrency: 1 })
  yield* readTo(day)
  yield* TestClock.setTime(4_000 * day)
  yield* cleaning(
    Effect.gen(function* () {
      yield* TestClock.adjust("1 hour")
      yield* Effect.repeatN(eventLoopTurn, 200)
      expect(yield* left).toEqual([2, 2, 2])
      // The chains have come so far, too.
      yield* readTo(4_000 * day)
      yield* untilHourly("deliveries", 0)
    })
  )
})

test("a delivery with a scheduled attempt stays however old it is, with its event; so does one that ended late", function* () {
  yield* register
  const [due, ended, repeated] = [yield* newPayment(), yield* newPayment(), yield* newPayment(url)]
  // One due delivery, and one that waits for it.
  yield* publish(due, "pending", 0)
  yield* publish(due, "detecting", 0)
  yield* publish(ended, "pending", 0)
  yield* publish(repeated, "pending", 0)
  const done =
    "UPDATE deliveries SET status = 'failed', attempts = 6, next_attempt_at = NULL, done_at = ? WHERE payment_id = ?"
  yield* run(done, 20 * day, ended.id)
  yield* run(done, 0, repeated.id)
  yield* run(
    "UPDATE deliveries SET redelivery = 1, next_attempt_at = 1, done_at = NULL WHERE payment_id = ?",
    repeated.id
  )
  // Old and ended: the only one to go. And an event without deliveries.
  const over = yield* newPayment()
  yield* publish(over, "pending", 0)
  yield* run(done, 0, over.id)
  yield* publish(yield* newPayment(), "confirmed", 0)
  yield* publish(yield* newPayment(), "confirmed", 99 * day)
  expect(yield* eventIds).toHaveLength(7)

  yield* TestClock.setTime(100 * day)
  yield* cleaning(untilRows("events", 5))
  expect((yield* deliveries).map((row) => [row.status, row.redelivery, row.done_at])).toEqual([
    ["pending", 0, null],
    ["pending", 0, null],
    ["failed", 0, 20 * day],
    ["failed", 1, null]
  ])
  yield* TestClock.setTime(110 * day)
  yield* cleaning(untilRows("events", 4))
  expect((yield* deliveries).map((row) => row.status)).toEqual(["pending", "pending", "failed"])
})

test("the newest event of each account and mode stays, however old: its number must not come again", function* () {
  const payment = yield* newPayment()
  const live = { ...payment, mode: "live" } as const
  for (const each of [payment, payment, live, live]) yield* publish(each, "detecting", 0)
  const ids = yield* eventIds
  expect(ids).toHaveLength(4)
  const forgotten = yield* Effect.flatMap(Writer, (writer) => writer.write(RetentionRepo.forgetEvents(day, 0, 10)))
  expect(forgotten).toBeUndefined()
  expect(yield* eventIds).toEqual([ids[1], ids[3]])
})

test("many old rows are deleted in pages, except those that have to stay", function* () {
  yield* register
  const payment = yield* newPayment()
  yield* publish(payment, "pending", 0)
  // 950 events, of which every tenth has a delivery that is still due, and the others one that is over.
  yield* run(
    `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 950)
         INSERT INTO events (id, account_id, mode, payment_id, kind, body, created_at)
         SELECT 'evt_' || i, account_id, mode, payment_id, kind, body, 0 FROM (SELECT * FROM events), n`
  )
  yield* run(
    `INSERT INTO deliveries (id, event_id, payment_id, account_id, mode, endpoint_id, own_url, target, url, status,
           attempts, next_attempt_at, created_at, done_at)
         SELECT 'dlv_' || e.sequence, e.id, d.payment_id, d.account_id, d.mode, endpoint_id, own_url, target, url,
           iif(e.sequence % 10 = 0, 'pending', 'delivered'), 1, iif(e.sequence % 10 = 0, 1, NULL), 0,
           iif(e.sequence % 10 = 0, NULL, 1)
         FROM events AS e JOIN deliveries AS d ON d.sequence = 1 WHERE e.sequence > 1`
  )
  yield* run(
    "INSERT INTO attempts (delivery, number, started_at, ended_at, status) SELECT sequence, 1, 0, 1, 500 FROM deliveries"
  )
  yield* TestClock.setTime(100 * day)
  yield* cleaning(untilRows("events", 97))
  expect(new Set((yield* deliveries).map((row) => row.status))).toEqual(new Set(["pending"]))
  expect(yield* attempts).toHaveLength(96)
  const reader = yield* Reader
  expect(yield* reader.all("PRAGMA foreign_key_check")).toEqual([])
})

test("new payments' metadata is indexed within seconds, in batches, and nothing is written while there is none", function* () {
  yield* Effect.replicateEffect(newPayment(), 450)
  yield* run("UPDATE payments SET metadata = iif(sequence % 2 = 0, '{\"a\":1,\"b\":[]}', '{}')")
  const cursor = Effect.flatMap(Reader, (reader) =>
    Effect.map(
      reader.get<{ value: string }>("SELECT value FROM meta WHERE key = 'metadata_indexed'"),
      (row) => row?.value
    )
  )
  yield* cleaning(
    Effect.gen(function* () {
      yield* untilRows("metadata_terms", 225)
      const last = yield* cursor
      yield* run("UPDATE meta SET value = value || '.0' WHERE key = 'metadata_indexed'")
      yield* TestClock.adjust("30 seconds")
      yield* Effect.repeatN(eventLoopTurn, 200)
      expect(yield* cursor).toBe(`${last}.0`)
      yield* newPayment()
      yield* run("UPDATE payments SET metadata = '{\"a\":2}' WHERE sequence = (SELECT max(sequence) FROM payments)")
      yield* TestClock.adjust("10 seconds")
      yield* untilRows("metadata_terms", 226)
    })
  )
})

test("an event that recurs after the earlier one was deleted has a new id", function* () {
  const payment = yield* newPayment()
  yield* publish(payment, "detecting", 0)
  const [first] = yield* eventIds
  // The newest of all stays.
  yield* publish(yield* newPayment(), "confirmed", 50 * day)
  yield* TestClock.setTime(100 * day)
  yield* cleaning(untilRows("events", 1))
  yield* publish(payment, "detecting", 100 * day)
  const second = (yield* eventIds).at(-1)
  expect(second).not.toBe(first)
})

test("old rows are found by an index, and deleted by one", function* () {
  yield* register
  yield* publish(yield* newPayment(), "pending", 0)
  const reader = yield* Reader
  const writer = yield* Writer
  const steps: Array<string> = []
  const watched = <A, E>(command: Effect.Effect<A, E, Tx>) =>
    writer.write(
      Effect.flatMap(Tx, (tx) => Effect.provideService(command, Tx, { ...tx, ...explained(tx, reader, steps) }))
    )
  yield* watched(RetentionRepo.forgetDeliveries(1, 10))
  yield* watched(RetentionRepo.forgetEvents(1, 0, 10))
  expect(steps.filter((step) => /SCAN (?!json_each)|TEMP B-TREE/.test(step))).toEqual([])
  yield* watched(RetentionRepo.forgetEndpoints(1, 10))
  yield* watched(QuotesRepo.forget(1, { createdAt: 0, id: "" }, 10))
  expect(steps.filter((step) => /SCAN (?!json_each)|TEMP B-TREE/.test(step))).toEqual([])
  for (const index of ["deliveries_done", "deliveries_event", "endpoints_deleted", "quotes_age"]) {
    expect(steps.some((step) => step.includes(`INDEX ${index} `))).toBe(true)
  }
})

test("quotes that no payment names and deleted endpoints go when they are old enough, and no others", function* () {
  const quote =
    "INSERT INTO quotes (id, account_id, mode, body, created_at, valid_until) VALUES (?, 'default', 'test', '{}', ?, 1)"
  for (const [id, at] of Object.entries({ unused: 0, used: 0, young: 20 * day })) yield* run(quote, id, at)
  const payment = yield* newPayment()
  yield* run("UPDATE payments SET quote_id = 'used' WHERE id = ?", payment.id)
  const [old, busy, kept] = [yield* register, yield* registerAt(`${url}/2`), yield* registerAt(`${url}/3`)]
  yield* run("UPDATE endpoints SET deleted_at = 0 WHERE id = ?", old.id)
  yield* publish(payment, "pending", 50 * day)
  // Deleted too, and its delivery, which names it, has not ended.
  yield* run("UPDATE endpoints SET deleted_at = 0 WHERE id = ?", busy.id)
  yield* run("DELETE FROM deliveries WHERE endpoint_id = ?", old.id)
  const usage = Effect.flatMap(Reader, (reader) =>
    reader.get<{ bytes: number }>("SELECT sum(bytes) AS bytes FROM usage")
  )
  const before = (yield* usage)?.bytes ?? 0
  yield* TestClock.setTime(100 * day)
  yield* cleaning(untilRows("quotes", 2))
  const reader = yield* Reader
  const ids = (table: string) => reader.all(`SELECT id FROM ${table} ORDER BY id`)
  expect(yield* ids("quotes")).toEqual([{ id: "used" }, { id: "young" }])
  expect(new Set(yield* ids("endpoints"))).toEqual(new Set([{ id: busy.id }, { id: kept.id }]))
  expect((yield* usage)?.bytes).toBeLessThan(before - 200)
})

test("sign-in links go a day after their end, sessions once they have ended, and kept responses after a day", function* () {
  yield* run(
    "INSERT INTO people (id, name, role, account_id, created_at) VALUES ('per_1', 'Ann', 'admin', 'default', 0)"
  )
  const link = "INSERT INTO sign_in_links (hash, person_id, expires_at, used_at) VALUES (?, 'per_1', ?, ?)"
  for (const [hash, expiresAt, usedAt] of [
    ["old", 99 * day - 1, 0],
    ["used", 99 * day, 0],
    ["new", 101 * day, 0]
  ] as const)
    yield* run(`${link.replace("?", "CAST(? AS BLOB)")}`, hash, expiresAt, usedAt)
  const hour = day / 24
  for (const [id, seenAt] of [
    ["left", 100 * day - 12 * hour - 1],
    ["here", 100 * day - 12 * hour]
  ] as const) {
    yield* run(
      `INSERT INTO sessions (id, hash, person_id, created_at, seen_at, proof_at, user_agent, address)
       VALUES (?, CAST(? AS BLOB), 'per_1', 0, ?, 0, '', '')`,
      id,
      id,
      seenAt
    )
  }
  const response = `INSERT INTO idempotent_responses (account_id, mode, route, key, body_hash, status, headers, body, created_at)
    VALUES ('default', 'test', 'POST /', ?, NULL, 201, '{}', '', ?)`
  for (const [key, at] of [
    ["old", 99 * day],
    ["new", 99 * day + 1]
  ] as const)
    yield* run(response, key, at)
  yield* TestClock.setTime(100 * day)
  yield* cleaning(untilRows("sessions", 1))
  const reader = yield* Reader
  expect(yield* reader.all("SELECT key FROM idempotent_responses")).toEqual([{ key: "new" }])
  const links = yield* reader.all("SELECT CAST(hash AS TEXT) AS hash FROM sign_in_links ORDER BY hash")
  expect(links).toEqual([{ hash: "new" }, { hash: "used" }])
  expect(yield* reader.all("SELECT id FROM sessions")).toEqual([{ id: "here" }])
})

test("an account that comes to its quota is logged once at 80 %, once at 100 %, and once when it has room", function* () {
  yield* run("UPDATE accounts SET quota_bytes = iif(id = 'default', 1000000, 0)")
  const lines: Array<string> = []
  let about: unknown
  const logger = Logger.make(({ annotations, message }) => {
    lines.push(String(message))
    if (String(message).includes("quota")) about = Object.fromEntries(annotations)
  })
  /** What the log says of a use, after so many looks at it. */
  const toldAt = (bytes: number, looks = 3) =>
    Effect.gen(function* () {
      const before = lines.length
      yield* run("UPDATE usage SET bytes = iif(mode = 'live', ?, 0)", bytes)
      for (let look = 0; look < looks; look++) {
        yield* TestClock.adjust("1 minute")
        yield* Effect.repeatN(eventLoopTurn, 20)
      }
      return lines.slice(before).filter((line) => line.includes("quota"))
    })
  yield* cleaning(
    Effect.gen(function* () {
      expect(yield* toldAt(799_999)).toEqual([])
      expect(yield* toldAt(800_000)).toEqual([expect.stringContaining("account default has used 80 % of its quota")])
      expect(about).toMatchObject({ account: "default", bytes: 800_000, quota: 1_000_000 })
      // Moving back and forth around the limit is not a crossing.
      expect([yield* toldAt(790_000), yield* toldAt(810_000)]).toEqual([[], []])
      expect(yield* toldAt(1_000_000)).toEqual([expect.stringContaining("are refused with 507")])
      expect(yield* toldAt(1_100_000)).toEqual([])
      expect(yield* toldAt(700_000)).toEqual(["account default has room below its quota again"])
      expect(yield* toldAt(1_200_000)).toEqual([expect.stringContaining("has used 120 %")])
    })
  ).pipe(Effect.provide(Logger.replace(Logger.defaultLogger, logger)))
})
