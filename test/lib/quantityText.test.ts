import { expect, it } from "vitest"
import { quantityText } from "../../src/lib/quantities.ts"

it("one, or several", () => {
  expect([0, 1, 2].map((n) => quantityText(n, "transfer"))).toEqual(["0 transfers", "1 transfer", "2 transfers"])
  expect([1, 2].map((n) => quantityText(n, "address"))).toEqual(["1 address", "2 addresses"])
})
