import { expect, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { currentHost, errorOf, hash, hostOf, Node, now, providersOf, quiet, wait } from "../providing.ts"

it.effect(
  "the others are all that can be used beside one: neither itself, nor one put aside, nor another chain's",
  () => {
    const nodes = ["a", "b", "c", "d"].map((host) => new Node(host))
    const [, , , d] = nodes
    if (d !== undefined) d.genesis = hash("d")
    return Effect.gen(function* () {
      const providers = yield* providersOf(nodes, hash("a"))
      const [, second, third] = providers.all
      if (second === undefined || third === undefined) return expect.unreachable()
      const others = Effect.map(providers.others(second), (found) => found.map(hostOf))
      expect(yield* others).toEqual(["a", "c"])
      expect(providers.health(yield* now).map(({ healthy }) => healthy)).toEqual([true, true, true, false])
      yield* providers.failed(third, errorOf("c", "timeout"))
      expect(yield* others).toEqual(["a"])
      yield* TestClock.adjust("1 second")
      expect(yield* others).toEqual(["a", "c"])
      yield* providers.failed(third, errorOf("c", "behind"))
      expect(yield* others).toEqual(["a"])
    }).pipe(quiet)
  }
)

it.effect(
  "the other providers are silent since the last of them gave evidence, although one is silent for longer",
  () =>
    Effect.gen(function* () {
      const providers = yield* providersOf(
        ["a", "b", "c"].map((host) => new Node(host)),
        hash("a")
      )
      const [serving, second, third] = providers.all
      if (serving === undefined || second === undefined || third === undefined) return expect.unreachable()
      yield* TestClock.adjust("5 minutes")
      yield* providers.answered(third)
      const heard = yield* now
      yield* TestClock.adjust("1 minute")
      yield* providers.answered(serving)
      expect(providers.silentSince(serving, yield* now)).toBe(heard)
      expect(providers.silentSince(third, yield* now)).toBe(heard + 60_000)
      yield* providers.answered(second)
      expect(providers.silentSince(serving, yield* now)).toBe(heard + 60_000)
    }).pipe(quiet)
)

it.effect(
  "one that others contradict serves no more for an hour, and is one of the others where it is the only one",
  () =>
    Effect.gen(function* () {
      const providers = yield* providersOf(
        ["a", "b", "c"].map((host) => new Node(host)),
        hash("a")
      )
      const [first, second, third] = providers.all
      if (first === undefined || second === undefined || third === undefined) return expect.unreachable()
      const others = Effect.map(providers.others(second), (found) => found.map(hostOf))
      yield* providers.contradicted(first, "as the test wants")
      providers.succeeded(first)
      expect(yield* currentHost(providers)).toBe("b")
      expect(yield* others).toEqual(["c"])
      expect((yield* providers.witnesses(second)).map(hostOf)).toEqual(["a", "c"])
      expect(providers.health(yield* now)[0]).toMatchObject({
        healthy: false,
        reason: expect.stringContaining("(contradicted): as the test wants")
      })
      for (const one of [second, third]) {
        yield* providers.failed(one, errorOf(one.client.host, "timeout", { retryAfter: 60_000 }))
      }
      expect(yield* Effect.flip(providers.current)).toMatchObject({ reason: "timeout" })
      expect(yield* wait(providers)).toBe(60_000)
      yield* TestClock.adjust("1 minute")
      yield* providers.failed(third, errorOf("c", "timeout"))
      expect(yield* others).toEqual(["a"])
      yield* TestClock.adjust("59 minutes")
      yield* providers.failed(second, errorOf("b", "timeout"))
      yield* providers.failed(third, errorOf("c", "timeout"))
      expect(yield* currentHost(providers)).toBe("a")
    }).pipe(quiet)
)

it.effect("a failure counts against the provider that the error names, whichever was asked first", () =>
  Effect.gen(function* () {
    const providers = yield* providersOf(
      ["a", "b"].map((host) => new Node(host)),
      hash("a")
    )
    const [serving] = providers.all
    if (serving === undefined) return expect.unreachable()
    yield* providers.failed(serving, errorOf("b", "unreachable"))
    expect(providers.health(yield* now)).toMatchObject([
      { host: "a", healthy: true },
      { host: "b", healthy: false, reason: expect.stringContaining("at b failed (unreachable)") }
    ])
    expect(yield* currentHost(providers)).toBe("a")
  }).pipe(quiet)
)
