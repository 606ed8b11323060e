import { DateTime, Option } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { iso, parseMoment } from "../../src/lib/moment.ts"

const read = (text: string) => Option.getOrUndefined(Option.map(parseMoment(text), iso))

const noon = "2026-01-31T12:00:00.000Z"

describe("the same moment, as programs write it", () => {
  it.each([
    ["JavaScript", "2026-01-31T12:00:00.000Z"],
    ["Java, Instant", "2026-01-31T12:00:00Z"],
    ["Java, Instant with nanoseconds", "2026-01-31T12:00:00.000000000Z"],
    ["Java, OffsetDateTime without seconds", "2026-01-31T14:00+02:00"],
    ["Java, ZonedDateTime", "2026-01-31T13:00+01:00[Europe/Berlin]"],
    ["Python, isoformat", "2026-01-31T12:00:00.000000+00:00"],
    ["Python, str", "2026-01-31 12:00:00+00:00"],
    ["Python, strftime with %z", "2026-01-31T06:30:00-0530"],
    ["Go, RFC3339Nano", "2026-01-31T17:45:00+05:45"],
    ["PHP, DATE_ATOM", "2026-01-31T12:00:00+00:00"],
    ["PHP, DATE_ISO8601", "2026-01-31T12:00:00+0000"],
    [".NET, round trip", "2026-01-31T12:00:00.0000000Z"],
    ["PostgreSQL", "2026-01-31 13:00:00.000000+01"],
    ["lower case", "2026-01-31t12:00:00z"],
    ["an offset whose plus is a space in a query", "2026-01-31T14:00:00 02:00"],
    ["an offset of the other day", "2026-02-01T02:00:00+14:00"],
    ["an unknown offset", "2026-01-31T12:00:00-00:00"]
  ])("%s: %s", (_, text) => expect(read(text)).toBe(noon))
})

it("a day is its beginning in UTC", () => expect(read("2026-01-31")).toBe("2026-01-31T00:00:00.000Z"))

it("a fraction of 1 to 9 digits counts up to the next millisecond, which compares as the fraction does", () => {
  void fc.assert(
    fc.property(fc.nat(253_402_214_400), fc.nat(999_999_999), (second, nanos) => {
      const whole = DateTime.formatIso(DateTime.unsafeMake(second * 1000)).slice(0, 19)
      const digits = String(nanos).padStart(9, "0")
      const base = Date.parse(`${whole}Z`)
      for (let length = 1; length <= 9; length++) {
        const part = digits.slice(0, length)
        const millis = base + Math.ceil(Number(part.padEnd(9, "0")) / 1e6)
        expect(parseMoment(`${whole}.${part}Z`)).toEqual(Option.some(millis))
      }
    })
  )
})

describe("not a moment", () => {
  it.each([
    "",
    "today",
    "2026-02-30",
    "2026-02-30T12:00:00Z",
    "2026-13-01T12:00:00Z",
    "2026-01-31T24:01:00Z",
    "2026-01-31T12:60:00Z",
    "2026-01-31T12:00:61Z",
    "2026-01-31T12:00:00",
    "2026-01-31T12:00:00.Z",
    "2026-01-31T12:00:00.1234567890Z",
    "2026-01-31T12:00:00+24:00",
    "2026-01-31T12:00:00+02:60",
    "2026-01-31T12:00:00 UTC",
    "20260131T120000Z",
    "31.01.2026",
    "1769860800",
    "2026-01-31T12:00:00Z\n",
    "2026-01-31T12Z"
  ])("%j", (text) => expect(read(text)).toBeUndefined())
})
