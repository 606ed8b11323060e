/** What holds of the pages and forms of an account alike, whatever they are about. */
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { newApiKeyId, newEndpointId } from "../../src/Domain/Ids.ts"
import { routes } from "../../src/Portal/routes.ts"
import type { Visitor } from "../lib/portal.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { execute, rows } from "../lib/store.ts"
import { furnishedShop, openShop, portalApp } from "./shop.ts"

/** Everything that the forms change. */
const stored = Effect.forEach(
  ["accounts", "api_keys", "deliveries", "endpoints", "exceptions", "payments", "people", "refunds"],
  (table) => rows(`SELECT * FROM ${table}`),
  { concurrency: 1 }
)

/** The paths of pages: of those that a role may see, and that are neither files nor streams. */
const pagesFor = (role: "viewer" | "admin") =>
  routes.flatMap(({ method, path, role: least }) =>
    method === "GET" && least === role && !/(csv|jsonl|changes|logo)$/.test(path) ? [path] : []
  )

/** Adds sixty rows like one of the account's, numbered by `n`, with other values in some columns. */
const multiply = Effect.fnUntraced(function* (table: string, account: string, other: Readonly<Record<string, string>>) {
  const columns = (yield* rows<{ name: string }>("SELECT name FROM pragma_table_info(?)", [table]))
    .map(({ name }) => name)
    // Those that are computed are given by none.
    .filter((name) => name !== "sequence" && name !== "is_open" && name !== "rank")
  yield* execute(
    `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 60)
     INSERT INTO ${table} (${columns.join()}) SELECT ${columns.map((name) => other[name] ?? name).join()}
     FROM (SELECT * FROM ${table} WHERE account_id = ? LIMIT 1), numbers ORDER BY n`,
    [account]
  )
})

/** What is listed where, what differs between its rows, how a row is found, and a filter that makes another list. */
const lists: ReadonlyArray<
  readonly [path: string, table: string, other: Readonly<Record<string, string>>, row: RegExp, filter?: string]
> = [
  [
    "/payments?status=expired",
    "payments",
    {
      ...{ id: "id || n", merchant_ref: "'row ' || n", address: "address || n", checkout_token: "checkout_token || n" },
      ...{ wallet_index: "1000000 + n", status: "'expired'", created_at: "n", ended_at: "1" }
    },
    />row (\d+)</g,
    "status=pending"
  ],
  [
    "/exceptions?status=all",
    "exceptions",
    { id: "id || '_' || n", key: "key || n", opened_at: "opened_at + n" },
    /exceptions\/exc_\d+_(\d+)"/g,
    "kind=late"
  ],
  [
    "/deliveries?status=failing",
    "deliveries",
    { id: "id || '_' || n", created_at: "created_at + n" },
    /deliveries\/dlv_[\w-]+_(\d+)"/g,
    "status=pending"
  ],
  ["/requests", "requests", { id: "id || '_' || n" }, /requests\/req_\d+_(\d+)"/g, "only=refused"],
  ["/audit", "audit", { act: "'row ' || n" }, />row (\d+)</g, "cursor=x"],
  [
    "/keys",
    "api_keys",
    { id: "id || n", name: "'row ' || n", hash: "randomblob(32)", created_at: "created_at + n" },
    />row (\d+)</g
  ],
  ["/people", "people", { id: "id || n", name: "'row ' || n", created_at: "created_at + n" }, /<th[^>]*>row (\d+)</g]
]

liveSuite(portalApp, "the pages and forms of an account", (test, it) => {
  test("show a viewer what is theirs without a form, and take none of those that change something", function* () {
    const { path, viewer } = yield* furnishedShop
    const before = yield* stored
    for (const page of pagesFor("viewer").filter((each) => !each.startsWith("/me"))) {
      const { status, text } = yield* viewer.get(path(page))
      // Everyone can sign out.
      expect([page, status, text.split('method="post"').length]).toEqual([page, 200, 2])
      expect(text).not.toContain("/payments/new")
    }
    for (const page of pagesFor("admin")) expect([page, (yield* viewer.get(path(page))).status]).toEqual([page, 403])
    const forms = routes.filter(({ method, role }) => method === "POST" && role !== "viewer")
    for (const form of forms)
      expect([form.path, (yield* viewer.post(path(form.path))).status]).toEqual([form.path, 403])
    expect(yield* stored).toEqual(before)
  })

  test("reach nothing of another account, nor of the other mode", function* () {
    const mine = yield* openShop
    const theirs = yield* furnishedShop
    const live = theirs.base.replace(/test$/, "live")
    const before = yield* stored
    const found: Array<string> = []
    const ask = Effect.fnUntraced(function* (who: Visitor, base: string) {
      for (const { method, path } of routes) {
        if (!path.includes("/:id") || /^\/(people|accounts)/.test(path)) continue
        const at = theirs.path(path, base)
        const { status } = method === "GET" ? yield* who.get(at) : yield* who.post(at, { confirmed: "yes" })
        if (status !== 404) found.push(`${method} ${at}: ${status}`)
      }
      const { keys, payments, requests } = theirs.ids
      for (const list of [
        ...["/payments", `/payments?q=${payments}`, "/exceptions?status=all", "/ledger", "/ledger.csv"],
        ...["/keys", "/webhooks", "/deliveries", `/deliveries?payment=${payments}`],
        ...["/requests", `/requests?id=${requests}`, `/requests?key=${keys}`]
      ]) {
        const { text } = yield* who.get(base + list)
        const isFile = text.startsWith("account,")
        if (isFile ? text.includes(payments ?? "") : new RegExp(`/(${Object.values(theirs.ids).join("|")})`).test(text))
          found.push(list)
      }
    })
    yield* ask(mine.admin, mine.base)
    yield* ask(theirs.admin, live)
    expect(found).toEqual([])
    expect(yield* stored).toEqual(before)
  })

  test("show markup as text, wherever it comes from", function* () {
    const { account, admin, path } = yield* furnishedShop
    const evil = `"'><script>alert(1)</script><img src=x onerror=alert(2)>`
    for (const [table, column, before] of [
      ["api_keys", "name", ""],
      ["endpoints", "url", "https://192.0.2.1/"],
      ["deliveries", "url", "https://192.0.2.1/"],
      ["payments", "merchant_ref", ""],
      ["payments", "redirect_url", "https://shop.example/"],
      ["exceptions", "note", "</textarea>"],
      ["refunds", "note", ""],
      ["people", "name", ""]
    ] as const) {
      yield* execute(`UPDATE ${table} SET ${column} = ? || ? WHERE account_id = ?`, [before, evil, account])
    }
    const note = JSON.stringify({ note: `</pre>${evil}` })
    yield* execute("UPDATE payments SET metadata = ? WHERE account_id = ?", [note, account])
    yield* execute("UPDATE attempts SET body_start = ?", [evil])
    const showing: Array<string> = []
    for (const page of [...pagesFor("viewer"), ...pagesFor("admin"), `/payments?q=${encodeURIComponent(evil)}`]) {
      const { text } = yield* admin.get(path(page))
      expect(text, page).not.toMatch(/<script>|<img/)
      if (text.includes("&lt;script>alert(1)&lt;/script>")) showing.push(page)
    }
    expect(showing).toEqual(
      expect.arrayContaining([
        ...["/payments", "/payments/:id", "/exceptions", "/exceptions/:id", "/keys", "/keys/:id", "/keys/:id/revoke"],
        ...["/webhooks", "/webhooks/:id", "/webhooks/:id/delete", "/deliveries", "/deliveries/:id", "/people", "/me"]
      ])
    )
    for (const [form, typed] of Object.entries({
      "/payments/new": { merchantRef: evil, amount: evil, asset: evil },
      "/exceptions/:id/refund": { amount: evil, note: evil },
      "/payments/:id/refund": { amount: evil, reason: evil },
      "/refunds/:id": { txHash: evil },
      "/keys": { id: newApiKeyId(), name: evil },
      "/webhooks": { id: newEndpointId(), url: evil },
      "/people": { name: evil },
      "/settings": { name: evil, accent: evil },
      "/deliveries/resend-range": { status: "failing", from: evil }
    })) {
      const { status, text } = yield* admin.post(path(form), typed)
      expect([form, status >= 400 && status < 500]).toEqual([form, true])
      expect(text, form).not.toMatch(/<script>|<img/)
      expect(text, form).toContain("&lt;script>alert(1)")
    }
  })

  it.scoped.each(lists)("%s goes on after fifty rows, by a cursor of its own", ([list, table, other, row, filter]) =>
    Effect.gen(function* () {
      const { account, admin, base } = yield* furnishedShop
      yield* multiply(table, account, other)
      const pageAt = (at: string) =>
        Effect.map(admin.get(at), ({ status, text }) => ({
          status,
          found: Array.from(text.matchAll(row), ([, n]) => Number(n)),
          next: /<a href="([^"]*)" rel="next">/.exec(text)?.[1]?.replaceAll("&amp;", "&") ?? ""
        }))
      const first = yield* pageAt(base + list)
      const second = yield* pageAt(first.next)
      expect([first.status, second.status, second.next]).toEqual([200, 200, ""])
      expect(first.found.length).toBeLessThanOrEqual(50)
      const all = Array.from({ length: 60 }, (_, n) => n + 1)
      expect([...first.found, ...second.found]).toEqual(list === "/people" ? all : all.toReversed())
      if (filter === undefined) return
      const wrong = new URL(first.next, "http://tilld")
      for (const [name, value] of new URLSearchParams(filter)) wrong.searchParams.set(name, value)
      const refused = yield* admin.get(wrong.pathname + wrong.search)
      expect(refused).toMatchObject({
        status: 400,
        text: expect.stringContaining("The cursor is not one of this list")
      })
      const foreign = yield* openShop
      expect((yield* foreign.admin.get(first.next.replace(base, foreign.base))).status).toBe(400)
    })
  )

  test("add nothing to an account that has used up its quota, and take away what it has", function* () {
    const { account, admin, base, path } = yield* furnishedShop
    const count = rows("SELECT id FROM api_keys UNION SELECT id FROM people UNION SELECT id FROM endpoints")
    const before = yield* count
    yield* execute("UPDATE usage SET bytes = bytes + 1000000000 WHERE account_id = ?", [account])
    for (const [form, fields, said] of [
      [
        "/keys",
        { id: newApiKeyId(), name: "server", permissions: "payments:read" },
        "The account has stored its 1000000000 bytes"
      ],
      ["/keys/:id/roll", { overlap: "0s", to: newApiKeyId() }, "The account has stored its 1000000000 bytes"],
      ["/people", { name: "Vera", role: "viewer" }, "The account has stored its 1000000000 bytes"],
      [
        "/webhooks",
        { id: newEndpointId(), url: "https://192.0.2.1/", events: "payment.created" },
        "The account has stored as much as it may"
      ]
    ] as const) {
      const refused = yield* admin.post(path(form), fields)
      expect([form, refused.status, refused.text.includes(said)]).toEqual([form, 422, true])
      expect(refused.text).not.toMatch(/svc_test_[\w-]{20}|portal\/login\/[\w-]{43}|value="whsec_/)
    }
    expect(yield* count).toEqual(before)
    expect((yield* admin.post(path("/keys/:id/revoke"))).status).toBe(303)
    yield* execute("UPDATE usage SET bytes = bytes - 1000000000 WHERE account_id = ?", [account])
    // One person more than an account may have.
    yield* execute(
      `WITH RECURSIVE n(i) AS (SELECT 3 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
       INSERT INTO people (id, name, role, account_id, created_at)
       SELECT 'per_' || i || account.id, 'Guest ' || i, 'viewer', account.id, 0 FROM n, accounts AS account WHERE account.id = ?`,
      [account]
    )
    const invite = admin.post(`${base}/people`, { name: "Vera", role: "viewer" })
    const refused = yield* invite
    expect(refused.status).toBe(422)
    expect(refused.text).toContain(
      "The account has 200 people, as many as it may: disable somebody who does not use it"
    )
    expect((yield* admin.post(`${base}/people/per_7${account}/disable`)).status).toBe(303)
    expect((yield* invite).status).toBe(200)
  })
})
