import { expect, it } from "vitest"
import { repeatOf, seedsOf } from "./seeds.ts"

it("plays fresh seeds where no first one is named", () => {
  expect(seedsOf({}, 123_456)).toEqual({ first: 123_456, count: 40 })
  expect(seedsOf({ seeds: "300" }, 123_456)).toEqual({ first: 123_456, count: 300 })
  expect(seedsOf({ seed: "4711" }, 123_456)).toEqual({ first: 4_711, count: 1 })
  expect(seedsOf({ seed: "4711", seeds: "300" }, 123_456)).toEqual({ first: 4_711, count: 300 })
  expect(() => seedsOf({ seeds: "0" }, 1)).toThrow("--seeds takes a number above 0")
})

it("a seed is repeated with what decides its steps", () => {
  expect(repeatOf(7, { seed: "1", seeds: "300" })).toBe("npm run sim -- --seed 7")
  expect(repeatOf(7, { only: "dust", strict: "leftovers" })).toBe(
    "npm run sim -- --seed 7 --only dust --strict leftovers"
  )
})
