import { BigDecimal, Either, Option } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { canonicalJson, inexact, parseJson, parseWithTexts } from "../../src/lib/Json.ts"

const decimal = (text: string) => Option.getOrThrow(BigDecimal.fromString(text))

const valueOf = (text: string) => Either.getOrThrow(parseJson(text))

describe("numbers", () => {
  it.each([
    "0",
    "-0",
    "1",
    "0.1",
    "-12.5e+1",
    "9007199254740992",
    "0.30000000000000004",
    "1000000000000000000000",
    "5e-324",
    "1.7976931348623157e308",
    "0.000000000000000000000",
    "0e999999"
  ])("%s is a double", (literal) => {
    expect(valueOf(`{"n":${literal}}`)).toEqual({ n: Number(literal) })
  })

  it.each([
    "9007199254740993",
    "0.1000000000000000055",
    "1e400",
    "1e-400",
    "100000000000000000000.5",
    "1.0000000000000000001"
  ])("%s is not", (literal) => {
    expect(valueOf(`{"n":[${literal}]}`)).toEqual({ n: [inexact] })
  })

  it("are marked exactly where reading and writing would change their value", () => {
    const literal: fc.Arbitrary<string> = fc
      .tuple(
        fc.constantFrom("", "-"),
        fc.bigInt(0n, 10n ** 22n),
        fc.option(fc.bigInt(0n, 10n ** 22n)),
        fc.integer({ min: -30, max: 30 })
      )
      .map(
        ([sign, integer, fraction, exponent]) =>
          `${sign}${integer}${fraction === null ? "" : `.${fraction}`}${exponent === 0 ? "" : `e${exponent}`}`
      )
    void fc.assert(
      fc.property(literal, (text) => {
        const isExact = BigDecimal.equals(decimal(text), decimal(String(Number(text))))
        expect(valueOf(text)).toBe(isExact ? Number(text) : inexact)
      }),
      { numRuns: 2_000 }
    )
  })

  it.each([80, 81, 65_000])("of %d digits are refused beyond 80, before their digits are converted", (length) => {
    const text = `{"amount":1${"0".repeat(length - 2)}1}`
    const refused = "The body has a number of more than 80 characters: send amounts as strings."
    expect(parseJson(text)).toEqual(length > 80 ? Either.left(refused) : Either.right({ amount: inexact }))
    expect(valueOf(`["${"9".repeat(length)}"]`)).toEqual(["9".repeat(length)])
  })

  it.each(["1.2.3e4567890123456", "1e5e5", "--1", "-", "01e5", "1+1", "1.e400", "12345678901234567890-"])(
    "%s is none, wherever it stands",
    (literal) => {
      expect(parseJson(`{"a":${literal}}`)).toEqual(
        Either.left(expect.stringMatching(/^The body is not valid JSON: [A-Z]/))
      )
      expect(parseWithTexts(`{"a":${literal}}`)).toEqual(Either.left("The text is not valid JSON."))
    }
  )

  it("that are inexact are marked up to the hundredth, which refuses the body as well", () => {
    const { n } = valueOf(`{"n":[${Array.from({ length: 3_000 }, () => "1e400").join(",")}]}`) as { n: Array<unknown> }
    expect(n.filter((one) => one === inexact)).toHaveLength(100)
  })

  it("inside strings are left alone", () => {
    const text = '{"12345678901234567890":"12345678901234567890","a\\"1e400":"\\\\","b":"\\"1e400"}'
    expect(valueOf(text)).toEqual(JSON.parse(text))
  })
})

it("everything else is read as JSON.parse does", () => {
  void fc.assert(
    fc.property(fc.json({ maxDepth: 5 }), (text) => {
      expect(valueOf(text)).toEqual(JSON.parse(text))
    })
  )
})

it("a key named __proto__ is a key, and touches no prototype", () => {
  const value = valueOf('{"__proto__":{"admin":true},"n":12345678901234567890}')
  expect(Object.getOwnPropertyNames(value)).toEqual(["__proto__", "n"])
  expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
})

describe("nesting", () => {
  const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`

  it("of 64 levels is read", () => expect(Either.isRight(parseJson(nested(64)))).toBe(true))

  it.each([65, 30_000])("of %d levels is refused", (depth) => {
    expect(parseJson(nested(depth))).toEqual(Either.left("The body is nested deeper than 64 levels."))
  })

  it("counts no brackets in strings, and levels that end", () => {
    expect(Either.isRight(parseJson(JSON.stringify(["[".repeat(100), '\\"['.repeat(200)])))).toBe(true)
    expect(Either.isRight(parseJson(`[${Array.from({ length: 100 }, () => "[[]]").join(",")}]`))).toBe(true)
  })
})

it.each(["", " \n"])("%j is refused as empty", (text) => {
  expect(parseJson(text)).toEqual(Either.left("The body is empty: send a JSON object."))
})

// The words are the engine's, and differ between versions of Node.
it.each([
  ["{", /property name/],
  ['{"a":1,}', /property name/],
  ["{'a':1}", /property name/],
  ["NaN", /Unexpected (text|token 'N')\.$/],
  ["]]]", /Unexpected token '\]'\.$/],
  ['{\n  "a": 25.00,\n  "b": USDC\n}', /Unexpected token 'U'\.$/],
  ['{"a": "two\nlines"}', /control character/],
  ['{"a" 1}', /':' after property name/],
  ['{"a": 1 "b": 2}', /',' or '}' after property value/],
  ['{"amount": “25”}', /Unexpected token '“'\.$/],
  ["[1,,2]", /Unexpected token ','\.$/]
] as const)("%j is refused by what the engine says, and is not quoted", (text, said) => {
  const problem = Either.getOrElse(Either.flip(parseJson(text)), () => "it was parsed")
  expect(problem).toMatch(/^The body is not valid JSON: [^"]*\.$/)
  expect(problem).toMatch(said)
})

it.each([
  '{"a":1,"a":1}',
  '{"metadata":{"a":1,"a":2}}',
  '{"list":[{"a":1},{"b":1,"b":1}]}',
  '{"a":1,"\\u0061":2}',
  '{"a":9007199254740993,"a":1}'
])("%s has a member twice, and is refused", (text) => {
  expect(parseJson(text)).toEqual(Either.left("An object of the body has a member twice: give each name once."))
})

it("members of different objects may have one name", () => {
  const value = { a: { a: 1 }, list: [{ a: 1 }, { a: 2, "b:c": '":"' }] }
  expect(valueOf(JSON.stringify(value))).toEqual(value)
})

it("a text with its numbers as texts is nested 64 levels at most", () => {
  const nested = (depth: number) => parseWithTexts(`${"[".repeat(depth)}1${"]".repeat(depth)}`)
  expect(Either.isRight(nested(64))).toBe(true)
  expect(Either.flip(nested(65)).pipe(Either.getOrThrow)).toContain("64 levels")
})

it("a text with its numbers as texts has numbers of 80 characters at most", () => {
  const numbered = (length: number) => parseWithTexts(`[${"1".repeat(length)}]`)
  expect(numbered(80)).toEqual(Either.right(["1".repeat(80)]))
  expect(Either.flip(numbered(81)).pipe(Either.getOrThrow)).toContain("80 characters")
})

describe("canonical JSON", () => {
  it("the same value has the same text, whatever the order of its members", () => {
    const text = '{"a":[1,{"x":null,"y":"2"}],"b":true}'
    expect(canonicalJson({ b: true, a: [1, { y: "2", x: null }], c: undefined })).toBe(text)
    expect(canonicalJson(JSON.parse(text))).toBe(text)
  })

  it("lists keep their order, and texts their escapes", () => {
    expect(canonicalJson([2, 1, 'a"\n'])).toBe('[2,1,"a\\"\\n"]')
  })
})
