import { createHook } from "node:async_hooks"
import { scryptSync } from "node:crypto"
import { expect } from "@effect/vitest"
import { Clock, Effect, Fiber, Layer, TestClock } from "effect"
import { knownPerson, makePasswordHasher, type PasswordHasher, strangerAt } from "../../src/Auth/passwordHash.ts"
import * as SignInNetworksRepo from "../../src/Auth/SignInNetworksRepo.ts"
import { PersonId } from "../../src/Domain/Ids.ts"
import { Reader } from "../../src/Sql.ts"
import { newLink, type Visitor } from "../lib/portal.ts"
import { liveTest, scopedTest } from "../lib/scopedTest.ts"
import { execute, rows } from "../lib/store.ts"
import { cheapPasswords, portal, portalStore } from "./room.ts"

/** Counts the hashes from now on: Node makes a resource for each. */
const scryptCalls = Effect.acquireRelease(
  Effect.sync(() => {
    let calls = 0
    const hook = createHook({
      init: (_, type) => {
        if (type === "SCRYPTREQUEST") calls += 1
      }
    }).enable()
    return { hook, count: () => calls }
  }),
  ({ hook }) => Effect.sync(() => void hook.disable())
).pipe(Effect.map(({ count }) => count))

const test = scopedTest(Layer.merge(portalStore(), cheapPasswords))
/** Where another attempt comes while a password is hashed. */
const testInFull = scopedTest(portalStore())
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
  expect((yield* setPassword(ada, " Ada@Example.com ")).headers.location).toBe(`${me}?done=password`)
  expect((yield* ada.get(me)).text).toContain('value="ada@example.com"')
  // Anyone who knew the old password is signed out.
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

test("a short password, an invalid name, and another person's name are refused, and the input is kept", function* () {
  const { enter } = yield* portal
  yield* setPassword(yield* enter({ name: "Ada" }), "ada")
  const eve = yield* enter({ name: "Eve" })
  const refused = yield* setPassword(eve, "eve", "nine char")
  expect(refused.status).toBe(422)
  expect(refused.text).toMatch(/value="eve".*must have 10 to 1000 characters/s)
  expect(refused.text).not.toContain("nine char")
  expect((yield* setPassword(eve, "ada")).text).toContain("is somebody else’s")
  expect((yield* setPassword(eve, "\u0000")).status).toBe(422)
  expect(yield* rows("SELECT * FROM passwords")).toHaveLength(1)
})

testInFull("an attempt with the old password that waits while it is changed signs no one in", function* () {
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

test("a password that was removed signs no one in", function* () {
  const { enter, visitor } = yield* portal
  const ada = yield* enter()
  yield* setPassword(ada, "ada")
  expect((yield* ada.post(`${me}/password/remove`)).status).toBe(303)
  expect((yield* signInAs(visitor(), "ada", password)).status).toBe(403)
})

test("guesses of a network are refused before they are hashed after ten wrong ones in a minute, and other attempts are not", function* () {
  const { enter, visitor } = yield* portal
  yield* setPassword(yield* enter(), "ada")
  // Also from the network that she has signed in from, and with unknown names.
  const guess = Effect.suspend(() => signInAs(visitor(), "adb", "wrong wrong wrong"))
  for (let n = 0; n < 10; n++) expect((yield* guess).status).toBe(403)
  const hashes = yield* scryptCalls
  expect(yield* guess).toMatchObject({ status: 429, text: expect.stringContaining("Try again in a minute") })
  expect(hashes()).toBe(0)
  expect((yield* signInAs(visitor(), "ada", password)).status).toBe(303)
  yield* TestClock.adjust("1 minute")
  expect((yield* guess).status).toBe(403)
})

test("guesses for a person from a known network are counted, and others of that network are let in", function* () {
  const { enter, visitor } = yield* portal
  yield* setPassword(yield* enter(), "ada")
  yield* setPassword(yield* enter({ name: "Ben" }), "ben")
  for (let n = 0; n < 10; n++) yield* signInAs(visitor(), "ada", "wrong wrong wrong")
  expect((yield* signInAs(visitor(), "ada", password)).status).toBe(429)
  expect((yield* signInAs(visitor(), "ben", password)).status).toBe(303)
  expect((yield* visitor().post(yield* newLink())).status).toBe(303)
  yield* TestClock.adjust("1 minute")
  expect((yield* signInAs(visitor(), "ada", password)).status).toBe(303)
})

test("a wrong name, a wrong password and a disabled person's cost one hash each", function* () {
  const { enter, visitor } = yield* portal
  yield* setPassword(yield* enter(), "ada")
  const hashes = yield* scryptCalls
  yield* signInAs(visitor("192.0.2.1"), "ada", "wrong wrong wrong")
  expect(hashes()).toBe(1)
  yield* signInAs(visitor("192.0.2.2"), "adb", password)
  expect(hashes()).toBe(2)
  yield* execute("UPDATE people SET disabled_at = 1")
  yield* signInAs(visitor("192.0.2.3"), "ada", password)
  expect(hashes()).toBe(3)
})

test("a refused password is in the audit log once a network, and an unknown name is not", function* () {
  const { enter, visitor } = yield* portal
  yield* setPassword(yield* enter(), "ada")
  const refusals = rows("SELECT who, detail FROM audit WHERE act = 'portal login refused' ORDER BY sequence")
  yield* signInAs(visitor("192.0.2.1"), "nobody", "wrong wrong wrong")
  for (const _ of [1, 2]) yield* signInAs(visitor("192.0.2.1"), "ada", "wrong wrong wrong")
  yield* signInAs(visitor("192.0.2.2"), "ada", "wrong wrong wrong")
  while ((yield* refusals).length < 2) yield* Effect.yieldNow()
  expect(yield* refusals).toEqual(
    ["192.0.2.1", "192.0.2.2"].map((address) => ({
      who: expect.stringMatching(/^per_.* Ada$/),
      detail: JSON.stringify({ by: "password", address })
    }))
  )
})

test("a name that someone of another account has can be taken, and each signs in to their own", function* () {
  const { enter, visitor } = yield* portal
  yield* setPassword(yield* enter({ name: "Ada" }), "ada")
  const sue = yield* enter({ name: "Sue", account: "shop" })
  const atShop = "/portal/a/shop/test/me"
  const taken = yield* sue.post(`${atShop}/password`, { name: "ada", password: "shop horse battery" })
  expect(taken).toMatchObject({ status: 303, headers: { location: `${atShop}?done=password` } })
  const page = yield* visitor().get(`/portal/sign-in?next=${atShop}`)
  expect(page.text).toMatch(/name="account"[^>]* value="shop"/)
  const signIn = (account: string, text: string) =>
    visitor().post("/portal/sign-in", { account, name: "ada", password: text, next: "/portal/a/shop/test/me" })
  expect((yield* signIn("", "shop horse battery")).status).toBe(403)
  expect((yield* signIn("shop", password)).status).toBe(403)
  expect((yield* signIn("shop", "shop horse battery")).headers.location).toBe(atShop)
})

/** Runs attempts of `networks`, one each in this order, without waiting for them. */
const attempts = (hasher: PasswordHasher, networks: ReadonlyArray<string>) =>
  Effect.forEach(
    networks,
    (network) =>
      Effect.zipLeft(
        Effect.fork(Effect.either(hasher.verify(password, strangerAt(network, network), undefined))),
        Effect.yieldNow()
      ),
    { concurrency: 1 }
  )

const ada = { id: PersonId.make(`per_${"a".repeat(22)}`), account: undefined }

const joined = <A>(fiber: Fiber.Fiber<A> | undefined) =>
  fiber === undefined ? Effect.dieMessage("no attempt") : Fiber.join(fiber)

liveTest("a client that waits for the hash is served, and a newcomer is refused", function* () {
  const hasher = yield* makePasswordHasher
  const [running, first, ...others] = yield* attempts(
    hasher,
    Array.from({ length: 33 }, (_, n) => `network ${n}`)
  )
  const [newcomer, neighbour] = yield* attempts(hasher, ["newcomer", "network 3"])
  const ofAll = { left: { message: expect.stringContaining("Too many people") } }
  expect([yield* joined(newcomer), yield* joined(neighbour)]).toMatchObject([ofAll, ofAll])
  const known = yield* Effect.fork(hasher.verify(password, knownPerson(ada, "192.0.2.1"), undefined))
  yield* Effect.yieldNow()
  yield* Fiber.interruptAll(others)
  expect([yield* joined(running), yield* Fiber.join(known), yield* joined(first)]).toMatchObject([
    { right: false },
    false,
    { right: false }
  ])
})

testInFull("after a hash that took an hour the next attempt is let in", function* () {
  const hasher = yield* makePasswordHasher
  const [stalled] = yield* attempts(hasher, ["network 1"])
  yield* TestClock.adjust("1 hour")
  expect(yield* joined(stalled)).toMatchObject({ right: false })
  const [next] = yield* attempts(hasher, ["network 2"])
  expect(yield* joined(next)).toMatchObject({ right: false })
})

liveTest("a password is hashed at the recommended cost, and is the same in every form of its characters", function* () {
  const hasher = yield* makePasswordHasher
  const stored = yield* hasher.hash("Ａda ada ada", knownPerson(ada, "192.0.2.1"))
  const recommended = { N: 131_072, r: 8, p: 1, maxmem: 2 ** 28 }
  expect(Buffer.from(stored.hash)).toEqual(scryptSync("Ada ada ada", stored.salt, 32, recommended))
  expect(yield* hasher.verify("Ada ada ada", strangerAt("192.0.2.1", "192.0.2.0/24"), stored)).toBe(true)
})

test("sessions are listed, and ended one by one or all others at once", function* () {
  const { enter } = yield* portal
  const one = yield* enter()
  yield* TestClock.adjust("1 minute")
  const two = yield* enter()
  yield* TestClock.adjust("1 minute")
  const three = yield* enter()
  const page = (yield* one.get(me)).text
  expect(page.match(/>this session/g)).toHaveLength(1)
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

  // Another person's session cannot be ended, and an act without effect adds no row.
  const ended = rows("SELECT act FROM audit WHERE act LIKE 'portal session revoke%'")
  const eve = yield* enter({ name: "Eve" })
  for (const { id } of yield* rows<{ id: string }>("SELECT id FROM sessions")) {
    yield* eve.post(`${me}/sessions/revoke`, { id })
  }
  const before = yield* ended
  const ida = yield* enter({ name: "Ida" })
  for (const path of ["sessions/revoke", "passkeys/remove", "password/remove"]) {
    expect((yield* ida.post(`${me}/${path}`, { id: "ses_invented" })).status).toBe(303)
  }
  expect(yield* ended).toEqual(before)
  expect(yield* rows("SELECT act FROM audit WHERE act LIKE '%--remove'")).toEqual([])
  expect((yield* one.get(me)).status).toBe(200)
})

test("a passkey is removed by its person alone", function* () {
  const { enter } = yield* portal
  const [ada, eve] = [yield* enter(), yield* enter({ name: "Eve" })]
  const id = /per_[\w-]+/.exec((yield* ada.get(me)).text)?.[0] ?? ""
  for (const key of ["one", "two"]) {
    yield* execute(
      "INSERT INTO passkeys (id, person_id, name, public_key, counter, created_at) VALUES (?, ?, '', randomblob(1), 0, 0)",
      [key, id]
    )
  }
  const left = Effect.map(rows<{ id: string }>("SELECT id FROM passkeys ORDER BY id"), (all) =>
    all.map((each) => each.id)
  )
  yield* eve.post(`${me}/passkeys/remove`, { id: "one" })
  expect(yield* left).toEqual(["one", "two"])
  yield* ada.post(`${me}/passkeys/remove`, { id: "one" })
  expect(yield* left).toEqual(["two"])
})

test("of twenty sessions the one that was used longest ago makes room, whichever is the oldest", function* () {
  const { enter } = yield* portal
  const used = yield* enter()
  yield* TestClock.adjust("1 second")
  const idle = yield* enter()
  yield* TestClock.adjust("1 second")
  for (let n = 0; n < 18; n++) yield* enter()
  yield* TestClock.adjust("2 minutes")
  expect((yield* used.get(me)).status).toBe(200)
  yield* enter()
  expect([(yield* used.get(me)).status, (yield* idle.get(me)).status]).toEqual([200, 303])
})

test("where a person has signed in they are known for ninety days, at the newest twenty networks", function* () {
  const { enter } = yield* portal
  const reader = yield* Reader
  yield* enter({ name: "Ada" }, "2001:db8::1")
  yield* enter({ name: "Eve" }, "192.0.2.1")
  const people = yield* rows<{ id: string }>("SELECT id FROM people ORDER BY name")
  const isKnown = (id: string, network: string) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => SignInNetworksRepo.isKnown(reader, id, network, now))
  const known = (network: string) => Effect.forEach(people, ({ id }) => isKnown(id, network), { concurrency: 1 })
  expect(yield* known("2001:db8:0:0::/64")).toEqual([true, false])
  expect(yield* known("192.0.2.1")).toEqual([false, true])
  yield* TestClock.adjust("90 days")
  expect(yield* known("192.0.2.1")).toEqual([false, true])
  yield* TestClock.adjust("1 millis")
  expect(yield* known("192.0.2.1")).toEqual([false, false])

  for (let n = 0; n <= 20; n++) {
    yield* TestClock.adjust("1 second")
    yield* enter({ name: "Ada" }, `192.0.2.${n}`)
  }
  expect(yield* Effect.forEach([0, 1, 20], (n) => known(`192.0.2.${n}`), { concurrency: 1 })).toEqual([
    [false, false],
    [true, false],
    [true, false]
  ])
  expect(yield* rows("SELECT network FROM sign_in_networks WHERE person_id = ?", [people[0]?.id ?? ""])).toHaveLength(
    20
  )
})
