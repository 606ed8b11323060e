import { expect, it } from "@effect/vitest"
import { Backoff } from "../../../src/Chains/evidence/Backoff.ts"

/** Asks whenever it is due, up to `until` milliseconds; returns the seconds. */
const asking = (waits: Backoff<string>, until: number, onAsk: (n: number) => void = () => undefined) => {
  const times: Array<number> = []
  for (let now = 0; now <= until; now += 1_000) {
    if (!waits.isDue("one", now)) continue
    waits.lengthen("one", now)
    times.push(now / 1_000)
    onAsk(times.length)
  }
  return times
}

it("an open question is asked again after waits that double, up to the longest", () => {
  expect(asking(new Backoff(1_000, 60_000), 240_000)).toEqual([0, 1, 3, 7, 15, 31, 63, 123, 183])
  expect(asking(new Backoff(5_000, 2_000), 20_000)).toEqual([0, 5, 10, 15, 20])
})

it("a wait that is shortened is the first one, and the next is as long as it would have been", () => {
  const waits = new Backoff<string>(1_000, 60_000)
  expect(asking(waits, 20_000, (n) => n <= 3 && waits.shorten("one"))).toEqual([0, 1, 2, 3, 11])
  waits.shorten("another")
  expect(waits.has("another")).toBe(false)
})

it("a provider that comes back, and a clock that is set back, end the waits", () => {
  const waits = new Backoff<string>(60_000, 60_000)
  waits.lengthen("one", 100_000)
  expect(waits.waiting(100_001)).toEqual(["one"])
  expect(waits.waiting(99_999)).toEqual([])
  waits.endAll()
  expect(waits.waiting(100_001)).toEqual([])
})

it("a settled question, or one asked before too many others, begins again", () => {
  const waits = new Backoff<string>(1_000, 60_000, 2)
  for (const one of ["settled", "dropped", "kept"]) for (let i = 0; i < 4; i++) waits.lengthen(one, 0)
  waits.forget("kept")
  expect(["settled", "dropped", "kept"].filter((one) => waits.has(one))).toEqual(["dropped"])
  for (const one of ["dropped", "kept"]) waits.lengthen(one, 0)
  expect(waits.waiting(999)).toEqual(["dropped", "kept"])
  expect(waits.waiting(1_000)).toEqual(["dropped"])
})
