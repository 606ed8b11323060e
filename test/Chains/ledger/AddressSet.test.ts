import { createHash } from "node:crypto"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { AddressSet } from "../../../src/Chains/ledger/AddressSet.ts"

const hexOf = (bytes: Uint8Array): string => `0x${Buffer.from(bytes).toString("hex")}`
const anyAddress = fc.uint8Array({ minLength: 20, maxLength: 20 }).map(hexOf)
// Few different last words, and words of zeros, so that addresses meet in the table.
const crowdedAddress = fc
  .record({ first: fc.integer({ min: 0, max: 3 }), last: fc.constantFrom(0, 1, 1023, 1024, 2047) })
  .map(({ first, last }) => `0x${first.toString(16).padStart(32, "0")}${last.toString(16).padStart(8, "0")}`)
  .filter((address) => !/^0x0*$/.test(address))
const address = fc.oneof(anyAddress, crowdedAddress)
const topicOf = (of: string): string => `0x${"0".repeat(24)}${of.slice(2)}`

describe("AddressSet", () => {
  it("does what a Set does, through any order of additions and removals", () => {
    const step = fc.record({ what: fc.constantFrom("add", "add", "delete", "has"), of: address })
    void fc.assert(
      fc.property(fc.array(step, { maxLength: 400 }), (steps) => {
        const packed = new AddressSet()
        const model = new Set<string>()
        for (const { of, what } of steps) {
          expect(packed.has(of)).toBe(model.has(of))
          expect(packed.has(topicOf(of), 26)).toBe(model.has(of))
          if (what === "add") {
            expect(packed.add(of)).toBe(!model.has(of))
            model.add(of)
          } else if (what === "delete") expect(packed.delete(of)).toBe(model.delete(of))
          expect(packed.size).toBe(model.size)
        }
        expect([...packed].sort()).toEqual([...model].sort())
      }),
      { numRuns: 200 }
    )
  })

  it("keeps every address while it grows, and while half of them are removed", () => {
    const random = Array.from({ length: 20_000 }, (_, i) => hexOf(createHash("sha1").update(String(i)).digest()))
    const packed = new AddressSet()
    for (const one of random) packed.add(one)
    expect(packed.size).toBe(new Set(random).size)
    expect(packed.byteLength / packed.size).toBeLessThan(32)
    const [leaving, staying] = [random.filter((_, i) => i % 2 === 0), random.filter((_, i) => i % 2 === 1)]
    for (const one of leaving) packed.delete(one)
    expect(staying.every((one) => packed.has(one))).toBe(true)
    expect(leaving.some((one) => packed.has(one))).toBe(false)
  })

  it("accepts either case, and has nothing that is not an address", () => {
    const packed = new AddressSet()
    packed.add("0x52908400098527886E0F7030069857D2E4169EE7")
    expect(packed.has("0x52908400098527886e0f7030069857d2e4169ee7")).toBe(true)
    expect(packed.has("0x52908400098527886e0f7030069857d2e4169ee")).toBe(false)
    expect(packed.has("0x52908400098527886e0f7030069857d2e4169eeg")).toBe(false)
    expect(packed.has("")).toBe(false)
    expect(packed.add(`0x${"0".repeat(40)}`)).toBe(false)
    expect(packed.has(`0x${"0".repeat(40)}`)).toBe(false)
    expect(() => packed.add("0x1234")).toThrow("not an address")
  })
})
