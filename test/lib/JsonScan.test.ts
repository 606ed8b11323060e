import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { type JsonBounds, JsonScan } from "../../src/lib/JsonScan.ts"

const wide: JsonBounds = { bytes: 1e6, depth: 1e6, values: 1e6 }

/** The bound that a text passes when it comes in parts of these sizes, one after the other. */
const scanned = (text: string, bounds: Partial<JsonBounds>, sizes: ReadonlyArray<number> = [1e6]) => {
  const scan = new JsonScan({ ...wide, ...bounds })
  const bytes = new TextEncoder().encode(text)
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const size = sizes[i % sizes.length] ?? 1
    const excess = scan.take(bytes.subarray(at, at + size))
    if (excess !== undefined) return excess
    at += size
  }
  return undefined
}

const depthOf = (value: unknown): number =>
  typeof value === "object" && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0

/** Lists and objects count one, and each of their values but the first one more. */
const valuesOf = (value: unknown): number => {
  if (typeof value !== "object" || value === null) return 0
  const inner = Object.values(value)
  return 1 + Math.max(0, inner.length - 1) + inner.map(valuesOf).reduce((sum, count) => sum + count, 0)
}

const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 })
// Texts that look like what a scan goes by.
const tricky = fc.string({ unit: fc.constantFrom('"', "\\", "[", "]", "{", "}", ",", "é", "𝄞", "a"), maxLength: 12 })
const json = fc.letrec((tie) => ({
  value: fc.oneof({ depthSize: "medium" }, tricky, fc.integer(), tie("list"), tie("record")),
  list: fc.array(tie("value"), { maxLength: 4 }),
  record: fc.dictionary(tricky, tie("value"), { maxKeys: 4 })
})).value

describe("a scan of a JSON text", () => {
  it("counts the depth and the values of a text, in whatever parts it arrives", () => {
    void fc.assert(
      fc.property(json, sizes, (value, parts) => {
        const text = JSON.stringify(value)
        const [depth, values] = [depthOf(value), valuesOf(value)]
        expect(scanned(text, { depth, values }, parts)).toBeUndefined()
        if (depth > 0) expect(scanned(text, { depth: depth - 1 }, parts)).toBe("depth")
        if (values > 0) expect(scanned(text, { values: values - 1 }, parts)).toBe("values")
      })
    )
  })

  it.each<[string, Partial<JsonBounds>, string | undefined]>([
    ["[[[", { depth: 2 }, "depth"],
    ["[[],[]]", { depth: 2 }, undefined],
    ['"[[["', { depth: 0 }, undefined],
    ['"\\"[[["', { depth: 0 }, undefined],
    ['["\\\\",[[1]]]', { depth: 2 }, "depth"],
    ["1234", { bytes: 3 }, "bytes"],
    ["1234", { bytes: 4 }, undefined],
    ["[1,2,3]", { values: 2 }, "values"],
    ["[1,2,3]", { values: 3 }, undefined]
  ])("%s within %j: %s", (text, bounds, excess) => {
    for (const size of [1, 2, 100]) expect(scanned(text, bounds, [size])).toBe(excess)
  })
})
