import { chownSync, copyFileSync, readdirSync, statSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"
import { expect, it } from "@effect/vitest"
import Database from "better-sqlite3"
import { Effect } from "effect"
import { lookAtStore } from "../../src/Doctor/storeFacts.ts"
import { newestSchema } from "../../src/Sql/schema.ts"
import * as Sql from "../../src/Sql.ts"
import { clockTest } from "../lib/scopedTest.ts"
import { execute, storeAccount, temporaryDatabase } from "../lib/store.ts"

const day = 86_400_000
const now = 100 * day

const payment = (index: number) => [
  `INSERT INTO payments (id, checkout_token, account_id, mode, merchant_ref, amount, currency, chain, address, wallet,
     wallet_index, status, created_at, expires_at, created_head, metadata, ended_at)
   VALUES ('pay_${index}', '${index}', 'default', 'test', '${index}', '1000', 'ETH', 'base', 'a${index}', 'w', ${index},
     'expired', 0, 1000, 100, '{}', 2000)`,
  `INSERT INTO events (id, account_id, mode, payment_id, kind, body, created_at)
   VALUES ('evt_${index}', 'default', 'test', 'pay_${index}', 'payment.created', '{}', ${now - index * day})`
]

const receipt = (index: number, canonical: 0 | 1) =>
  `INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, tx_hash, currency, amount,
     payment_id, canonical, corroborated, seen_at)
   VALUES ('base', 'test', '0xb', 'a${index}', 'tx:0', 101, 9000, '0x${index}', 'ETH', '1', 'pay_${index}', ${canonical}, 1, 1)`

const rows = [
  "INSERT INTO wallets (fingerprint, next_index, jump) VALUES ('w', 12, 3)",
  ...[0, 1, 7, 9].flatMap(payment),
  receipt(1, 1),
  receipt(7, 1),
  receipt(9, 0)
]

/** A database with these rows, closed. */
const filled = Effect.gen(function* () {
  const path = yield* temporaryDatabase
  yield* Effect.forEach(rows, (sql) => execute(sql), { concurrency: 1 }).pipe(
    Effect.zipRight(Effect.sync(() => expectFacts(path, true))),
    (fill) => Effect.zipRight(storeAccount, fill),
    Effect.provide(Sql.layer(path))
  )
  return path
})

const expectFacts = (path: string, isOpen: boolean) =>
  expect(lookAtStore(path, isOpen, [])).toEqual({
    findings: [
      { status: "ok", name: "database", finding: "quick_check finds no damage" },
      { status: "ok", name: "schema", finding: `${newestSchema}, the newest` }
    ],
    facts: {
      // 0, then 2 to 6, then 8 to 14: of the wallet's 15 the receipts of 1 and 7 are canonical.
      wallets: new Map([["w", { next: 15, paid: 2, gap: 7 }]]),
      token: "",
      keyFingerprint: undefined,
      accountWallets: [],
      proofs: new Map(),
      openNeeds: []
    }
  })

clockTest("reads the same beside a daemon and of a copy, and changes no file", function* () {
  const path = yield* filled
  const files = () => readdirSync(dirname(path)).map((name) => [name, statSync(`${dirname(path)}/${name}`).mtimeMs])
  const before = files()
  expectFacts(path, false)
  expect(files()).toEqual(before)
})

it.scoped.skipIf(process.getuid?.() !== 0)(
  "as root it leaves a daemon's files with their owners, no matter who owns the database",
  () =>
    Effect.gen(function* () {
      const path = yield* temporaryDatabase
      yield* Effect.sync(() => {
        chownSync(path, 54_321, 54_321)
        expect(lookAtStore(path, true, [])).toMatchObject({
          findings: [{ status: "fail", finding: expect.stringContaining("belong to different users") }]
        })
        for (const end of ["-wal", "-shm"]) expect(statSync(path + end)).toMatchObject({ uid: 0, gid: 0 })
      }).pipe((look) => Effect.zipRight(storeAccount, look), Effect.provide(Sql.layer(path)))
    })
)

clockTest("of a daemon that was killed it reads also what only the -wal has", function* () {
  const path = yield* temporaryDatabase
  const killed = `${path}.killed`
  yield* Effect.forEach(rows, (sql) => execute(sql), { concurrency: 1 }).pipe(
    Effect.zipRight(
      Effect.sync(() => {
        for (const end of ["", "-wal"]) copyFileSync(path + end, killed + end)
      })
    ),
    (fill) => Effect.zipRight(storeAccount, fill),
    Effect.provide(Sql.layer(path))
  )
  expect(statSync(`${killed}-wal`).size).toBeGreaterThan(0)
  expectFacts(killed, false)
})

clockTest("beside a daemon whose -wal was removed it opens nothing, and makes no file", function* () {
  const path = yield* filled
  const files = readdirSync(dirname(path)).toSorted()
  expect(lookAtStore(path, true, [])).toEqual({
    findings: [expect.objectContaining({ status: "fail", finding: expect.stringContaining(`${path}-wal`) })],
    facts: undefined
  })
  expect(readdirSync(dirname(path)).toSorted()).toEqual(files)
})

const write = (path: string, sql: string) => {
  const database = new Database(path)
  database.exec(sql)
  database.close()
}

it.scoped.each<[string, (path: string) => void, string, RegExp]>([
  ["is not there", () => undefined, "warn", /is not there yet/],
  ["is empty", (path) => writeFileSync(path, ""), "warn", /is not there yet/],
  ["is no database", (path) => writeFileSync(path, "x".repeat(10_000)), "fail", /damaged, or no SQLite database/],
  ["is another program's", (path) => write(path, "CREATE TABLE t (a)"), "fail", /is not a database of tilld/],
  [
    "is newer",
    (path) => write(path, "CREATE TABLE migrations (migration_id); INSERT INTO migrations VALUES (999)"),
    "fail",
    /a newer tilld wrote it: its schema is 999/
  ],
  [
    "lacks a table",
    (path) => write(path, "CREATE TABLE migrations (migration_id); INSERT INTO migrations VALUES (1)"),
    "fail",
    /cannot be read: .*no such table/
  ]
])("a database that %s is one finding", ([, make, status, finding]) =>
  Effect.gen(function* () {
    const path = yield* temporaryDatabase
    make(path)
    expect(lookAtStore(path, false, [])).toEqual({
      findings: [expect.objectContaining({ status, finding: expect.stringMatching(finding) })],
      facts: status === "warn" ? expect.objectContaining({ token: "" }) : undefined
    })
    expect(lookAtStore(path, false, [], "it is missing although")).toEqual({
      findings: [expect.objectContaining({ status: "fail", finding: "it is missing although" })],
      facts: undefined
    })
  })
)
