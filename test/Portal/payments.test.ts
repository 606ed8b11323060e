import { expect } from "@effect/vitest"
import { Clock, Effect, Either, TestClock } from "effect"
import { getAddress, type Hex } from "viem"
import { defaultAccount } from "../../src/Auth.ts"
import { iso } from "../../src/lib/moment.ts"
import { longestText, mostSearched, searchOf } from "../../src/Portal/pages/Payments.tsx"
import { daysUntil } from "../../src/Portal/pages/sums.tsx"
import { Reader } from "../../src/Sql.ts"
import { TestApi } from "../lib/api.ts"
import { storeLateMoney, storeMoneyFor } from "../lib/exceptions.ts"
import type { Who } from "../lib/portal.ts"
import { liveSuite, scopedTest } from "../lib/scopedTest.ts"
import { execute, rows } from "../lib/store.ts"
import { explained } from "../lib/webhooks.ts"
import { portalStore } from "./room.ts"
import { admin, crowdSql, home, makePayment, openShop, portalApp, somebody, viewer } from "./shop.ts"

const hash = (digit: string) => `0x${digit.repeat(64)}`

/** The references in a list, in its order. */
const listed = (text: string) => [...text.matchAll(/<th scope="row"><a href="[^"]*">([^<]*)</g)].map(([, name]) => name)

/** The payment that a search opens, or the references of those that it lists. */
const hits = Effect.fnUntraced(function* (q: string, { by, home: at }: { home: string; by: Who } = { home, by: {} }) {
  const [text = "", filter = ""] = q.split("&")
  const page = yield* (yield* somebody(by)).get(`${at}/payments?q=${encodeURIComponent(text)}&${filter}`)
  return page.status === 303 ? page.headers.location : listed(page.text)
})

const acts = rows<{ via: string; who: string; act: string; detail: string }>(
  "SELECT via, who, act, detail FROM audit WHERE via = 'portal' AND act NOT LIKE 'portal%' ORDER BY sequence"
)

liveSuite(portalApp, "the portal's payments", (test) => {
  test("are found by their reference, id, address and transaction, whole or in part", function* () {
    const ada = yield* admin
    const found = yield* makePayment({ merchantRef: "invoice 7" })
    yield* makePayment()
    yield* execute("UPDATE payments SET tx_hash = ? WHERE id = ?", [hash("a"), found.id])
    const explorer = "https://basescan.org"
    const pasted = [`${explorer}/tx/${hash("A")}#eventlog`, `${explorer}/address/${found.address}`]
    const named = [yield* storeLateMoney(found.id, 77), `https://pay.example/pay/${found.checkoutToken}?lang=de`]
    for (const q of [
      "invoice 7",
      found.id,
      found.address,
      found.address.toLowerCase(),
      hash("A"),
      ...pasted,
      ...named
    ]) {
      const page = yield* ada.get(`${home}/payments?q=${encodeURIComponent(` ${q} `)}`)
      // The one that is meant is opened.
      expect([q, page.status, page.headers.location]).toEqual([q, 303, `${home}/payments/${found.id}`])
      const filtered = yield* ada.get(`${home}/payments?status=pending&q=${encodeURIComponent(q)}`)
      expect([q, filtered.status, listed(filtered.text)]).toEqual([q, 200, ["invoice 7"]])
    }
    const { address } = found
    yield* makePayment({ merchantRef: "other 8" })
    for (const q of [
      "invo",
      hash("a").slice(0, 8),
      "AAAAAA",
      `0xaaaaaa…${"a".repeat(6)}`,
      "0xAAAA…aaaa",
      `${address.slice(0, 6)}...${address.slice(-4)}`,
      address.slice(0, 10),
      address.slice(2, 12).toLowerCase(),
      `${address.slice(0, 8)}...${address.slice(-6)}`
    ]) {
      expect([q, yield* hits(q)]).toEqual([q, `${home}/payments/${found.id}`])
    }
    const nothing = yield* ada.get(`${home}/payments?q=nvoice`)
    expect(listed(nothing.text)).toEqual([])
    expect(nothing.text).toContain("No payment matches")
    // What was typed stays in the field.
    expect(nothing.text).toContain('value="nvoice"')
    // Perhaps it is of the other mode.
    expect(nothing.text).toContain(`<a class="button" href="${home.replace("/test", "/live")}/payments?q=nvoice">`)
    // Too little of an address or hash, and one whose end differs.
    for (const q of [
      "0xaaaaa",
      "0xaaaa…aaa",
      "0xaaaa…0000",
      address.slice(0, 7),
      `${address.slice(0, 8)}…${"0".repeat(8)}`
    ]) {
      expect([q, yield* hits(q)]).toEqual([q, []])
    }
  })

  test("are found by a text in their metadata, and only their owner's", function* () {
    const metadata = JSON.stringify({ customer: { email: "Grace@Example.org", name: 'Grace "G" Ö' } })
    const found = yield* makePayment({ merchantRef: "of grace", metadata })
    const api = yield* TestApi
    const other = yield* api.newAccount("searching")
    yield* makePayment({ merchantRef: "of grace too", metadata }, { account: other, mode: "test" })
    yield* execute("UPDATE payments SET tx_hash = ? WHERE account_id = ?", [hash("b"), other])
    const theirs = { home: `/portal/a/${other}/test`, by: { account: other, role: "admin", name: "Oz" } as const }
    for (const q of ["grace@example.org", 'grace "g" Ö', "xample.or"]) {
      expect([q, yield* hits(q)]).toEqual([q, `${home}/payments/${found.id}`])
    }
    expect(yield* hits("%race@example.org")).toEqual([])
    expect(yield* hits("race")).toEqual([])
    for (const q of ["bbbbbb", "of grace too"]) {
      expect(yield* hits(q)).toEqual([])
      expect(yield* hits(q, theirs)).toContain(theirs.home)
    }
    // Several are a list, the newest first, and the other filters hold too.
    yield* makePayment({ merchantRef: "of grace again", metadata })
    expect(yield* hits("GRACE@EXAMPLE")).toEqual(["of grace again", "of grace"])
    expect(yield* hits("grace@example&status=confirmed")).toEqual([])
  })

  test("are found by each transaction that paid them, by its beginning and its end", function* () {
    const [first, other] = [yield* makePayment({ merchantRef: "in parts" }), yield* makePayment()]
    const sent = (end: string) => `0x5eed5eed${"1".repeat(52)}${end}`
    // The payment itself has the newest one only.
    yield* storeMoneyFor(first.id, "10", sent("aaaa"))
    yield* execute("UPDATE payments SET tx_hash = ? WHERE id = ?", [sent("cccc"), first.id])
    yield* storeMoneyFor(other.id, "10", sent("bbbb"))
    for (const [end, { id }] of [
      ["aaaa", first],
      ["cccc", first],
      ["bbbb", other]
    ] as const) {
      expect([end, yield* hits(`0x5eed…${end}`)]).toEqual([end, `${home}/payments/${id}`])
    }
    expect(yield* hits("0x5eed...dddd")).toEqual([])
    expect(yield* hits("0x5eed5eed")).toHaveLength(2)
  })

  test("are searched by their indexes, among no more than so many of the newest", function* () {
    const reader = yield* Reader
    yield* execute(crowdSql("expired"), [mostSearched + 50, 2e12, 1, 2e12, 1, 1])
    const owner = { account: defaultAccount, mode: "test" } as const
    const search = (q: string, steps: Array<string> = []) =>
      Effect.map(searchOf(explained(reader, reader, steps), owner, new URLSearchParams({ q })), Either.getOrThrow)
    const steps: Array<string> = []
    expect(yield* search("no such text", steps)).toEqual({ ids: [] })
    expect(steps.filter((step) => /SCAN (payments|receipts)/.test(step))).toEqual([])
    // A long text is looked for by the indexes alone: among metadata it would take seconds.
    const long: Array<string> = []
    expect(yield* search("a".repeat(longestText + 1), long)).toEqual({ ids: [] })
    expect(long.length).toBeGreaterThan(0)
    expect(long.filter((step) => step.includes("payments_list"))).toEqual([])
    const count = (text: string) => steps.filter((step) => step.includes(text)).length
    expect(count("payments_list")).toBe(mostSearched / 100)
    yield* execute(
      "UPDATE payments SET metadata = '{\"a\":\"needle\"}' WHERE id IN ('pay_crowd9999', 'pay_crowd10049')"
    )
    expect(yield* search("needle")).toEqual({ value: "needle" })
    expect(yield* search("eedle")).toEqual({ ids: ["pay_crowd9999"] })
    expect((yield* search("crowd ")).ids).toHaveLength(50)
    yield* execute("DELETE FROM payments WHERE id LIKE 'pay_crowd%'")
  })

  test("have a chip for each state there is, whose count is that of its rows, which say the same", function* () {
    const { admin: ida, base, pay } = yield* openShop
    const states = {
      pending: "status = 'pending'",
      part: "status = 'detecting', amount = '10', amount_received = '9'",
      confirming: "status = 'detecting', amount = '9', amount_received = '10'",
      confirmed: "status = 'confirmed', confirmed_at = 1, ended_at = 1",
      expired: "status = 'expired', ended_at = 1",
      cancelled: "status = 'expired', failure_reason = 'cancelled', ended_at = 1"
    }
    for (const [name, set] of Object.entries(states)) {
      yield* execute(`UPDATE payments SET ${set} WHERE id = ?`, [yield* pay(name)])
    }
    yield* storeLateMoney(yield* pay("late"), 900)
    const chips = (text: string) =>
      [...(/aria-label="Status">(.*?)<\/ul>/s.exec(text)?.[1] ?? "").matchAll(/href="([^"]*)">([^<]*?) (\d+)</g)].map(
        ([, href = "", name = "", count]) => ({ href, name, count: Number(count) })
      )
    const all = chips((yield* ida.get(`${base}/payments`)).text)
    expect(all.map(({ count, name }) => `${name} ${count}`)).toEqual([
      ...[
        "All 7",
        "Needs action 1",
        "Part paid 1",
        "Pending 2",
        "Confirming 1",
        "Confirmed 1",
        "Expired 1",
        "Cancelled 1"
      ]
    ])
    for (const { count, href, name } of all) {
      const { text } = yield* ida.get(href.replaceAll("&amp;", "&"))
      expect([name, listed(text).length]).toEqual([name, count])
      const says = text.match(new RegExp(`class="badge[^"]*">${name.toLowerCase()}<`, "g")) ?? []
      if (name !== "All") expect([name, says.length]).toEqual([name, count])
    }
    // With another filter the list has fewer than all.
    expect(chips((yield* ida.get(`${base}/payments?chain=base`)).text)).toEqual([])
  })

  test("are filtered as by the API, and an invalid filter is reported beside its field", function* () {
    const ada = yield* admin
    const { id } = yield* makePayment({ merchantRef: "confirmed one" })
    yield* execute("UPDATE payments SET status = 'confirmed', confirmed_at = 1, ended_at = 1 WHERE id = ?", [id])
    const page = yield* ada.get(`${home}/payments?status=confirmed&chain=base&createdAfter=2020-01-01`)
    expect(listed(page.text)).toEqual(["confirmed one"])
    const none = (yield* ada.get(`${home}/payments?status=confirmed&createdBefore=2020-01-01`)).text
    expect(listed(none)).toEqual([])
    expect(none).toContain("No payment has these filters.")
    const cancelled = yield* makePayment({ merchantRef: "cancelled one" })
    const late = yield* makePayment({ merchantRef: "expired one" })
    yield* execute(
      "UPDATE payments SET status = 'expired', failure_reason = iif(id = ?, 'cancelled', NULL), ended_at = 1 WHERE id IN (?, ?)",
      [cancelled.id, cancelled.id, late.id]
    )
    for (const [filter, found] of [
      ["status=cancelled", ["cancelled one"]],
      ["status=cancelled&chain=base", ["cancelled one"]],
      ["status=cancelled&chain=polygon", []]
    ] as const) {
      expect(listed((yield* ada.get(`${home}/payments?${filter}`)).text)).toEqual(found)
    }
    const wrong = yield* ada.get(`${home}/payments?status=paid&createdAfter=yesterday`)
    expect(wrong.status).toBe(400)
    expect(wrong.text).toContain(
      "The filter status must be action, part, pending, detecting, confirmed, expired, cancelled or failed"
    )
    expect(wrong.text).toContain("Created from (UTC) must be a time such as")
  })

  test("are listed by days of the account's time zone", function* () {
    const api = yield* TestApi
    const account = yield* api.newAccount("days")
    const base = `/portal/a/${account}/test`
    const ida = yield* somebody({ account, role: "admin", name: "Ida" })
    yield* ida.post(`${base}/settings`, { timezone: "Pacific/Kiritimati", currency: "USD" })
    const now = yield* Clock.currentTimeMillis
    const [yesterday = 0, today = 0] = daysUntil(now, "Pacific/Kiritimati", 2)
    const month = Date.parse(`${iso(today + 14 * 3_600_000).slice(0, 7)}-01T00:00:00+14:00`)
    for (const [name, at] of [
      ["first", today],
      ["last", today - 1],
      ["before", yesterday - 1],
      ["in the month before", month - 1],
      ["long ago", month - 40 * 86_400_000]
    ] as const) {
      const { id } = yield* makePayment({ merchantRef: name }, { account, mode: "test" })
      yield* execute("UPDATE payments SET created_at = ? WHERE id = ?", [at, id])
    }
    const created = (period: string) =>
      Effect.map(ida.get(`${base}/payments?created=${period}`), ({ text }) => listed(text))
    expect(yield* created("today")).toEqual(["first"])
    expect(yield* created("yesterday")).toContain("last")
    for (const other of ["first", "before", "long ago"]) expect(yield* created("yesterday")).not.toContain(other)
    expect(yield* created("last-month")).toContain("in the month before")
    for (const other of ["first", "long ago"]) expect(yield* created("last-month")).not.toContain(other)
    // No such period: all.
    expect(yield* created("toString")).toHaveLength(5)
    // A period takes the place of typed days, and of nothing else.
    const typed = yield* ida.get(`${base}/payments?createdAfter=2020-01-01&createdBefore=2021-01-01&chain=base`)
    expect(typed.text).toContain(`<a href="${base}/payments?created=today&amp;chain=base">today</a>`)
    // The form beneath keeps it, until days are typed.
    const chosen = (yield* ida.get(`${base}/payments?created=today`)).text
    expect(chosen).toContain('<input type="hidden" name="created" value="today"/>')
    expect(yield* created("today&chain=base")).toEqual(["first"])
    expect(yield* created("today&createdAfter=2020-01-01")).toHaveLength(5)
  })

  test("have refunds recorded, which count no more, each with its receiver, transaction and note", function* () {
    const ada = yield* admin
    const { id } = yield* makePayment()
    const page = `${home}/payments/${id}`
    expect((yield* ada.get(page)).text).not.toContain("Record a refund")
    yield* storeMoneyFor(id, "20000000")
    expect((yield* ada.get(page)).text).toContain(`<a href="${page}/refund">Record a refund</a>`)
    for (const [fields, problem] of [
      [{}, "Amount is required"],
      [{ amount: "a lot" }, "must be a number above zero"],
      [{ amount: "20.000001" }, "must be at most 20 USDC"],
      [{ amount: "5", txHash: "0x1" }, "must be a transaction's hash"],
      [{ amount: "5", to: "0x1" }, "Receiver must be an address"]
    ] as const) {
      const refused = yield* ada.post(`${page}/refund`, fields)
      expect(refused).toMatchObject({ status: expect.toBeOneOf([400, 422]), text: expect.stringContaining(problem) })
      if ("amount" in fields) expect(refused.text).toContain(`value="${fields.amount}"`)
    }
    const to = `0x${"Ab".repeat(20)}`
    const noted = yield* ada.post(`${page}/refund`, { amount: "5", to, reason: "half of it" })
    expect(noted.headers.location).toBe(`${page}?done=refunded`)
    const after = (yield* ada.get(`${page}?done=refunded`)).text
    expect(after).toContain("The refund was recorded.")
    expect(after).toMatch(/5\.00 USDC<\/span> <span class="badge info">noted</)
    expect(after).toContain(getAddress(to.toLowerCase() as Hex))
    expect(after).toContain("<dt>Note</dt><dd>half of it</dd>")
    expect(yield* rows("SELECT status, amount_received FROM payments WHERE id = ?", [id])).toEqual([
      { status: "detecting", amount_received: "15000000" }
    ])
    expect((yield* acts).at(-1)).toMatchObject({ who: expect.stringContaining("Ada"), act: "payments refunded" })
    // A confirmed payment is refunded too, and stays so.
    yield* execute("UPDATE payments SET status = 'confirmed', confirmed_at = 1, ended_at = 1 WHERE id = ?", [id])
    expect((yield* ada.post(`${page}/refund`, { amount: "15", txHash: hash("e") })).status).toBe(303)
    const nothing = yield* ada.post(`${page}/refund`, { amount: "1" })
    expect(nothing).toMatchObject({ status: 409, text: expect.stringContaining("No USDC on base") })
    expect(yield* rows("SELECT status FROM payments WHERE id = ?", [id])).toEqual([{ status: "confirmed" }])
  })

  test("have the transactions of their refunds named, and those dropped that were not sent", function* () {
    const ada = yield* admin
    const { id } = yield* makePayment()
    const page = `${home}/payments/${id}`
    yield* storeMoneyFor(id, "20000000")
    yield* ada.post(`${page}/refund`, { amount: "5" })
    const [[refund = ""] = []] = [...(yield* ada.get(page)).text.matchAll(/ref_[\w-]+/g)]
    const one = `${home}/refunds/${refund}`
    for (const form of [one, `${one}/drop`]) {
      expect((yield* ada.get(page)).text).toContain(`action="${form}"`)
      expect((yield* (yield* viewer).get(page)).text).not.toContain(`action="${form}"`)
    }
    const wrong = yield* ada.post(one, { txHash: "0x12" })
    expect(wrong).toMatchObject({
      status: 422,
      text: expect.stringContaining("Transaction must be a transaction's hash")
    })
    expect(wrong.text).toContain('value="0x12"')
    expect((yield* ada.post(one, { txHash: hash("E") })).headers.location).toBe(`${page}?done=named`)
    expect((yield* ada.get(page)).text).toContain(hash("e"))
    expect((yield* ada.post(`${one}/drop`)).headers.location).toBe(`${page}?done=dropped`)
    const dropped = (yield* ada.get(page)).text
    expect(dropped).toMatch(/<span class="badge bad">failed.*<dt>Problem<\/dt><dd>it was dropped by hand/s)
    expect(dropped).not.toContain(`action="${one}"`)
    expect((yield* acts).map(({ act }) => act).slice(-2)).toEqual(["payments refunded", "refunds drop"])
    // It has changed since the form was read.
    const late = yield* ada.post(one, { txHash: hash("f") })
    expect(late).toMatchObject({ status: 409, text: expect.stringContaining("its transaction stays as it is") })
  })

  test("are cancelled while they are open, with a row in the audit log", function* () {
    const ada = yield* admin
    const { id } = yield* makePayment()
    // One click asks, another one does it.
    const shown = yield* ada.get(`${home}/payments/${id}`)
    expect(shown.text).toContain(`<a href="${home}/payments/${id}/cancel">Cancel the payment</a>`)
    expect(shown.text).not.toContain(`action="${home}/payments/${id}/cancel"`)
    const asked = yield* ada.get(`${home}/payments/${id}/cancel`)
    expect(asked.text).toContain(`action="${home}/payments/${id}/cancel"`)
    expect(asked.text).toContain("Keep it")
    expect((yield* ada.get(`${home}/payments/${id}`)).text).toContain("pending")
    const done = yield* ada.post(`${home}/payments/${id}/cancel`)
    expect(done.headers.location).toBe(`${home}/payments/${id}?done=cancelled`)
    const after = yield* ada.get(`${home}/payments/${id}?done=cancelled`)
    expect(after.text).toContain("The payment was cancelled.")
    expect(after.text).not.toContain("Cancel the payment")
    expect((yield* acts).at(-1)).toMatchObject({ who: expect.stringContaining("Ada"), act: "payments cancel" })
    const seen = yield* makePayment()
    yield* storeMoneyFor(seen.id, "20000000", hash("d"))
    expect((yield* ada.get(`${home}/payments/${seen.id}/cancel`)).text).toContain("Money has come for it")
    yield* ada.post(`${home}/payments/${seen.id}/cancel`)
    expect((yield* ada.get(`${home}/payments/${seen.id}`)).text).toContain("keep it, or send it back?")
    const paid = yield* makePayment()
    yield* execute("UPDATE payments SET status = 'confirmed', confirmed_at = 1, ended_at = 1 WHERE id = ?", [paid.id])
    const late = yield* ada.post(`${home}/payments/${paid.id}/cancel`)
    expect(late.status).toBe(409)
    expect(late.text).toContain("can be cancelled, and this one is confirmed: it is paid; send the money back")
  })

  test("show their history: money with confirmations and the explorer, changes, events, deliveries", function* () {
    const ada = yield* admin
    const { address, id } = yield* makePayment({ webhookUrl: "https://shop.example/hook" })
    for (const [block, txHash, amount, isCounted, refuted] of [
      ["0xb", hash("c"), "4615517", 1, 0],
      ["0xgone", hash("e"), "1", 0, 0],
      ["0xdenied", hash("e"), "1", 0, 1]
    ] as const) {
      yield* execute(
        `INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, tx_hash, currency, amount,
           payment_id, canonical, corroborated, refuted, seen_at)
         VALUES ('base', 'test', ?, lower(?), 'log:1', 7, unixepoch(), ?, 'USDC', ?, ?, ?, ?, ?, 0)`,
        [block, address, txHash, amount, id, isCounted, isCounted, refuted]
      )
    }
    yield* execute("INSERT INTO transitions VALUES (?, 0, 'pending', 'detecting', 1800000000000)", [id])
    const terms = { fromAmount: "49.9", fromCurrency: "EUR", rate: "1.0945", toCurrency: "USDC" }
    yield* execute(
      "INSERT INTO quotes (id, account_id, mode, body, created_at, valid_until) VALUES ('quote_1', 'default', 'test', ?, 0, 0)",
      [JSON.stringify(terms)]
    )
    yield* execute("UPDATE payments SET quote_id = 'quote_1' WHERE id = ?", [id])
    const { text } = yield* ada.get(`${home}/payments/${id}`)
    expect(text).toContain("<dt>Price</dt><dd>€49.90 at 1.0945 USDC for 1 EUR</dd>")
    expect(text).toContain('<span class="money">54.615517 USDC</span>')
    expect(text).toContain('<span class="money">4.615517 USDC</span> came on Base')
    expect(text).toContain(`<a href="https://sepolia.basescan.org/tx/${hash("c")}" rel="noopener noreferrer">`)
    expect(text).toContain(`<a href="https://sepolia.basescan.org/address/${address}" rel="noopener noreferrer">`)
    expect(text).toContain("block 7")
    expect(text).toContain("which does not count: a reorg orphaned it")
    expect(text).toContain("which does not count: two providers deny it")
    expect(text).toMatch(/pending<\/span> became <span class="badge info">detecting/)
    expect(text).not.toContain(" over)")
    yield* execute("UPDATE payments SET amount_received = '55000000' WHERE id = ?", [id])
    expect((yield* ada.get(`${home}/payments/${id}`)).text).toContain(
      '<span class="money">55.00 USDC</span> (<span class="money">0.384483 USDC</span> over)'
    )
    // The event's delivery tells of it.
    expect(text).not.toContain("Event <code>")
    expect(text).toMatch(/>payment.created<\/a> to <code>https:\/\/shop.example\/hook/)
  })

  test("are created by hand as by the API, and the input survives a refusal", function* () {
    const ada = yield* admin
    const typed = { merchantRef: "by hand", amount: "12.3456789", asset: "USDC-base", expiresIn: "900" }
    const send = (fields: Record<string, string>) => ada.post(`${home}/payments/new`, fields)
    const wrong = (yield* send(typed)).text
    for (const kept of ['value="by hand"', 'value="12.3456789"', '<option value="900" selected']) {
      expect(wrong).toContain(kept)
    }
    for (const [fields, problem, status] of [
      [typed, "Amount must be a number above zero such as 12.5, with at most 6 digits after the point", 422],
      [{}, "Reference is required", 422],
      [{}, "Amount is required", 422],
      // Twelve and a half, or thousands: nobody knows.
      [{ ...typed, amount: "12,500" }, "and no separator of thousands", 422],
      [{ ...typed, amount: "1,250", priced: "EUR" }, "without a sign or a separator of thousands", 422],
      [{ ...typed, amount: "0", priced: "XXX" }, "Priced in must be", 422],
      [{ ...typed, amount: "1", priced: "EUR", asset: "USDC-solana" }, "To be paid in must be", 422],
      [{ ...typed, amount: "1", priced: "EUR", asset: "WBTC-base" }, "To be paid in is not available", 400]
    ] as const) {
      const refused = yield* send(fields)
      expect([problem, refused.status, refused.text.includes(problem)]).toEqual([problem, status, true])
    }

    const made = yield* send({ ...typed, amount: "12,5" })
    const [, id] = /payments\/(pay_[^?]+)\?done=created$/.exec(String(made.headers.location)) ?? []
    expect(
      yield* rows("SELECT amount, expires_at - created_at AS time FROM payments WHERE id = ?", [id ?? ""])
    ).toEqual([{ amount: "12500000", time: 900_000 }])
    expect(JSON.parse((yield* acts).at(-1)?.detail ?? "")).toEqual({
      ...{ merchantRef: "by hand", amount: "12500000", currency: "USDC", chain: "base" },
      id
    })
    const again = yield* send({ ...typed, amount: "12.5" })
    expect(again).toMatchObject({ status: 400, text: expect.stringContaining(`Reference is the one of ${id} already`) })
  })
})

scopedTest(portalStore())("last month is all of its days, however many it has", function* () {
  const owner = { account: defaultAccount, mode: "test" } as const
  for (const [month, days] of [
    [1, 31],
    [2, 28],
    [4, 30]
  ] as const) {
    const ended = Date.UTC(2027, month)
    yield* TestClock.setTime(ended + 20 * 86_400_000)
    const found = yield* searchOf(yield* Reader, owner, new URLSearchParams({ created: "last-month" }))
    expect(Either.getOrThrow(found)).toEqual({ createdAfter: ended - days * 86_400_000, createdBefore: ended })
  }
})
