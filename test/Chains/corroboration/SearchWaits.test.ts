import { expect, it } from "@effect/vitest"
import { SearchWaits } from "../../../src/Chains/corroboration/SearchWaits.ts"
import { newPaymentId } from "../../../src/Domain/Ids.ts"

const [one, other] = [newPaymentId(0), newPaymentId(0)]

/** Searches whenever the payment is due, up to `until` milliseconds; gives the times. */
const searching = (waits: SearchWaits, until: number, onSearch: () => void = () => undefined) => {
  const times: Array<number> = []
  for (let now = 0; now <= until; now += 1_000) {
    if (waits.waiting(now).includes(one)) continue
    waits.searched(one, now)
    onSearch()
    times.push(now / 1_000)
  }
  return times
}

it("a payment that stays open is searched for after waits that double, up to a minute", () => {
  expect(searching(new SearchWaits(1_000), 240_000)).toEqual([0, 1, 3, 7, 15, 31, 63, 123, 183])
})

it("three searches that find new money are each followed by another at once", () => {
  const waits = new SearchWaits(1_000)
  const found: Array<boolean> = []
  const onSearch = () => {
    found.push(waits.mayFind(one))
    waits.found(one)
  }
  expect(searching(waits, 20_000, onSearch)).toEqual([0, 1, 2, 3, 11])
  expect(found).toEqual([true, true, true, false, false])
})

it("a provider that comes back, and a clock that is set back, end the waits", () => {
  const waits = new SearchWaits(60_000)
  waits.searched(one, 100_000)
  expect(waits.waiting(100_001)).toEqual([one])
  expect(waits.waiting(99_999)).toEqual([])
  waits.endAll()
  expect(waits.waiting(100_001)).toEqual([])
})

it("a payment that has been searched for, or is due no more, begins anew", () => {
  const waits = new SearchWaits(1_000)
  for (const payment of [one, other]) for (let i = 0; i < 4; i++) waits.searched(payment, 0)
  waits.ended(one)
  waits.retain(new Set(), 7_999)
  expect(waits.waiting(7_999)).toEqual([other])
  waits.retain(new Set(), 8_000)
  for (const payment of [one, other]) waits.searched(payment, 9_000)
  expect(waits.waiting(9_999)).toEqual([one, other])
  expect(waits.waiting(10_000)).toEqual([])
})
