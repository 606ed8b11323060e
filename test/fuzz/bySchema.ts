import * as fc from "fast-check"
import { type JsonSchema, nameOf, type OpenApiDocument } from "../../src/Documents/openApi.ts"

/** Texts that programs stumble over. */
export const oddTexts: ReadonlyArray<string> = [
  "",
  " ",
  "0",
  "-1",
  "01",
  "1e3",
  "0x10",
  "NaN",
  "9".repeat(78),
  "9".repeat(5_000),
  "1.5",
  "null",
  "undefined",
  "__proto__",
  "constructor",
  "toString",
  "\u0000",
  "\ud800",
  "\udc00x",
  "é\u0301",
  "\u202eabc",
  "😀".repeat(200),
  "x".repeat(10_000),
  "'; DROP TABLE payments; --",
  "../../etc/passwd",
  "%00",
  "https://127.0.0.1:1/",
  "https://[::1]/",
  "https://user:secret@example.com/",
  "http://169.254.169.254/latest",
  "HTTPS://EXAMPLE.COM",
  "https://example.com/#\ud800",
  "javascript:alert(1)"
]

const nested = (depth: number): unknown =>
  depth === 0 ? 1 : depth % 2 === 0 ? [nested(depth - 1)] : { a: nested(depth - 1) }

/** Values of every kind, most of them where they do not belong. */
export const oddValues: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    false,
    0,
    -0,
    -1,
    1.5,
    1e21,
    1e308,
    5e-324,
    2 ** 53,
    -(2 ** 53),
    60,
    86_400,
    86_401
  ),
  fc.constantFrom<unknown>([], {}, [[]], [null], { a: {} }, nested(5), nested(6), nested(70)),
  fc.constantFrom(...oddTexts),
  fc.jsonValue({ maxDepth: 4 })
)

const textFor = ({ format, maxLength = 40, minLength = 0, pattern }: JsonSchema): fc.Arbitrary<string> => {
  // fast-check knows no Unicode properties: there any printable text will do.
  if (pattern?.includes("\\p{")) return fc.string({ minLength: Math.max(1, minLength), maxLength: 40 })
  if (pattern !== undefined) return fc.stringMatching(new RegExp(pattern, "u"))
  if (format === "uri") return fc.webUrl({ validSchemes: ["https"] })
  return fc.string({ minLength, maxLength: Math.min(maxLength, minLength + 60) })
}

/** Values that a schema of the document allows, or nearly: its descriptions know more than it does. */
export const bySchema = (document: OpenApiDocument) => {
  const objectFor = ({ additionalProperties, properties = {}, required = [] }: JsonSchema): fc.Arbitrary<unknown> => {
    const known = fc.record(
      Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, valueFor(schema)])),
      { requiredKeys: [...required] }
    )
    if (additionalProperties === undefined || additionalProperties === false) return known
    const others = fc.dictionary(fc.string({ maxLength: 45 }), fc.jsonValue({ maxDepth: 5 }), { maxKeys: 8 })
    return fc.tuple(others, known).map(([more, some]) => ({ ...more, ...some }))
  }

  const valueFor = (schema: JsonSchema): fc.Arbitrary<unknown> => {
    if (schema.$ref !== undefined) return valueFor(document.components.schemas[nameOf(schema.$ref)] ?? {})
    if ("const" in schema) return fc.constant(schema.const)
    if (schema.enum !== undefined) return fc.constantFrom(...schema.enum)
    const [first, ...others] = schema.anyOf ?? schema.allOf ?? []
    if (first !== undefined) return fc.oneof(valueFor(first), ...others.map(valueFor))
    const [type] = [schema.type].flat()
    if (type === "string") return textFor(schema)
    if (type === "integer" || type === "number") {
      return fc.integer({ min: schema.minimum ?? -1_000, max: schema.maximum ?? 1_000_000 })
    }
    if (type === "boolean") return fc.boolean()
    if (type === "array") return arrayFor(schema)
    return type === "object" ? objectFor(schema) : fc.jsonValue({ maxDepth: 5 })
  }

  const arrayFor = ({ items = {}, maxItems = 6, minItems = 0, uniqueItems }: JsonSchema): fc.Arbitrary<unknown> => {
    const bounds = { minLength: minItems, maxLength: Math.min(maxItems, minItems + 6) }
    return uniqueItems ? fc.uniqueArray(valueFor(items), bounds) : fc.array(valueFor(items), bounds)
  }
  return valueFor
}
