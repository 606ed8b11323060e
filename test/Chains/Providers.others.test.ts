import { expect, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { errorOf, hash, hostOf, Node, now, providersOf, quiet } from "./providing.ts"

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

it.effect("the others of one are silent since the last of them has testified, whoever is silent for longer", () =>
  Effect.gen(function* () {
    const providers = yield* providersOf(
      ["a", "b", "c"].map((host) => new Node(host)),
      hash("a")
    )
    const [serving, second, third] = providers.all
    if (serving === undefined || second === undefined || third === undefined) return expect.unreachable()
    yield* TestClock.adjust("5 minutes")
    yield* providers.testified(third)
    const heard = yield* now
    yield* TestClock.adjust("1 minute")
    yield* providers.testified(serving)
    expect(providers.silentSince(serving, yield* now)).toBe(heard)
    expect(providers.silentSince(third, yield* now)).toBe(heard + 60_000)
    yield* providers.testified(second)
    expect(providers.silentSince(serving, yield* now)).toBe(heard + 60_000)
  }).pipe(quiet)
)
