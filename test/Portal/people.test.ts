/** People of an account, the audit log, and sessions: what came of a stolen one does not outlast it. */
import { expect } from "@effect/vitest"
import { Clock, Effect, Fiber, Layer, TestClock } from "effect"
import { endOpenSessions } from "../../src/Auth/descent.ts"
import * as LinksRepo from "../../src/Auth/LoginLinksRepo.ts"
import { unusedSince } from "../../src/Auth/sessions.ts"
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

test("no one makes a link for the person whose session theirs came of, by however many people", function* () {
  const { enter, visitor } = yield* portal
  const grace = yield* enter({ account: "shop", name: "Grace" })
  yield* enter({ account: "shop", name: "Ada" })
  const mallory = visitor()
  yield* mallory.post(yield* invited(grace, "Mallory"))
  const maud = visitor()
  yield* maud.post(yield* invited(mallory, "Maud"))
  const about = (by: Visitor, name: string, act: string) =>
    Effect.flatMap(idOf(name), (id) => by.post(`${shop}/people/${id}/${act}`, { role: "viewer" }))
  for (const by of [mallory, maud]) {
    for (const act of ["link", "disable", "role", "revoke"]) expect((yield* about(by, "Grace", act)).status).toBe(404)
    expect((yield* by.get(`${shop}/people`)).text).toContain("let you in")
  }
  expect((yield* about(maud, "Mallory", "link")).status).toBe(404)
  expect((yield* about(maud, "Ada", "link")).status).toBe(200)
  // By the password that was set there neither, though the session that it came of is over.
  yield* setPassword(mallory, "mallory")
  yield* grace.post("/portal/sign-out")
  expect(yield* signIn(mallory, "mallory")).toBe(true)
  expect((yield* about(mallory, "Grace", "link")).status).toBe(404)
  // After a week it is Mallory's own.
  yield* TestClock.adjust("8 days")
  expect(yield* signIn(mallory, "mallory")).toBe(true)
  expect((yield* about(mallory, "Grace", "link")).status).toBe(200)
})

test("the session from which a password came is known after it has ended, when its link is deleted too", function* () {
  const { enter, visitor } = yield* portal
  const grace = yield* enter({ account: "shop", name: "Grace" })
  const mallory = visitor()
  yield* mallory.post(yield* invited(grace, "Mallory"))
  yield* setPassword(mallory, "mallory")
  for (let n = 0; n < 3; n++) {
    yield* TestClock.adjust("10 hours")
    expect(yield* isIn(grace)).toBe(true)
  }
  const writer = yield* Writer
  yield* writer.write(LinksRepo.forget((yield* Clock.currentTimeMillis) - LinksRepo.memory, 100))
  expect(yield* rows("SELECT * FROM sign_in_links")).toEqual([])
  yield* grace.post("/portal/sign-out")
  expect(yield* signIn(mallory, "mallory")).toBe(true)
  expect((yield* mallory.post(`${shop}/people/${yield* idOf("Grace")}/link`)).status).toBe(404)
  // It ends with all that came of Grace's sessions.
  const again = yield* enter({ account: "shop", name: "Grace" })
  yield* again.post(`${shop}/me/sessions/revoke-others`)
  expect(yield* isIn(mallory)).toBe(false)
  expect(yield* signIn(mallory, "mallory")).toBe(false)
})

test("a sign-out ends the sessions and links that came of the session, and of those, and no others", function* () {
  const { enter, visitor } = yield* portal
  const grace = yield* enter({ account: "shop", name: "Grace" })
  const phone = yield* enter({ account: "shop", name: "Grace" })
  const ada = yield* enter({ account: "shop", name: "Ada" })
  const thief = copyOf(visitor("198.51.100.7"), grace)
  const unused = yield* invited(thief, "Mallory")
  const mona = visitor()
  yield* mona.post(yield* invited(thief, "Mona"))
  const asAda = visitor()
  yield* asAda.post(linkIn((yield* mona.post(`${shop}/people/${yield* idOf("Ada")}/link`)).text))
  const max = visitor()
  yield* max.post(yield* invited(asAda, "Max"))
  const later = yield* invited(max, "Moll")
  const ofPhone = yield* invited(phone, "Vera")
  expect(yield* Effect.all([mona, asAda, max].map(isIn))).toEqual([true, true, true])

  yield* grace.post("/portal/sign-out")
  expect(yield* Effect.all([thief, mona, asAda, max, ada, phone].map(isIn))).toEqual([
    ...[false, false, false, false],
    ...[true, true]
  ])
  expect((yield* visitor().post(unused)).text).toContain("until whoever made it signs out")
  expect((yield* visitor().post(later)).status).toBe(410)
  expect((yield* visitor().post(ofPhone)).status).toBe(303)
  // Ended sessions without remaining effects are deleted.
  yield* TestClock.adjust("8 days")
  for (const name of ["Grace", "Ada", "Mona", "Max", "Mallory", "Moll", "Vera"])
    yield* newLink({ account: "shop", name })
  for (let n = 0; n < 5; n++) yield* enter({ account: "shop", name: "Ada" })
  expect(yield* rows("SELECT id FROM sessions WHERE hash IS NULL")).toEqual([])
})

test("a link begins no session in the browser in which it was made, nor in one that it came of", function* () {
  const { enter, visitor } = yield* portal
  const grace = yield* enter({ account: "shop", name: "Grace" })
  const thief = copyOf(visitor("198.51.100.7"), grace)
  const mona = visitor()
  yield* mona.post(yield* invited(grace, "Mona"))
  for (const link of [yield* invited(thief, "Max"), yield* invited(mona, "Moll")]) {
    expect(yield* thief.post(link)).toMatchObject({
      status: 410,
      text: expect.stringContaining("not in the browser in which it was made")
    })
  }
  // Nothing was done: the browser's session is open, and the link works elsewhere.
  expect(yield* Effect.all([grace, mona].map(isIn))).toEqual([true, true])
  const max = visitor()
  yield* max.post(yield* invited(thief, "Maud"))
  expect(yield* isIn(max)).toBe(true)
  yield* grace.post("/portal/sign-out")
  expect(yield* isIn(max)).toBe(false)
})

test("a sign-in in the browser of a session ends what came of that one", function* () {
  const { enter, visitor } = yield* portal
  const grace = yield* enter({ account: "shop", name: "Grace" })
  const mona = visitor()
  yield* mona.post(yield* invited(grace, "Mona"))
  yield* grace.post(yield* newLink({ account: "shop", name: "Grace" }))
  expect(yield* Effect.all([grace, mona].map(isIn))).toEqual([true, false])
})

test("twelve idle hours end a session with what came of it", function* () {
  const { enter, visitor } = yield* portal
  const grace = yield* enter({ account: "shop", name: "Grace" })
  const mona = visitor()
  yield* mona.post(yield* invited(grace, "Mona"))
  yield* TestClock.adjust("11 hours")
  expect(yield* isIn(mona)).toBe(true)
  yield* TestClock.adjust("61 minutes")
  const writer = yield* Writer
  const housekeeping = endOpenSessions({ idleSince: unusedSince(yield* Clock.currentTimeMillis), limit: 100 })
  expect(yield* writer.write(housekeeping)).toBe(true)
  expect(yield* isIn(mona)).toBe(false)
  expect(yield* writer.write(housekeeping)).toBe(false)
})

test("a person's further session ends the one that makes room, with what came of it", function* () {
  const { enter, visitor } = yield* portal
  const grace = yield* enter({ account: "shop", name: "Grace" })
  const mona = visitor()
  yield* mona.post(yield* invited(grace, "Mona"))
  for (let n = 0; n < 19; n++) {
    if (n % 9 === 0) yield* TestClock.adjust("1 minute")
    yield* enter({ account: "shop", name: "Grace" })
  }
  expect(yield* isIn(mona)).toBe(true)
  yield* enter({ account: "shop", name: "Grace" })
  expect(yield* Effect.all([grace, mona].map(isIn))).toEqual([false, false])
})

for (const act of ["a new password", "ending all other sessions"] as const) {
  test(`${act} ends all that came of any session: links, sessions, passwords; and the thief's copy of this one`, function* () {
    const { enter, visitor } = yield* portal
    const grace = yield* enter({ account: "shop", name: "Grace" })
    yield* setPassword(grace, "grace")
    const left = yield* enter({ account: "shop", name: "Grace" })
    const mona = visitor()
    yield* mona.post(yield* invited(left, "Mona"))
    yield* setPassword(mona, "mona")
    // Grace signs out as every evening: Mona, whom she has invited, can sign in.
    yield* left.post("/portal/sign-out")
    expect(yield* isIn(mona)).toBe(false)
    expect(yield* signIn(mona, "mona")).toBe(true)
    const max = visitor()
    yield* max.post(yield* invited(mona, "Max"))
    const thief = copyOf(visitor("198.51.100.7"), grace)
    const unused = yield* invited(thief, "Mallory")

    yield* TestClock.adjust("1 minute")
    const done = yield* act === "a new password"
      ? setPassword(grace, "grace", "another horse battery")
      : grace.post(`${shop}/me/sessions/revoke-others`)
    expect(done.status).toBe(303)
    expect(yield* Effect.all([grace, thief, mona, max].map(isIn))).toEqual([true, false, false, false])
    expect((yield* visitor().post(unused)).status).toBe(410)
    expect(yield* signIn(mona, "mona")).toBe(false)
    // Her first steps work on: the form's token is the new session's.
    expect((yield* grace.post(`${shop}/me/sessions/revoke-others`)).status).toBe(303)
  })
}

test("a first password locks no one out who was just invited, and after a week no act does", function* () {
  const { enter, visitor } = yield* portal
  const grace = yield* enter({ account: "shop", name: "Grace" })
  const vera = visitor()
  yield* vera.post(yield* invited(grace, "Vera", "viewer"))
  yield* setPassword(vera, "vera")
  yield* setPassword(grace, "grace")
  expect(yield* signIn(vera, "vera")).toBe(true)
  yield* TestClock.adjust("8 days")
  const again = yield* enter({ account: "shop", name: "Grace" })
  yield* again.post(`${shop}/me/sessions/revoke-others`)
  expect(yield* signIn(vera, "vera")).toBe(true)
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
