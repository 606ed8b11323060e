/** People of an account, the audit log, and sessions: nothing that a thief of one made outlasts End all. */
import { expect } from "@effect/vitest"
import { Clock, Effect, Fiber, Layer, TestClock } from "effect"
import * as SessionsRepo from "../../src/Auth/SessionsRepo.ts"
import { unusedSince } from "../../src/Auth/sessions.ts"
import { Keys } from "../../src/Auth.ts"
import { permissions } from "../../src/Domain/ApiKey.ts"
import { AccountId, type ApiKeyId, newApiKeyId } from "../../src/Domain/Ids.ts"
import { Writer } from "../../src/Sql.ts"
import { newLink, type Visitor } from "../lib/portal.ts"
import { scopedTest } from "../lib/scopedTest.ts"
import { execute, rows } from "../lib/store.ts"
import { cheapPasswords, portal, portalStore } from "./room.ts"

const test = scopedTest(Layer.merge(portalStore(), cheapPasswords))
const shop = "/portal/a/shop/test"
const password = "correct horse battery"

const named = (name: string) => rows<{ id: string; role: string }>("SELECT id, role FROM people WHERE name = ?", [name])
const idOf = (name: string) => Effect.map(named(name), ([person]) => person?.id ?? "none")

const linkIn = (text: string) => /\/portal\/login\/[\w-]{43}/.exec(text)?.[0] ?? "no link"

const invited = (by: Visitor, name: string, role = "admin") =>
  Effect.map(by.post(`${shop}/people`, { name, role }), ({ text }) => linkIn(text))

const isIn = (visitor: Visitor) => Effect.map(visitor.get(`${shop}/me`), ({ status }) => status === 200)

const setPassword = (visitor: Visitor, name: string, text = password) =>
  visitor.post(`${shop}/me/password`, { name, password: text })

const signIn = (visitor: Visitor, name: string) =>
  Effect.map(visitor.post("/portal/sign-in", { account: "shop", name, password }), ({ status }) => status === 303)

/** A thief's browser with the victim's cookie. */
const copyOf = (thief: Visitor, victim: Visitor) => {
  for (const [name, value] of victim.cookies) thief.cookies.set(name, value)
  return thief
}

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

test("another role holds at once for an open session", function* () {
  const { enter } = yield* portal
  const grace = yield* enter({ account: "shop", name: "Grace" })
  const vera = yield* enter({ account: "shop", role: "viewer", name: "Vera" })
  const id = yield* idOf("Vera")
  expect((yield* vera.post(`${shop}/things`)).status).toBe(403)
  yield* grace.post(`${shop}/people/${id}/role`, { role: "admin" })
  expect((yield* vera.post(`${shop}/things`)).status).toBe(200)
  yield* grace.post(`${shop}/people/${id}/role`, { role: "operator" })
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
  yield* setPassword(grace, "grace")
  const access = (yield* grace.get(`${shop}/audit?only=access`)).text
  expect(
    [...access.matchAll(/<span title="([^"]*)">/g)].map(([, act]) => act).filter((act) => !act?.startsWith("per_"))
  ).toEqual(["portal password"])

  const csv = (yield* root.get(`${shop}/audit.csv`)).text.split("\r\n")
  expect(csv[0]).toBe("id,at,via,who,claimed,account,mode,act,detail")
  expect(csv).toHaveLength(1 + 6 + 1)
  expect((yield* grace.get(`${shop}/audit.csv`)).text).toMatch(/^at,via,who,claimed,account/)
  expect(csv).toContainEqual("5,1970-01-01T00:00:00.000Z,socket,'=cmd|calc,true,,,keys create,{}")
  const lines = (yield* grace.get(`${shop}/audit.jsonl`)).text.trim().split("\n")
  expect(lines.map((line) => JSON.parse(line).account)).toEqual(Array(4).fill("shop"))
  // Gaps between ids would tell an account how much others do.
  expect(lines.join()).not.toContain('"id"')
})

test("an existing name cannot be invited, not even one's own: no link is created", function* () {
  const { enter } = yield* portal
  const grace = yield* enter({ account: "shop", name: "Grace" })
  yield* enter({ account: "shop", name: "Vera", role: "viewer" })
  for (const [name, role] of [
    ["Grace", "admin"],
    ["Grace", "viewer"],
    [" Vera ", "viewer"],
    ["Vera", "admin"]
  ] as const) {
    const refused = yield* grace.post(`${shop}/people`, { name, role })
    expect(refused).toMatchObject({ status: 422, text: expect.stringContaining("press New link beside it") })
    expect(refused.text).not.toContain("/portal/login/")
  }
  const disabled = yield* idOf("Vera")
  yield* grace.post(`${shop}/people/${disabled}/disable`)
  expect((yield* grace.post(`${shop}/people`, { name: "Vera", role: "viewer" })).text).toContain("press Enable")
  expect(yield* rows("SELECT name FROM people ORDER BY name")).toEqual([{ name: "Grace" }, { name: "Vera" }])
  // The same name of another account is someone else.
  const root = yield* enter({ name: "Root" })
  expect((yield* root.post("/portal/a/default/test/people", { name: "Grace", role: "admin" })).status).toBe(200)
})

test("End all ends what a thief of the session may have made, by whomever they let in, and nothing else", function* () {
  const { enter, visitor } = yield* portal
  const keys = yield* Keys
  const [old, late] = [newApiKeyId(), newApiKeyId()]
  const made = (id: ApiKeyId, name: string) =>
    keys.create({ id, name, account: AccountId.make("shop"), mode: "test", permissions, expiresIn: undefined })
  const noted = (who: string, act: string, key: ApiKeyId) =>
    Effect.flatMap(Clock.currentTimeMillis, (at) =>
      execute(
        `INSERT INTO audit (at, via, who, account_id, mode, act, detail)
         SELECT ?, 'portal', id || ' ' || name, 'shop', 'test', ?, ? FROM people WHERE name = ?`,
        [at, act, JSON.stringify({ key }), who]
      )
    )
  const before = yield* enter({ account: "shop", name: "Grace" })
  const vera = visitor()
  yield* vera.post(yield* invited(before, "Vera", "viewer"))
  yield* setPassword(vera, "vera")
  yield* made(old, "shop server")
  yield* noted("Grace", "keys create", old)
  yield* TestClock.adjust("8 days")

  const grace = yield* enter({ account: "shop", name: "Grace" })
  const ada = yield* enter({ account: "shop", name: "Ada" })
  yield* setPassword(grace, "grace")
  const phone = yield* enter({ account: "shop", name: "Grace" })
  const thief = copyOf(visitor("198.51.100.7"), grace)
  const mallory = visitor()
  yield* mallory.post(yield* invited(thief, "Mallory"))
  yield* setPassword(mallory, "mallory")
  const maud = visitor()
  yield* maud.post(yield* invited(mallory, "Maud"))
  const unused = linkIn((yield* maud.post(`${shop}/people/${yield* idOf("Grace")}/link`)).text)
  yield* made(late, "exfiltration")
  yield* noted("Maud", "keys create", late)
  expect(yield* Effect.all([thief, phone, mallory, maud].map(isIn))).toEqual([true, true, true, true])

  // The page names what ends.
  const page = (yield* grace.get(`${shop}/me`)).text
  expect(page).toMatch(/let in within the last 7 days: (Mallory, Maud|Maud, Mallory)</)
  expect(page).toMatch(/exfiltration<\/a>/)
  expect(page).not.toMatch(/Vera|shop server/)
  const done = yield* grace.post(`${shop}/me/sessions/revoke-others`)
  expect(done).toMatchObject({ status: 303, headers: { location: `${shop}/me?done=others` } })
  expect(yield* Effect.all([grace, thief, phone, mallory, maud, ada].map(isIn))).toEqual([
    ...[true, false, false, false, false],
    true
  ])
  expect((yield* visitor().post(unused)).status).toBe(410)
  for (const name of ["mallory", "grace"]) expect(yield* signIn(visitor(), name)).toBe(false)
  expect(yield* signIn(vera, "vera")).toBe(true)
  const revoked = rows("SELECT name FROM api_keys WHERE revoked_at IS NOT NULL")
  expect(yield* revoked).toEqual([{ name: "exfiltration" }])
  const [act] = yield* rows<{ detail: string }>("SELECT detail FROM audit WHERE act = 'people revoke'")
  expect(JSON.parse(act?.detail ?? "")).toMatchObject({
    name: "Grace",
    people: [expect.any(String), expect.any(String)]
  })
  // Her next steps work: the form's token is the new session's.
  expect((yield* setPassword(grace, "grace")).status).toBe(303)
  expect(yield* signIn(visitor(), "grace")).toBe(true)
})

test("an admin ends all of somebody else's, once the page has named it", function* () {
  const { enter, visitor } = yield* portal
  const grace = yield* enter({ account: "shop", name: "Grace" })
  const eve = yield* enter({ account: "shop", name: "Eve" })
  yield* setPassword(eve, "eve")
  const max = visitor()
  yield* max.post(yield* invited(eve, "Max"))
  const path = `${shop}/people/${yield* idOf("Eve")}/revoke`
  expect((yield* grace.get(path)).text).toMatch(/End all of Eve\?.*7 days: Max</s)
  expect(yield* grace.post(path)).toMatchObject({ headers: { location: `${shop}/people?done=sessions` } })
  expect(yield* Effect.all([grace, eve, max].map(isIn))).toEqual([true, false, false])
  expect(yield* signIn(eve, "eve")).toBe(false)
})

test("a new password ends the person's other sessions, and nobody else's", function* () {
  const { enter, visitor } = yield* portal
  const grace = yield* enter({ account: "shop", name: "Grace" })
  const phone = yield* enter({ account: "shop", name: "Grace" })
  const thief = copyOf(visitor("198.51.100.7"), grace)
  const vera = visitor()
  yield* vera.post(yield* invited(grace, "Vera", "viewer"))
  yield* setPassword(grace, "grace")
  expect(yield* Effect.all([grace, phone, thief, vera].map(isIn))).toEqual([true, false, false, true])
})

test("sessions that are over are deleted, and no others", function* () {
  const { enter } = yield* portal
  yield* enter({ account: "shop", name: "Grace" })
  yield* TestClock.adjust("11 hours")
  const ada = yield* enter({ account: "shop", name: "Ada" })
  yield* TestClock.adjust("61 minutes")
  const writer = yield* Writer
  const housekeeping = SessionsRepo.forget(unusedSince(yield* Clock.currentTimeMillis), 1)
  expect(yield* writer.write(housekeeping)).toBe(true)
  expect(yield* writer.write(housekeeping)).toBe(false)
  expect(yield* isIn(ada)).toBe(true)
})

scopedTest(portalStore())("a password that waits for its hash while its session ends is not set", function* () {
  const { enter, visitor } = yield* portal
  const grace = yield* enter({ account: "shop", name: "Grace" })
  const thief = copyOf(visitor("198.51.100.7"), grace)
  const setting = yield* Effect.fork(setPassword(thief, "thief"))
  yield* TestClock.adjust("1 millis")
  yield* grace.post("/portal/sign-out")
  expect(yield* Fiber.join(setting)).toMatchObject({ status: 303, headers: { location: "/portal/sign-in" } })
  expect(yield* rows("SELECT * FROM passwords")).toEqual([])
})
