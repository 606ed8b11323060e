import type { Dice } from "../../sim/Dice.ts"

const literals = [
  "NaN",
  "1e400",
  "-0",
  "1e-400",
  "Infinity",
  "undefined",
  "{}",
  '"x"',
  "01",
  `1${"0".repeat(400)}`,
  `0.${"0".repeat(60_000)}1`
]
const inserts = [
  '"',
  "{",
  "}",
  "[",
  "]",
  "\\",
  ",",
  "\u0000",
  "\ufeff",
  '"\\ud800"',
  "\u2028",
  "//",
  "/*",
  "\\u00",
  " "
]
const names = ["id", "result", "error", "__proto__", "hash", "number", "blockHash", "topics", "value", "jsonrpc"]

const bytesThatAreNoText = [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0x00], [0xf4, 0x90, 0x80, 0x80]]

const insertedAt = (text: string, at: number, put: string): string => `${text.slice(0, at)}${put}${text.slice(at)}`

/** A text with what only a text can have: two members of one name, numbers beyond all bounds, half of itself. */
export const garbled = (dice: Dice, text: string): Buffer => {
  const at = dice.below(text.length + 1)
  return dice.pick<() => Buffer>([
    () => Buffer.from(text.slice(0, at)),
    () => Buffer.from(insertedAt(text, at, dice.pick(inserts))),
    () => {
      // At the start of some object.
      const open = text.indexOf("{", at)
      const member = `"${dice.pick(names)}":${dice.pick(literals)},`
      return Buffer.from(open < 0 ? `${text}{${member}` : insertedAt(text, open + 1, member))
    },
    () => Buffer.from(text.replace(/"0x[0-9a-f]*"/, dice.pick(literals))),
    () =>
      Buffer.concat([
        Buffer.from(text.slice(0, at)),
        Buffer.from(dice.pick(bytesThatAreNoText)),
        Buffer.from(text.slice(at))
      ]),
    () => Buffer.from(`\ufeff${text}`),
    () => Buffer.from(`${text}${dice.pick([text, ",", "]", "\u0000", "{}", "\n\n"])}`),
    () => Buffer.from(text, "utf16le"),
    () => Buffer.from(text.replaceAll('"', "'")),
    () => Buffer.from(insertedAt(text, at, dice.pick([" ", "\n", "\t"]).repeat(dice.pick([1, 70_000]))))
  ])()
}

/** Of brackets, of values, of one long text: more than any answer, or just as much. */
export const oversized = (dice: Dice, text: string): Buffer => {
  const depth = dice.pick(dice.chance(0.5) ? [13, 14, 15, 16, 17, 18, 64] : [2_100, 3_000, 5_000, 20_000, 100_000])
  const deep = dice.chance(0.5)
    ? `${"[".repeat(depth)}${"]".repeat(depth)}`
    : `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`
  const many = dice.pick([1_999, 2_001, 50_001])
  const put = [
    deep,
    "[".repeat(depth),
    `[${"0,".repeat(many)}0]`,
    `[${"{},".repeat(many)}{}]`,
    `"${"a".repeat(dice.pick([1_000, 65_536, 200_000]))}"`,
    `"0x${"f".repeat(dice.pick([1_000, 70_000, 200_000]))}"`
  ]
  const one = dice.chance(0.4) ? deep : dice.pick(put)
  return dice.pick<() => Buffer>([
    () => Buffer.from(one),
    () => Buffer.from(`{"id":1,"result":${one}}`),
    () => Buffer.from(`[{"id":1,"error":{"code":-32000,"message":"execution reverted","data":${one}}}]`),
    () => Buffer.from(`{"error":{"code":-32000,"message":${one}}}`),
    () => Buffer.from(text.replace(/"(?:0x[0-9a-f]*)"/, () => one))
  ])()
}
