import { expect } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { h } from "preact"
import { render } from "preact-render-to-string"
import { defaultAccount } from "../../src/Auth.ts"
import { AccountId } from "../../src/Domain/Ids.ts"
import { dayMillis, dayOf, durationText, median, overviewOf, together } from "../../src/Portal/pages/overview.ts"
import { WaysIn, waysIn } from "../../src/Portal/pages/waysIn.tsx"
import type { Viewer } from "../../src/Portal/Viewer.ts"
import { Reader } from "../../src/Sql.ts"
import { storeLateMoney } from "../lib/exceptions.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { execute, rows } from "../lib/store.ts"
import { explained } from "../lib/webhooks.ts"
import { admin, crowdSql, home, makePayment, shop, somebody, usdc, viewer } from "./pages.ts"

const networks = [{ chain: "base", mode: "test", tokens: [usdc] }] as const
const owner = { account: defaultAccount, mode: "test" } as const
const now = Date.UTC(2026, 10, 22, 15)

liveSuite(shop, "the portal's home page", (test) => {
  test("says first what needs a person, each with a link, and that nothing does", function* () {
    const ada = yield* admin
    const needs = (text: string) => /<h2 id="needs">.*?<\/section>/s.exec(text)?.[0] ?? ""
    const before = needs((yield* ada.get(home)).text)
    // No watcher runs here: the chain is not read.
    expect(before).toContain(`<a href="${home}/payments?chain=base">base is behind</a>`)
    expect(before).not.toContain("exception")
    const { id } = yield* makePayment({ webhookUrl: "https://shop.example/hook" })
    yield* storeLateMoney(id, 1)
    yield* execute("UPDATE deliveries SET attempts = 1 WHERE payment_id = ?", [id])
    const page = (yield* ada.get(home)).text
    // Tried, and not arrived: whatever attempts it still has.
    expect(page).toContain("<dt>Deliveries that have arrived, of those tried</dt><dd>0 % of 1</dd>")
    const after = needs(page)
    expect(after).toContain(`<a href="${home}/exceptions">1 open exception</a>`)
    expect(after).toContain(`<a href="${home}/deliveries?status=failing">1 failing delivery</a>`)
    expect(after).toContain("<code>https://shop.example/hook</code>")
    // Another mode's are another world's.
    const live = needs((yield* ada.get("/portal/a/default/live")).text)
    expect(live).not.toContain("exception")
    expect(live).not.toContain("failing")
  })

  test("counts the deliveries of its account and mode: of today, and of thirty days", function* () {
    const ada = yield* admin
    yield* execute("DELETE FROM deliveries")
    const { id } = yield* makePayment({ webhookUrl: "https://shop.example/hook" })
    const delivered = (text: string) =>
      ["Today (UTC)", "30 days"].map((name) => {
        const [, card = ""] = text.split(`<section class="card" aria-label="${name}">`)
        return /<dt>Deliveries that have arrived, of those tried<\/dt><dd>(.*?)<\/dd>/.exec(card)?.[1]
      })
    const shown = (mode: string) => Effect.map(ada.get(`/portal/a/default/${mode}`), ({ text }) => delivered(text))
    const at = yield* Clock.currentTimeMillis
    const made = (days: number) =>
      execute(
        `UPDATE deliveries SET status = 'delivered', next_attempt_at = NULL, done_at = 1, attempts = 1, created_at = ?
         WHERE payment_id = ?`,
        [at - days * dayMillis, id]
      )
    yield* made(0)
    expect(yield* shown("test")).toEqual(["100 % of 1", "100 % of 1"])
    expect(yield* shown("live")).toEqual(["none yet", "none yet"])
    yield* made(28)
    expect(yield* shown("test")).toEqual(["none yet", "100 % of 1"])
    yield* made(31)
    expect(yield* shown("test")).toEqual(["none yet", "none yet"])
  })

  test("tells admins for a week who was given a way in, by whom, when and from which address", function* () {
    const ada = yield* admin
    const ways = (text: string) => /<h2 id="ways-in">.*?<\/section>/s.exec(text)?.[0] ?? ""
    expect(ways((yield* ada.get(home)).text)).toBe("")
    yield* ada.post(`${home}/people`, { name: "Eve <b>", role: "admin" })
    const [eve] = yield* rows<{ id: string }>("SELECT id FROM people WHERE name = 'Eve <b>'")
    yield* ada.post(`${home}/people/${eve?.id}/link`)
    const gus = yield* somebody({ account: "default", name: "Gus" })
    for (const act of ["role", "disable", "enable"]) {
      yield* gus.post(`${home}/people/${eve?.id}/${act}`, { role: "viewer" })
    }
    yield* gus.post(`${home}/people/${eve?.id}/role`, { role: "admin" })
    yield* ada.post(`${home}/me/password`, { name: "ada", password: "correct horse battery" })
    yield* execute(
      `INSERT INTO audit (at, via, who, account_id, act, detail) VALUES
         (?, 'portal', 'per_1 Ida', 'default', 'portal passkey', '{"name":"phone","address":"192.0.2.1"}'),
         (? - 8 * 86400000, 'portal', 'per_1 Old', 'default', 'portal passkey', '{"name":"old"}'),
         (?, 'portal', 'per_1 Root', NULL, 'portal password', '{"address":"192.0.2.2"}'),
         (?, 'portal', 'per_1 Sue', 'other', 'portal password', '{"address":"192.0.2.3"}')`,
      Array(4).fill(yield* Clock.currentTimeMillis)
    )
    const listed = ways((yield* (yield* somebody({ account: "default", name: "Grace" })).get(home)).text)
    for (const said of [
      "Ada invited Eve &lt;b",
      "Ada made a link for Eve",
      "Ada set a password",
      "Gus made Eve &lt;b> a viewer",
      "Gus enabled Eve &lt;b> again",
      "Gus made Eve &lt;b> an admin",
      "Ida made the passkey phone"
    ]) {
      expect(listed).toContain(said)
    }
    for (const act of ["Ada invited", "Gus enabled", "Gus made"]) {
      expect(listed).toMatch(new RegExp(`${act} [^<]*<code>127\\.0\\.0\\.1</code>, <time`))
    }
    expect(listed).not.toMatch(/Old|Root|Sue/)
    expect(ways((yield* (yield* somebody()).get(home)).text)).toMatch(/Root set a password/)
    expect(ways((yield* (yield* viewer).get(home)).text)).toBe("")
  })

  test("shows each person's new ways in, however many one of them makes, by the index of the week's", function* () {
    const account = AccountId.make("crowded")
    const at = yield* Clock.currentTimeMillis
    const add = (who: string, act: string, ago: number, count = 1) =>
      execute(
        `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
         INSERT INTO audit (at, via, who, account_id, act, detail)
         SELECT ? + n, 'portal', ?, ?, ?, '{"name":"Vera","address":"192.0.2.1"}' FROM numbers`,
        [count, at - ago * dayMillis, who, account, act]
      )
    yield* add("per_1 Ann", "people invite", 6)
    yield* add("per_2 Max", "people link", 5, 3_000)
    yield* add("per_2 Max", "people enable", 0.5, 2)
    yield* add("per_3 Old", "people enable", 8)
    yield* add("per_3 Old", "keys create", 1)
    const reader = yield* Reader
    const steps: Array<string> = []
    const viewer = { owner: { account, mode: "test" }, role: "admin" } as Viewer
    const listed = yield* waysIn(explained(reader, reader, steps), viewer, at)
    expect(listed.map((acts) => acts.map(({ act, who }) => `${who}: ${act}`))).toEqual([
      [...Array(2).fill("per_2 Max: people enable"), ...Array(18).fill("per_2 Max: people link")],
      ["per_1 Ann: people invite"]
    ])
    const searches = new Set(steps.filter((step) => step.includes(" audit ")))
    for (const step of searches) {
      expect(step).toMatch(
        /^SEARCH audit USING (COVERING )?INDEX audit_ways_in \(account_id=\? AND <expr>=\? AND who[=>]\?/
      )
    }
    expect(searches.size).toBeGreaterThan(2)
    const page = render(h(WaysIn, { of: listed, viewer }))
    expect(page).toContain("and at least 17 more by Max")
    expect(page.match(/by Ann|Ann invited/g)).toEqual(["Ann invited"])
  })

  test("sums up today and thirty days, with charts that have their numbers as tables", function* () {
    const vera = yield* viewer
    const { id } = yield* makePayment({ merchantRef: "paid" })
    yield* execute(
      "UPDATE payments SET status = 'confirmed', confirmed_at = created_at + 90000, ended_at = 1, amount_received = '60000000' WHERE id = ?",
      [id]
    )
    const { text } = yield* vera.get(home)
    expect(text).toMatch(/54\.615517 USDC<\/span> <small class="muted">in 1 payment/)
    expect(text).toContain("1 min 30 s")
    expect(text.match(/<figure/g)).toHaveLength(2)
    expect(
      text
        .match(/<figure.*?<\/figure>/gs)
        ?.every((figure) => figure.includes("<details>") && figure.includes("<table>"))
    ).toBe(true)
    // The CSP forbids them.
    expect(text).not.toMatch(/ style=|<style/)
  })

  test("counts what was confirmed: no surplus that is not decided on or was sent back, and cancelled ones apart", function* () {
    yield* execute("DELETE FROM exceptions")
    const paid = yield* makePayment({ amount: 10_000_000n })
    yield* execute(
      `UPDATE payments SET status = 'confirmed', confirmed_at = created_at, ended_at = 1, amount_received = '19000000'
       WHERE id = ?`,
      [paid.id]
    )
    const surplus = [
      ["1000000", null],
      ["2000000", "accepted"],
      ["4000000", "refunded"],
      ["700000", "accepted"]
    ] as const
    for (const [place, [amount, outcome]] of surplus.entries()) {
      const id = yield* storeLateMoney(paid.id, place + 1)
      yield* execute(
        "UPDATE exceptions SET kind = ?, amount = ?, outcome = ?, closed_at = iif(? IS NULL, NULL, 1) WHERE id = ?",
        [place === 3 ? "late" : "overpaid", ...[amount, outcome, outcome, id]]
      )
    }
    const cancelled = yield* makePayment()
    yield* execute("UPDATE payments SET status = 'expired', failure_reason = 'cancelled', ended_at = 1 WHERE id = ?", [
      cancelled.id
    ])
    yield* execute("UPDATE payments SET created_at = ? WHERE id IN (?, ?)", [
      now - 5 * dayMillis,
      paid.id,
      cancelled.id
    ])
    const { days } = yield* overviewOf(yield* Reader, owner, networks, now)
    const then = days.at(-6)
    expect(then?.outcomes).toMatchObject({ confirmed: 1, expired: 0, cancelled: 1 })
    expect(then?.volumes.get("USDC 6")).toMatchObject({ amount: 12_000_000n, payments: 1 })
  })

  test("counts by day exactly, in amounts beyond what a number holds", function* () {
    yield* execute("DELETE FROM deliveries")
    yield* execute("DELETE FROM events")
    yield* execute("DELETE FROM exceptions")
    yield* execute("DELETE FROM payments")
    const big = 10n ** 30n + 1n
    for (const [days, status] of [
      [0, "confirmed"],
      [0, "expired"],
      [29, "confirmed"],
      [30, "confirmed"]
    ] as const) {
      const { id } = yield* makePayment({ amount: big })
      const at = dayOf(now) - days * dayMillis + 3_600_000
      yield* execute(
        `UPDATE payments SET created_at = ?, status = ?, confirmed_at = iif(? = 'confirmed', ?, NULL), ended_at = 1,
           usd_value = '2.5' WHERE id = ?`,
        [at, status, status, at + 5_000, id]
      )
    }
    const { days, since } = yield* overviewOf(yield* Reader, owner, networks, now)
    expect(days).toHaveLength(30)
    expect(since).toBeUndefined()
    expect(days.at(-1)?.outcomes).toEqual({ confirmed: 1, open: 0, expired: 1, cancelled: 0, failed: 0 })
    expect(days[0]?.outcomes).toEqual({ confirmed: 1, open: 0, expired: 0, cancelled: 0, failed: 0 })
    const all = together(days)
    expect([...all.volumes.values()]).toEqual([{ currency: "USDC", decimals: 6, amount: 2n * big, payments: 2 }])
    expect(all.usd).toBe(5)
    expect(median(all.times)).toBe(5_000)
    expect(median([])).toBeUndefined()
    expect(median([3, 1, 2, 9])).toBe(2)
    expect([0, 45_000, 125_000, 3_600_000, 90_000_000].map(durationText)).toEqual([
      "0 s",
      "45 s",
      "2 min 5 s",
      "1 h",
      "1 d 1 h"
    ])
  })

  test("reads by the list's index, no more than it says, and says how far it counts", function* () {
    const reader = yield* Reader
    const most = 2_500
    yield* execute(crowdSql("confirmed"), [most + 500, now, 20_000, now, 20_000, now, 20_000, now])
    const steps: Array<string> = []
    const { days, since } = yield* overviewOf(explained(reader, reader, steps), owner, networks, now, most)
    expect(new Set(steps)).toEqual(
      new Set([
        "SEARCH payments USING INDEX payments_list (account_id=? AND mode=? AND created_at>? AND created_at<?)",
        "CORRELATED SCALAR SUBQUERY 1",
        "SEARCH exceptions USING INDEX exceptions_payment (payment_id=?)"
      ])
    )
    const { outcomes, volumes } = together(days)
    expect(outcomes.confirmed + outcomes.expired).toBe(most)
    expect(since).toBe(now - most * 20_000)
    expect([...volumes.values()].reduce((sum, { payments }) => sum + payments, 0)).toBe(outcomes.confirmed)
    expect((yield* overviewOf(reader, owner, networks, now)).since).toBeUndefined()
  })
})
