import { readFileSync } from "node:fs"
import { join } from "node:path"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { getAddress } from "viem"
import * as BooksRepo from "../../src/Books/BooksRepo.ts"
import { monthIn, monthOf, OwnedLedgerRow } from "../../src/Books/ledgerOperation.ts"
import { AccountId } from "../../src/Domain/Ids.ts"
import { addUp, leftOf, worthText } from "../../src/Domain/LedgerRow.ts"
import { iso } from "../../src/lib/moment.ts"
import { Reader } from "../../src/Sql.ts"
import { root } from "../lib/processes.ts"
import { scopedTest } from "../lib/scopedTest.ts"
import { execute, tempStore } from "../lib/store.ts"
import { explained } from "../lib/webhooks.ts"

const test = scopedTest(tempStore)
const account = AccountId.make("default")
const owner = { account, mode: "test" } as const
const addressOf = (n: number) => getAddress(`0x${n.toString(16).padStart(40, "0")}`)
const hashOf = (n: number) => `0x${n.toString(16).padStart(64, "0")}`
const usd = (units: number) => `${units * 1_000_000}`

const start = Effect.all(
  [
    execute("INSERT INTO accounts (id, name, created_at) VALUES ('default', 'D', 0), ('other', 'O', 0)"),
    execute("INSERT INTO wallets (fingerprint, next_index) VALUES ('w', 10)"),
    ...[1, 2, 3].map((n) =>
      execute(
        `INSERT INTO payments (id, checkout_token, account_id, mode, merchant_ref, amount, currency, chain, address, wallet,
           wallet_index, status, created_at, expires_at, metadata)
         VALUES (?, ?, ?, 'test', ?, '1', 'USDC', 'base', ?, 'w', ?, 'pending', 0, 1, '{}')`,
        [`pay_${n}`, `${n}`, n === 3 ? "other" : "default", `order-${n}`, addressOf(n), n]
      )
    )
  ],
  { concurrency: 1, discard: true }
)

interface Came {
  readonly to?: number
  readonly currency?: string
  readonly chain?: string
  readonly credited?: string
  readonly rate?: string | null
  readonly over?: string
}

/** The n-th receipt, of 10 units to the first payment unless it says otherwise, at a time in seconds. */
const came = (n: number, at: number, amount: string, given: Came = {}) => {
  const { chain = "base", credited = amount, currency = "USDC", over = "1, 1", rate = "1", to = 1 } = given
  return execute(
    `INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, tx_hash, currency, amount,
       sender, payment_id, account_id, canonical, corroborated, seen_at, kind, credited, rate, rate_currency, rate_source)
     SELECT ?, 'test', ?, lower(address), 'log:0', 1, ?, ?, ?, ?, ?, id, account_id, ${over}, 1, 'credited', ?, ?, 'USD', ?
     FROM payments WHERE address = ?`,
    [
      ...[chain, hashOf(900 + n), at, hashOf(n), currency, amount, addressOf(77).toLowerCase(), credited],
      ...[rate, rate === null ? "no_fresh_price" : "fixed", addressOf(to)]
    ]
  )
}

const moved = (n: number, at: number, amount: string, refund: string | null = null) =>
  execute(
    `INSERT INTO collected (chain, mode, tx_hash, place, address, receiver, currency, amount, refund, account_id, payment_id,
       block_time, noted_at, rate, rate_currency, rate_source)
     VALUES ('base', 'test', ?, 0, ?, ?, 'USDC', ?, ?, 'default', 'pay_1', ?, 1, '1', 'USD', 'fixed')`,
    [hashOf(n), addressOf(1), addressOf(99), amount, refund, at]
  )

/** A refund of the first payment: `of` the outcome of the exception whose money it sends back; undefined: what counted. */
const back = (n: number, at: number, amount: string, status = "seen", sender?: string, of?: string) =>
  Effect.all(
    [
      execute(
        `INSERT INTO refunds (id, payment_id, account_id, mode, address, chain, currency, amount, status, tx_hash, sender,
           receiver, created_at, changed_at, block_time, rate, rate_currency, rate_source)
         VALUES (?, 'pay_1', 'default', 'test', ?, 'base', 'USDC', ?, ?, ?, ?, ?, 1, 1, ?, '1', 'USD', 'fixed')`,
        [
          ...[`ref_${n}`, addressOf(1).toLowerCase(), amount, status, hashOf(n), sender?.toLowerCase() ?? null],
          ...[sender === undefined ? null : addressOf(77).toLowerCase(), at]
        ]
      ),
      ...(of === undefined ? [] : [decided(n, of)]),
      execute("INSERT INTO refund_parts VALUES (?, 0, ?, ?, NULL, ?, 1)", [
        ...[`ref_${n}`, of === undefined ? null : `exc_${n}`, hashOf(1), amount]
      ])
    ],
    { concurrency: 1, discard: true }
  )

const decided = (n: number, outcome: string | null) =>
  execute(
    `INSERT INTO exceptions (id, address, key, payment_id, kind, chain, mode, tx_hash, currency, amount, opened_at,
       closed_at, outcome)
     VALUES (?, ?, ?, 'pay_1', 'overpaid', 'base', 'test', ?, 'USDC', '1', 1, iif(CAST(? AS TEXT) IS NULL, NULL, 2), ?)`,
    [`exc_${n}`, addressOf(1).toLowerCase(), `${n}`, hashOf(n), outcome, outcome]
  )

const paid = (n: number, at: number, payer: number, wei: string, of: string | null = "default") =>
  execute(
    `INSERT INTO gas (chain, mode, tx_hash, payer, receiver, amount, account_id, payment_id, block_time, rate, rate_currency,
       rate_source)
     VALUES ('base', 'test', ?, ?, ?, ?, ?, iif(? = 1, 'pay_1', NULL), ?, '2500', 'USD', 'fixed')`,
    [hashOf(n), addressOf(payer), addressOf(98), wei, of, payer, at]
  )

type Filter = Partial<BooksRepo.LedgerFilter>

/** All rows of the ledger, so many a page, and the number of pages. */
const read = (filter: Filter = {}, limit = 100) =>
  Effect.gen(function* () {
    const reader = yield* Reader
    const all = []
    let after: BooksRepo.LedgerPlace | undefined
    let pages = 0
    do {
      const page = yield* BooksRepo.page(reader, [], { ...owner, ...filter }, after, limit)
      all.push(...page.rows)
      // As a client gives it back.
      after = page.next && BooksRepo.placeIn(BooksRepo.placeText(page.next))
      expect(after).toEqual(page.next)
      pages += 1
    } while (after !== undefined && pages < 100)
    return { all, pages }
  })

const kinds = (filter: Filter = {}, limit?: number) =>
  Effect.map(read(filter, limit), ({ all }) => all.map(({ at, kind }) => `${kind} ${Date.parse(at) / 1000}`))

const mixed = Effect.all(
  [
    start,
    came(1, 100, usd(25)),
    came(2, 100, usd(5), { credited: "0" }),
    came(3, 200, usd(7), { to: 2, rate: null }),
    came(4, 200, "35", { currency: "USDT", chain: "polygon", credited: "0" }),
    came(5, 250, usd(9), { to: 3 }),
    moved(6, 300, usd(25)),
    moved(7, 300, usd(2), "ref_7"),
    back(7, 300, usd(2), "seen", addressOf(1), "refunded"),
    paid(6, 300, 1, "1000000000000000"),
    paid(8, 300, 50, "2000000000000000"),
    paid(9, 310, 50, "3000000000000000", null)
  ],
  { concurrency: 1, discard: true }
)

test("a row says what moved, of which payment, from where to where, and its worth", function* () {
  yield* mixed
  const { all } = yield* read()
  expect(all.map(({ amount, kind, what }) => [kind, amount, what])).toEqual([
    ["refund", usd(2), "address"],
    ["gas", "2000000000000000", "sponsor"],
    ["gas", "1000000000000000", "address"],
    ["collection", usd(25), undefined],
    ["receipt", "35", "credited"],
    ["receipt", usd(7), "credited"],
    ["receipt", usd(5), "credited"],
    ["receipt", usd(25), "credited"]
  ])
  expect(all.at(-1)).toEqual({
    ...{ account, mode: "test", id: expect.stringMatching(/^led_[\w-]{22}$/), at: "1970-01-01T00:01:40.000Z" },
    ...{ kind: "receipt", payment: "pay_1", merchantRef: "order-1", chain: "base", currency: "USDC" },
    ...{ amount: usd(25), decimals: 6, quantity: "25.000000", from: addressOf(77), to: addressOf(1) },
    ...{ txHash: hashOf(1), what: "credited", decision: "none", credited: usd(25), worth: "25.00", income: "25.00" },
    ...{ worthCurrency: "USD", rate: "1", rateSource: "fixed" }
  })
  expect(new Set(all.map(({ id }) => id)).size).toBe(all.length)
  const [unknown] = all.filter(({ worthUnknown }) => worthUnknown !== undefined)
  expect(unknown).toMatchObject({ payment: "pay_2", worthUnknown: "no_fresh_price", worthCurrency: "USD" })
  expect([unknown?.worth, unknown?.income, unknown?.rate]).toEqual([undefined, undefined, undefined])
  expect((yield* read({ account: undefined })).all).toMatchObject([{ kind: "gas", amount: "3000000000000000" }])
})

test("the sums are those of the chain, and the income is that of what is credited", function* () {
  yield* mixed
  const { income, sums, unknown } = addUp((yield* read()).all)
  expect(new Map(sums.map((sum) => [`${sum.chain} ${sum.currency}`, leftOf(sum)]))).toEqual(
    new Map([
      ["base USDC", 10_000_000n],
      // Of the sponsor's gas nothing was at a receiving address.
      ["base ETH", -1_000_000_000_000_000n],
      ["polygon USDT", 35n]
    ])
  )
  expect(Array.from(income, ([currency, sum]) => `${worthText(sum, currency)} ${currency}`)).toEqual(["25.00 USD"])
  expect(unknown).toBe(1)
})

test("what a second provider does not have, or a reorg took, is not in it; money without a transaction is", function* () {
  yield* start
  yield* came(1, 100, "1", { over: "1, 0" })
  yield* came(2, 100, "1", { over: "0, 1" })
  yield* execute("UPDATE receipts SET tx_hash = NULL, position = 'unattributed' WHERE tx_hash = ?", [hashOf(1)])
  expect((yield* read()).all.map(({ txHash }) => txHash)).toEqual([undefined])
  expect((yield* read({ payment: "pay_1" })).all).toHaveLength(1)
})

test("what was decided on money that did not fit is with its receipt", function* () {
  yield* start
  for (const [i, outcome] of ["accepted", "refunded", "gone", null].entries()) {
    yield* came(i + 1, 100 + i, "1")
    yield* decided(i + 1, outcome)
  }
  const { all } = yield* read()
  expect(all.map(({ decision }) => decision)).toEqual(["open", "none", "refunded", "accepted"])
})

test("a refund is one row, whoever paid it, and takes from the income what had counted", function* () {
  yield* start
  yield* back(1, 100, usd(1), "final", addressOf(1))
  yield* moved(1, 100, usd(1), "ref_1")
  yield* back(2, 101, usd(2), "final", addressOf(50), "accepted")
  yield* back(3, 102, usd(3), "noted", undefined, "refunded")
  for (const [i, status] of ["begun", "not_found", "failed"].entries()) yield* back(4 + i, 103, usd(4), status)
  // A restored database knows only that the money has left.
  yield* moved(8, 104, usd(8), "ref_8")
  const { all } = yield* read()
  expect(all.map(({ kind, refund, status, what, income }) => [kind, refund, status, what, income])).toEqual([
    ["collection", undefined, undefined, undefined, undefined],
    ["refund", "ref_3", "noted", undefined, "0.00"],
    ["refund", "ref_2", "final", "elsewhere", "-2.00"],
    ["refund", "ref_1", "final", "address", "-1.00"]
  ])
  expect(all[1]).not.toHaveProperty("to")
  expect(addUp(all).sums).toMatchObject([{ refunded: 1_000_000n, collected: 8_000_000n, income: -3_000_000n }])
})

test("pages through everything once, whatever the page and the filters", function* () {
  yield* mixed
  const whole = yield* kinds()
  for (const limit of [1, 2, 3, 7, 8]) {
    const { all, pages } = yield* read({}, limit)
    expect(all.map(({ at, kind }) => `${kind} ${Date.parse(at) / 1000}`)).toEqual(whole)
    expect(pages).toBe(Math.ceil(8 / limit))
  }
  for (const limit of [1, 2, 100]) {
    expect(yield* kinds({ kind: "receipt" }, limit)).toEqual(whole.filter((one) => one.startsWith("receipt")))
    expect(yield* kinds({ chain: "polygon" }, limit)).toEqual(["receipt 200"])
    expect(yield* kinds({ currency: "ETH" }, limit)).toEqual(["gas 300", "gas 300"])
    expect(yield* kinds({ payment: "pay_1" }, limit)).toEqual([
      "refund 300",
      "gas 300",
      "collection 300",
      "receipt 200",
      "receipt 100",
      "receipt 100"
    ])
    expect(yield* kinds({ from: 200_000, until: 300_000 }, limit)).toEqual(["receipt 200", "receipt 200"])
    expect(yield* kinds({ from: 199_001, until: 200_001 }, limit)).toEqual(["receipt 200", "receipt 200"])
    expect(yield* kinds({ account: "other" }, limit)).toEqual(["receipt 250"])
  }
  expect(BooksRepo.placeIn("nonsense")).toBeUndefined()
  expect(BooksRepo.placeIn(Buffer.from('[1,"gas","base"]').toString("base64url"))).toBeUndefined()
})

test("a filter that nearly nothing fits ends a page after so many rows, and the next one goes on", function* () {
  yield* start
  yield* execute(
    `INSERT INTO gas (chain, mode, tx_hash, payer, receiver, amount, account_id, block_time)
     WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12000)
     SELECT 'base', 'test', printf('0x%064x', i), ?, ?, '1', 'default', 1000 + i FROM n`,
    [addressOf(50), addressOf(51)]
  )
  yield* came(1, 100, "5")
  const { all, pages } = yield* read({ currency: "USDC" }, 10)
  expect([all.length, pages]).toEqual([1, 2])
})

test("each page is read by an index in its order, however many rows there are", function* () {
  yield* mixed
  const reader = yield* Reader
  const steps: Array<string> = []
  const listening = explained(reader, reader, steps)
  const { next } = yield* BooksRepo.page(listening, [], owner, undefined, 3)
  yield* BooksRepo.page(listening, [], { ...owner, from: 1, until: 900_000 }, next, 3)
  const own = steps.filter((step) => /^\w+ (receipts|refunds|collected|gas)\b/.test(step))
  expect(own).toHaveLength(8)
  for (const step of own)
    expect(step).toMatch(/^SEARCH \w+ USING INDEX \w+ \(mode=\? AND account_id=\? AND .*block_time/)
  expect(steps.join("\n")).not.toMatch(/SCAN|TEMP B-TREE FOR (LAST|ORDER|RIGHT)/)
})

test("the page about the books explains each column", function* () {
  yield* Effect.void
  const [, table = ""] = /## The columns\n([\s\S]*?)\n##/.exec(readFileSync(join(root, "docs/books.md"), "utf8")) ?? []
  const named = table.split("\n").flatMap((line) => line.split("|")[1]?.match(/[a-zA-Z]+/g) ?? [])
  expect(named.slice(1)).toEqual(expect.arrayContaining(Object.keys(OwnedLedgerRow.fields)))
})

test("a month begins and ends at midnight of the time zone, also where the clock changes", function* () {
  const inZone = (month: string, timezone: string) => {
    const { from, until } = monthIn(month, timezone)
    return [iso(from), iso(until), (until - from) / 3_600_000]
  }
  yield* Effect.void
  expect(inZone("2026-11", "UTC")).toEqual(["2026-11-01T00:00:00.000Z", "2026-12-01T00:00:00.000Z", 720])
  expect(inZone("2026-03", "Europe/Berlin")).toEqual(["2026-02-28T23:00:00.000Z", "2026-03-31T22:00:00.000Z", 743])
  expect(inZone("2026-10", "Europe/Berlin")).toEqual(["2026-09-30T22:00:00.000Z", "2026-10-31T23:00:00.000Z", 745])
  expect(inZone("2026-12", "America/New_York")).toEqual(["2026-12-01T05:00:00.000Z", "2027-01-01T05:00:00.000Z", 744])
  // The clock is set back at the midnight with which the month begins.
  expect(inZone("2026-11", "America/Havana")[0]).toBe("2026-11-01T04:00:00.000Z")
  const { from } = monthIn("2026-10", "Europe/Berlin")
  expect([monthOf(from - 1, "Europe/Berlin"), monthOf(from, "Europe/Berlin")]).toEqual(["2026-09", "2026-10"])
})
