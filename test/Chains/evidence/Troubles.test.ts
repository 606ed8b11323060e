import { expect, it } from "@effect/vitest"
import { Troubles } from "../../../src/Chains/evidence/Troubles.ts"

it("a problem is new once, stands until it is over, and may keep payments from being completed", () => {
  const troubles = new Troubles()
  expect([troubles.reason, troubles.areHarmless]).toEqual([undefined, true])
  expect(troubles.note("receipts", undefined)).toBe(false)
  expect(troubles.note("receipts", "one denies")).toBe(true)
  expect(troubles.note("receipts", "one denies")).toBe(false)
  expect(troubles.note("clock", "it is behind", false)).toBe(true)
  expect([troubles.reason, troubles.areHarmless, troubles.has("clock")]).toEqual([
    "one denies; it is behind",
    false,
    true
  ])
  expect(troubles.note("receipts", "two deny")).toBe(true)
  expect(troubles.note("clock", undefined, false)).toBe(false)
  expect([troubles.reason, troubles.areHarmless, troubles.has("clock")]).toEqual(["two deny", true, false])
  expect(troubles.note("clock", "it is behind", false)).toBe(true)
})
