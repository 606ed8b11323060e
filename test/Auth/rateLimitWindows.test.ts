import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import {
  hourMillis,
  isForgotten,
  minuteMillis,
  type RateLimit,
  spend as spendAll,
  type Usage,
  unused
} from "../../src/Auth/rateLimitWindows.ts"

const limits = { perMinute: 3, perHour: 5 }
const start = 1_700_000_000_000

const spend = (usage: Usage, limits: RateLimit, now: number) => spendAll([{ of: "key", usage, limits }], now)

describe("two fixed windows", () => {
  it("begin with the first request, and show the one with fewer requests left", () => {
    const usage = unused()
    const remaining = [0, 1, 2].map((i) => spend(usage, limits, start + i))
    expect(remaining.map((one) => [one.window, one.remaining, one.allowed])).toEqual([
      ["minute", 2, true],
      ["minute", 1, true],
      ["minute", 0, true]
    ])
    expect(spend(usage, limits, start + minuteMillis - 1)).toEqual({
      allowed: false,
      of: "key",
      window: "minute",
      limit: 3,
      remaining: 0,
      resetAt: start + minuteMillis
    })
    // Refusals are not counted, and the next minute begins with its first request.
    const next = start + minuteMillis + 30_000
    expect(spend(usage, limits, next)).toMatchObject({ allowed: true, window: "hour", remaining: 1, limit: 5 })
    expect(spend(usage, limits, next + 1)).toMatchObject({ allowed: true, window: "hour", remaining: 0 })
    expect(spend(usage, limits, next + minuteMillis)).toEqual({
      allowed: false,
      of: "key",
      window: "hour",
      limit: 5,
      remaining: 0,
      resetAt: start + hourMillis
    })
    expect(spend(usage, limits, start + hourMillis)).toMatchObject({ allowed: true, remaining: 2 })
  })

  it("report the one that stays full for longer when both are full", () => {
    const usage = unused()
    for (let i = 0; i < 2; i++) spend(usage, { perMinute: 2, perHour: 2 }, start)
    expect(spend(usage, { perMinute: 2, perHour: 2 }, start)).toMatchObject({ allowed: false, window: "hour" })
  })

  it("restart when the clock is set back, and are deleted once both are over", () => {
    const usage = unused()
    for (let i = 0; i < 3; i++) spend(usage, limits, start)
    expect(spend(usage, limits, start - 1)).toMatchObject({ allowed: true, remaining: 2 })
    expect(isForgotten(usage, start - 1 + hourMillis - 1)).toBe(false)
    expect(isForgotten(usage, start - 1 + hourMillis)).toBe(true)
  })

  it("never accept more requests than their limits", () =>
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 70_000 }), { maxLength: 300 }), (gaps) => {
        const usage = unused()
        const passed: Array<number> = []
        let now = start
        for (const gap of gaps) {
          now += gap
          if (spend(usage, { perMinute: 4, perHour: 30 }, now).allowed) passed.push(now)
        }
        // Fixed windows can touch: an interval of one window's length overlaps at most two of them.
        for (const at of passed) {
          expect(passed.filter((other) => other >= at && other < at + minuteMillis).length).toBeLessThanOrEqual(8)
          expect(passed.filter((other) => other >= at && other < at + hourMillis).length).toBeLessThanOrEqual(60)
        }
      })
    ))

  it("of a key and its account count together: a request that one refuses counts in neither", () => {
    const account = { of: "account", usage: unused(), limits: { perMinute: 3, perHour: 100 } } as const
    const keyOf = (perMinute: number) => ({ of: "key", usage: unused(), limits: { perMinute, perHour: 100 } }) as const
    const [one, next] = [keyOf(2), keyOf(2)]
    const ask = (key: typeof one) => {
      const { allowed, of, remaining } = spendAll([key, account], start)
      return [allowed, of, remaining]
    }
    expect([ask(one), ask(one), ask(one)]).toEqual([
      [true, "key", 1],
      [true, "key", 0],
      [false, "key", 0]
    ])
    expect(account.usage.minute.count).toBe(2)
    expect([ask(next), ask(next)]).toEqual([
      [true, "account", 0],
      [false, "account", 0]
    ])
    expect(next.usage.minute.count).toBe(1)
  })
})
