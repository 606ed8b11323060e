import { expect } from "@effect/vitest"
import { TestClock } from "effect"
import { newLink } from "../lib/portal.ts"
import { scopedTest } from "../lib/scopedTest.ts"
import { execute, rows } from "../lib/store.ts"
import { portal, portalStore } from "./room.ts"

const test = scopedTest(portalStore())
const shop = "/portal/a/shop/test"

const named = (name: string) => rows<{ id: string; role: string }>("SELECT id, role FROM people WHERE name = ?", [name])

const linkIn = (text: string) => /\/portal\/login\/[\w-]{43}/.exec(text)?.[0] ?? "no link"

test("an admin invites a viewer by a link that is shown once, and sees no one else's people", function* () {
  const { enter, visitor } = yield* portal
  yield* enter({ name: "Root" })
  const grace = yield* enter({ account: "shop", name: "Grace" })
  const invited = yield* grace.post(`${shop}/people`, { name: "Vera <b>", role: "viewer" })
  expect(invited.text).toContain("Hand this link to Vera &lt;b")
  const vera = visitor("198.51.100.7")
  expect((yield* vera.post(linkIn(invited.text))).status).toBe(303)
  expect((yield* vera.get("/portal")).headers.location).toBe(shop)

  const list = yield* grace.get(`${shop}/people`)
  expect(list.text).toContain("Vera &lt;b")
  expect(list.text).not.toContain("/portal/login/")
  expect(list.text).not.toContain("Root")
  const acts = yield* rows<{ act: string; who: string; account_id: string; detail: string }>(
    "SELECT act, who, account_id, detail FROM audit WHERE act = 'people invite'"
  )
  expect(acts).toMatchObject([{ who: expect.stringMatching(/^per_.* Grace$/), account_id: "shop" }])
  expect(acts[0]?.detail).not.toContain(linkIn(invited.text).slice(-43))
})

test("an admin makes no operator, and acts on no person of another account, no operator, and not on themself; an operator on all, for their account's log", function* () {
  const { enter } = yield* portal
  const root = yield* enter({ name: "Root" })
  const grace = yield* enter({ account: "shop", name: "Grace" })
  yield* enter({ account: "default", name: "Other" })
  expect((yield* grace.post(`${shop}/people`, { name: "Eve", role: "operator" })).status).toBe(422)
  expect((yield* grace.post(`${shop}/people`, { name: "", role: "viewer" })).status).toBe(422)
  for (const name of ["Root", "Other", "Grace"]) {
    const [person] = yield* named(name)
    for (const act of ["disable", "role", "link", "revoke", "enable"]) {
      const refused = yield* grace.post(`${shop}/people/${person?.id}/${act}`, { role: "viewer" })
      expect(refused.status, `${act} ${name}`).toBe(404)
    }
  }
  expect(yield* rows("SELECT id FROM people WHERE disabled_at IS NOT NULL")).toEqual([])
  const all = (yield* root.get(`${shop}/people`)).text
  for (const name of ["Root", "Other", "Grace"]) expect(all).toContain(name)
  const [other] = yield* named("Other")
  yield* root.post(`${shop}/people/${other?.id}/revoke`)
  expect(yield* rows("SELECT account_id FROM audit WHERE act = 'people revoke'")).toEqual([{ account_id: "default" }])
  expect((yield* root.post(`${shop}/people`, { name: "Ops", role: "operator" })).status).toBe(200)
  expect(yield* named("Ops")).toMatchObject([{ role: "operator" }])
})

test("an account has so many people, and one more has room once one is disabled", function* () {
  const { enter } = yield* portal
  const grace = yield* enter({ account: "shop", name: "Grace" })
  yield* execute(
    `WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
    INSERT INTO people (id, name, role, account_id, created_at) SELECT 'per_' || i, 'Guest ' || i, 'viewer', 'shop', 0 FROM n`
  )
  const invite = () => grace.post(`${shop}/people`, { name: "Vera", role: "viewer" })
  const refused = yield* invite()
  expect(refused.status).toBe(422)
  expect(refused.text).toContain("The account has 200 people, as many as it may: disable somebody who does not use it")
  expect(yield* named("Vera")).toEqual([])
  expect((yield* grace.post(`${shop}/people/per_7/disable`)).status).toBe(303)
  expect((yield* invite()).status).toBe(200)
})

test("an account that has used up its quota invites no one", function* () {
  const { enter } = yield* portal
  const grace = yield* enter({ account: "shop", name: "Grace" })
  const invite = () => grace.post(`${shop}/people`, { name: "Vera", role: "viewer" })
  yield* execute("UPDATE usage SET bytes = bytes + 1000000000 WHERE account_id = 'shop'")
  const refused = yield* invite()
  expect(refused.status).toBe(422)
  expect(refused.text).toContain("The account has stored its 1000000000 bytes")
  expect(yield* named("Vera")).toEqual([])
  yield* execute("UPDATE usage SET bytes = bytes - 1000000000 WHERE account_id = 'shop'")
  expect((yield* invite()).status).toBe(200)
})

test("another role holds at once for an open session", function* () {
  const { enter } = yield* portal
  const grace = yield* enter({ account: "shop", name: "Grace" })
  const vera = yield* enter({ account: "shop", role: "viewer", name: "Vera" })
  const [person] = yield* named("Vera")
  expect((yield* vera.post(`${shop}/things`)).status).toBe(403)
  yield* grace.post(`${shop}/people/${person?.id}/role`, { role: "admin" })
  expect((yield* vera.post(`${shop}/things`)).status).toBe(200)
  yield* grace.post(`${shop}/people/${person?.id}/role`, { role: "operator" })
  expect(yield* named("Vera")).toMatchObject([{ role: "admin" }])
})

test("disabling ends sessions and links, and enabling brings neither back", function* () {
  const { enter, visitor } = yield* portal
  const grace = yield* enter({ account: "shop", name: "Grace" })
  const vera = yield* enter({ account: "shop", role: "viewer", name: "Vera" })
  const link = yield* newLink({ account: "shop", role: "viewer", name: "Vera" })
  const [person] = yield* named("Vera")
  const about = (act: string) => grace.post(`${shop}/people/${person?.id}/${act}`)
  const asked = yield* grace.get(`${shop}/people/${person?.id}/disable`)
  expect(asked.text).toContain("Disable Vera?")
  expect((yield* vera.get(shop)).status).toBe(200)
  const done = yield* about("disable")
  expect(done).toMatchObject({ status: 303, headers: { location: `${shop}/people?done=disabled` } })
  const listed = yield* grace.get(`${shop}/people?done=disabled`)
  expect(listed.text).toMatch(/<div class="notice good" role="status" tabindex="-1" autofocus>Disabled: /)
  // Only what a form has done is said.
  expect((yield* grace.get(`${shop}/people?done=toString`)).text).not.toContain("autofocus")
  expect((yield* grace.get(`${shop}/people/${person?.id}/disable`)).status).toBe(404)
  expect((yield* vera.get(shop)).status).toBe(303)
  expect((yield* visitor().post(link)).status).toBe(410)
  expect((yield* about("link")).status).toBe(404)
  yield* about("enable")
  expect((yield* vera.get(shop)).status).toBe(303)
  expect((yield* visitor().post(link)).status).toBe(410)
  const again = yield* about("link")
  expect((yield* vera.post(linkIn(again.text))).status).toBe(303)
  yield* about("revoke")
  expect((yield* vera.get(shop)).status).toBe(303)
})

test("acts on people need a fresh proof", function* () {
  const { enter } = yield* portal
  const grace = yield* enter({ account: "shop", name: "Grace" })
  yield* TestClock.adjust("30 minutes")
  const asked = yield* grace.post(`${shop}/people`, { name: "Vera", role: "viewer" })
  expect(asked.text).toMatch(/Is it still you.*name="name" value="Vera"/s)
  expect(yield* named("Vera")).toEqual([])
})

test("long lists come page by page", function* () {
  const { enter } = yield* portal
  const grace = yield* enter({ account: "shop", name: "Grace" })
  for (let n = 100; n < 160; n++) {
    yield* execute("INSERT INTO people (id, name, role, account_id, created_at) VALUES (?, ?, 'viewer', 'shop', ?)", [
      `per_${"p".repeat(19)}${n}`,
      `Person ${n}`,
      n
    ])
  }
  const first = (yield* grace.get(`${shop}/people`)).text
  const next = /href="([^"]+\?after=[^"]+)"/.exec(first)?.[1] ?? ""
  const second = (yield* grace.get(next)).text
  const namesIn = (text: string) => [...text.matchAll(/<th[^>]*>(Person \d+)<\/th>/g)].map(([, name]) => name)
  expect([...namesIn(first), ...namesIn(second)]).toHaveLength(60)
  expect(new Set([...namesIn(first), ...namesIn(second)]).size).toBe(60)
})

test("the audit log: an admin sees the account's acts, an operator all, and both can export them", function* () {
  const { enter, visitor } = yield* portal
  const root = yield* enter({ name: "=Root" })
  const grace = yield* enter({ account: "shop", name: "Grace" })
  const used = yield* newLink({ account: "shop", name: "Grace" })
  yield* grace.post(used)
  yield* visitor("198.51.100.7").post(used)
  yield* execute("INSERT INTO audit (at, via, who, act, detail) VALUES (0, 'socket', '=cmd|calc', 'keys create', '{}')")

  const own = (yield* grace.get(`${shop}/audit`)).text
  expect(own.match(/<tr>/g)?.length).toBe(1 + 3)
  expect(own).toContain("reason: used, address: 198.51.100.7")
  expect(own).not.toContain("keys create")
  const all = (yield* root.get(`${shop}/audit`)).text
  expect(all).toContain("keys create")
  expect(all).toContain("=cmd|calc (claimed)")
  expect((yield* root.get(`${shop}/audit?cursor=x`)).status).toBe(400)

  const csv = (yield* root.get(`${shop}/audit.csv`)).text.split("\r\n")
  expect(csv[0]).toBe("id,at,via,who,claimed,account,mode,act,detail")
  expect(csv).toHaveLength(1 + 5 + 1)
  expect((yield* grace.get(`${shop}/audit.csv`)).text).toMatch(/^at,via,who,claimed,account/)
  expect(csv).toContainEqual("5,1970-01-01T00:00:00.000Z,socket,'=cmd|calc,true,,,keys create,{}")
  const lines = (yield* grace.get(`${shop}/audit.jsonl`)).text.trim().split("\n")
  expect(lines.map((line) => JSON.parse(line).account)).toEqual(["shop", "shop", "shop"])
  // Gaps between ids would tell an account how much others do.
  expect(lines.join()).not.toContain('"id"')
})

test("the audit log is paged by the act before", function* () {
  const { enter } = yield* portal
  const root = yield* enter()
  for (let n = 0; n < 60; n++) {
    yield* execute("INSERT INTO audit (at, via, who, act, detail) VALUES (0, 'direct', 'alice', ?, '{}')", [`act ${n}`])
  }
  const first = (yield* root.get(`${shop}/audit`)).text
  const next = /href="([^"]+\?cursor=[\w-]{40,})"/.exec(first)?.[1] ?? ""
  const second = (yield* root.get(next)).text
  const actsIn = (text: string) => [...text.matchAll(/>(act \d+)</g)].map(([, act]) => act)
  expect(new Set([...actsIn(first), ...actsIn(second)]).size).toBe(60)
  expect(second).not.toContain("?cursor=")
})
