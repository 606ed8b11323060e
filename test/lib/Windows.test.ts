import { expect, it } from "@effect/vitest"
import { Windows } from "../../src/lib/Windows.ts"

/** Counts of one key at one time, by what they exceed. */
const excesses = (windows: Windows, key: string, most: number, now: number, count: number) =>
  Array.from({ length: count }, () => windows.excess(key, most, now))

it("a key has its most in a window, beyond which the rest of the window is left, and other keys have theirs", () => {
  const windows = new Windows(5_000)
  expect(excesses(windows, "a", 2, 0, 3)).toEqual([0, 0, 5_000])
  expect([windows.excess("a", 2, 4_000), windows.excess("b", 2, 4_000)]).toEqual([1_000, 0])
  expect(excesses(windows, "a", 2, 5_000, 3)).toEqual([0, 0, 5_000])
})

it("a window ends at once where the clock is set back", () => {
  const windows = new Windows(5_000)
  excesses(windows, "a", 1, 86_400_000, 9)
  expect(excesses(windows, "a", 1, 0, 2)).toEqual([0, 5_000])
})

it("what one key has no room for is counted for none, until the last of the full windows ends", () => {
  const windows = new Windows(1_000)
  const take = (key: string, now: number) =>
    windows.take(
      [
        [key, 2],
        ["all", 3]
      ],
      now
    )
  expect([take("a", 0), take("a", 1), take("a", 2), take("b", 500), take("b", 501)]).toEqual([
    ...[true, true, false],
    ...[true, false]
  ])
  expect(windows.fullUntil([["a", 2]], 600)).toBe(1_000)
  expect(
    windows.fullUntil(
      [
        ["b", 1],
        ["all", 3]
      ],
      600
    )
  ).toBe(1_500)
  expect(windows.fullUntil([["b", 2]], 600)).toBeUndefined()
  expect([take("b", 1_000), take("b", 1_001)]).toEqual([true, false])
})

it("the number of keys in memory is limited: those that were counted last are kept", () => {
  const windows = new Windows(1_000)
  windows.excess("mine", 1, 0)
  for (let i = 0; i < 9_999; i++) windows.excess(`other ${i}`, 1, 1)
  expect(windows.excess("mine", 1, 2)).toBe(998)
  for (let i = 0; i < 10_000; i++) windows.excess(`another ${i}`, 1, 3)
  expect(windows.excess("mine", 1, 4)).toBe(0)
})
