import { expect, it } from "@effect/vitest"
import { Clock, Effect, Either, TestClock } from "effect"
import { HeadClock } from "../../../src/Chains/providers/HeadClock.ts"
import { Heads } from "../../../src/Chains/providers/Heads.ts"
import type { Network } from "../../../src/Domain/Chain.ts"
import { clockTest } from "../../lib/scopedTest.ts"
import { someProviders } from "../../lib/soleProvider.ts"
import { nodeClient, replies } from "../../sim/nodeClient.ts"
import { headerOf } from "../../sim/shapes.ts"
import { errorOf, hash } from "../providing.ts"

const base: Network = { chain: "base", mode: "test" }
const optimism: Network = { chain: "optimism", mode: "test" }
/** Seconds: at most ten minutes are accepted from one provider. */
const [now, near, far] = [1_000_000, 1_000_600, 1_000_601]

/** A provider in this process whose head is of that time, Unix seconds. */
const headAt = (host: string, time: number) =>
  nodeClient(host, (calls) => replies(host, calls, () => headerOf({ number: 1, hash: hash("1"), time }, hash("0"))))

const silent = nodeClient("second", () => errorOf("second", "timeout"))

/** One clock, and what it makes of a head of a network, whose first provider serves it. */
const clock = Effect.gen(function* () {
  yield* TestClock.setTime(now * 1000)
  const clock = new HeadClock(600_000, 0)
  return (network: Network, own: number, other: number | "silent" = own, alone = false) => {
    const second = other === "silent" ? silent : headAt("second", other)
    const { provider, providers } = someProviders(headAt("first", own), second)
    const decidesAlone = () => alone
    const checked = clock.check(network, new Heads({ ...providers, decidesAlone }, 3), provider, own)
    return Effect.either(Effect.map(checked, ({ time, wrong }) => wrong ?? time))
  }
})

clockTest("a head far ahead of the clock is refused while only one provider shows it, however often", function* () {
  const check = yield* clock
  expect(yield* check(base, near, now)).toEqual(Either.right(now))
  for (let i = 0; i < 3; i++) {
    const found = yield* check(base, far + i, near)
    expect(Either.isLeft(found) && found.left).toMatchObject({ host: "first", reason: "inconsistent" })
    yield* TestClock.adjust("1 second")
  }
})

clockTest(
  "a head that another provider also shows far ahead, or recently another chain if that is silent, shows that the clock is behind",
  function* () {
    const check = yield* clock
    const behind = expect.stringContaining("this machine's clock is")
    expect(yield* check(base, far, far)).toEqual(Either.right(behind))
    expect(yield* check(optimism, far + 60, "silent")).toEqual(Either.right(behind))
    // One company may serve both chains, and lie on both.
    expect(Either.isLeft(yield* check(optimism, far + 60, now))).toBe(true)
    // What one chain has shown counts for five minutes.
    yield* TestClock.adjust("301 seconds")
    expect(Either.isLeft(yield* check(base, far + 301, "silent"))).toBe(true)
  }
)

clockTest("a head that was far ahead of the clock and is right again is no evidence for another chain", function* () {
  const check = yield* clock
  expect(Either.isLeft(yield* check(base, far, now))).toBe(true)
  expect(Either.isRight(yield* check(optimism, far, "silent"))).toBe(true)
  expect(yield* check(optimism, now)).toEqual(Either.right(now))
  expect(yield* check(base, now)).toEqual(Either.right(now))
  expect(Either.isLeft(yield* check(optimism, far, "silent"))).toBe(true)
})

clockTest(
  "a head that is ahead of the clock counts up to what another provider has, and for a while as far",
  function* () {
    const check = yield* clock
    const timeOf = (...head: Parameters<typeof check>) => Effect.map(check(...head), Either.getOrThrow)
    expect(yield* timeOf(base, now + 5, now)).toBe(now + 5)
    expect(yield* timeOf(base, now + 6, now)).toBe(now)
    expect(yield* timeOf(base, now + 60, now + 30)).toBe(now + 30)
    expect(yield* timeOf(base, now + 60, now + 58)).toBe(now + 58)
    // Corroborated by another one, so that it is not asked at each head.
    expect(yield* timeOf(base, now + 64, now)).toBe(now + 64)
    expect(yield* timeOf(base, now + 66, now)).toBe(now)
    expect(yield* timeOf(optimism, now + 60, now)).toBe(now)
    yield* TestClock.adjust("301 seconds")
    expect(yield* timeOf(base, now + 361, now)).toBe(now)
    // Where none responds, the clock stands until the patience is over.
    expect(yield* timeOf(base, now + 361, "silent")).toBe(now + 301)
    expect(yield* timeOf(base, now + 361, "silent", true)).toBe(now + 361)
  }
)

clockTest(
  "a head corroborated by another provider does not corroborate one that is too far ahead by now",
  function* () {
    const check = yield* clock
    expect(yield* check(base, near, near)).toEqual(Either.right(near))
    expect(Either.isLeft(yield* check(base, far, near))).toBe(true)
    expect(yield* check(base, far, far)).toEqual(Either.right(expect.stringContaining("this machine's clock is")))
  }
)

it("a clock that was set since the last head is behind by its present difference", () => {
  const [shown, hour] = [1_000_000, 3_600]
  let [set, passed] = [shown - hour, 0]
  const clock = Object.assign(Clock.make(), {
    unsafeCurrentTimeMillis: () => (set + passed) * 1000,
    unsafeCurrentTimeNanos: () => BigInt(passed) * 1_000_000_000n
  })
  const heads = new HeadClock(600_000, 0)
  const behind = () => heads.behind(base, clock)
  expect(behind()).toBeUndefined()
  heads.note(base, shown, clock)
  passed = 5
  expect(behind()).toBe(hour * 1000)
  set = shown
  expect(behind()).toBe(0)
  set = shown - 60
  expect(behind()).toBe(60_000)
})
