import { expect, it } from "vitest"
import { countText } from "../../src/Domain/countText.ts"

it("one, or several", () => {
  expect([0, 1, 2].map((n) => countText(n, "transfer"))).toEqual(["0 transfers", "1 transfer", "2 transfers"])
  expect([1, 2].map((n) => countText(n, "address"))).toEqual(["1 address", "2 addresses"])
})
