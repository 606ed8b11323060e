import { expect } from "@effect/vitest"
import { Effect, Fiber, TestClock } from "effect"
import { makePasswordHasher } from "../../src/Auth/passwordHash.ts"
import type { Visitor } from "../lib/portal.ts"
import { liveTest, scopedTest } from "../lib/scopedTest.ts"
import { execute, rows } from "../lib/store.ts"
import { portal, portalStore } from "./room.ts"

const test = scopedTest(portalStore())
const me = "/portal/a/default/test/me"
const password = "correct horse battery"

const setPassword = (visitor: Visitor, name: string, text = password) =>
  visitor.post(`${me}/password`, { name, password: text })

const signInAs = (visitor: Visitor, name: string, text: string) =>
  visitor.post("/portal/sign-in", { name, password: text, next: me })

test("a person sets a password, and signs in with it by any spelling of the name", function* () {
  const { enter, visitor } = yield* portal
  const ada = yield* enter()
  const elsewhere = yield* enter()
  expect((yield* setPassword(ada, " Ada@Example.com ")).headers.location).toBe(me)
  expect((yield* ada.get(me)).text).toContain('value="ada@example.com"')
  // Whoever knew the old password is out.
  expect((yield* elsewhere.get(me)).status).toBe(303)

  const again = visitor()
  const entered = yield* signInAs(again, "ADA@EXAMPLE.COM", password)
  expect(entered).toMatchObject({ status: 303, headers: { location: me } })
  expect((yield* again.get(me)).status).toBe(200)
  const [row] = yield* rows<{ salt: Uint8Array; hash: Uint8Array }>("SELECT salt, hash FROM passwords")
  expect([row?.salt.length, row?.hash.length]).toEqual([16, 32])
  const acts = yield* rows<{ act: string }>("SELECT act, detail FROM audit ORDER BY sequence")
  expect(acts.map(({ act }) => act)).toContain("portal password")
  expect(JSON.stringify(acts)).not.toContain(password)
})

test("a wrong name and a wrong password have the same answer", function* () {
  const { enter, visitor } = yield* portal
  yield* setPassword(yield* enter(), "ada")
  const wrongPassword = yield* signInAs(visitor("192.0.2.1"), "ada", "wrong wrong wrong")
  const wrongName = yield* signInAs(visitor("192.0.2.2"), "adb", password)
  expect(wrongPassword.status).toBe(403)
  expect(wrongName.text.replaceAll("adb", "ada")).toBe(wrongPassword.text)
  expect(wrongName.headers).toEqual(wrongPassword.headers)

  yield* execute("UPDATE people SET disabled_at = 1")
  const disabled = yield* signInAs(visitor("192.0.2.3"), "ada", password)
  expect(disabled).toMatchObject({ status: 403, text: wrongPassword.text })
})

test("a short password, a name that is none, and somebody else's name are refused with what was typed", function* () {
  const { enter } = yield* portal
  yield* setPassword(yield* enter({ name: "Ada" }), "ada")
  const eve = yield* enter({ name: "Eve" })
  const refused = yield* setPassword(eve, "eve", "nine char")
  expect(refused.status).toBe(422)
  expect(refused.text).toMatch(/value="eve".*must have 10 to 1000 characters/s)
  expect(refused.text).not.toContain("nine char")
  expect((yield* setPassword(eve, "ada")).text).toContain("is somebody else's")
  expect((yield* setPassword(eve, "\u0000")).status).toBe(422)
  expect(yield* rows("SELECT * FROM passwords")).toHaveLength(1)
})

test("an attempt with the old password that waits while it is changed signs nobody in", function* () {
  const { enter, visitor } = yield* portal
  const ada = yield* enter()
  yield* setPassword(ada, "ada")
  const thief = visitor("198.51.100.7")
  const changing = yield* Effect.fork(setPassword(ada, "ada", "another horse battery"))
  yield* Effect.yieldNow()
  const [entered, changed] = yield* Effect.all([signInAs(thief, "ada", password), Fiber.join(changing)], {
    concurrency: "unbounded"
  })
  expect([changed.status, entered.status]).toEqual([303, 403])
  expect(thief.secret()).toBeUndefined()
  expect(yield* rows("SELECT id FROM sessions")).toHaveLength(1)
})

test("a password that was removed signs nobody in", function* () {
  const { enter, visitor } = yield* portal
  const ada = yield* enter()
  yield* setPassword(ada, "ada")
  expect((yield* ada.post(`${me}/password/remove`)).status).toBe(303)
  expect((yield* signInAs(visitor(), "ada", password)).status).toBe(403)
})

test("guesses are answered late, and the right password is not", function* () {
  const { enter, visitor } = yield* portal
  yield* setPassword(yield* enter(), "ada")
  for (const _ of [1, 2, 3, 4, 5]) yield* visitor().post(`/portal/login/${"a".repeat(43)}`)
  const guess = yield* Effect.fork(signInAs(visitor(), "ada", "wrong wrong wrong"))
  yield* Effect.yieldNow()
  // Both are of one client, so the guess has been checked before.
  expect((yield* signInAs(visitor(), "ada", password)).status).toBe(303)
  expect(guess.unsafePoll()).toBeNull()
  yield* TestClock.adjust("250 millis")
  expect((yield* Fiber.join(guess)).status).toBe(403)
})

liveTest("of one client four attempts wait at most, which keeps nobody else from waiting", function* () {
  const hasher = yield* makePasswordHasher
  const attempt = (client: string) => Effect.fork(Effect.either(hasher.verify(password, client, undefined)))
  const waiting = yield* Effect.replicateEffect(attempt("192.0.2.1"), 4)
  yield* Effect.yieldNow()
  const fifth = yield* Fiber.join(yield* attempt("192.0.2.1"))
  expect(fifth).toMatchObject({ left: { _tag: "TooManyWaiting" } })
  const other = yield* attempt("192.0.2.2")
  yield* Effect.yieldNow()
  expect(other.unsafePoll()).toBeNull()
  yield* Fiber.interruptAll([...waiting, other])
  expect(yield* Fiber.join(yield* attempt("192.0.2.1"))).toMatchObject({ right: false })
})

liveTest("a password is the same in every form of its characters", function* () {
  const hasher = yield* makePasswordHasher
  const stored = yield* hasher.hash("Ａda ada ada", "192.0.2.1")
  expect(yield* hasher.verify("Ada ada ada", "192.0.2.1", stored)).toBe(true)
})

test("sessions are listed, and ended one by one or all others at once", function* () {
  const { enter } = yield* portal
  const one = yield* enter()
  yield* TestClock.adjust("1 minute")
  const two = yield* enter()
  yield* TestClock.adjust("1 minute")
  const three = yield* enter()
  const page = (yield* one.get(me)).text
  expect(page.match(/this session/g)).toHaveLength(1)
  const ids = [...page.matchAll(/name="id" value="(ses_[^"]+)"/g)].map(([, id = ""]) => id)
  expect(ids).toHaveLength(2)
  yield* one.post(`${me}/sessions/revoke`, { id: ids[0] ?? "" })
  expect(
    yield* Effect.all([two.get(me), three.get(me)]).pipe(Effect.map((all) => all.map(({ status }) => status)))
  ).toEqual([303, 200])
  yield* enter()
  yield* one.post(`${me}/sessions/revoke-others`)
  expect((yield* three.get(me)).status).toBe(303)
  expect((yield* one.get(me)).status).toBe(200)

  // Somebody else's session is not theirs to end.
  const eve = yield* enter({ name: "Eve" })
  for (const { id } of yield* rows<{ id: string }>("SELECT id FROM sessions")) {
    yield* eve.post(`${me}/sessions/revoke`, { id })
  }
  expect((yield* one.get(me)).status).toBe(200)
})

test("a person has at most twenty sessions", function* () {
  const { enter } = yield* portal
  const first = yield* enter()
  for (let n = 0; n < 20; n++) {
    yield* TestClock.adjust("1 second")
    yield* enter()
  }
  expect(yield* rows("SELECT id FROM sessions")).toHaveLength(20)
  expect((yield* first.get(me)).status).toBe(303)
})
