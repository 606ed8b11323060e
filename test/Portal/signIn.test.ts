import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { newLink } from "../lib/portal.ts"
import { scopedTest } from "../lib/scopedTest.ts"
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

test("of two browsers that use a link at once, one is signed in", function* () {
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
