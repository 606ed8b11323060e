import { expect } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { storeShopChange } from "../../src/Auth/shops.ts"
import { defaultAccount } from "../../src/Auth.ts"
import { RenderedPages } from "../../src/Checkout/RenderedPages.ts"
import { checkoutWith } from "../../src/Checkout.ts"
import type { PageRequest } from "../../src/Http/PageHandler.ts"
import { testApp } from "../lib/api.ts"
import { liveTestOn, scopedTest } from "../lib/scopedTest.ts"
import { testChain, testRates } from "../lib/settings.ts"
import { execute } from "../lib/store.ts"
import { newPayment, usdc } from "./newPayment.ts"

const app = testApp({ chains: [testChain({ tokens: [usdc], confirmations: 3 })], rates: testRates({ USDC: "1" }) })

/** A payment of an hour, and what its page says now, in all languages and with both codes. */
const newPage = Effect.fn(function* (capacity?: number) {
  const { path, payment } = yield* newPayment()
  const pages = new RenderedPages(capacity)
  const room = yield* checkoutWith(pages)
  const ask = (search = "") => {
    const request: PageRequest = {
      ...{ method: "GET", path, search, headers: {}, body: Buffer.alloc(0) },
      ...{ client: "192.0.2.1", requestId: "req_1", hold: (wait) => wait, recognised: () => {} }
    }
    return Effect.map(room(request), ({ bytes = [] }) => Buffer.concat([...bytes]).toString())
  }
  return { ask, pages, payment, rendered: () => pages.size }
})

/** What a page shows at every moment. */
const lasting = (page: string): string => page.replace(/data-now="\d+"|(?:\d+:)+\d\d(?=<)/g, "")

const searches = ["", "?", "lang=de", "lang=de-AT", "code=address", "lang=fr&code=address", "other=1"]

scopedTest(app)(
  "a page is rendered once for all who ask, at whatever moment, until it shows something else",
  function* () {
    const { ask, rendered } = yield* newPage()
    const first = yield* Effect.all(
      Array.from({ length: 50 }, () => ask()),
      { concurrency: "unbounded" }
    )
    expect([new Set(first).size, rendered()]).toEqual([1, 1])
    yield* TestClock.adjust("10 minutes")
    expect(lasting(yield* ask()) === lasting(first[0] ?? "")).toBe(true)
    expect(rendered()).toBe(1)
    for (const search of [...searches, ...searches]) yield* ask(search)
    // An unknown choice is ignored.
    expect(rendered()).toBe(4)
  }
)

liveTestOn(app)("of more pages than are kept, those go that were asked for longest ago", function* () {
  const { ask, pages } = yield* newPage(2)
  for (const search of ["lang=en", "lang=de", "lang=en", "lang=fr"]) yield* ask(search)
  expect([...pages.keys()].map((key) => JSON.parse(key).language)).toEqual(["en", "fr"])
})

liveTestOn(app)("no page is older than what it shows", function* () {
  const { ask, payment, rendered } = yield* newPage()
  const shown = new Set([lasting(yield* ask())])
  const change = (name: string, sql: string, ...params: ReadonlyArray<string>) =>
    Effect.gen(function* () {
      yield* execute(sql, params)
      const before = shown.size
      const page = lasting(yield* ask())
      shown.add(page)
      expect([name, shown.size, rendered()]).toEqual([name, before + 1, before + 1])
      // Asked again it is the same.
      expect([lasting(yield* ask()) === page, rendered()]).toEqual([true, before + 1])
    })
  const { id } = payment
  yield* change(
    "an exception",
    `INSERT INTO exceptions (id, address, key, payment_id, opened_at, mode, kind, chain, currency, amount)
     VALUES ('exc_1', '0x1', 'k', ?, 1, 'test', 'wrong_token', 'base', 'ETH', '2000000000000000')`,
    id
  )
  yield* change("a refund", "UPDATE exceptions SET sent_back = '1000000000000000'")
  yield* change("a decision", "UPDATE exceptions SET closed_at = 2, outcome = 'refunded', sent_back = amount")
  yield* change("a worth", "UPDATE payments SET usd_value = '27' WHERE id = ?", id)
  yield* change(
    "a part of the money",
    "UPDATE payments SET status = 'detecting', amount_received = '20000000' WHERE id = ?",
    id
  )
  yield* change("all of it", "UPDATE payments SET amount_received = '25000000' WHERE id = ?", id)
  yield* execute("UPDATE payments SET created_head = 1 WHERE id = ?", [id])
  yield* execute(
    `INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, tx_hash, currency,
       amount, payment_id, canonical, corroborated, seen_at)
     SELECT chain, mode, '0x1', address, '0', 10, created_at / 1000 + 1, '0x2', 'USDC', '25000000', id, 1, 1, 0
     FROM payments WHERE id = ?`,
    [id]
  )
  yield* change(
    "a head",
    `INSERT INTO scans (chain, mode, start_number, head_number, head_hash, head_time, verified_number)
     VALUES ('base', 'test', 0, 10, '0x1', 1, 0)`
  )
  expect(yield* ask()).toContain("about 10 seconds left")
  yield* change("the next head, which is one more confirmation", "UPDATE scans SET head_number = 11")
  yield* change("the last confirmation, with no time left", "UPDATE scans SET head_number = 12")
  expect(yield* ask()).not.toContain("seconds left")
  yield* change("the end", "UPDATE payments SET status = 'confirmed', confirmed_at = 1, ended_at = 1 WHERE id = ?", id)
  yield* change(
    "a shop's name",
    "INSERT INTO shops (account_id, name, frame_origins) VALUES (?, 'Tea', '')",
    defaultAccount
  )
  const name = yield* ask()
  yield* storeShopChange(defaultAccount, { name: "Coffee" })
  expect(name).toContain("Tea")
  expect(yield* ask()).toContain("Coffee")
})

scopedTest(app)("time alone moves the clock of the page on, and closes it when it is over", function* () {
  const { ask, rendered } = yield* newPage()
  const first = yield* ask()
  expect(first).toContain(">1:00:00</b>")
  yield* TestClock.adjust("45 minutes")
  yield* TestClock.adjust("1 second")
  const last = yield* ask()
  expect(last).toContain(">14:59</b>")
  expect(rendered()).toBe(1)
  yield* TestClock.adjust("15 minutes")
  expect(yield* ask()).toContain("Time ran out")
  expect(rendered()).toBe(2)
})
