import { expect } from "@effect/vitest"
import { Clock, Effect, Fiber } from "effect"
import { h } from "preact"
import { render } from "preact-render-to-string"
import { defaultAccount } from "../../src/Auth.ts"
import { type LedgerSums, worthText } from "../../src/Domain/LedgerRow.ts"
import { eventLoopTurn } from "../../src/lib/waiting.ts"
import { Uncollected } from "../../src/Payments/addresses/Uncollected.ts"
import { daysUntil, IncomeFigure, overviewOf } from "../../src/Portal/pages/sums.tsx"
import { Reader } from "../../src/Sql.ts"
import { TestApi } from "../lib/api.ts"
import { storeLateMoney, storeMoneyFor } from "../lib/exceptions.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { execute } from "../lib/store.ts"
import { explained } from "../lib/webhooks.ts"
import { admin, crowdSql, home, makePayment, portalApp, shownIn, somebody, storeIncome, usdc, viewer } from "./shop.ts"

const networks = [{ chain: "base", mode: "test", tokens: [usdc] }] as const
const owner = { account: defaultAccount, mode: "test" } as const
const now = Date.UTC(2026, 10, 22, 15)
const dayMillis = 86_400_000
const dayOf = (time: number) => time - (time % dayMillis)
const options = { owner, networks, timezone: "UTC", now }

/** Base units by token, and the worth. */
const found = ({ income, sums, unknown }: LedgerSums) => ({
  tokens: sums.map((sum) => `${sum.income} ${sum.currency} ${sum.decimals}`),
  worth: Array.from(income, ([currency, worth]) => `${worthText(worth, currency)} ${currency}`),
  unknown
})

liveSuite(portalApp, "the portal's home page", (test) => {
  test("names what needs a person, each with a link, and nothing where nothing does", function* () {
    const ada = yield* admin
    const needs = (text: string) => /<h2 id="needs">.*?<\/section>/s.exec(text)?.[0] ?? ""
    const before = needs((yield* ada.get(home)).text)
    // No watcher runs here: the chain is not read.
    expect(before).toContain(`<a href="${home}/payments?chain=base">Base is behind</a>`)
    expect(before).not.toContain("exceptions/")
    const { id } = yield* makePayment({ merchantRef: "order-8", webhookUrl: "https://shop.example/hook" })
    const exception = yield* storeLateMoney(id, 1)
    yield* execute("UPDATE payments SET usd_value = iif(id = ?, '0.009999', '0.01')", [id])
    yield* execute("UPDATE deliveries SET attempts = 1 WHERE payment_id = ?", [id])
    const page = (yield* ada.get(home)).text
    const after = needs(page)
    expect(after.replace(/<\/?span[^>]*>/g, "")).toContain(
      `<a href="${home}/exceptions/${exception}">order-8: 0.0007 USDC too late</a>`
    )
    // Once on the page, beside the menu's number.
    expect(page.split("deliveries?status=failing")).toHaveLength(2)
    expect(after).toContain(`<a href="${home}/deliveries?status=failing">1 webhook delivery is failing</a>`)
    expect(after).toContain("at https://shop.example/hook")
    expect(after).toContain(`<a href="${home}/payments/${id}">1 of the newest payments is worth less than 0.01 USD</a>`)
    expect(after).toContain("25 USDC are 25000000 base units")
    expect(page).toMatch(/aria-label="To resolve"><h2>To resolve<\/h2><p class="big"><a[^>]*>1</)
    yield* execute("INSERT INTO shops (account_id, minimum_usd, frame_origins) VALUES ('default', '0.001', '')")
    expect(needs((yield* ada.get(home)).text)).not.toContain("base units")
    yield* execute("DELETE FROM shops")
    for (let n = 2; n < 8; n++) yield* storeLateMoney((yield* makePayment()).id, n)
    expect(needs((yield* ada.get(home)).text)).toContain(`<a href="${home}/exceptions">2 more exceptions</a>`)
    // Another mode's are another world's.
    const live = needs((yield* ada.get("/portal/a/default/live")).text)
    expect(live).not.toContain("exception")
    expect(live).not.toContain("failing")
  })

  test("shows today and thirty days, and from a week of data on charts that have their numbers as tables", function* () {
    const vera = yield* viewer
    for (const table of ["deliveries", "events", "exceptions", "receipts", "payments"])
      yield* execute(`DELETE FROM ${table}`)
    const at = yield* Clock.currentTimeMillis
    const { id } = yield* makePayment({ merchantRef: "paid" })
    yield* storeIncome(id, { amount: "54615517", at })
    const young = (yield* vera.get(home)).text
    expect(shownIn(young, ">30 days<")).toEqual(["$54.62", "54.615517 USDC"])
    expect(young).not.toContain("<figure")
    yield* execute("UPDATE payments SET created_at = ?", [at - 6 * dayMillis])
    const { text } = yield* vera.get(home)
    expect(text.match(/<figure/g)).toHaveLength(2)
    expect(
      text
        .match(/<figure.*?<\/figure>/gs)
        ?.every((figure) => figure.includes("<details>") && figure.includes("<table>"))
    ).toBe(true)
    // The CSP forbids them.
    expect(text).not.toMatch(/ style=|<style/)
    // Half of it came thirty days before.
    yield* storeIncome(id, { amount: "27307758", at: at - 40 * dayMillis })
    expect((yield* vera.get(home)).text).toContain('<p class="muted">100 % more than the 30 before</p>')
  })

  test("counts the income of the ledger on the day of its block, and payments by what became of them", function* () {
    for (const table of ["deliveries", "events", "exceptions", "receipts", "payments"]) {
      yield* execute(`DELETE FROM ${table}`)
    }
    // Beyond what a number holds.
    const big = 10n ** 30n + 1n
    const at = (days: number) => dayOf(now) - days * dayMillis + 3_600_000
    for (const [days, status, failure] of [
      [0, "confirmed", null],
      [0, "expired", null],
      [29, "confirmed", null],
      [29, "expired", "cancelled"],
      [30, "confirmed", null]
    ] as const) {
      const { id } = yield* makePayment({ amount: big })
      yield* execute(
        `UPDATE payments SET created_at = ?, status = ?, confirmed_at = iif(? = 'confirmed', ?, NULL), ended_at = 1,
           failure_reason = ? WHERE id = ?`,
        [at(days), status, status, at(days) + 5_000, failure, id]
      )
      if (status === "confirmed") yield* storeIncome(id, { amount: `${big}`, at: at(days) + dayMillis * 0.5 })
      // Beside it what is too small, and what does not count.
      yield* storeIncome(id, { amount: "1", at: at(days) })
      yield* execute("UPDATE receipts SET credited = iif(instr(payment_id, '1') > 0, '0', NULL) WHERE amount = '1'")
    }
    const { all, days, since } = yield* overviewOf(yield* Reader, options)
    expect(days).toHaveLength(30)
    expect(since).toBeUndefined()
    expect(days.at(-1)?.fates).toEqual({ confirmed: 1, open: 0, expired: 1, cancelled: 0, failed: 0 })
    expect(days[0]?.fates).toEqual({ confirmed: 1, open: 0, expired: 0, cancelled: 1, failed: 0 })
    const worth = "1000000000000000000000000.00 USD"
    for (const day of [days[0], days.at(-1)]) {
      expect(day && found(day.income)).toEqual({ tokens: [`${big} USDC 6`], worth: [worth], unknown: 0 })
    }
    expect(found(all.income).tokens).toEqual([`${2n * big} USDC 6`])
  })

  test("has the days of a time zone, also where clocks are changed", function* () {
    // 2026-10-25 has 25 hours in Berlin; at 23:30 UTC it is the next day there.
    const days = daysUntil(Date.UTC(2026, 9, 26, 23, 30), "Europe/Berlin", 4)
    expect(days).toEqual([
      Date.UTC(2026, 9, 23, 22),
      ...[24, 25, 26].map((day) => Date.UTC(2026, 9, day, day === 24 ? 22 : 23))
    ])
    expect(daysUntil(now, "UTC")).toHaveLength(30)
    expect(daysUntil(now, "UTC").at(-1)).toBe(dayOf(now))
  })

  test("counts what came in by the days and in the currency of the account, beside yesterday by this time", function* () {
    for (const table of ["deliveries", "events", "receipts", "payments"]) yield* execute(`DELETE FROM ${table}`)
    const paid = Effect.fnUntraced(function* (at: number, rate: string | null, currency: "EUR" | "USD" = "EUR") {
      const { id } = yield* makePayment()
      yield* storeIncome(id, { amount: "1000000", at, rate, currency })
    })
    // 05:00 in Tokyo, where today is six hours old at 21:00 UTC.
    const at = Date.UTC(2026, 10, 21, 21)
    const hour = 3_600_000
    yield* paid(at - 1 * hour, "60")
    // From before the account counted in euros.
    yield* paid(at - 2 * hour, "3", "USD")
    yield* paid(at - 5 * hour, null)
    yield* paid(at - 7 * hour, "10")
    // After it was as late yesterday as it is now.
    yield* paid(at - 24 * hour + 60_000, "0.2")
    yield* paid(at - 25 * hour, "50")
    yield* paid(at - 30 * hour - 1, "0.1")
    const overview = yield* overviewOf(yield* Reader, { ...options, timezone: "Asia/Tokyo", now: at })
    const [before, yesterday, today] = overview.days.slice(-3)
    expect([today?.at, yesterday?.at]).toEqual([at - 6 * hour, at - 30 * hour])
    expect([before, yesterday, today].map((day) => day && found(day.income))).toMatchObject([
      { worth: ["0.10 EUR"], unknown: 0 },
      { worth: ["60.20 EUR"], unknown: 0 },
      { tokens: ["3000000 USDC 6"], worth: ["60.00 EUR", "3.00 USD"], unknown: 1 }
    ])
    expect(found(overview.yesterdayByNow).worth).toEqual(["50.00 EUR"])
    const card = render(
      h(IncomeFigure, {
        ...{ name: "Today", currency: "EUR", of: overview.today.income, before: overview.yesterdayByNow },
        than: "yesterday by this time"
      })
    )
    expect(card).toContain('<p class="big">€60.00 + $3.00</p>')
    expect(card).toContain("The sum is without 1 row of the ledger whose worth is not known.")
    expect(card).toContain('<p class="muted">20 % more than yesterday by this time</p>')
  })

  test("shows an admin what waits to be collected, less what was", function* () {
    const account = yield* (yield* TestApi).newAccount("collect")
    const base = `/portal/a/${account}/test`
    const ida = yield* somebody({ account, role: "admin", name: "Ida Collects" })
    const vera = yield* somebody({ account, role: "viewer", name: "Vera Reads" })
    const { address, id } = yield* makePayment({}, { account, mode: "test" })
    yield* storeMoneyFor(id, "5000000")
    // Less coin than a transfer may cost is gas, orphaned money is not there, and what is too small is not worth its gas.
    for (const [position, currency, amount, canonical, listed] of [
      ["tx:1", "ETH", "1000", 1, "stray"],
      ["log:9", "USDC", "7000000", 0, "own"],
      ["log:8", "USDC", "300", 1, null]
    ] as const) {
      yield* execute(
        `INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, tx_hash, currency,
           amount, payment_id, canonical, corroborated, seen_at, listed)
         SELECT chain, mode, '0x111', lower(address), ?, 111, 1, ?, ?, ?, id, ?, 1, 1, ? FROM payments WHERE id = ?`,
        [position, `0x${"2".repeat(64)}`, currency, amount, canonical, listed, id]
      )
    }
    const { run, waiting } = yield* Uncollected
    const own = () => waiting().filter((row) => row.account === account)
    const until = (is: () => boolean) => Effect.repeat(eventLoopTurn, { until: is })
    const worker = yield* Effect.fork(run)
    yield* until(() => own().length > 0)
    const row = { account, chain: "base", mode: "test", currency: "USDC" }
    expect(own()).toEqual([{ ...row, amount: 5_000_000n }])
    const section = Effect.map(ida.get(base), ({ text }) => /Waiting to be collected.*?<\/section>/s.exec(text)?.[0])
    expect(yield* section).toMatch(/Worth not known.*5\.00 USDC.*Base/s)
    expect((yield* vera.get(base)).text).not.toContain("Waiting to be collected")
    yield* Fiber.interrupt(worker)
    yield* execute(
      `INSERT INTO collected (chain, mode, tx_hash, place, address, receiver, currency, amount, block_time, noted_at)
       VALUES ('base', 'test', ?, 0, ?, ?, 'USDC', '4000000', 4, 5)`,
      [`0x${"3".repeat(64)}`, address, address]
    )
    // A restarted worker counts at once.
    const again = yield* Effect.fork(run)
    yield* until(() => own()[0]?.amount !== 5_000_000n)
    expect(own()).toEqual([{ ...row, amount: 1_000_000n }])
    yield* Fiber.interrupt(again)
  })

  test("shows a new account's admins their first steps, ticked by facts, until all are done or money comes in", function* () {
    const api = yield* TestApi
    const account = yield* api.newAccount("steps")
    const base = `/portal/a/${account}/test`
    const ida = yield* somebody({ account, role: "admin", name: "Ida" })
    const steps = Effect.map(ida.get(base), ({ text }) => /<h2 id="first-steps">.*?<\/section>/s.exec(text)?.[0] ?? "")
    const before = yield* steps
    expect(before).toContain("0 of 5")
    for (const path of ["/settings", "/keys/new", "/webhooks/new", "/payments/new", "/me"]) {
      expect(before).toContain(`<a class="button primary" href="${base}${path}">`)
    }
    expect((yield* (yield* somebody({ account, role: "viewer", name: "Vic" })).get(base)).text).not.toContain(
      "first-steps"
    )
    yield* ida.post(`${base}/settings`, { name: "Corner shop", timezone: "Europe/Berlin", currency: "EUR" })
    yield* api.newKey("test", undefined, account)
    const after = yield* steps
    expect(after).toContain("2 of 5")
    expect(after).not.toContain(`${base}/settings`)
    expect(after).toContain("Create a key for your shop’s server")
    expect((yield* ida.get(base)).text).toContain("by the day in Europe/Berlin")
    yield* makePayment({}, { account, mode: "test" })
    yield* execute(
      "UPDATE payments SET status = 'confirmed', confirmed_at = created_at, ended_at = 1 WHERE account_id = ?",
      [account]
    )
    expect(yield* steps).toContain("3 of 5")
    const at = yield* Clock.currentTimeMillis
    const crowd = crowdSql("confirmed").replaceAll("'default'", `'${account}'`)
    yield* execute(crowd, [9, at, 1_000, at, 1_000, at, 1_000, at])
    expect(yield* steps).toBe("")
    yield* execute("DELETE FROM payments WHERE id LIKE 'pay_crowd%'")
  })

  test("reads by the list's index, no more than it says, and says how far it counts", function* () {
    const reader = yield* Reader
    const most = 2_500
    for (const table of ["deliveries", "events", "exceptions", "receipts", "payments"]) {
      yield* execute(`DELETE FROM ${table}`)
    }
    yield* execute(crowdSql("confirmed"), [most + 500, now, 20_000, now, 20_000, now, 20_000, now])
    yield* execute(
      `INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, tx_hash, currency, amount,
         payment_id, account_id, canonical, corroborated, seen_at, credited)
       SELECT chain, mode, id, address, 'log:0', 1, confirmed_at / 1000, id, currency, '1', id, account_id, 1, 1, 1, '1'
       FROM payments WHERE id LIKE 'pay_crowd%'`
    )
    const steps: Array<string> = []
    const { all, since } = yield* overviewOf(explained(reader, reader, steps), { ...options, most })
    expect(
      new Set(
        steps.filter((step) =>
          / (payments|receipts|refunds) USING (COVERING )?INDEX \w+_(list|income|booked) /.test(step)
        )
      )
    ).toEqual(
      new Set([
        "SEARCH payments USING INDEX payments_list (account_id=? AND mode=? AND created_at>? AND created_at<?)",
        "SEARCH receipts USING COVERING INDEX receipts_income (mode=? AND account_id=? AND block_time>? AND block_time<?)",
        "SEARCH receipts USING COVERING INDEX receipts_income (mode=? AND account_id=? AND block_time>? AND (block_time,chain,block_hash,address,position)<(?,?,?,?,?))",
        "SEARCH refunds USING INDEX refunds_booked (mode=? AND account_id=? AND block_time>? AND block_time<?)"
      ])
    )
    expect(steps.join("\n")).not.toMatch(/SCAN|TEMP B-TREE FOR (LAST|ORDER|RIGHT)/)
    expect(all.fates.confirmed).toBe(most)
    expect(since).toBe(now - most * 20_000 + 30_000)
    expect(all.income).toMatchObject({ sums: [{ income: BigInt(most) }], unknown: most })
    expect((yield* overviewOf(reader, options)).since).toBeUndefined()
  })
})
