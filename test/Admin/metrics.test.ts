import { expect, it } from "@effect/vitest"
import Database from "better-sqlite3"
import { Clock, Effect, Layer, TestClock } from "effect"
import { exposition, makeProcessFamilies } from "../../src/Admin/metrics.ts"
import { exceptionFamily, makeStoreFamilies } from "../../src/Admin/storeFamilies.ts"
import { eventLoopTurn } from "../../src/lib/waiting.ts"
import * as Sql from "../../src/Sql.ts"
import { Reader, StoreUnavailable } from "../../src/Sql.ts"
import { outcomesOf } from "../../src/Webhooks/queue/EndpointsRepo.ts"
import { seed } from "../lib/endpointRows.ts"
import { readScrape } from "../lib/prometheus.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { testChain, testSettingsLayer } from "../lib/settings.ts"
import { execute, storeAccount, temporaryDatabase } from "../lib/store.ts"
import { explained } from "../lib/webhooks.ts"

const network = { chain: "base", mode: "test" }
const endpointOf = (i: number) => `wh_${String(i).padStart(4, "0")}`

/** `count` deliveries to a target that are due now or later, and `behind` that wait behind an earlier event. */
type Waiting = readonly [target: string, count: number, behind?: number]

/** Inserts waiting deliveries. */
const seedWaiting = (path: string, targets: ReadonlyArray<Waiting>) => {
  const db = new Database(path)
  db.pragma("foreign_keys = OFF")
  const insert = db.prepare(
    `INSERT INTO deliveries (id, event_id, payment_id, account_id, mode, own_url, endpoint_id, target, url, status,
       attempts, next_attempt_at, after_sequence, created_at)
     VALUES ('dlv_', 'evt_', 'pay_', 'default', 'test', 1, ?, ?, 'https://shop.example', 'pending', 0, ?, ?, 0)`
  )
  db.transaction(() => {
    for (const [target, count, behind = 0] of targets) {
      const endpoint = target.startsWith("wh_") ? target : null
      for (let i = 0; i < count; i++) insert.run(endpoint, target, i % 2 === 0 ? 1 : 4e12, null)
      for (let i = 0; i < behind; i++) insert.run(endpoint, target, null, 1)
    }
  })()
  db.close()
}

/** The metrics of a store with these deliveries and what else it gets, and the query plans. */
const familiesOn = (
  targets: ReadonlyArray<Waiting>,
  also: Effect.Effect<void, StoreUnavailable, Sql.Writer> = Effect.void
) =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    const chains = ["base", "polygon"] as const
    const settings = testSettingsLayer(path, { chains: chains.map((chain) => testChain({ chain })) })
    return yield* Effect.gen(function* () {
      seedWaiting(path, targets)
      yield* also
      const reader = yield* Reader
      const steps: Array<string> = []
      const families = yield* Effect.flatMap(makeStoreFamilies, (read) => read()).pipe(
        Effect.provideService(Reader, explained(reader, reader, steps))
      )
      return { scrape: readScrape(yield* exposition(families)), steps }
    }).pipe(Effect.provide(Layer.merge(Sql.layer(path), settings)))
  })

liveTest("an account's used bytes stand beside its quota", function* () {
  const used = Effect.gen(function* () {
    yield* storeAccount
    yield* execute("UPDATE accounts SET quota_bytes = 1000000")
    yield* execute("UPDATE usage SET bytes = iif(mode = 'live', 800000, 0)")
  })
  const { scrape } = yield* familiesOn([], used)
  const of = (name: string) => scrape.value(`tilld_account_${name}`, { account: "default" })
  expect(["used_bytes", "quota_bytes", "quota_used_ratio"].map(of)).toEqual([800_000, 1_000_000, 0.8])
})

liveTest("what is in no row is added up by chain and token, in whole units", function* () {
  const found = Effect.forEach(
    [
      ["0xa", 1],
      ["0xb", 1],
      ["0xc", 0]
    ] as const,
    ([address, told]) =>
      execute("INSERT INTO unaccounted VALUES ('base', 'test', ?, 'USDC', '1250000', 1, ?)", [address, told]),
    { discard: true }
  )
  const { scrape } = yield* familiesOn([], found)
  expect(scrape.value("tilld_unaccounted", { ...network, currency: "USDC" })).toBe(2.5)
})

liveTest("when the audit of balances last ran is told of a chain on which it has run", function* () {
  const scanned = (chain: string, at: number) =>
    execute(
      `INSERT INTO scans (chain, mode, start_number, head_number, head_hash, head_time, verified_number, audited_at)
       VALUES (?, 'test', 0, 0, '0x', 0, 0, ?)`,
      [chain, at]
    )
  const { scrape } = yield* familiesOn([], Effect.zipRight(scanned("base", 1_500), scanned("polygon", 0)))
  const of = (chain: string) => scrape.value("tilld_audited_time_seconds", { chain, mode: "test" })
  expect([of("base"), of("polygon")]).toEqual([1.5, undefined])
})

liveTest("the longest backlogs have a label, the others are counted together, and counts have a maximum", function* () {
  const endpoints = Array.from({ length: 130 }, (_, i) => [endpointOf(i), i + 1] as const)
  const { scrape } = yield* familiesOn([
    ...endpoints,
    ["wh_long", 10_050],
    ["https://one.example", 7],
    ["https://two.example", 5]
  ])
  const backlog = (endpoint: string) => scrape.value("tilld_webhook_backlog_deliveries", { endpoint })
  expect(backlog("wh_long")).toBe(10_000)
  expect(backlog("webhookUrl")).toBe(12)
  expect(backlog(endpointOf(129))).toBe(130)
  expect(backlog(endpointOf(31))).toBe(32)
  // wh_long and 99 others have a label.
  expect(backlog(endpointOf(30))).toBeUndefined()
  expect(backlog("other")).toBe((31 * 32) / 2)
  expect(scrape.labelled("tilld_webhook_backlog_deliveries", "endpoint")).toHaveLength(102)
  expect(scrape.value("tilld_webhook_due_deliveries")).toBeLessThanOrEqual(10_000)
  expect(scrape.value("tilld_webhook_oldest_due_age_seconds")).toBeGreaterThan(1e9)
})

liveTest("due deliveries are counted for a limited number of receivers", function* () {
  const receivers = Array.from({ length: 1_100 }, (_, i) => [`https://shop${i}.example`, 1] as const)
  const { scrape } = yield* familiesOn(receivers)
  expect(scrape.value("tilld_webhook_due_deliveries")).toBe(1_000)
  expect(scrape.value("tilld_webhook_oldest_due_age_seconds")).toBeGreaterThan(1e9)
  expect(scrape.value("tilld_webhook_backlog_deliveries", { endpoint: "webhookUrl" })).toBe(1_100)
})

liveTest("deliveries behind an earlier event are counted too, and no query scans a whole table", function* () {
  const { scrape, steps } = yield* familiesOn([
    [endpointOf(1), 3, 4],
    [endpointOf(2), 1],
    ["https://one.example", 2, 5]
  ])
  const backlog = (endpoint: string) => scrape.value("tilld_webhook_backlog_deliveries", { endpoint })
  expect([backlog(endpointOf(1)), backlog(endpointOf(2)), backlog("webhookUrl")]).toEqual([7, 1, 7])
  // None of them has a due attempt.
  expect(scrape.value("tilld_webhook_due_deliveries")).toBe(2 + 1 + 1)
  expect(scrape.value("tilld_open_payments", network)).toBe(0)
  expect(steps.filter((step) => /deliveries_due|payments_open|lanes/.test(step)).length).toBeGreaterThan(5)
  expect(steps.filter((step) => /SCAN (deliveries|d|payments|scans)\b/.test(step))).toEqual([])
  expect(steps.filter((step) => /\b(deliveries|d) /.test(step) && !/COVERING INDEX/.test(step))).toEqual([])
})

liveTest("an unreadable store is reported, and the other metrics remain", function* () {
  const broken = new StoreUnavailable({ code: "SQLITE_IOERR", message: "the disk" })
  const path = yield* temporaryDatabase
  const families = yield* Effect.flatMap(makeStoreFamilies, (read) => read()).pipe(
    Effect.provideService(Reader, {
      all: () => broken,
      get: () => broken,
      run: () => broken,
      runEach: () => broken,
      writes: () => 0,
      changes: broken
    }),
    Effect.provide(testSettingsLayer(path))
  )
  const scrape = readScrape(yield* exposition(families))
  expect(scrape.samples).toEqual([
    { name: "tilld_store_readable", labels: {}, value: 0 },
    { name: "tilld_store_file_bytes", labels: { file: "wal" }, value: 0 },
    { name: "tilld_store_free_bytes", labels: {}, value: expect.any(Number) }
  ])
})

liveTest(
  "open exceptions are counted by kind; endpoints fail from the first event after the last that arrived",
  function* () {
    const path = yield* temporaryDatabase
    yield* Effect.gen(function* () {
      const now = Math.floor((yield* Clock.currentTimeMillis) / 1000)
      seed(path, [
        [
          "wh_well",
          "live",
          [
            ["failed", 5, now - 900],
            ["delivered", 1, now - 600],
            ["pending", 0, now - 1]
          ]
        ],
        [
          "wh_down",
          "live",
          [
            ["delivered", 1, now - 600],
            ["pending", 2, now - 300],
            ["pending", 1, now - 100]
          ]
        ],
        ["wh_never", "test", [["failed", 5, now - 9_000]]],
        ["wh_new", "live", []],
        ["wh_deleted", "live", [["pending", 1, now - 300]]]
      ])
      const reader = yield* Reader
      const steps: Array<string> = []
      const watched = explained(reader, reader, steps)
      const scrape = readScrape(yield* exposition([yield* exceptionFamily(watched)]))
      const exceptions = (mode: string, kind: string) => scrape.value("tilld_open_exceptions", { mode, kind })
      expect([exceptions("live", "late"), exceptions("test", "late"), exceptions("live", "reorged")]).toEqual([2, 1, 1])
      expect(exceptions("live", "overpaid")).toBe(0)
      const outcomes = yield* outcomesOf(watched)
      const failing = outcomes.flatMap(({ endpoint, failing }) => (failing === undefined ? [] : [endpoint]))
      expect(failing.sort()).toEqual(["wh_down", "wh_never"])
      const since = outcomes.find(({ endpoint }) => endpoint === "wh_down")
      expect([since?.failing?.at, since?.delivered?.at]).toEqual([(now - 300) * 1000, (now - 600) * 1000 + 500])
      // By index: of a long history no more than the newest rows are read.
      expect(steps.filter((step) => /deliveries/.test(step))).not.toEqual([])
      expect(steps.filter((step) => /SCAN (deliveries|exceptions)\b/.test(step))).toEqual([])
    }).pipe(Effect.provide(Sql.layer(path)))
  }
)

/** Longer than any delay of the event loop by a busy machine. */
const blockedMillis = 2_000
const wasBlocked = (seconds = 0) => seconds > 1.5

it.scoped("every scrape reports the longest delay of the event loop, until its minute is over", () =>
  Effect.gen(function* () {
    const families = yield* makeProcessFamilies
    const worst = Effect.zipRight(
      eventLoopTurn,
      Effect.map(
        Effect.suspend(() => exposition(families())),
        (text) => readScrape(text).value("tilld_event_loop_lag_max_seconds")
      )
    )
    // The first scrape starts the measurement.
    yield* Effect.repeat(worst, { until: (seconds = 0) => seconds > 0 })
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, blockedMillis)
    const first = yield* Effect.repeat(worst, { until: wasBlocked })
    expect(yield* worst).toBe(first)
    yield* TestClock.adjust("1 minute")
    expect([yield* worst, yield* worst]).toEqual([first, first])
    yield* TestClock.adjust("1 minute")
    expect(yield* worst).not.toSatisfy(wasBlocked)
  })
)
