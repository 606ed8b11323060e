import { expect, it } from "@effect/vitest"
import { Duration, Effect, TestClock } from "effect"
import type { Provider } from "../../../src/Chains/providers/Providers.ts"
import { currentHost, errorOf, hash, hostOf, Node, now, providersOf, quiet, wait } from "../providing.ts"
import { onNodes } from "./onNodes.ts"

onNodes("the others are all usable providers beside one, without those in cooldown", 3, function* (nodes) {
  const { a, c, of, providers } = nodes
  const others = Effect.map(providers.others(of(nodes.b)), (found) => found.map(hostOf))
  expect(yield* others).toEqual(["a", "c"])
  yield* providers.failed(of(c), errorOf("c", "timeout"))
  expect(yield* others).toEqual(["a"])
  yield* TestClock.adjust("1 second")
  expect(yield* others).toEqual(["a", "c"])
  yield* providers.failed(of(c), errorOf("c", "behind"))
  expect(yield* others).toEqual(["a"])
  yield* providers.failed(of(a), errorOf("a", "timeout"))
  a.chainId = 1
  yield* TestClock.adjust("5 seconds")
  // The first one serves another chain now.
  expect(yield* others).toEqual(["c"])
  expect(providers.health(yield* now)[0]).toMatchObject({ healthy: false })
})

onNodes(
  "one decides alone once all others have been asked for ten minutes, since the last of them fell silent",
  3,
  function* ({ b, c, of, providers }) {
    yield* TestClock.adjust("5 minutes")
    yield* providers.answered(of(c))
    const alone = Effect.map(now, (at) => providers.aloneSince(at))
    const failing = (node: typeof b) => providers.failed(of(node), errorOf(node.client.host, "timeout"))
    const minutes = (count: number, ...nodes: ReadonlyArray<typeof b>) =>
      Effect.repeatN(
        Effect.zipRight(Effect.forEach(nodes, failing, { concurrency: 1 }), TestClock.adjust("1 minute")),
        count - 1
      )
    yield* minutes(11, b)
    expect(yield* alone).toBeUndefined()
    const silent = yield* now
    yield* minutes(10, b, c)
    expect(yield* alone).toBeUndefined()
    yield* minutes(1, b, c)
    expect(yield* alone).toBe(silent)
    yield* providers.answered(of(b))
    expect(yield* alone).toBeUndefined()
  }
)

onNodes(
  "a provider that lacks a block, or has another one, has responded: it is not silent, and is asked during that cooldown",
  2,
  function* ({ a, b, of, providers }) {
    const asked = Effect.map(providers.answering(of(a)), (found) => found.map(hostOf))
    for (const reason of ["missing", "inconsistent", "state", "range", "too_large"] as const) {
      for (let minute = 0; minute < 11; minute++) {
        yield* providers.failed(of(b), errorOf("b", reason, { retryAfter: 30_000 }))
        expect([yield* asked, yield* Effect.map(providers.others(of(a)), (found) => found.length)]).toEqual([["b"], 0])
        yield* TestClock.adjust("1 minute")
      }
      expect([reason, providers.decidesAlone(of(a))]).toEqual([reason, false])
    }
    yield* providers.failed(of(b), errorOf("b", "timeout", { retryAfter: 30_000 }))
    expect(yield* asked).toEqual([])
  }
)

onNodes(
  "silence continues while the serving one fails because of its responses, and ends where none responds",
  2,
  function* ({ a, b, of, providers }) {
    const minutes = (count: number, reason: "inconsistent" | "behind" | "timeout") =>
      Effect.repeatN(
        Effect.gen(function* () {
          yield* providers.failed(of(b), errorOf("b", "timeout", { retryAfter: 61_000 }))
          yield* providers.failed(of(a), errorOf("a", reason, { retryAfter: 61_000 }))
          yield* TestClock.adjust("1 minute")
        }),
        count - 1
      )
    yield* minutes(12, "inconsistent")
    expect(providers.decidesAlone(of(a))).toBe(true)
    yield* minutes(12, "timeout")
    expect(providers.decidesAlone(of(a))).toBe(false)
  }
)

it.effect("without patience one decides alone while the others are silent, and not while they respond", () =>
  Effect.gen(function* () {
    const providers = yield* providersOf([new Node("a"), new Node("b")], hash("a"), {}, Duration.zero)
    const [a, b] = providers.all as readonly [Provider, Provider]
    expect([providers.decidesAlone(a), providers.aloneSince(yield* now)]).toEqual([false, undefined])
    yield* providers.failed(b, errorOf("b", "timeout"))
    expect([providers.decidesAlone(a), providers.aloneSince(yield* now)]).toEqual([true, 0])
    yield* providers.answered(b)
    expect(providers.decidesAlone(a)).toBe(false)
  }).pipe(quiet)
)

onNodes(
  "a contradicted provider does not serve for an hour, and remains one of the others where it is the only one",
  3,
  function* ({ a, b, c, of, providers }) {
    const others = Effect.map(providers.others(of(b)), (found) => found.map(hostOf))
    yield* providers.contradicted(of(a), "as the test wants")
    providers.succeeded(of(a))
    expect(yield* currentHost(providers)).toBe("b")
    expect(yield* others).toEqual(["c"])
    expect((yield* providers.witnesses(of(b))).map(hostOf)).toEqual(["a", "c"])
    expect(providers.health(yield* now)[0]).toMatchObject({
      healthy: false,
      reason: expect.stringContaining("(contradicted): as the test wants")
    })
    yield* providers.failed(of(b), errorOf("b", "timeout", { retryAfter: 60_000 }))
    yield* providers.failed(of(c), errorOf("c", "timeout", { retryAfter: 60_000 }))
    expect(yield* Effect.flip(providers.current)).toMatchObject({ reason: "timeout" })
    expect(yield* wait(providers)).toBe(60_000)
    yield* TestClock.adjust("1 minute")
    yield* providers.failed(of(c), errorOf("c", "timeout"))
    expect(yield* others).toEqual(["a"])
    yield* TestClock.adjust("59 minutes")
    yield* providers.failed(of(b), errorOf("b", "timeout"))
    yield* providers.failed(of(c), errorOf("c", "timeout"))
    expect(yield* currentHost(providers)).toBe("a")
  }
)

onNodes(
  "where all are contradicted, the serving one continues for the hour, and decides nothing alone",
  2,
  function* ({ a, b, of, providers }) {
    yield* providers.contradicted(of(a), "as the test wants")
    expect(yield* currentHost(providers)).toBe("b")
    yield* TestClock.adjust("10 minutes")
    yield* providers.contradicted(of(b), "as the test wants")
    const silent = Effect.repeatN(
      Effect.zipRight(providers.failed(of(a), errorOf("a", "timeout")), TestClock.adjust("1 minute")),
      11
    )
    yield* silent
    expect([yield* currentHost(providers), yield* wait(providers)]).toEqual(["b", 0])
    expect([providers.areAllContradicted(), providers.decidesAlone(of(b)), providers.aloneSince(yield* now)]).toEqual([
      true,
      false,
      undefined
    ])
    yield* TestClock.adjust("39 minutes")
    // Only the first contradiction is over.
    expect([yield* currentHost(providers), providers.areAllContradicted()]).toEqual(["a", false])
  }
)

onNodes(
  "an only provider serves on and decides, also after others that are gone have denied",
  1,
  function* ({ a, of, providers }) {
    yield* providers.contradicted(of(a), "as the test wants")
    expect(yield* currentHost(providers)).toBe("a")
    expect([providers.areAllContradicted(), providers.decidesAlone(of(a))]).toEqual([false, true])
  }
)

onNodes("a failure counts against the provider that the error names", 2, function* ({ a, of, providers }) {
  yield* providers.failed(of(a), errorOf("b", "unreachable"))
  expect(providers.health(yield* now)).toMatchObject([
    { host: "a", healthy: true },
    { host: "b", healthy: false, reason: expect.stringContaining("at b failed (unreachable)") }
  ])
  expect(yield* currentHost(providers)).toBe("a")
})
