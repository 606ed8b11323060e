import { expect, it } from "vitest"
import { counted } from "../../src/Domain/counted.ts"

it("one, or several", () => {
  expect([0, 1, 2].map((n) => counted(n, "transfer"))).toEqual(["0 transfers", "1 transfer", "2 transfers"])
  expect([1, 2].map((n) => counted(n, "address"))).toEqual(["1 address", "2 addresses"])
})
