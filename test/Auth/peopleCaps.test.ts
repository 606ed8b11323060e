import { expect } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { makeLink } from "../../src/Auth/loginLinks.ts"
import * as sessions from "../../src/Auth/sessions.ts"
import { newSessionId } from "../../src/Domain/Ids.ts"
import { scopedTest } from "../lib/scopedTest.ts"
import { execute, inTransaction, rows } from "../lib/store.ts"
import { portalStore, shop } from "../Portal/room.ts"

const test = scopedTest(portalStore())

const admin = (name: string) => ({ name, role: "admin", account: shop }) as const
const count = (table: string) => Effect.map(rows<object>(`SELECT 1 FROM ${table}`), ({ length }) => length)

test("an account has two hundred people who sign in: a further one is refused until another is disabled", function* () {
  for (let n = 0; n < 200; n++) yield* makeLink(admin(`Ann ${n}`))
  expect(yield* Effect.flip(makeLink(admin("One more")))).toMatchObject({
    _tag: "TooMany",
    message: expect.stringContaining("200 people")
  })
  // Existing people, operators, and people of other accounts are not limited by it.
  yield* makeLink(admin("Ann 7"))
  yield* makeLink({ name: "Root", role: "operator", account: undefined })
  yield* execute("UPDATE people SET disabled_at = 1 WHERE name = 'Ann 7'")
  yield* makeLink(admin("One more"))
  expect(yield* count("people")).toBe(202)
})

test("a person has twenty links and twenty sessions: a further one ends the oldest", function* () {
  for (let n = 0; n < 25; n++) {
    yield* TestClock.adjust("1 second")
    const { person } = yield* makeLink(admin("Ann"))
    const visitor = { userAgent: "a", address: "192.0.2.1", network: "192.0.2.1", secret: undefined }
    yield* inTransaction(sessions.begin(person, visitor, newSessionId(), Effect.succeed(undefined)))
  }
  yield* makeLink(admin("Ben"))
  expect([yield* count("sign_in_links"), yield* count("sessions")]).toEqual([21, 20])
  const span = "SELECT max(expires_at) - min(expires_at) AS span FROM sign_in_links"
  expect(yield* rows(span)).toEqual([{ span: 19_000 }])
  expect(yield* rows("SELECT min(created_at) AS at FROM sessions")).toEqual([{ at: 6_000 }])
})
