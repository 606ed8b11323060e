/** A text of any length: its beginning, what is repeated, and its end. */
export type Shape = readonly [head: string, unit: string, tail: string]

export type NamedText = readonly [name: string, text: string]

/** Runs of one kind, which a parser of anything may go back over, count or collect. */
const units = ["0", "a", " ", '"', "\\", ",", "/", "%", "=", "é", "\u0301\u0316"]

/** The end of some lets a match fail there. */
const shapes: ReadonlyArray<Shape> = units.flatMap((unit) => [["", unit, ""] as const, ["", unit, "\u0001"] as const])

const textOf = (length: number, [head, unit, tail]: Shape): string =>
  head + unit.repeat(Math.floor((length - head.length - tail.length) / unit.length)) + tail

/** Texts of this length that are dear to most parsers, and those of these shapes. */
export const worstTexts =
  (own: ReadonlyArray<Shape>) =>
  (length: number): ReadonlyArray<NamedText> =>
    [...shapes, ...own].map((shape) => [JSON.stringify(shape), textOf(length, shape)])

/** Text of this length that no parser has a reason to be slow with. */
export const harmlessText = (length: number): string => "abcdefgh".repeat(length / 8)

const filled = (length: number, head: string, part: (index: number) => string, tail: string): string => {
  const parts: Array<string> = []
  let size = head.length + tail.length
  for (let i = 0; ; i++) {
    const next = part(i)
    size += next.length + 1
    if (size > length) return head + parts.join(",") + tail
    parts.push(next)
  }
}

/** JSON texts of this length that are dear to parse, to check or to refuse. */
export const worstBodies = (length: number): ReadonlyArray<NamedText> => {
  const digits = "0".repeat(length - 20)
  const many = (head: string, part: (index: number) => string, tail: string) => filled(length, head, part, tail)
  return [
    ["a long number", `{"amount":1${digits}1}`],
    ["a long fraction", `{"amount":0.${digits}1}`],
    ["a long exponent", `{"amount":1e${digits}1}`],
    ["a long negative number that ends badly", `{"amount":-1${digits}1x}`],
    ["unknown members", many("{", (i) => `"a${i}":0`, "}")],
    ["members like a known one", many("{", (i) => `"amount${i}":0`, "}")],
    ["members with long names", many("{", (i) => `"${"merchantRef".repeat(5)}${i}":0`, "}")],
    ["members of one name", many("{", () => '"a":0', "}")],
    ["members that are inexact", many("{", (i) => `"a${i}":1e400`, "}")],
    ["inexact numbers", many('{"metadata":{"a":[', () => "12345678901234567890", "]}}")],
    ["numbers with exponents", many('{"events":[', () => "1e2", "]}")],
    ["items", many('{"events":[', () => "0", "]}")],
    ["items of unknown members", many("{", (i) => `"a${i}":[${"0,".repeat(101)}0]`, "}")],
    ["metadata's members", many('{"metadata":{', (i) => `"a${i}":0`, "}}")],
    ["metadata's long names", many('{"metadata":{', (i) => `"${"k".repeat(44)}${i}":0`, "}}")],
    ["metadata's items", many('{"metadata":{"a":[', () => "0", "]}}")],
    ["metadata's objects", many('{"metadata":{"a":[', () => '{"a":1e400}', "]}}")],
    ["metadata's depth", many('{"metadata":{"a":[', () => "[[[[[[0]]]]]]", "]}}")],
    ["64 levels again and again", many("[", () => `${"[".repeat(62)}0${"]".repeat(62)}`, "]")],
    ["brackets", "[".repeat(length)],
    ["a string that does not end", `{"a":"${'\\"'.repeat(length / 2 - 8)}`],
    ["strings that do not end", '{"'.repeat(length / 2)],
    ["an escaped string", `{"a":"${"\\u0041".repeat(Math.floor(length / 6) - 4)}"}`]
  ]
}
