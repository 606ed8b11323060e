import { Either, ParseResult, Schema } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { Metadata } from "../../src/Domain/Metadata.ts"
import { parseJson } from "../../src/lib/Json.ts"

const decode = Schema.decodeUnknownEither(Metadata)

/** `path: message` of each fault. */
const faultsOf = (value: unknown) =>
  Either.match(decode(value), {
    onLeft: (error) =>
      ParseResult.ArrayFormatter.formatErrorSync(error).map(({ message, path }) => `${path.join(".")}: ${message}`),
    onRight: () => []
  })

const nested = (levels: number): unknown => (levels === 1 ? {} : { a: nested(levels - 1) })

it("is returned as given", () => {
  void fc.assert(
    fc.property(
      fc.dictionary(fc.string({ maxLength: 20 }), fc.jsonValue({ maxDepth: 1 }), { maxKeys: 10 }),
      (value) => {
        expect(decode(value)).toEqual(Either.right(JSON.stringify(value)))
      }
    )
  )
})

it("keeps a key named __proto__", () => {
  const text = '{"__proto__":{"a":1}}'
  expect(decode(Either.getOrThrow(parseJson(text)))).toEqual(Either.right(text))
})

describe("bounds", () => {
  it.each([
    ["50 keys", Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`k${i}`, i]))],
    ["a key of 40 characters", { ["k".repeat(40)]: 1 }],
    ["a string of 500 characters", { a: "x".repeat(500) }],
    ["500 emoji", { a: "😀".repeat(500) }],
    ["5 levels", nested(5)]
  ])("%s are taken", (_, value) => expect(faultsOf(value)).toEqual([]))

  it.each([
    [
      "51 keys",
      Object.fromEntries(Array.from({ length: 51 }, (_, i) => [`k${i}`, i])),
      [": must have at most 50 keys"]
    ],
    ["a key of 41", { a: { ["k".repeat(41)]: 1 } }, [`a.${"k".repeat(41)}: must have a key of at most 40 characters`]],
    ["a string of 501", { a: ["x".repeat(501)] }, ["a.0: must have at most 500 characters"]],
    ["6 levels", nested(6), ["a.a.a.a.a: must not be nested deeper than 5 levels"]],
    ["an array", [], [": must be an object"]],
    ["null", null, [": must be an object"]],
    ["a text", "x", [": must be an object"]],
    [
      "a number that a double does not hold",
      Either.getOrThrow(parseJson('{"order":12345678901234567890}')),
      ["order: is a number that a double cannot hold exactly: send it as a string"]
    ],
    [
      "more than one fault",
      { a: "x".repeat(501), b: "x".repeat(501) },
      ["a: must have at most 500 characters", "b: must have at most 500 characters"]
    ]
  ])("%s are not", (_, value, faults) => expect(faultsOf(value)).toEqual(faults))

  it("are listed up to twenty: the last line says how many more there are", () => {
    const value = { a: [[[Array.from({ length: 20_000 }, () => [])]]] }
    expect(faultsOf(value).slice(20)).toEqual([": has 19980 problems more"])
    expect(faultsOf({ a: Array.from({ length: 30 }, () => "x".repeat(501)) }).slice(20)).toEqual([
      ": has 10 problems more"
    ])
    const members = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`${"k".repeat(41)}${i}`, 0]))
    expect(faultsOf(members).slice(20)).toEqual([": has 4981 problems more"])
  })

  it("end at 16 KiB of JSON", () => {
    const value = Object.fromEntries(Array.from({ length: 32 }, (_, i) => [`k${100 + i}`, "x".repeat(500)]))
    const room = 16_384 - Buffer.byteLength(JSON.stringify(value))
    const filled = (length: number) => ({ ...value, z: "x".repeat(length) })
    expect(faultsOf(filled(room - 7))).toEqual([])
    expect(faultsOf(filled(room - 6))).toEqual([": must have at most 16 KiB as JSON"])
  })
})
