import { expect, it } from "vitest"
import { canonicalJson } from "../../src/lib/Json.ts"

it("the same value has the same text, whatever the order of its members", () => {
  const text = '{"a":[1,{"x":null,"y":"2"}],"b":true}'
  expect(canonicalJson({ b: true, a: [1, { y: "2", x: null }], c: undefined })).toBe(text)
  expect(canonicalJson(JSON.parse(text))).toBe(text)
})

it("lists keep their order, and texts their escapes", () => {
  expect(canonicalJson([2, 1, 'a"\n'])).toBe('[2,1,"a\\"\\n"]')
})
