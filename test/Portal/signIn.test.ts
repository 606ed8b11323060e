import { expect } from "@effect/vitest"
import { Effect, Fiber, TestClock } from "effect"
import { newLink } from "../lib/portal.ts"
import { scopedTest } from "../lib/scopedTest.ts"
import { testSettings } from "../lib/settings.ts"
import { rows } from "../lib/store.ts"
import { portal, portalStore, seen } from "./room.ts"

const test = scopedTest(portalStore())
const home = "/portal/a/default/test"

const acts = rows<{ act: string; who: string; account_id: string | null; detail: string }>(
  "SELECT act, who, account_id, detail FROM audit ORDER BY sequence"
)

test("a link is used up by its form, not by looking at it, and signs in once", function* () {
  const { visitor } = yield* portal
  const link = yield* newLink({ name: "Ada" })
  const first = visitor()
  for (const _ of [1, 2]) {
    const page = yield* first.get(link)
    expect(page).toMatchObject({ status: 200, headers: { "cache-control": "no-store" } })
    expect(page.text).toMatch(/<strong>Ada<\/strong>.*an operator/s)
    expect(page.headers["set-cookie"]).toBeUndefined()
  }
  const entered = yield* first.post(link)
  expect(entered).toMatchObject({ status: 303, headers: { location: "/portal" } })
  expect(entered.headers["set-cookie"]).toMatch(/^tilld=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax$/)
  expect((yield* first.get("/portal")).headers.location).toBe(home)
  expect(seen((yield* first.get(home)).text)).toMatchObject({
    name: "Ada",
    role: "operator",
    owner: { account: "default", mode: "test" }
  })

  const second = visitor("198.51.100.7")
  expect((yield* second.get(link)).status).toBe(410)
  const replayed = yield* second.post(link)
  expect(replayed).toMatchObject({ status: 410, text: expect.stringContaining("used already") })
  expect(second.secret()).toBeUndefined()
  expect((yield* acts).map(({ act, detail }) => [act, JSON.parse(detail)])).toEqual([
    ["portal login", { session: expect.stringMatching(/^ses_/), by: "link", address: "192.0.2.1" }],
    ["portal login refused", { reason: "used", address: "198.51.100.7" }]
  ])
})

test("of two browsers that use a link concurrently, one is signed in", function* () {
  const { visitor } = yield* portal
  const link = yield* newLink()
  const both = [visitor(), visitor()]
  const replies = yield* Effect.all(
    both.map((each) => each.post(link)),
    { concurrency: "unbounded" }
  )
  expect(replies.map(({ status }) => status).toSorted()).toEqual([303, 410])
  expect(yield* rows("SELECT id FROM sessions")).toHaveLength(1)
})

test("a link works for ten minutes", function* () {
  const { visitor } = yield* portal
  const [early, late] = [yield* newLink(), yield* newLink()]
  yield* TestClock.adjust("599 seconds")
  expect((yield* visitor().post(early)).status).toBe(303)
  yield* TestClock.adjust("1 second")
  const refused = yield* visitor().post(late)
  expect(refused).toMatchObject({ status: 410, text: expect.stringContaining("has expired") })
})

test("a text that is not a link signs no one in, and leaves no row in the audit log", function* () {
  const { visitor } = yield* portal
  for (const token of ["x", "a".repeat(43), "%00", ""]) {
    expect((yield* visitor().post(`/portal/login/${token}`)).status).toBe(404)
  }
  expect(yield* acts).toEqual([])
})

test("after failed attempts the response to an invalid link is delayed, and to a valid one it is not", function* () {
  const { visitor } = yield* portal
  const guess = (n: number) => visitor(`2001:db8::${n}`).post(`/portal/login/${"a".repeat(43)}`)
  for (const n of [1, 2, 3, 4, 5]) yield* guess(n)
  const sixth = yield* Effect.fork(guess(6))
  yield* Effect.yieldNow()
  // Two commits of the same network: what the attempt does with the store is behind it, and only the clock is left.
  expect((yield* visitor("2001:db8::7").post(yield* newLink())).status).toBe(303)
  expect(sixth.unsafePoll()).toBeNull()
  yield* TestClock.adjust("5 seconds")
  expect((yield* Fiber.join(sixth)).status).toBe(404)
})

test("a person signs in thirty times an hour by password, a refused one uncounted; and by a link whenever there is one", function* () {
  const { enter, visitor } = yield* portal
  const grace = yield* enter({ account: "shop", name: "Grace" })
  const password = "correct horse battery"
  yield* grace.post("/portal/a/shop/test/me/password", { name: "grace", password })
  const signIn = Effect.suspend(() => visitor().post("/portal/sign-in", { account: "shop", name: "grace", password }))
  for (let n = 0; n < 30; n++) expect((yield* signIn).status).toBe(303)
  for (let n = 0; n < 5; n++) {
    expect(yield* signIn).toMatchObject({ status: 429, text: expect.stringContaining("in 60 min") })
  }
  // No one else has to wait.
  expect((yield* visitor().post(yield* newLink({ account: "shop", name: "Ben" }))).status).toBe(303)
  expect((yield* visitor().post(yield* newLink({ account: "shop", name: "Grace" }))).status).toBe(303)
})

test("signing in makes a new session, and ends the one that the browser brought", function* () {
  const { enter, visitor } = yield* portal
  const planted = visitor()
  planted.cookies.set("tilld", "p".repeat(43))
  yield* planted.post(yield* newLink())
  expect(planted.secret()).not.toBe("p".repeat(43))

  const victim = yield* enter({ name: "Ada" })
  const before = victim.secret() ?? ""
  yield* victim.post(yield* newLink({ name: "Ada" }))
  expect(victim.secret()).not.toBe(before)
  const stolen = visitor()
  stolen.cookies.set("tilld", before)
  expect((yield* stolen.get(home)).headers.location).toBe("/portal/sign-in?next=%2Fportal%2Fa%2Fdefault%2Ftest")
  expect((yield* victim.get(home)).status).toBe(200)
})

test("signing out ends the session in the store, and clears the browser's copy and cache", function* () {
  const { enter, visitor } = yield* portal
  const ada = yield* enter()
  const secret = ada.secret() ?? ""
  const left = yield* ada.post("/portal/sign-out")
  expect(left).toMatchObject({
    status: 303,
    headers: {
      location: "/portal/sign-in",
      "clear-site-data": '"cache"',
      "set-cookie": "tilld=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0"
    }
  })
  expect(yield* rows("SELECT id FROM sessions")).toEqual([])
  expect((yield* acts).at(-1)).toMatchObject({ act: "portal logout", detail: expect.stringMatching(/"ses_/) })
  const thief = visitor()
  thief.cookies.set("tilld", secret)
  expect((yield* thief.get(home)).status).toBe(303)
})

for (const [what, hours, times, last] of [
  ["twelve hours after its last request", 11, 3, 12],
  ["seven days after it began, however much it is used", 8, 7 * 3 - 1, 8]
] as const) {
  test(`a session ends ${what}`, function* () {
    const { enter } = yield* portal
    const ada = yield* enter()
    for (let time = 0; time < times; time++) {
      yield* TestClock.adjust(`${hours} hours`)
      expect((yield* ada.get(home)).status).toBe(200)
    }
    yield* TestClock.adjust(`${last} hours`)
    expect((yield* ada.get(home)).status).toBe(303)
  })
}

test("the store has only hashes, and the browser's identification is truncated", function* () {
  const { visitor } = yield* portal
  const link = yield* newLink()
  const ada = visitor()
  yield* ada.post(link, {}, { "user-agent": "b".repeat(5_000) })
  const stored = yield* rows<{ user_agent: string; address: string; hash: Uint8Array }>("SELECT * FROM sessions")
  expect(stored).toMatchObject([{ user_agent: "b".repeat(200), address: "192.0.2.1" }])
  const all = JSON.stringify([stored, yield* rows("SELECT * FROM sign_in_links"), yield* acts])
  expect(all).not.toContain(ada.secret())
  expect(all).not.toContain(link.slice(-43))
})

const https = testSettings("").server

scopedTest(portalStore({ server: { ...https, publicUrl: "https://pay.example.com" } }))(
  "over https the cookie is bound to the host",
  function* () {
    const { visitor } = yield* portal
    for (const passkey of ["x", "{}", '{"id":1}']) {
      const refused = yield* visitor("192.0.2.1", "https://pay.example.com").post("/portal/sign-in", { passkey })
      expect(refused).toMatchObject({ status: 403, text: expect.stringContaining("This passkey did not sign you in") })
    }
    const ada = visitor("192.0.2.1", "https://pay.example.com")
    const entered = yield* ada.post(yield* newLink())
    expect(entered.headers["set-cookie"]).toMatch(/^__Host-tilld=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Secure$/)
    expect((yield* ada.get(home)).status).toBe(200)
    const old = visitor("192.0.2.1", "https://pay.example.com")
    old.cookies.set("tilld", ada.secret() ?? "")
    expect((yield* old.get(home)).status).toBe(303)
  }
)
