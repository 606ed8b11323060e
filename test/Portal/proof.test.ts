import { expect } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { newLink } from "../lib/portal.ts"
import { scopedTest } from "../lib/scopedTest.ts"
import { rows } from "../lib/store.ts"
import { portal, portalStore, seen, unescaped } from "./room.ts"

const test = scopedTest(portalStore())
const roles = "/portal/a/default/test/roles"
const typed = { person: "per_1", role: "admin", note: `<"'&>` }

/** The hidden fields of a page's form. */
const hidden = (page: string) =>
  Object.fromEntries(
    [...page.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g)].map(([, name = "", value = ""]) => [
      name,
      unescaped(value)
    ])
  )

test("within half an hour of signing in no proof is required", function* () {
  const { enter } = yield* portal
  const ada = yield* enter()
  yield* TestClock.adjust("1799 seconds")
  expect(seen((yield* ada.post(roles, typed)).text).form).toMatchObject(typed)
  yield* TestClock.adjust("1 second")
  expect((yield* ada.post(roles, typed)).text).toContain("Is it still you?")
})

test("later a new link proves it, and the form goes on with what was typed", function* () {
  const { enter } = yield* portal
  const ada = yield* enter({ name: "Ada L." })
  yield* TestClock.adjust("1 hour")
  const asked = yield* ada.post(roles, typed)
  expect(asked.text).toContain("tilld login --name 'Ada L.'")
  expect(asked.text).toContain("account default, test mode, and about to <strong>change the roles</strong>")
  const fields = hidden(asked.text)
  expect(fields).toMatchObject(typed)

  const nothing = yield* ada.post(roles, { ...fields, proof_link: "" })
  expect(nothing.text).toContain("Is it still you?")
  const link = yield* newLink({ name: "Ada L." })
  const wrong = yield* ada.post(roles, { ...fields, proof_link: `${link}x` })
  expect(wrong).toMatchObject({ status: 403, text: expect.stringContaining("does not work any more") })
  expect(hidden(wrong.text)).toMatchObject(typed)
  const gone = yield* ada.post(roles, { ...fields, proof_link: `http://127.0.0.1:8080${link}` })
  expect(gone.status).toBe(200)
  expect(seen(gone.text).form).toEqual(typed)
  // That was a proof for the next half hour, and the link is used up.
  expect(seen((yield* ada.post(roles, typed)).text).form).toMatchObject(typed)
  yield* TestClock.adjust("30 minutes")
  expect((yield* ada.post(roles, { ...typed, proof_link: link })).status).toBe(403)
})

test("the command that makes a link has the name as one word, whatever is in it", function* () {
  const { enter } = yield* portal
  const eve = yield* enter({ name: `O'Hara; echo $(id) "` })
  yield* TestClock.adjust("1 hour")
  const asked = yield* eve.post(roles, typed)
  expect(unescaped(asked.text)).toContain(`<code>tilld login --name 'O'\\''Hara; echo $(id) "'</code>`)
})

test("is asked for once the form is in order, and the act is carried out only with it", function* () {
  const { enter } = yield* portal
  const ada = yield* enter()
  const acts = "/portal/a/default/test/acts"
  const done = rows("SELECT act FROM audit WHERE act = 'test act'")
  yield* TestClock.adjust("1 hour")
  expect(yield* ada.post(acts, {})).toMatchObject({ status: 422, text: expect.stringContaining("must be ticked") })
  const asked = yield* ada.post(acts, { tick: "yes" })
  expect(asked.text).toContain("Is it still you?")
  expect(asked.text).toContain("You have set neither a password nor a passkey")
  expect(yield* done).toEqual([])
  const refused = yield* ada.post(acts, { ...hidden(asked.text), proof_link: "/portal/login/x" })
  expect(refused.status).toBe(403)
  expect(yield* done).toEqual([])
  const proven = yield* ada.post(acts, { ...hidden(asked.text), proof_link: yield* newLink() })
  expect(proven.text).toContain("acted")
  expect(yield* done).toHaveLength(1)
})

test("someone else's link proves nothing, and stays unused", function* () {
  const { enter, visitor } = yield* portal
  const ada = yield* enter({ name: "Ada" })
  yield* TestClock.adjust("1 hour")
  const link = yield* newLink({ name: "Eve" })
  const refused = yield* ada.post(roles, { ...typed, proof_link: link })
  expect(refused).toMatchObject({ status: 403, text: expect.stringContaining("somebody else") })
  expect((yield* visitor().post(link)).status).toBe(303)
})

test("a page that needs a proof is shown after it", function* () {
  const { enter } = yield* portal
  const ada = yield* enter()
  yield* TestClock.adjust("1 hour")
  const asked = yield* ada.get(`${roles}?x=1`)
  expect(asked.text).toContain("Is it still you?")
  const proven = yield* ada.post(`${roles}?x=1`, { ...hidden(asked.text), proof_link: yield* newLink() })
  expect(proven).toMatchObject({ status: 303, headers: { location: `${roles}?x=1` } })
  expect(seen((yield* ada.get(`${roles}?x=1`)).text)).toMatchObject({ path: "/roles" })
})

test("a password proves it, and a wrong one does not", function* () {
  const { enter } = yield* portal
  const ada = yield* enter()
  yield* ada.post("/portal/a/default/test/me/password", { name: "ada", password: "correct horse battery" })
  yield* TestClock.adjust("1 hour")
  const wrong = yield* ada.post(roles, { ...typed, proof_password: "wrong horse battery" })
  expect(wrong).toMatchObject({ status: 403, text: expect.stringContaining("This is not your password") })
  const proven = yield* ada.post(roles, { ...typed, proof_password: "correct horse battery" })
  expect(seen(proven.text).form).toMatchObject(typed)
  expect(proven.text).not.toContain("correct horse")
})

test("proofs that are given and refused are in the audit log, and a link that was refused", function* () {
  const { enter } = yield* portal
  const ada = yield* enter({ name: "Ada" })
  yield* TestClock.adjust("1 hour")
  const link = yield* newLink({ name: "Ada" })
  yield* ada.post(roles, { ...typed, proof_link: link })
  yield* TestClock.adjust("1 hour")
  for (const _ of [1, 2]) yield* ada.post(roles, { ...typed, proof_link: link })
  const acts = rows<{ act: string; detail: string }>(
    "SELECT act, detail FROM audit WHERE act != 'portal login' ORDER BY sequence"
  )
  while ((yield* acts).length < 3) yield* Effect.yieldNow()
  const address = "192.0.2.1"
  expect((yield* acts).map(({ act, detail }) => [act, JSON.parse(detail)])).toEqual([
    ["portal proof", { session: expect.stringMatching(/^ses_/), by: "link" }],
    ["portal login refused", { reason: "used", address }],
    ["portal proof refused", { by: "link", address }]
  ])
})

test("a proof of one session is not valid for another", function* () {
  const { enter } = yield* portal
  const [one, two] = [yield* enter(), yield* enter()]
  yield* TestClock.adjust("1 hour")
  yield* one.post(roles, { ...typed, proof_link: yield* newLink() })
  expect((yield* two.post(roles, typed)).text).toContain("Is it still you?")
})
