import { expect, it } from "@effect/vitest"
import { newPersonId } from "../../src/Domain/Ids.ts"
import { RefusalSeries } from "../../src/Portal/Desk.ts"

it("the first refusal of a person from each network in an hour is recorded, for ten networks at most", () => {
  const series = new RefusalSeries()
  const [ada, eve] = [newPersonId(), newPersonId()]
  const noted = (network: string, now: number, person = ada) => series.isNoted(person, network, now)
  expect([noted("a", 0), noted("a", 1), noted("b", 2), noted("a", 3, eve)]).toEqual([true, false, true, true])
  const others = Array.from({ length: 20 }, (_, n) => noted(`network ${n}`, 4))
  expect(others.filter(Boolean)).toHaveLength(8)
  expect([noted("a", 3_599_999), noted("a", 3_600_000)]).toEqual([false, true])
})
