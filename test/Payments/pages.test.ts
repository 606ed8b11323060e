import { expect } from "@effect/vitest"
import { Effect } from "effect"
import type { Owner } from "../../src/Domain/Account.ts"
import { chainNames } from "../../src/Domain/Chain.ts"
import { AccountId, PaymentId } from "../../src/Domain/Ids.ts"
import { PaymentStatus } from "../../src/Domain/Payment.ts"
import * as Exceptions from "../../src/Payments/ExceptionsRepo.ts"
import * as Repo from "../../src/Payments/PaymentListRepo.ts"
import { type Db, Reader } from "../../src/Sql.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { execute, tempStore } from "../lib/store.ts"
import { explained } from "../lib/webhooks.ts"

/** How the store answers a query, step by step. */
const planOf = (query: (db: Db) => Effect.Effect<unknown, unknown>) =>
  Effect.gen(function* () {
    const reader = yield* Reader
    const steps: Array<string> = []
    yield* query(explained(reader, reader, steps))
    return steps.filter((step) => !ofToken.has(step))
  })

/** The token and the invoice of each payment: a row by its number or id. */
const ofToken = new Set([
  "CORRELATED SCALAR SUBQUERY 1",
  "CORRELATED SCALAR SUBQUERY 2",
  "CORRELATED SCALAR SUBQUERY 3",
  "CORRELATED SCALAR SUBQUERY 4",
  "SEARCH invoices USING INDEX sqlite_autoindex_invoices_1 (id=?)",
  "SEARCH tokens USING INTEGER PRIMARY KEY (rowid=?)"
])

/** The wallet of each exception, for the path of its address. */
const wallet = "SEARCH wallets USING PRIMARY KEY (fingerprint=?) LEFT-JOIN"
/** Those of each exception. */
const refunds = [
  "USE TEMP B-TREE FOR json_group_array(ORDER BY)",
  "SEARCH p USING INDEX refund_parts_exception (exception_id=?)",
  "SEARCH r USING INDEX sqlite_autoindex_refunds_1 (id=?)",
  "SEARCH payments USING INDEX sqlite_autoindex_payments_1 (id=?)"
]

const owner: Owner = { account: AccountId.make("default"), mode: "test" }
const after = { createdAt: 1_700_000_000_000, sequence: 500 }

/** As a shop has them: nearly all have ended, and nearly all are of one chain. */
const fill = Effect.gen(function* () {
  yield* execute("INSERT INTO accounts (id, name, created_at) VALUES (?, 'Shop', 0)", [owner.account])
  yield* execute("INSERT INTO wallets (fingerprint, next_index) VALUES ('w', 0)")
  yield* execute(
    `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 1000),
       drawn AS (
         SELECT n, CASE WHEN n % 100 = 0 THEN 'pending' WHEN n % 50 = 1 THEN 'failed' WHEN n % 3 = 0 THEN 'expired'
           ELSE 'confirmed' END AS status FROM numbers)
       INSERT INTO payments (id, checkout_token, account_id, mode, merchant_ref, amount, currency, chain, address, wallet,
         wallet_index, status, created_at, expires_at, metadata, confirmed_at, failure_reason, ended_at)
       SELECT 'pay_' || n, n, ?, ?, n, '1', 'USDC', CASE WHEN n % 10 = 0 THEN 'base' ELSE 'polygon' END, n, 'w', n, status,
         1700000000000 + n / 4, 1700003600000, '{}', iif(status = 'confirmed', 1, NULL),
         iif(status = 'failed', 'wrong_token', NULL), iif(status = 'pending', NULL, 1) FROM drawn`,
    [owner.account, owner.mode]
  )
})

const filters = [undefined, ...PaymentStatus.literals].flatMap((status) =>
  [undefined, ...chainNames].map((chain) => ({ status, chain }))
)

/** Steps down an index for a page of a status or a chain alone: each range, and the page's rows, which are sorted once more. */
const merged = (bounds: string, ranges: number) => [
  "SEARCH payments USING INTEGER PRIMARY KEY (rowid=?)",
  ...Array.from(
    { length: ranges },
    () => `SEARCH payments USING COVERING INDEX payments_list_status_chain (${bounds})`
  ),
  "USE TEMP B-TREE FOR ORDER BY"
]

const isStep = (step: string) => /^(SEARCH|SCAN payments|USE)/.test(step)

/** One step, down one index, in its order: neither a scan nor a sort, whatever the number of payments. Or a few, merged. */
const isOneSearch = Effect.gen(function* () {
  for (const { chain, status } of filters) {
    for (const from of [undefined, after]) {
      const plan = yield* planOf((db) => Repo.list(db, owner, { status, chain, after: from, limit: 101 }))
      const times = from ? ["created_at<?"] : []
      const bounds = ["account_id=?", "mode=?", "status=?", "chain=?", ...times].join(" AND ")
      const all = ["account_id=?", "mode=?", ...times].join(" AND ")
      if (chain === undefined && status === undefined) {
        expect(plan).toEqual([`SEARCH payments USING INDEX payments_list (${all})`])
      } else if (chain === undefined || status === undefined) {
        expect(plan.filter(isStep)).toEqual(merged(bounds, 5))
      } else expect(plan).toEqual([`SEARCH payments USING INDEX payments_list_status_chain (${bounds})`])
    }
  }
})

const hash = `0x${"1".repeat(64)}`

/** Neither all payments of an owner are read, nor all receipts: what names few payments leads to them. */
const readsFew = Effect.gen(function* () {
  const narrow = [
    { merchantRef: "7" },
    { address: "7" },
    { txHash: hash },
    { txHash: hash, status: "pending", createdAfter: 1, createdBefore: 2 },
    { merchantRef: "7", address: "7", chain: "base", after }
  ] as const
  for (const filter of narrow) {
    const plan = yield* planOf((db) => Repo.list(db, owner, { ...filter, limit: 101 }))
    expect(
      plan.filter((step) => /SCAN (payments|receipts)|payments_list/.test(step)),
      JSON.stringify(filter)
    ).toEqual([])
    expect(plan.filter((step) => step.startsWith("SEARCH")).length).toBeGreaterThan(0)
  }
  // A page of a time begins and ends with it.
  for (const from of [undefined, after]) {
    const times = { createdAfter: 1, createdBefore: 1_800_000_000_000 }
    const plan = yield* planOf((db) => Repo.list(db, owner, { ...times, status: "failed", after: from, limit: 101 }))
    const bounds = "account_id=? AND mode=? AND status=? AND chain=? AND created_at>? AND created_at<?"
    expect(plan.filter(isStep)).toEqual(merged(bounds, 5))
  }
  yield* execute("INSERT OR IGNORE INTO metadata_terms VALUES (?, ?, 'email', 'b', 1, 1)", [owner.account, owner.mode])
  // Who paid, and what the metadata says: rows of their own tables, in their order; of payments the few that are not indexed.
  const terms = [
    { from: "0xad" },
    { metadata: { email: "a" } },
    { value: "a" },
    { from: "0xad", metadata: { email: "a" } }
  ]
  for (const filter of terms) {
    const plan = yield* planOf((db) => Repo.list(db, owner, { ...filter, after, limit: 101 }))
    expect(
      plan.filter((step) => /SCAN (?!CONSTANT|json_each|keys|\(subquery)|payments_list|AUTOMATIC/.test(step)),
      JSON.stringify(filter)
    ).toEqual([])
    const [table, by] = "from" in filter ? ["payment_senders", "sender=?"] : ["metadata_terms", "key=? AND value=?"]
    expect(plan).toContain(
      `SEARCH ${table} USING PRIMARY KEY (account_id=? AND mode=? AND ${by} AND (created_at,sequence)<(?,?))`
    )
  }
  for (const search of ["exc_1", "quote_1", "ref_1", "b".repeat(30), "0x", "order"]) {
    const plan = yield* planOf((db) => Repo.list(db, owner, { search, limit: 101 }))
    expect(
      plan.filter((step) => /SCAN (payments|receipts|exceptions|refunds)|payments_list/.test(step)),
      search
    ).toEqual([])
  }
  const meant = yield* planOf((db) => Repo.meantBy(db, hash, 21))
  expect(meant.filter((step) => /SCAN (payments|receipts)|payments_list/.test(step))).toEqual([])
})

liveSuite(tempStore, "a page of payments is one search of one index, with any filters and any cursor", (test) => {
  // A plan can follow the number of rows by these tables alone, and they are there once someone runs ANALYZE.
  const statistics = Effect.flatMap(Reader, (reader) =>
    reader.all<{ name: string }>("SELECT name FROM sqlite_schema WHERE name LIKE 'sqlite_stat%' ORDER BY name")
  )

  test("without statistics, as the store is", function* () {
    yield* fill
    yield* isOneSearch
    yield* readsFew
    expect(yield* statistics).toEqual([])
  })

  test("with statistics of how its payments are distributed, which might prefer another index", function* () {
    yield* execute("ANALYZE")
    expect((yield* statistics).map(({ name }) => name)).toContain("sqlite_stat1")
    yield* isOneSearch
    yield* readsFew
  })

  test("and the exceptions of each of its payments are found, in their order, by an index", function* () {
    const plan = yield* planOf((db) => Exceptions.firstOfPayment(db, PaymentId.make("pay_1", true), 10))
    expect(plan).toEqual(["SEARCH exceptions USING INDEX exceptions_payment (payment_id=?)", wallet, ...refunds])
  })

  test("a page of exceptions is one search of one index, too, with any filters and any cursor", function* () {
    const choices = <A>(value: A) => [undefined, value]
    for (const isOpen of choices(true)) {
      for (const kind of choices("late" as const)) {
        for (const chain of choices("base" as const)) {
          for (const from of [undefined, after]) {
            const filter = { isOpen, kind, chain, after: from, limit: 101 }
            const by = [isOpen && "_status", kind && "_kind", chain && "_chain"].filter(Boolean).join("")
            const columns = ["account_id=?", "mode=?", isOpen && "is_open=?", kind && "kind=?", chain && "chain=?"]
            const bounds = [...columns, from && "opened_at<?"].filter(Boolean).join(" AND ")
            expect(yield* planOf((db) => Exceptions.list(db, owner, filter))).toEqual([
              `SEARCH exceptions USING INDEX exceptions_list${by} (${bounds})`,
              wallet,
              ...refunds
            ])
          }
        }
      }
    }
    const ofOne = yield* planOf((db) => Exceptions.list(db, owner, { payment: "pay_1", after, limit: 101 }))
    expect(ofOne).toEqual([
      "SEARCH exceptions USING INDEX exceptions_list_payment (payment_id=? AND opened_at<?)",
      wallet,
      ...refunds
    ])
  })

  test("and those of all payments of a page by one query, each by the same index", function* () {
    const ids = ["pay_1", "pay_2"].map((id) => PaymentId.make(id, true))
    const plan = yield* planOf((db) => Exceptions.firstOfPayments(db, ids, 10))
    expect(plan.filter((step) => step.includes("exceptions"))).toEqual([
      "SEARCH exceptions USING INTEGER PRIMARY KEY (rowid=?)",
      expect.stringMatching(/^SEARCH exceptions USING (COVERING )?INDEX exceptions_payment \(payment_id=\?\)$/)
    ])
  })
})
