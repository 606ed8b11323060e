import { expect, it } from "@effect/vitest"
import { FailedAttempts } from "../../src/Auth/FailedAttempts.ts"

it("repeated failures of one address get growing delays, until a minute without any resets them", () => {
  const attempts = new FailedAttempts()
  const delays = Array.from({ length: 12 }, (_, i) => attempts.failed("192.0.2.1", i))
  expect(delays).toEqual([0, 0, 0, 0, 0, 250, 500, 1000, 2000, 4000, 5000, 5000])
  expect(attempts.failed("192.0.2.2", 12)).toBe(0)
  expect(attempts.failed("192.0.2.1", 11 + 60_000)).toBe(0)
})

it("the number of remembered addresses is limited: the most recent failures are kept", () => {
  const attempts = new FailedAttempts()
  for (let i = 0; i < 6; i++) attempts.failed("mine", 0)
  for (let i = 0; i < 9_999; i++) attempts.failed(`address ${i}`, 1)
  expect(attempts.failed("mine", 2)).toBe(500)
  for (let i = 0; i < 10_000; i++) attempts.failed(`other ${i}`, 3)
  expect(attempts.failed("mine", 4)).toBe(0)
})

it("delayed attempts of one network run one after the other, and other networks are not delayed", () => {
  const attempts = new FailedAttempts()
  for (let i = 0; i < 5; i++) expect([attempts.book("192.0.2.1", i), attempts.failed("192.0.2.1", i)]).toEqual([0, 0])
  expect([attempts.book("192.0.2.1", 10), attempts.book("192.0.2.1", 10)]).toEqual([250, 500])
  expect(attempts.book("192.0.2.2", 10)).toBe(0)
  attempts.failed("192.0.2.1", 260)
  expect(attempts.book("192.0.2.1", 510)).toBe(500)
  expect(attempts.book("192.0.2.1", 260 + 60_000)).toBe(0)
})

it("no attempt is delayed for more than fifteen seconds: the next one is refused", () => {
  const attempts = new FailedAttempts()
  for (let i = 0; i < 20; i++) attempts.failed("192.0.2.1", 0)
  const held = Array.from({ length: 5 }, () => attempts.book("192.0.2.1", 0))
  expect(held).toEqual([5_000, 10_000, 15_000, undefined, undefined])
  expect(attempts.book("192.0.2.1", 5_000)).toBe(15_000)
})
