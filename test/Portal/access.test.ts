import { expect, it } from "@effect/vitest"
import { TestClock } from "effect"
import * as fc from "fast-check"
import { csrfTokenOf } from "../../src/Portal/Desk.ts"
import { nextPath } from "../../src/Portal/signInPages.tsx"
import { matchRoute } from "../../src/Portal.ts"
import { newLink } from "../lib/portal.ts"
import { scopedTest } from "../lib/scopedTest.ts"
import { testChain } from "../lib/settings.ts"
import { execute } from "../lib/store.ts"
import { portal, portalStore, seen } from "./room.ts"

const test = scopedTest(portalStore())
const things = "/portal/a/default/test/things"

it("the next page is one of the portal on this origin, or none", () => {
  expect(nextPath("/portal/a/shop/live/payments?status=failed")).toBe("/portal/a/shop/live/payments?status=failed")
  expect(nextPath("/portal/pair?redirect=https://a.example")).toBe("/portal/pair?redirect=https://a.example")
  for (const given of [
    null,
    "",
    "https://evil.example/portal/a/",
    "//evil.example/portal/a/",
    "/\\evil.example/portal/a/x",
    "\\/evil.example",
    "/portal/a/../../evil",
    "/portal/a/%2e%2e/%2e%2e/v1",
    "/portal/sign-out",
    "/portal/pair/else",
    "//evil.example/portal/pair",
    "/portal@evil.example/portal/a/",
    "javascript:alert(1)",
    "/\t/evil.example/portal/a/",
    `/portal/a/${"x".repeat(4_000)}`
  ]) {
    expect(nextPath(given), String(given)).toBeUndefined()
  }
  void fc.assert(
    fc.property(fc.string(), (text) => {
      for (const given of [text, `/${text}`, `/portal/a/${text}`, `/portal/pair${text}`]) {
        const next = nextPath(given)
        if (next === undefined) continue
        const url = new URL(next, "https://pay.example.com")
        expect([url.origin, /^\/portal\/(a\/|pair$)/.test(url.pathname)]).toEqual(["https://pay.example.com", true])
      }
    })
  )
})

it("a path finds its route by as few parameters as fit, and says which methods it takes", () => {
  const get = (path: string) => ({ method: "GET" as const, path })
  const routes = [get("/things/:id"), get("/things/new"), { method: "POST" as const, path: "/things/:id" }]
  expect(matchRoute(routes, "GET", "/things/new")).toMatchObject({ route: { path: "/things/new" }, params: {} })
  expect(matchRoute(routes, "HEAD", "/things/a%2Fb")).toMatchObject({ params: { id: "a/b" } })
  // As in the API: no id is that.
  expect(matchRoute(routes, "GET", "/things/%ff")).toMatchObject({ params: { id: "%ff" } })
  expect(matchRoute(routes, "POST", "/things/new")).toMatchObject({ params: { id: "new" } })
  expect(matchRoute(routes, "PUT", "/things/x")).toEqual({ allow: ["GET", "POST"] })
  for (const path of ["/things", "/things/", "/things/a/b", "/thing/x", ""]) {
    expect(matchRoute(routes, "GET", path), path).toBeUndefined()
  }
})

test("a form is taken from this origin's pages with the session's token, and from nowhere else", function* () {
  const { enter } = yield* portal
  const [ada, eve] = [yield* enter(), yield* enter({ name: "Eve" })]
  const typed = { colour: "red" }
  const taken = yield* ada.post(things, typed)
  expect(taken.status).toBe(200)
  expect(seen(taken.text).form).toMatchObject(typed)
  expect((yield* ada.post(things, typed, { origin: "null", "sec-fetch-site": "same-origin" })).status).toBe(200)

  const attacks: ReadonlyArray<readonly [string, Record<string, string>]> = [
    ["a foreign origin", { origin: "https://evil.example" }],
    ["a foreign port", { origin: "http://127.0.0.1:8081" }],
    ["another scheme", { origin: "https://127.0.0.1:8080" }],
    ["no origin", { origin: "null" }],
    ["no origin, from another site", { origin: "null", "sec-fetch-site": "cross-site" }],
    ["no origin, from another host of the site", { origin: "null", "sec-fetch-site": "same-site" }],
    ["an origin that is none", { origin: "evil" }]
  ]
  for (const [what, headers] of attacks) {
    const refused = yield* ada.post(things, typed, headers)
    expect(refused, what).toMatchObject({ status: 403, text: expect.stringContaining("Nothing was done") })
  }
  for (const csrf of ["", "x", csrfTokenOf(eve.secret() ?? ""), `${csrfTokenOf(ada.secret() ?? "")}x`]) {
    expect((yield* ada.post(things, { ...typed, csrf })).status, csrf).toBe(403)
  }
  // A link's form has no session yet: the origin alone decides.
  const link = yield* newLink({ name: "Mallory" })
  expect((yield* ada.post(link, {}, { origin: "https://evil.example" })).status).toBe(403)
  expect((yield* ada.post("/portal/sign-out", { csrf: "x" })).status).toBe(403)
  expect((yield* ada.get(things)).status).toBe(200)
})

test("what is no form, has too many fields, or more text than a proof keeps, is refused with a page", function* () {
  const { enter } = yield* portal
  const ada = yield* enter()
  for (const type of ["application/json", "multipart/form-data"]) {
    expect((yield* ada.post(things, {}, { "content-type": type })).status).toBe(415)
  }
  const many = (count: number) => new URLSearchParams(Array.from({ length: count }, (_, n) => [`f${n}`, '"']))
  expect((yield* ada.post(things, many(199))).status).toBe(200)
  const refused = yield* ada.post(things, many(200))
  expect(refused).toMatchObject({ status: 413, text: expect.stringContaining("200 fields") })
  yield* TestClock.adjust("1 hour")
  const kept = yield* ada.post("/portal/a/default/test/roles", { note: '"'.repeat(16_000) })
  expect([kept.status, kept.text.length < 120_000]).toEqual([200, true])
  const long = yield* ada.post("/portal/a/default/test/roles", { note: '"'.repeat(17_000) })
  expect(long).toMatchObject({ status: 413, text: expect.stringContaining("16 KiB") })
})

test("an account, a mode and a page that the person may not see are all not there", function* () {
  const { enter } = yield* portal
  const admin = yield* enter({ account: "shop", name: "Grace" })
  expect((yield* admin.get("/portal")).headers.location).toBe("/portal/a/shop/test")
  expect((yield* admin.get("/portal/a/shop/live")).status).toBe(200)
  const pages = new Set<string>()
  for (const path of [
    "/portal/a/default/test",
    "/portal/a/nobody/test",
    "/portal/a/shop/both",
    "/portal/a/shop",
    "/portal/a/%73hop/test",
    "/portal/a/shop/test/nothing",
    "/portal/a/shop/test/",
    "/portal/b"
  ]) {
    const { status, text } = yield* admin.get(path)
    expect(status, path).toBe(404)
    pages.add(text)
  }
  expect(pages.size).toBe(1)
  // In the frame, so that they find on.
  expect([...pages].join()).toContain('<a class="button" href="/portal/a/shop/test">To the home page</a>')
  expect([...pages].join()).toContain('<nav id="sections"')
  expect((yield* admin.post("/portal/a/default/test/things")).status).toBe(404)

  const operator = yield* enter()
  expect((yield* operator.get("/portal/a/shop/live")).status).toBe(200)
  expect((yield* operator.get("/portal/a/nobody/test")).status).toBe(404)
})

test("a role does what it may, and gets a message where it may not", function* () {
  const { enter } = yield* portal
  const shop = "/portal/a/shop/test"
  const [viewer, admin] = [
    yield* enter({ account: "shop", role: "viewer", name: "Vera" }),
    yield* enter({ account: "shop", role: "admin", name: "Grace" })
  ]
  expect((yield* viewer.get(`${shop}/things`)).status).toBe(200)
  expect(yield* viewer.post(`${shop}/things`)).toMatchObject({
    status: 403,
    text: expect.stringContaining("Your role does not allow this")
  })
  expect((yield* admin.post(`${shop}/things`)).status).toBe(200)
  expect((yield* admin.get(`${shop}/health`)).status).toBe(403)
  expect((yield* viewer.get(`${shop}/people`)).status).toBe(403)
  expect(yield* admin.post(`${shop}/health`)).toMatchObject({ status: 405, headers: { allow: "GET" } })
  // The frame stays in the account and mode of the page.
  const live = "/portal/a/shop/live"
  for (const who of [viewer, yield* enter()]) {
    for (const path of ["/nothing", "/health/x"]) {
      expect((yield* who.get(`${live}${path}`)).text).toContain(`<a class="button" href="${live}">To the home page</a>`)
    }
  }
  expect((yield* viewer.get(`${live}/health`)).text).toContain(`<a class="button" href="${live}">To the home page</a>`)
})

test("a disabled person is signed out at once", function* () {
  const { enter, visitor } = yield* portal
  const ada = yield* enter({ name: "Ada" })
  const link = yield* newLink({ name: "Ada" })
  yield* execute("UPDATE people SET disabled_at = 1")
  expect((yield* ada.get(things)).status).toBe(303)
  expect((yield* visitor().post(link)).status).toBe(410)
})

test("a visitor who is not signed in comes back to the page that they asked for", function* () {
  const { visitor } = yield* portal
  const reply = yield* visitor().get(`${things}?status=failed&x=1`)
  expect(reply.headers.location).toBe(`/portal/sign-in?next=${encodeURIComponent(`${things}?status=failed&x=1`)}`)
  const page = yield* visitor().get(reply.headers.location as string)
  expect(page.text).toContain(`name="next" value="${things}?status=failed&amp;x=1"`)
  const evil = yield* visitor().get("/portal/sign-in?next=https://evil.example/")
  expect(evil.text).not.toContain("evil.example")
  expect((yield* visitor().post(things)).status).toBe(403)
})

test("no page is stored by a cache, framed by another site, or sent where the reader came from", function* () {
  const { enter, visitor } = yield* portal
  const ada = yield* enter()
  for (const reply of [
    yield* ada.get(things),
    yield* ada.get("/portal/a/default/test/me"),
    yield* ada.get("/portal/a/default/test/audit.csv"),
    yield* visitor().get("/portal/sign-in"),
    yield* visitor().get("/portal/nothing"),
    yield* visitor().get("/portal")
  ]) {
    expect(reply.headers).toMatchObject({ "cache-control": "no-store", "referrer-policy": "same-origin" })
    if (`${reply.headers["content-type"]}`.startsWith("text/csv")) continue
    expect(reply.headers["content-security-policy"]).toMatch(/default-src 'none'.*frame-ancestors 'none'/)
  }
})

scopedTest(portalStore({ portal: { enabled: true, allow: ["198.51.100.0/24"] } }))(
  "the portal opens to the addresses of portal.allow alone",
  function* () {
    const { visitor } = yield* portal
    const link = yield* newLink()
    expect((yield* visitor("192.0.2.1").post(link)).status).toBe(403)
    expect((yield* visitor("198.51.100.9").post(link)).status).toBe(303)
  }
)

scopedTest(portalStore({ portal: { enabled: false, allow: [] } }))("a portal that is off is not there", function* () {
  const { visitor } = yield* portal
  for (const path of ["/portal", "/portal/sign-in", yield* newLink()])
    expect((yield* visitor().get(path)).status).toBe(404)
})

scopedTest(portalStore({ chains: [testChain(), testChain({ mode: "live" })] }))(
  "with a live chain the portal opens in live mode",
  function* () {
    const { enter } = yield* portal
    expect((yield* (yield* enter()).get("/portal")).headers.location).toBe("/portal/a/default/live")
  }
)
