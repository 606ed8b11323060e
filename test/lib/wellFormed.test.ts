import { Option } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { badResponse } from "../../src/Chains/rpc/methods.ts"
import type { RpcClient } from "../../src/Chains/rpc/Rpc.ts"
import { redactor } from "../../src/Http/redacted.ts"
import { shorten } from "../../src/Http/validationProblems.ts"
import { cut, cutToBytes, shownLine, wellFormedJson } from "../../src/lib/text.ts"
import { detailText } from "../../src/Operations/auditLog.ts"
import { CreatePaymentBody } from "../../src/Payments/Api.ts"
import { browserName } from "../../src/Portal/pages/Me.tsx"

const utf16 = (max = 40) => fc.array(fc.nat(0xffff), { maxLength: max }).map((codes) => String.fromCharCode(...codes))
const text = () => fc.oneof(utf16(), fc.fullUnicodeString(), fc.constant("🎂".repeat(20)))

it("a cut text is well-formed, no longer than asked, and begins as the whole does", () => {
  void fc.assert(
    fc.property(text(), fc.integer({ min: 1, max: 60 }), fc.constantFrom("", "…"), (whole, most, end) => {
      const short = cut(whole, most, end)
      expect(short.isWellFormed()).toBe(true)
      expect(short.length).toBeLessThanOrEqual(most)
      if (whole.length <= most) return void expect(short).toBe(whole.toWellFormed())
      expect(short.endsWith(end)).toBe(true)
      const kept = short.slice(0, short.length - end.length)
      expect(whole.toWellFormed().startsWith(kept)).toBe(true)
      // No more than half a pair is lost.
      expect(kept.length).toBeGreaterThanOrEqual(most - end.length - 1)
    })
  )
})

it("a text cut to bytes has no replaced character that was not there", () => {
  void fc.assert(
    fc.property(
      fc.fullUnicodeString(),
      fc.integer({ min: 3, max: 60 }),
      fc.constantFrom("", "…"),
      (whole, most, end) => {
        const short = cutToBytes(whole, most, end)
        expect(Buffer.byteLength(short)).toBeLessThanOrEqual(most)
        if (Buffer.byteLength(whole) <= most) return void expect(short).toBe(whole)
        expect(short.endsWith(end)).toBe(true)
        expect(whole.startsWith(short.slice(0, short.length - end.length))).toBe(true)
      }
    )
  )
})

const shownText = (value: string): string => value.toWellFormed().replaceAll("\0", "\ufffd")

const withoutHalves = (value: unknown): unknown => {
  if (typeof value === "string") return shownText(value)
  if (Array.isArray(value)) return value.map(withoutHalves)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [shownText(name), withoutHalves(one)]))
}

describe("a stored JSON text", () => {
  it("has U+FFFD for each half of a pair, in names too, and is otherwise the same", () => {
    const json = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 3 },
        text(),
        fc.integer(),
        fc.array(tie("value")),
        fc.dictionary(text(), tie("value"))
      )
    })).value
    void fc.assert(
      fc.property(json, (value) => {
        const shown = wellFormedJson(JSON.stringify(value))
        expect(withoutHalves(JSON.parse(shown))).toEqual(withoutHalves(value))
        expect(JSON.stringify(JSON.parse(shown))).toBe(JSON.stringify(withoutHalves(value)))
      })
    )
  })

  it.each([
    [{ note: "Birthday card \ud83c" }, '{"note":"Birthday card \ufffd"}'],
    [{ "\udf82": ["\udf82\ud83c"] }, '{"\ufffd":["\ufffd\ufffd"]}'],
    [{ "\0a": "\0", b: "\\u0000" }, '{"\ufffda":"\ufffd","b":"\\\\u0000"}'],
    [{ a: "\\ud83c", b: "\\\\ud83c\ud83c" }, '{"a":"\\\\ud83c","b":"\\\\\\\\ud83c\ufffd"}'],
    [{ a: "🎂 \n" }, '{"a":"🎂 \\n"}']
  ])("%j", (value, shown) => expect(wellFormedJson(JSON.stringify(value))).toBe(shown))
})

describe("what is cut before it is stored, shown or sent has whole characters", () => {
  const redact = redactor(Option.some(CreatePaymentBody))
  const client = { host: "rpc.example" } as RpcClient
  const cuts: Readonly<Record<string, (text: string) => string>> = {
    "a detail of the audit log": (text) => detailText({ text, list: [text] }),
    "a body in the log of requests": (merchantRef) => redact({ merchantRef }, true),
    "a line of a terminal": (text) => shownLine(text),
    "a name in a message of the API": shorten,
    "the params of a provider's error": (text) =>
      badResponse(client, { method: "eth_call", params: [text] }, "").method,
    "a provider's error": (text) => badResponse(client, { method: "eth_call", params: [] }, text).detail,
    "a user agent": browserName
  }
  it.each(Object.entries(cuts))("%s", (_, cutOff) => {
    for (const first of ["", "x"]) {
      const shown = cutOff(first + "🎂".repeat(400))
      expect(shown).toContain("🎂")
      expect(shown).not.toMatch(/\\ud/)
      expect(shown).toBe(shown.toWellFormed())
    }
  })
})
