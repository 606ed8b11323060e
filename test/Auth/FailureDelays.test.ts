import { expect, it } from "@effect/vitest"
import { FailureDelays } from "../../src/Auth/FailureDelays.ts"
import { newPersonId } from "../../src/Domain/Ids.ts"
import { RefusalSeries } from "../../src/Portal/Desk.ts"

it("repeated failures of one address get growing delays, until a minute without any resets them", () => {
  const delays = new FailureDelays()
  const given = Array.from({ length: 12 }, (_, i) => delays.failed("192.0.2.1", i))
  expect(given).toEqual([0, 0, 0, 0, 0, 250, 500, 1000, 2000, 4000, 5000, 5000])
  expect(delays.failed("192.0.2.2", 12)).toBe(0)
  expect(delays.failed("192.0.2.1", 11 + 60_000)).toBe(0)
})

it("the number of remembered addresses is limited: the most recent failures are kept", () => {
  const delays = new FailureDelays()
  for (let i = 0; i < 6; i++) delays.failed("mine", 0)
  for (let i = 0; i < 9_999; i++) delays.failed(`address ${i}`, 1)
  expect(delays.failed("mine", 2)).toBe(500)
  for (let i = 0; i < 10_000; i++) delays.failed(`other ${i}`, 3)
  expect(delays.failed("mine", 4)).toBe(0)
})

it("delayed attempts of one network run one after the other, and other networks are not delayed", () => {
  const delays = new FailureDelays()
  for (let i = 0; i < 5; i++) expect([delays.book("192.0.2.1", i), delays.failed("192.0.2.1", i)]).toEqual([0, 0])
  expect([delays.book("192.0.2.1", 10), delays.book("192.0.2.1", 10)]).toEqual([250, 500])
  expect(delays.book("192.0.2.2", 10)).toBe(0)
  delays.failed("192.0.2.1", 260)
  expect(delays.book("192.0.2.1", 510)).toBe(500)
  expect(delays.book("192.0.2.1", 260 + 60_000)).toBe(0)
})

it("no attempt is delayed for more than fifteen seconds: the next one is refused", () => {
  const delays = new FailureDelays()
  for (let i = 0; i < 20; i++) delays.failed("192.0.2.1", 0)
  const held = Array.from({ length: 5 }, () => delays.book("192.0.2.1", 0))
  expect(held).toEqual([5_000, 10_000, 15_000, undefined, undefined])
  expect(delays.book("192.0.2.1", 5_000)).toBe(15_000)
})

it("the first refusal of a person from each network in an hour is recorded, for ten networks at most", () => {
  const series = new RefusalSeries()
  const [ada, eve] = [newPersonId(), newPersonId()]
  const noted = (network: string, now: number, person = ada) => series.isNoted(person, network, now)
  expect([noted("a", 0), noted("a", 1), noted("b", 2), noted("a", 3, eve)]).toEqual([true, false, true, true])
  const others = Array.from({ length: 20 }, (_, n) => noted(`network ${n}`, 4))
  expect(others.filter(Boolean)).toHaveLength(8)
  expect([noted("a", 3_599_999), noted("a", 3_600_000)]).toEqual([false, true])
})
