import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { chainNames } from "../../src/Domain/Chain.ts"
import { AccountId, PaymentId } from "../../src/Domain/Ids.ts"
import type { Owner } from "../../src/Domain/Owner.ts"
import { type PaymentObject, StatusFilter } from "../../src/Domain/Payment.ts"
import * as Exceptions from "../../src/Payments/ExceptionsRepo.ts"
import * as Repo from "../../src/Payments/PaymentsRepo.ts"
import { type Db, type Param, Reader, Tx, Writer } from "../../src/Sql.ts"
import { TestApi, testApp } from "../lib/api.ts"
import { testChain } from "../lib/settings.ts"
import { tempStore } from "../lib/store.ts"

/** What a query of a repository asks the store, word for word. */
const asked = (query: (db: Db) => Effect.Effect<unknown, unknown>) =>
  Effect.gen(function* () {
    const heard: Array<readonly [sql: string, params: ReadonlyArray<Param>]> = []
    const reader = yield* Reader
    const all: Db["all"] = (sql, params = []) => {
      heard.push([sql, params])
      return Effect.succeed([])
    }
    yield* query({ ...reader, all })
    const [only = expect.fail("nothing was asked")] = heard
    expect(heard).toHaveLength(1)
    return only
  })

/** How the store answers it. */
const planOf = (query: (db: Db) => Effect.Effect<unknown, unknown>) =>
  Effect.gen(function* () {
    const reader = yield* Reader
    const [sql, params] = yield* asked(query)
    const steps = yield* reader.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, params)
    return steps.map(({ detail }) => detail)
  })

const owner: Owner = { account: AccountId.make("default"), mode: "test" }
const after = { createdAt: 1_700_000_000_000, sequence: 500 }

/** As a shop has them: nearly all have ended, and nearly all are of one chain. */
const insert = (first: number, count: number) =>
  Effect.flatMap(Tx, (tx) =>
    tx.run(
      `WITH RECURSIVE numbers (n) AS (SELECT CAST(? AS INTEGER) UNION ALL SELECT n + 1 FROM numbers WHERE n < ?),
       drawn AS (
         SELECT n, CASE WHEN n % 100 = 0 THEN 'pending' WHEN n % 50 = 1 THEN 'failed' WHEN n % 3 = 0 THEN 'expired'
           ELSE 'confirmed' END AS status FROM numbers)
       INSERT INTO payments (id, account_id, mode, merchant_ref, amount, currency, chain, address, wallet, wallet_index,
         status, created_at, expires_at, metadata, confirmed_at, failure_reason, ended_at)
       SELECT 'pay_' || n, ?, ?, n, '1', 'USDC', CASE WHEN n % 10 = 0 THEN 'base' ELSE 'polygon' END, n, 'w', n, status,
         1700000000000 + n / 4, 1700003600000, '{}', iif(status = 'confirmed', 1, NULL),
         iif(status = 'failed', 'wrong_token', NULL), iif(status = 'pending', NULL, 1) FROM drawn`,
      [first, first + count - 1, owner.account, owner.mode]
    )
  )

const fill = (first: number, count: number) =>
  Effect.flatMap(Writer, (writer) =>
    writer.write(
      Effect.gen(function* () {
        const tx = yield* Tx
        yield* tx.run("INSERT OR IGNORE INTO accounts (id, name, created_at) VALUES (?, 'Shop', 0)", [owner.account])
        yield* tx.run("INSERT OR IGNORE INTO wallets (fingerprint, next_index) VALUES ('w', 0)")
        yield* insert(first, count)
      })
    )
  )

const filters = [undefined, ...StatusFilter.literals].flatMap((status) =>
  [undefined, ...chainNames].map((chain) => ({ status, chain }))
)

/** One step, down one index, in its order: neither a scan nor a sort, whatever the number of payments. */
const isOneSearch = Effect.gen(function* () {
  for (const { chain, status } of filters) {
    const index = `payments_list${status === undefined ? "" : "_status"}${chain === undefined ? "" : "_chain"}`
    const columns = ["account_id=?", "mode=?", ...(status ? ["status=?"] : []), ...(chain ? ["chain=?"] : [])]
    for (const from of [undefined, after]) {
      const bounds = [...columns, ...(from ? ["created_at<?"] : [])].join(" AND ")
      const plan = yield* planOf((db) => Repo.list(db, owner, { status, chain, after: from, limit: 101 }))
      expect(plan).toEqual([`SEARCH payments USING INDEX ${index} (${bounds})`])
    }
  }
})

layer(tempStore)("a page of payments is one search of one index, with any filters and any cursor", (it) => {
  // A plan can follow the number of rows by these tables alone, and they are there once somebody runs ANALYZE.
  const statistics = Effect.flatMap(Reader, (reader) =>
    reader.all<{ name: string }>("SELECT name FROM sqlite_schema WHERE name LIKE 'sqlite_stat%' ORDER BY name")
  )

  it.effect("with a thousand payments, and with any number: the store keeps no statistics", () =>
    Effect.gen(function* () {
      yield* fill(1, 1_000)
      yield* isOneSearch
      expect(yield* statistics).toEqual([])
    })
  )

  it.effect("with twenty thousand more, whose distribution the store knows", () =>
    Effect.gen(function* () {
      const writer = yield* Writer
      yield* fill(1_001, 20_000)
      yield* isOneSearch
      yield* writer.write(Effect.flatMap(Tx, (tx) => tx.run("ANALYZE")))
      expect((yield* statistics).map(({ name }) => name)).toContain("sqlite_stat1")
      yield* isOneSearch
    })
  )

  /** As ANALYZE would leave it over so many payments, whose columns have so many values. */
  const pretend = (rows: number, distinct: Readonly<Record<string, number>>) =>
    Effect.flatMap(Writer, (writer) =>
      writer.write(
        Effect.gen(function* () {
          const tx = yield* Tx
          yield* tx.run("DELETE FROM sqlite_stat1 WHERE tbl = 'payments'")
          yield* tx.run("DELETE FROM sqlite_stat4 WHERE tbl = 'payments'")
          const indexes = yield* tx.all<{ name: string }>("SELECT name FROM pragma_index_list('payments')")
          for (const { name } of indexes) {
            const columns = yield* tx.all<{ name: string | null }>("SELECT name FROM pragma_index_info(?)", [name])
            let alike = rows
            const averages = columns.map((column) => {
              alike = Math.max(1, Math.round(alike / (distinct[column.name ?? ""] ?? rows)))
              return alike
            })
            yield* tx.run("INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('payments', ?, ?)", [
              name,
              [rows, ...averages].join(" ")
            ])
          }
          // Another connection reads them anew when the schema has changed.
          yield* tx.run("CREATE TABLE changed (n)")
          yield* tx.run("DROP TABLE changed")
        })
      )
    )

  const shop = { account_id: 1, mode: 2, status: 5, chain: 5, created_at: 1_000_000 }
  it.effect.each([
    ["of one shop", shop],
    ["of one shop, on one chain, all of one status", { ...shop, mode: 1, status: 1, chain: 1 }],
    ["made in the same moment", { ...shop, created_at: 1 }],
    ["of a thousand shops", { ...shop, account_id: 1_000 }],
    ["of a hundred thousand shops", { ...shop, account_id: 100_000 }]
  ] as const)("with a million payments %s, as the store's statistics have it", ([, distinct]) =>
    Effect.gen(function* () {
      yield* pretend(1_000_000, distinct)
      // Where SQLite chooses among all indexes, these numbers are what it goes by.
      const reader = yield* Reader
      const counted = yield* reader.all<{ stat: string }>("SELECT stat FROM sqlite_stat1 WHERE idx = 'payments_list'")
      expect(counted).toEqual([{ stat: expect.stringMatching(/^1000000 /) }])
      yield* isOneSearch
    })
  )

  it.effect("and the exceptions of each of its payments are found, in their order, by an index", () =>
    Effect.gen(function* () {
      const plan = yield* planOf((db) => Exceptions.firstOfPayment(db, PaymentId.make("pay_1", true), 10))
      expect(plan).toEqual(["SEARCH exceptions USING INDEX exceptions_payment (payment_id=?)"])
    })
  )
})

const app = testApp({ chains: [testChain()] })

layer(app, { excludeTestServices: true })("what happens between two pages", (it) => {
  const make = (key: string, merchantRef: string) =>
    Effect.flatMap(TestApi, (api) => {
      const json = { merchantRef, amount: "1", currency: "ETH", chain: "base" }
      return Effect.map(api.call("POST", "/v1/payments", { key, json }), ({ body }) => body as PaymentObject)
    })

  const remove = (id: string) =>
    Effect.flatMap(Writer, (writer) =>
      writer.write(
        Effect.gen(function* () {
          const tx = yield* Tx
          yield* tx.run("DELETE FROM events WHERE payment_id = ?", [id])
          yield* tx.run("DELETE FROM payments WHERE id = ?", [id])
        })
      )
    )

  it.effect("hides no payment and shows none twice: others are made, and removed, those at the cursor too", () =>
    Effect.gen(function* () {
      const api = yield* TestApi
      const key = yield* api.newKey()
      const old = yield* Effect.forEach(
        Array.from({ length: 40 }, (_, i) => `old ${i}`),
        (ref) => make(key, ref),
        {
          concurrency: 1
        }
      )
      const seen: Array<string> = []
      const removed = new Set<string>()
      let cursor = ""
      for (let page = 0; cursor !== null; page++) {
        const { body } = yield* api.call("GET", `/v1/payments?limit=3&cursor=${cursor}`, { key })
        const ids: ReadonlyArray<string> = body.data.map(({ id }: PaymentObject) => id)
        seen.push(...ids)
        cursor = body.cursor
        yield* make(key, `new ${page}`)
        // The one that the cursor stands at, and one that is still to come.
        for (const id of [ids.at(-1), old[page]?.id]) {
          if (id === undefined || (page % 2 === 1 && id !== ids.at(-1))) continue
          removed.add(id)
          yield* remove(id)
        }
      }
      expect(new Set(seen).size).toBe(seen.length)
      const stayed = old.map(({ id }) => id).filter((id) => !removed.has(id))
      expect(seen.filter((id) => !removed.has(id))).toEqual(stayed.reverse())
      expect(removed.size).toBeGreaterThan(15)
    })
  )
})
