import { describe, expect, it } from "@effect/vitest"
import { requirementOf } from "../../src/Domain/Receipt.ts"

describe("what a payment's value requires", () => {
  const policies = [
    { aboveUsd: "100", require: "safe" },
    { aboveUsd: "10000", require: "finalized" }
  ] as const

  it.each([
    ["100", undefined],
    ["100.01", "safe"],
    ["10000", "safe"],
    ["10000.000000000000000001", "finalized"],
    [undefined, "finalized"]
  ] as const)("worth %s: %s", (value, expected) => {
    expect(requirementOf(policies, value)).toBe(expected)
  })

  it("nothing where the chain has no policy", () => {
    expect(requirementOf([], undefined)).toBeUndefined()
    expect(requirementOf([], "1000000")).toBeUndefined()
  })
})
