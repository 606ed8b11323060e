import { describe, expect, it } from "@effect/vitest"
import { AddressSet } from "../../../src/Chains/ledger/AddressSet.ts"

const mixed = "0x52908400098527886E0F7030069857D2E4169EE7"
const lower = mixed.toLowerCase()

describe("AddressSet", () => {
  it("has an address once, in either case, until it is deleted", () => {
    const set = new AddressSet()
    expect(set.add(mixed)).toBe(true)
    expect(set.add(lower)).toBe(false)
    expect([set.has(mixed), set.has(lower)]).toEqual([true, true])
    expect([...set]).toEqual([lower])
    expect([set.delete(mixed), set.delete(mixed)]).toEqual([true, false])
    expect([set.has(mixed), set.size]).toEqual([false, 0])
  })

  it("finds an address in a topic by the offset of its first digit", () => {
    const set = new AddressSet()
    set.add(mixed)
    const topicOf = (address: string) => `0x${"0".repeat(24)}${address.slice(2)}`
    expect([set.has(topicOf(mixed), 26), set.has(topicOf(lower), 26)]).toEqual([true, true])
    expect(set.has(topicOf(lower).replace("e7", "e8"), 26)).toBe(false)
  })

  it("has nothing that is not an address, nor the zero address", () => {
    const set = new AddressSet()
    set.add(mixed)
    expect([set.has(lower.slice(0, -1)), set.has(`${lower.slice(0, -1)}g`), set.has("")]).toEqual([false, false, false])
    expect(set.add(`0x${"0".repeat(40)}`)).toBe(false)
    expect(set.has(`0x${"0".repeat(40)}`)).toBe(false)
    expect(() => set.add("0x1234")).toThrow("not an address")
  })
})
