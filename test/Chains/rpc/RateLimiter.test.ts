import { describe, expect, it } from "@effect/vitest"
import { RateLimiter } from "../../../src/Chains/rpc/RateLimiter.ts"

const start = 1_800_000_000_000

/** Sends calls one after another, each when it may go; gives how many went within `millis`, and the time after them. */
const follow = (pace: RateLimiter, from: number, millis: number, calls: number) => {
  let now = from
  let sent = 0
  while (now < from + millis) {
    now += pace.reserve(calls, now)
    sent += calls
    if (sent > 1_000_000) throw new Error("nothing holds it back")
  }
  return { sent, now }
}

/** A pace that was refused when so many calls had been made in one second. */
const refusedAt = (calls: number) => {
  const pace = new RateLimiter()
  pace.reserve(calls, start)
  pace.refused(start)
  return pace
}

describe("RateLimiter", () => {
  it("delays no call before the provider refuses one", () => {
    const pace = new RateLimiter()
    for (let i = 0; i < 10_000; i++) expect(pace.reserve(100, start + i)).toBe(0)
  })

  it("falls to half of the calls made in the second of a refusal", () => {
    const { sent } = follow(refusedAt(100), start, 10_000, 5)
    expect(sent).toBeGreaterThanOrEqual(490)
    expect(sent).toBeLessThanOrEqual(510)
  })

  it("counts the busiest second before a late refusal, and none before the deadline of a response", () => {
    const pace = new RateLimiter()
    pace.reserve(4_000, start)
    pace.reserve(400, start + 10_990)
    for (let second = 11; second < 16; second++) pace.reserve(1, start + second * 1_000)
    pace.refused(start + 15_500)
    expect(pace.perSecond).toBe(200)
  })

  it("gives back the reservation of calls that are not made", () => {
    const pace = refusedAt(100)
    pace.reserve(50, start)
    expect(pace.reserve(50, start)).toBe(1_000)
    pace.giveBack(50)
    expect(pace.reserve(1, start)).toBe(1_000)
  })

  it("counts refusals of one moment once, and halves again with a later one", () => {
    const pace = refusedAt(400)
    for (let i = 0; i < 5; i++) pace.refused(start + i)
    expect(pace.perSecond).toBe(200)
    pace.reserve(300, start + 2_000)
    pace.refused(start + 2_000)
    expect(pace.perSecond).toBe(100)
  })

  it("is never less than ten calls a second", () => {
    const pace = refusedAt(1)
    for (let i = 1; i < 20; i++) pace.refused(start + i * 2_000)
    expect(pace.perSecond).toBe(10)
  })

  it("lets a batch that is larger than a second's calls go as a whole, and what follows wait for it", () => {
    const pace = refusedAt(100)
    expect(pace.reserve(500, start)).toBe(0)
    expect(pace.reserve(1, start)).toBe(10_000)
    // Whatever is asked for together, nobody waits for ever.
    pace.reserve(100_000, start)
    expect(pace.reserve(1, start)).toBe(60_000)
  })

  it("allows a second's calls at once after a pause, and not more", () => {
    const pace = refusedAt(100)
    const later = start + 30_000
    const waits = Array.from({ length: 60 }, () => pace.reserve(1, later))
    expect(waits.filter((wait) => wait === 0).length).toBe(51)
  })

  it("grows by a quarter a minute, until there is no limit", () => {
    const pace = refusedAt(100)
    pace.reserve(1, start + 60_000)
    expect(pace.perSecond).toBe(62.5)
    pace.reserve(1, start + 3_600_000)
    expect(pace.perSecond).toBe(Number.POSITIVE_INFINITY)
  })

  it("starts anew when the clock is set back, so that no call waits for a time far ahead", () => {
    const pace = refusedAt(100)
    pace.reserve(500, start)
    expect(pace.reserve(1, start - 3_600_000)).toBe(0)
    const refused = refusedAt(100)
    refused.reserve(500, start)
    refused.refused(start - 3_600_000)
    expect(refused.reserve(1, start - 3_600_000)).toBe(0)
  })
})
