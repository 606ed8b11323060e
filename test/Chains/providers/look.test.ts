import { expect } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { Metrics } from "../../../src/Telemetry/Metrics.ts"
import { collected } from "../../lib/logs.ts"
import { hash, now } from "../providing.ts"
import { onNodes } from "./onNodes.ts"

const at = (number: number) => ({ number, hash: hash("b"), time: 2 * number })

onNodes(
  "a look tells that a provider which does not serve is behind, on another chain or silent, and when it is well again",
  3,
  function* ({ a, b, c, of, providers }) {
    const { lines, logger } = collected()
    const health = Effect.map(now, (time) => providers.health(time).map(({ healthy, reason }) => reason ?? healthy))
    const look = Effect.zipRight(Effect.provide(providers.look, logger), health)
    a.head = at(100)
    b.head = at(85)
    c.head = at(95)
    expect(yield* look).toEqual([true, expect.stringContaining("its head is 85, 15 blocks behind"), true])
    // It stays so for as long as nobody asks.
    yield* TestClock.adjust("1 hour")
    expect((yield* health)[1]).toContain("its head is 85")
    // As many blocks of a fast chain are a moment.
    b.head = { ...at(85), time: 191 }
    c.chainId = 5
    expect(yield* look).toEqual([
      true,
      true,
      expect.stringContaining("c serves chain 5, and chains.base.test is chain 77")
    ])
    b.failure = "unreachable"
    c.chainId = 77
    expect(yield* look).toEqual([true, expect.stringContaining("(unreachable)"), true])
    b.failure = undefined
    c.head = at(85)
    expect(yield* look).toEqual([true, true, expect.stringContaining("15 blocks behind")])
    // A response ends its silence, and says nothing of its head.
    b.failure = "unreachable"
    yield* look
    for (const node of [b, c]) yield* providers.answered(of(node))
    expect(yield* health).toEqual([true, true, expect.stringContaining("15 blocks behind")])
    b.failure = undefined
    c.head = at(95)
    expect(yield* look).toEqual([true, true, true])
    expect(yield* look).toEqual([true, true, true])
    expect(lines.map(({ annotations: { host }, message }) => `${host}: ${message}`)).toEqual([
      "b: a provider is unhealthy",
      "b: a provider is healthy again",
      "c: a provider is unhealthy",
      "b: a provider is unhealthy",
      "c: a provider is healthy again",
      "b: a provider is healthy again",
      "c: a provider is unhealthy",
      "b: a provider is unhealthy",
      "b: a provider is healthy again",
      "c: a provider is healthy again"
    ])
    // The serving one is asked first, and its failure counts as at any other call.
    a.failure = "garbage"
    expect((yield* look)[0]).toContain("(garbage)")
  }
)

onNodes(
  "a provider that refuses a call as too many is at its limit for five minutes",
  2,
  function* ({ a, b, providers }) {
    a.head = at(1)
    b.head = at(1)
    const { rpcCalls } = yield* Metrics
    const limited = Effect.map(now, (time) => providers.health(time).map((one) => one.limited ?? false))
    expect(yield* limited).toEqual([false, false])
    b.failure = "rate_limited"
    yield* providers.look
    const { values } = yield* Effect.promise(() => rpcCalls.get())
    expect(values.some(({ labels: { host, outcome } }) => host === "b" && outcome === "rate_limited")).toBe(true)
    b.failure = undefined
    yield* providers.look
    yield* TestClock.adjust("299 seconds")
    expect(yield* limited).toEqual([false, true])
    yield* TestClock.adjust("1 second")
    expect(yield* limited).toEqual([false, false])
  }
)
