import { expect, it } from "vitest"
import { table } from "../../src/commands/Output.ts"
import { shown } from "../../src/lib/text.ts"

it.each([
  ["\u001b[2J\u001b]0;title\u0007", "\\u001b[2J\\u001b]0;title\\u0007"],
  ["pay\u202e001 htap", "pay\\u202e001 htap"],
  ["\u2066a\u2069\u200f\u061c", "\\u2066a\\u2069\\u200f\\u061c"],
  ["\r\u0000\u007f\u009b31m", "\\u000d\\u0000\\u007f\\u009b31m"],
  ["two\nlines\tand é 日本 😀 שלום", "two\nlines\tand é 日本 😀 שלום"]
])("%j is shown as %j", (text, expected) => {
  expect(shown(text)).toBe(expected)
  // JSON means the same as before.
  expect(JSON.parse(shown(JSON.stringify(text)))).toBe(text)
})

it("a cell of a table is one line", () => {
  expect(table(["A", "B"], [["x\ny\tz", "\u001b[1m"]])).toBe("A                B\nx\\u000ay\\u0009z  \\u001b[1m")
})
