import { describe, expect, it } from "@effect/vitest"
import { RateLimiter } from "../../../src/Chains/rpc/batching.ts"

const start = 1_800_000_000_000

/** Sends calls one after another, each when it may go; returns the number within `millis`, and the time after them. */
const follow = (limiter: RateLimiter, from: number, millis: number, calls: number) => {
  let now = from
  let sent = 0
  while (now < from + millis) {
    now += limiter.reserve(calls, now)
    sent += calls
    if (sent > 1_000_000) throw new Error("nothing holds it back")
  }
  return { sent, now }
}

/** A rate limiter that was refused when so many calls had been made in one second. */
const refusedAt = (calls: number) => {
  const limiter = new RateLimiter()
  limiter.reserve(calls, start)
  limiter.refused(start)
  return limiter
}

describe("RateLimiter", () => {
  it("delays no call before the provider refuses one", () => {
    const limiter = new RateLimiter()
    for (let i = 0; i < 10_000; i++) expect(limiter.reserve(100, start + i)).toBe(0)
  })

  it("falls to half of the calls made in the second of a refusal", () => {
    const { sent } = follow(refusedAt(100), start, 10_000, 5)
    expect(sent).toBeGreaterThanOrEqual(490)
    expect(sent).toBeLessThanOrEqual(510)
  })

  it("counts the busiest second before a late refusal, and none before the deadline of a response", () => {
    const limiter = new RateLimiter()
    limiter.reserve(4_000, start)
    limiter.reserve(400, start + 10_990)
    for (let second = 11; second < 16; second++) limiter.reserve(1, start + second * 1_000)
    limiter.refused(start + 15_500)
    expect(limiter.perSecond).toBe(200)
  })

  it("gives back the reservation of calls that are not made", () => {
    const limiter = refusedAt(100)
    limiter.reserve(50, start)
    expect(limiter.reserve(50, start)).toBe(1_000)
    limiter.giveBack(50)
    expect(limiter.reserve(1, start)).toBe(1_000)
  })

  it("counts refusals of one moment once, and halves again with a later one", () => {
    const limiter = refusedAt(400)
    for (let i = 0; i < 5; i++) limiter.refused(start + i)
    expect(limiter.perSecond).toBe(200)
    limiter.reserve(300, start + 2_000)
    limiter.refused(start + 2_000)
    expect(limiter.perSecond).toBe(100)
  })

  it("is never less than ten calls a second", () => {
    const limiter = refusedAt(1)
    for (let i = 1; i < 20; i++) limiter.refused(start + i * 2_000)
    expect(limiter.perSecond).toBe(10)
  })

  it("lets a batch that is larger than a second's calls go as a whole, and what follows wait for it", () => {
    const limiter = refusedAt(100)
    expect(limiter.reserve(500, start)).toBe(0)
    expect(limiter.reserve(1, start)).toBe(10_000)
    // However many calls are made together, none waits permanently.
    limiter.reserve(100_000, start)
    expect(limiter.reserve(1, start)).toBe(60_000)
  })

  it("allows a second's calls at once after a pause, and not more", () => {
    const limiter = refusedAt(100)
    const later = start + 30_000
    const waits = Array.from({ length: 60 }, () => limiter.reserve(1, later))
    expect(waits.filter((wait) => wait === 0).length).toBe(51)
  })

  it("grows by a quarter a minute, until there is no limit", () => {
    const limiter = refusedAt(100)
    limiter.reserve(1, start + 60_000)
    expect(limiter.perSecond).toBe(62.5)
    limiter.reserve(1, start + 3_600_000)
    expect(limiter.perSecond).toBe(Number.POSITIVE_INFINITY)
  })

  it("starts again when the clock is set back, so that no call waits for a time far ahead", () => {
    const limiter = refusedAt(100)
    limiter.reserve(500, start)
    expect(limiter.reserve(1, start - 3_600_000)).toBe(0)
    const refused = refusedAt(100)
    refused.reserve(500, start)
    refused.refused(start - 3_600_000)
    expect(refused.reserve(1, start - 3_600_000)).toBe(0)
  })
})
