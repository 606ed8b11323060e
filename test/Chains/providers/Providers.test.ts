import { describe, expect, it } from "@effect/vitest"
import { Cause, Effect, Exit, TestClock } from "effect"
import { currentHost, errorOf, fail, hash, hostOf, Node, now, providersOf, quiet, wait } from "../providing.ts"
import { onNodes } from "./onNodes.ts"

describe("one of several providers", () => {
  onNodes("serves, the first of rpc_urls first, and its chain is checked once", 2, function* ({ a, b, providers }) {
    expect(yield* currentHost(providers)).toBe("a")
    expect(yield* currentHost(providers)).toBe("a")
    expect(a.asked).toEqual(["eth_chainId", "eth_getBlockByNumber"])
    expect(b.asked).toEqual([])
    expect(providers.all.map(({ client, index }) => [client.host, index])).toEqual([
      ["a", 0],
      ["b", 1]
    ])
  })

  onNodes("takes over when another fails, and keeps serving until it fails itself", 2, function* ({ a, providers }) {
    yield* fail(providers, "unreachable")
    expect(yield* wait(providers)).toBe(0)
    expect(yield* currentHost(providers)).toBe("b")
    yield* TestClock.adjust("1 minute")
    expect(yield* currentHost(providers)).toBe("b")
    a.asked = []
    yield* fail(providers, "timeout")
    expect(yield* currentHost(providers)).toBe("a")
    // What it serves may have changed; how the chain began has not.
    expect(a.asked).toEqual(["eth_chainId"])
  })

  onNodes("is passed over when it fails the check", 2, function* ({ a, providers }) {
    a.failure = "unreachable"
    expect(yield* currentHost(providers)).toBe("b")
    expect(yield* currentHost(providers)).toBe("b")
    expect(a.asked).toEqual(["eth_chainId"])
  })

  onNodes("serves again when its cooldown is the first to end", 2, function* ({ providers }) {
    yield* fail(providers, "rate_limited", { retryAfter: 60_000 })
    yield* fail(providers, "unreachable")
    const error = yield* Effect.flip(providers.current)
    // Of several reasons, the one that is over first.
    expect(error).toMatchObject({ host: "b", reason: "unreachable" })
    const left = yield* wait(providers)
    expect(left).toBeGreaterThanOrEqual(200)
    expect(left).toBeLessThanOrEqual(300)
    yield* TestClock.adjust(left)
    expect(yield* currentHost(providers)).toBe("b")
  })
})

describe("a single provider", () => {
  onNodes(
    "is asked again after 250 ms, then twice as long each time, up to 10 s",
    1,
    function* ({ a: node, providers }) {
      const waits: Array<number> = []
      for (let i = 0; i < 9; i++) {
        yield* fail(providers, "unreachable")
        const before = node.asked.length
        expect((yield* Effect.flip(providers.current)).message).toContain("as the test wants")
        expect(node.asked).toHaveLength(before)
        waits.push(yield* wait(providers))
        yield* TestClock.adjust(waits.at(-1) ?? 0)
      }
      for (const [i, waited] of waits.entries()) {
        expect(waited).toBeGreaterThanOrEqual(Math.min(10_000, 250 * 2 ** i) * 0.8)
        expect(waited).toBeLessThanOrEqual(Math.min(10_000, 300 * 2 ** i))
      }
      // Not in step with everyone else who had the same failure.
      expect(waits.slice(0, 5)).not.toEqual([250, 500, 1000, 2000, 4000])
      providers.succeeded(yield* providers.current)
      yield* fail(providers, "unreachable")
      expect(yield* wait(providers)).toBeLessThanOrEqual(300)
    }
  )

  it.effect.each<[number, number]>([
    [2000, 2000],
    [300_000, 300_000],
    [3_600_000, 300_000]
  ])("that wants %i ms is left alone for %i ms", ([retryAfter, expected]) => {
    const node = new Node("a")
    return Effect.gen(function* () {
      const providers = yield* providersOf([node], hash("a"))
      yield* fail(providers, "rate_limited", { retryAfter })
      expect(yield* wait(providers)).toBe(expected)
      yield* TestClock.adjust(expected - 1)
      expect(yield* Effect.flip(providers.current)).toMatchObject({ reason: "rate_limited" })
      yield* TestClock.adjust(1)
      expect(yield* currentHost(providers)).toBe("a")
    }).pipe(quiet)
  })

  onNodes("is left alone for a while also with a Retry-After of 0", 1, function* ({ providers }) {
    yield* fail(providers, "rate_limited", { retryAfter: 0 })
    expect(yield* wait(providers)).toBeGreaterThanOrEqual(200)
  })

  onNodes("is not in cooldown for longer because the clock was set back", 1, function* ({ providers }) {
    yield* TestClock.setTime(10_000_000)
    yield* fail(providers, "rate_limited", { retryAfter: 60_000 })
    yield* TestClock.setTime(5_000_000)
    expect(yield* wait(providers)).toBe(0)
    expect(yield* currentHost(providers)).toBe("a")
  })

  it.effect("is needed", () =>
    Effect.map(Effect.exit(providersOf([], hash("a"))), (exit) =>
      expect(Exit.isFailure(exit) && Cause.pretty(exit.cause)).toContain("chains.base.test has no rpc_urls")
    )
  )
})

describe("a provider that is behind", () => {
  onNodes("lets another serve for five seconds, and is not checked again", 2, function* ({ a, providers }) {
    yield* fail(providers, "behind")
    const serving = yield* providers.current
    expect(hostOf(serving)).toBe("b")
    yield* TestClock.adjust(4999)
    expect(yield* providers.other(serving)).toBeUndefined()
    a.asked = []
    yield* TestClock.adjust(1)
    expect(hostOf(yield* providers.other(serving))).toBe("a")
    expect(a.asked).toEqual([])
  })

  it.effect("is used where there is no other provider, and says so", () => {
    const [a, b] = [new Node("a"), new Node("b")]
    return Effect.gen(function* () {
      for (const nodes of [[a], [a, b]]) {
        b.failure = "unreachable"
        const providers = yield* providersOf(nodes, hash("a"))
        for (let i = 0; i < 3; i++) {
          const provider = yield* fail(providers, "behind")
          expect(hostOf(provider)).toBe("a")
          expect(yield* currentHost(providers)).toBe("a")
          expect(yield* wait(providers)).toBe(0)
        }
        const [first] = providers.health(yield* now)
        expect(first).toMatchObject({ healthy: false, reason: expect.stringContaining("(behind)") })
        providers.succeeded(yield* providers.current)
        expect(providers.health(yield* now)[0]).toEqual({ host: "a", healthy: true })
        // It did not count as a failure: the first real one is followed by the shortest wait.
        yield* fail(providers, "unreachable")
        expect(yield* Effect.flip(providers.current)).toMatchObject({ reason: "unreachable" })
        expect(yield* wait(providers)).toBeLessThanOrEqual(300)
      }
    }).pipe(quiet)
  })
})

describe("another provider", () => {
  onNodes("is checked before it is asked, and found after those in cooldown", 3, function* ({ b, c, of, providers }) {
    b.failure = "unreachable"
    const first = yield* providers.current
    expect(hostOf(yield* providers.other(first))).toBe("c")
    expect(c.asked).toEqual(["eth_chainId", "eth_getBlockByNumber"])
    expect(yield* currentHost(providers)).toBe("a")
    c.asked = []
    b.asked = []
    expect(hostOf(yield* providers.other(first))).toBe("c")
    expect([b.asked, c.asked]).toEqual([[], []])
    yield* providers.failed(of(c), errorOf("c", "refused"))
    expect(yield* providers.other(first)).toBeUndefined()
    // That another fails changes nothing for the one that serves.
    expect(yield* currentHost(providers)).toBe("a")
  })

  onNodes("does not exist where there is only one", 1, function* ({ providers }) {
    expect(yield* providers.other(yield* providers.current)).toBeUndefined()
  })
})

describe("a block range that is too large", () => {
  onNodes("puts the provider into cooldown for its Retry-After", 1, function* ({ a, of, providers }) {
    const { blockRange: range } = yield* providers.current
    const error = errorOf("a", "range", { retryAfter: 60_000 })
    range.failed(error)
    yield* providers.failed(of(a), error)
    expect(yield* wait(providers)).toBe(60_000)
  })

  onNodes("is not a reason for a cooldown while ranges become smaller", 2, function* ({ a, providers }) {
    const { blockRange: range } = yield* providers.current
    const sizes: Array<number> = []
    while (range.blocks > 1) {
      const error = errorOf("a", "range")
      range.failed(error)
      yield* providers.failed(yield* providers.current, error)
      expect(yield* currentHost(providers)).toBe("a")
      sizes.push(range.blocks)
    }
    expect(sizes).toEqual([1000, 500, 250, 125, 62, 31, 15, 7, 3, 1])
    expect(a.asked).toEqual(["eth_chainId", "eth_getBlockByNumber"])
    yield* fail(providers, "range")
    expect(yield* currentHost(providers)).toBe("b")
  })

  onNodes("is not a reason for a cooldown again after a success in between", 1, function* ({ providers }) {
    const provider = yield* fail(providers, "too_large")
    expect(yield* currentHost(providers)).toBe("a")
    providers.succeeded(provider)
    yield* fail(providers, "too_large")
    expect(yield* currentHost(providers)).toBe("a")
    yield* fail(providers, "too_large")
    expect(yield* Effect.flip(providers.current)).toMatchObject({ reason: "too_large" })
  })

  it.effect.each([
    ["ethereum", 100],
    ["polygon", 2000]
  ] as const)("is above the first one on %s, of %d blocks", ([chain, blocks]) =>
    Effect.map(providersOf([new Node("a")], undefined, { chain }), ({ all: [provider] }) =>
      expect(provider?.blockRange.blocks).toBe(blocks)
    )
  )
})

onNodes(
  "health names why a provider is not used, until it has had time to respond again",
  2,
  function* ({ providers }) {
    const healthy = Effect.map(now, (at) => providers.health(at).map((one) => one.healthy))
    expect(yield* healthy).toEqual([true, true])
    yield* fail(providers, "rate_limited", { retryAfter: 5000 })
    const [first] = providers.health(yield* now)
    expect(first?.reason).toContain("eth_getLogs at a failed (rate_limited)")
    expect(yield* currentHost(providers)).toBe("b")
    expect(yield* healthy).toEqual([false, true])
    // One that never responds is asked between its cooldowns: an alert must not take that for health.
    yield* TestClock.adjust(34_999)
    expect(yield* healthy).toEqual([false, true])
    yield* TestClock.adjust(1)
    expect(yield* healthy).toEqual([true, true])
    // The one that serves must have been right since.
    yield* fail(providers, "unreachable")
    yield* fail(providers, "unreachable")
    yield* TestClock.adjust("1 second")
    expect(yield* currentHost(providers)).toBe("a")
    yield* TestClock.adjust("1 minute")
    expect(yield* healthy).toEqual([false, true])
    providers.succeeded(yield* providers.current)
    expect(yield* healthy).toEqual([true, true])
  }
)
