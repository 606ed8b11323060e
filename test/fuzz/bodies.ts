import * as fc from "fast-check"
import type { JsonSchema, MediaType } from "../../src/Documents/openApi.ts"
import { worstBodies } from "../lib/worstTexts.ts"
import { oddTexts, oddValues } from "./bySchema.ts"

type Json = Readonly<Record<string, unknown>>

/** Changes a body as a value. */
const changed = (body: Json, names: ReadonlyArray<string>): fc.Arbitrary<unknown> => {
  const name = fc.oneof(fc.constantFrom(...names), fc.constantFrom("__proto__", "constructor", "amuont", "", "\ud800"))
  const set = fc.tuple(name, oddValues).map(([at, value]): unknown => {
    // `__proto__` too is to be a member of its own.
    const other = Object.fromEntries(Object.entries(body).filter(([key]) => key !== at))
    return Object.fromEntries([...Object.entries(other), [at, value]])
  })
  const drop = fc
    .constantFrom(...names)
    .map((at) => Object.fromEntries(Object.entries(body).filter(([key]) => key !== at)))
  return fc.oneof({ weight: 5, arbitrary: set }, { weight: 2, arbitrary: drop }, { weight: 1, arbitrary: oddValues })
}

/** What only the text of a body can say. */
const texts = (names: ReadonlyArray<string>): fc.Arbitrary<(text: string) => string> =>
  fc.oneof(
    fc
      .tuple(
        fc.constantFrom(...names, "__proto__"),
        fc.constantFrom("1e400", "-0", "1e-400", '"x"', "{}", `1${"0".repeat(400)}`)
      )
      .map(
        ([name, literal]) =>
          (text: string) =>
            text.replace("{", `{${JSON.stringify(name)}:${literal},`)
      ),
    fc.nat(200).map((at) => (text: string) => text.slice(0, at)),
    fc.tuple(fc.nat(200), fc.constantFrom('"', "{", "}", "\\", ",", "\u0000", "\ufeff", "\\ud800", "NaN", "//")).map(
      ([at, put]) =>
        (text: string) =>
          `${text.slice(0, at)}${put}${text.slice(at)}`
    ),
    fc
      .constantFrom(64, 65, 5_000)
      .map((depth) => (text: string) => text.replace("{", `{"metadata":${"[".repeat(depth)}${"]".repeat(depth)},`)),
    fc
      .constantFrom(1_000, 64 * 1024 - 400, 64 * 1024 + 1)
      .map((size) => (text: string) => `${text}${" ".repeat(size)}`),
    // Just below the limit: what takes longest to parse, to check and to refuse.
    fc.constantFrom(...worstBodies(64 * 1024 - 100)).map(
      ([, worst]) =>
        () =>
          worst
    ),
    fc.constantFrom(
      (text: string) => `\ufeff${text}`,
      () => "",
      (text: string) => `${text}${text}`
    )
  )

const bytes: fc.Arbitrary<(body: Buffer) => Buffer> = fc
  .tuple(fc.nat(300), fc.constantFrom([0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0x00], [0xf4, 0x90, 0x80, 0x80]))
  .map(
    ([at, put]) =>
      (body) =>
        Buffer.concat([body.subarray(0, at), Buffer.from(put), body.subarray(at)])
  )

const same = (text: string): string => text

/**
 * Bodies for an operation: as its schema wants them, as its examples are, and both of them changed. `fresh` makes a
 * difference between two that would otherwise be the same order.
 */
export const bodies = (
  { examples = {}, schema }: MediaType,
  properties: Readonly<Record<string, JsonSchema>>,
  valueFor: (schema: JsonSchema) => fc.Arbitrary<unknown>
): fc.Arbitrary<Buffer> => {
  // Of a body without fields, one that it does not have.
  const names = [...Object.keys(properties), ...(Object.keys(properties).length === 0 ? ["reason"] : [])]
  const written = Object.values(examples).map(({ value }) => value)
  const example = fc
    .tuple(fc.constantFrom(...written), fc.hexaString({ minLength: 16, maxLength: 16 }), fc.nat(4))
    .map(([value, ref, fresh]) =>
      fresh > 0 && "merchantRef" in properties ? { ...(value as Json), merchantRef: ref } : value
    )
  const good = fc.oneof(
    { weight: 3, arbitrary: example },
    { weight: 1, arbitrary: valueFor(schema) }
  ) as fc.Arbitrary<Json>
  const value = fc.oneof(
    { weight: 5, arbitrary: good },
    { weight: 5, arbitrary: good.chain((body) => changed(body, names)) },
    { weight: 1, arbitrary: fc.constantFrom<unknown>(...oddTexts) }
  )
  const rewritten = fc.oneof({ weight: 6, arbitrary: fc.constant(same) }, { weight: 2, arbitrary: texts(names) })
  const rebytten = fc.oneof(
    { weight: 12, arbitrary: fc.constant((body: Buffer) => body) },
    { weight: 1, arbitrary: bytes }
  )
  return fc
    .tuple(value, rewritten, rebytten)
    .map(([body, rewrite, rebyte]) => rebyte(Buffer.from(rewrite(JSON.stringify(body)))))
}
