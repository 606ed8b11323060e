import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { signIn } from "../lib/portal.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { execute, rows } from "../lib/store.ts"
import { failOnce, furnishedShop, openShop, portalApp, valueOf } from "./shop.ts"

/** The payments of a list's rows, in their order. */
const paymentsIn = (text: string) =>
  [...text.matchAll(/<tr>.*?\/payments\/(pay_[\w-]+)".*?<\/tr>/gs)].map(([, id]) => id)

const deliveryOf = (payment: string) =>
  Effect.map(
    rows<{ id: string; redelivery: number; sequence: number }>(
      "SELECT id, redelivery, sequence FROM deliveries WHERE payment_id = ?",
      [payment]
    ),
    ([row]) => row ?? { id: "", redelivery: -1, sequence: -1 }
  )

const isOrdered = (payment: string) => Effect.map(deliveryOf(payment), ({ redelivery }) => redelivery === 1)

liveSuite(portalApp, "deliveries in the portal", (test, it) => {
  test("are listed newest first, the failing ones by a chip, with how many there are in the navigation", function* () {
    const { admin, base, endpoint, pay } = yield* openShop
    yield* endpoint()
    const ids = [yield* pay("1"), yield* pay("2"), yield* pay("3")] as const
    yield* failOnce(ids[0])
    const { text } = yield* admin.get(`${base}/deliveries`)
    // Each once.
    expect(paymentsIn(text)).toEqual([ids[2], ids[1], ids[0]])
    // What was tried shows where it went; what waits, where its endpoint is now.
    yield* execute("UPDATE endpoints SET url = 'https://192.0.2.1/moved'")
    const { text: moved } = yield* admin.get(`${base}/deliveries`)
    expect([...moved.matchAll(/clipped">([^<]*)/g)].map(([, url]) => url?.includes("moved"))).toEqual([
      true,
      true,
      false
    ])
    expect(text).toContain(`<a href="${base}/deliveries?status=failing">failing</a>`)
    expect(text).toContain('Deliveries<span class="count">1 <span')
    expect(text).not.toContain('Exceptions<span class="count">')
    const failing = yield* admin.get(`${base}/deliveries?status=failing`)
    expect(paymentsIn(failing.text)).toEqual([ids[0]])
    expect(failing.text).toContain(`<a aria-current="true" href="${base}/deliveries">failing`)
    // One that is not tried any more is listed, and nothing of it is left to look at.
    yield* execute(
      "UPDATE deliveries SET status = 'failed', attempts = 6, next_attempt_at = NULL, done_at = 1 WHERE payment_id = ?",
      [ids[1]]
    )
    const givenUp = (yield* admin.get(`${base}/deliveries?status=failing`)).text
    expect(paymentsIn(givenUp)).toEqual([ids[1], ids[0]])
    expect(givenUp).toContain('Deliveries<span class="count">1 <span')
    expect(paymentsIn((yield* admin.get(`${base}/deliveries?payment=${ids[1]}`)).text)).toEqual([ids[1]])
    expect(paymentsIn((yield* admin.get(`${base}/deliveries?from=2099-01-01T00:00`)).text)).toEqual([])
    expect(paymentsIn((yield* admin.get(`${base}/deliveries?until=2099-01-01T00:00`)).text)).toHaveLength(3)
  })

  test("that fail are counted for the operator on the page of health, of all accounts", function* () {
    const { api, base, endpoint, pay } = yield* openShop
    const operator = yield* signIn(api)
    const count = Effect.map(operator.get(`${base}/health`), ({ text }) => {
      const [, shown = ""] = /<dt>Deliveries failing<\/dt><dd>(.*?)<\/dd>/.exec(text) ?? []
      return shown === "none" ? 0 : Number(/href="[^"]*\/deliveries\?status=failing">(\d+)<\/a>$/.exec(shown)?.[1])
    })
    const before = yield* count
    yield* endpoint()
    yield* failOnce(yield* pay("1"))
    expect(yield* count).toBe(before + 1)
  })

  it.effect.each([
    ["status=dead", "The filter status must be one of"],
    ["from=yesterday", "The filter from must be a time"],
    ["until=2026-02-30", "The filter until must be a time"],
    ["to=wh_x", "must be one of the endpoints"]
  ] as const)("%s is refused with a reason, where it filters the list or names a range", ([query, reason]) =>
    Effect.gen(function* () {
      const { admin, base } = yield* openShop
      const { status, text } = query.startsWith("to")
        ? yield* admin.post(`${base}/deliveries/resend-range`, new URLSearchParams(`status=failing&${query}`))
        : yield* admin.get(`${base}/deliveries?${query}`)
      expect([status, text.replace(/<[^>]*>/g, "").includes(reason)]).toEqual([422, true])
    })
  )

  test("a delivery shows the bytes that were sent, and of each attempt what is stored", function* () {
    const { admin, api, base, endpoint, pay } = yield* openShop
    yield* endpoint()
    const payment = yield* pay('order <b>"1"</b>')
    yield* failOnce(payment, "<h1>no</h1>")
    const { id } = yield* deliveryOf(payment)
    const { text } = yield* admin.get(`${base}/deliveries/${id}`)
    const [event] = yield* rows<{ body: string }>("SELECT body FROM events WHERE payment_id = ?", [payment])
    const escaped = (event?.body ?? "").replaceAll("&", "&amp;").replaceAll("<", "&lt;")
    expect(text.replaceAll("&quot;", '"')).toContain(`<pre>${escaped}</pre>`)
    expect(text).toContain("Attempt 1: 500")
    expect(text).toContain("took 31 ms")
    expect(text).toContain("&lt;h1>no&lt;/h1>")
    expect(text).not.toMatch(/<h1>no|<b>/)
    expect(text).not.toContain("10.0.0.7")

    const operator = yield* signIn(api)
    expect((yield* operator.get(`${base}/deliveries/${id}`)).text).toContain("10.0.0.7")
  })

  test("one is sent again from its page, several by their checkboxes, and a due one only once", function* () {
    const { account, admin, base, endpoint, pay } = yield* openShop
    yield* endpoint()
    const ids = [yield* pay("1"), yield* pay("2"), yield* pay("3")] as const
    for (const id of ids) yield* failOnce(id)
    const all = yield* Effect.forEach(ids, deliveryOf, { concurrency: 1 })
    const [one, two, three] = all.map(({ id }) => id)
    const sent = yield* admin.post(`${base}/deliveries/${one}/resend`)
    expect(sent.headers.location).toBe(`${base}/deliveries/${one}?ordered=1`)
    expect((yield* admin.get(sent.headers.location as string)).text).toContain(
      "1 sent again: the answer shows here in a moment."
    )
    expect(yield* Effect.forEach(ids, isOrdered, { concurrency: 1 })).toEqual([true, false, false])
    const fields = new URLSearchParams([one, two, three, "dlv_none"].map((id) => ["id", id ?? ""]))
    const several = yield* admin.post(`${base}/deliveries/resend`, fields)
    expect(several.headers.location).toBe(`${base}/deliveries?ordered=2&due=1`)
    expect(yield* Effect.forEach(ids, isOrdered, { concurrency: 1 })).toEqual([true, true, true])
    const acts = yield* rows("SELECT 1 FROM audit WHERE account_id = ? AND act = 'webhooks redeliver'", [account])
    expect(acts).toHaveLength(4)
  })

  test("one is sent to another endpoint, and to none of another account", function* () {
    const { admin, base, endpoint, pay } = yield* openShop
    const other = yield* openShop
    yield* endpoint()
    const payment = yield* pay("1")
    const { id } = yield* deliveryOf(payment)
    const foreign = yield* other.endpoint()
    expect((yield* admin.post(`${base}/deliveries/${id}/resend`, { to: foreign })).status).toBe(404)
    const second = yield* endpoint("b")
    const sent = yield* admin.post(`${base}/deliveries/${id}/resend`, { to: second })
    expect(sent.headers.location).toMatch(/\/deliveries\/dlv_[\w-]+\?ordered=1$/)
    const places = yield* rows<{ endpoint_id: string }>(
      "SELECT endpoint_id FROM deliveries WHERE payment_id = ? ORDER BY sequence",
      [payment]
    )
    expect(places.at(-1)?.endpoint_id).toBe(second)
  })

  test("a range is sent again part by part, and each part says how far it is", function* () {
    const { account, admin, base, endpoint, pay } = yield* openShop
    yield* endpoint()
    const [first, last] = [yield* pay("1"), yield* pay("2")]
    yield* failOnce(first)
    yield* failOnce(last)
    // As many as two parts take: 500 and the rest.
    yield* execute(
      `WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 698)
       INSERT INTO deliveries (id, event_id, payment_id, account_id, mode, endpoint_id, own_url, target, url, status,
         attempts, next_attempt_at, created_at)
       SELECT id || '-' || i, event_id, payment_id, account_id, mode, endpoint_id, own_url, target, url, status,
         attempts, next_attempt_at, created_at FROM deliveries, n WHERE payment_id = ?`,
      [first]
    )
    const begun = yield* admin.post(`${base}/deliveries/resend-range`, { status: "failing" })
    expect(begun.text).toContain("500 done")
    expect(begun.text).toContain("data-continues")
    const names = ["status", "cursor", "started", "ordered", "due", "refused", "from", "until", "endpoint", "to"]
    const fields = Object.fromEntries(names.map((name) => [name, valueOf(begun.text, name)]))
    const ended = yield* admin.post(`${base}/deliveries/resend-range`, fields)
    expect(ended.text).toContain("700 done")
    expect(ended.text).not.toContain("data-continues")
    const [count] = yield* rows<{ n: number }>(
      "SELECT count(*) AS n FROM deliveries WHERE account_id = ? AND redelivery = 1",
      [account]
    )
    expect(count?.n).toBe(700)
  })

  test("those of another account are neither chosen nor in a range", function* () {
    const { admin, base } = yield* openShop
    const { ids } = yield* furnishedShop
    const { deliveries = "", payments = "", webhooks = "" } = ids
    const range = (more: object) => admin.post(`${base}/deliveries/resend-range`, { status: "failing", ...more })
    expect((yield* range({ endpoint: webhooks })).status).toBe(404)
    expect((yield* range({})).text).toContain("0 done")
    const chosen = yield* admin.post(`${base}/deliveries/resend`, { id: deliveries })
    expect(chosen.headers.location).toBe(`${base}/deliveries`)
    expect(yield* isOrdered(payments)).toBe(false)
  })
})
