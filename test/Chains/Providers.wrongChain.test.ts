import { describe, expect, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { WrongChain } from "../../src/Chains/chainIdentity.ts"
import { currentHost, fail, hash, hostOf, Node, now, providersOf, quiet, wait } from "./providing.ts"

describe("a provider of another chain", () => {
  it.effect("is never read, and asked again after ten seconds", () => {
    const node = new Node("a")
    node.chainId = 1
    return Effect.gen(function* () {
      const { providers } = yield* providersOf([node])
      const error = yield* Effect.flip(providers.current)
      expect(error).toBeInstanceOf(WrongChain)
      expect(error.message).toBe(
        "a serves chain 1, and chains.base.test is chain 77: nothing is read from it. Remedy: check rpc_urls and chain_id of chains.base.test."
      )
      expect(node.asked).toEqual(["eth_chainId"])
      expect(yield* wait(providers)).toBe(10_000)
      node.chainId = 77
      yield* TestClock.adjust(9999)
      expect(yield* Effect.flip(providers.current)).toBeInstanceOf(WrongChain)
      expect(node.asked).toEqual(["eth_chainId"])
      yield* TestClock.adjust(1)
      expect(yield* currentHost(providers)).toBe("a")
    }).pipe(quiet)
  })

  it.effect("leaves the work to the others", () => {
    const [a, b] = [new Node("a"), new Node("b")]
    a.chainId = 1
    return Effect.gen(function* () {
      const { providers } = yield* providersOf([a, b])
      expect(yield* currentHost(providers)).toBe("b")
      expect(providers.health(yield* now)).toEqual([
        { host: "a", healthy: false, reason: expect.stringContaining("a serves chain 1") },
        { host: "b", healthy: true }
      ])
    }).pipe(quiet)
  })

  it.effect("is known by its first block, which the first provider sets for the others", () => {
    const [a, b] = [new Node("a"), new Node("b")]
    b.genesis = hash("b")
    return Effect.gen(function* () {
      const { genesis, providers } = yield* providersOf([a, b])
      const first = yield* providers.current
      expect(genesis.known).toBe(hash("a"))
      expect(yield* providers.other(first)).toBeUndefined()
      const [, other] = providers.health(yield* now)
      expect(other?.reason).toContain("b serves another chain with the chain id of chains.base.test")
      expect(other?.reason).toContain(`${hash("b")}, and chains.base.test began with ${hash("a")}`)
      expect(other?.reason).toContain("Remedy: check rpc_urls")
      // It is looked at again, as one of another id is.
      b.genesis = hash("a")
      yield* TestClock.adjust("10 seconds")
      expect(hostOf(yield* providers.other(first))).toBe("b")
    }).pipe(quiet)
  })

  it.effect("is not known while its first block is one provider's word against another's", () => {
    const [a, b, c] = [new Node("a"), new Node("b"), new Node("c")]
    b.genesis = hash("b")
    c.genesisFailure = "timeout"
    return Effect.gen(function* () {
      const { genesis, providers } = yield* providersOf([a, b, c])
      expect(yield* currentHost(providers)).toBe("a")
      expect(yield* providers.other(yield* providers.current)).toBeUndefined()
      expect(yield* providers.disagreement).toBe(`a says ${hash("a")}, b says ${hash("b")}`)
      expect(genesis.known).toBeUndefined()
      // Neither is one that serves another id, or that is silent, heard.
      a.chainId = 1
      expect(yield* providers.disagreement).toBeUndefined()
      expect(genesis.known).toBe(hash("b"))
      yield* TestClock.adjust("10 seconds")
      expect(yield* currentHost(providers)).toBe("b")
      a.chainId = 77
      a.genesis = hash("b")
      c.genesisFailure = "state"
      yield* TestClock.adjust("10 seconds")
      expect(yield* providers.disagreement).toBeUndefined()
      for (const node of [a, b, c]) node.failure = "timeout"
      expect(yield* providers.disagreement).toBeUndefined()
      expect(genesis.known).toBe(hash("b"))
    }).pipe(quiet)
  })

  it.effect("is known by the first block that the store remembers", () => {
    const [a, b] = [new Node("a"), new Node("b")]
    b.genesis = hash("b")
    return Effect.gen(function* () {
      const { genesis, providers } = yield* providersOf([a, b], hash("b"))
      expect(yield* currentHost(providers)).toBe("b")
      expect(genesis.known).toBe(hash("b"))
    }).pipe(quiet)
  })

  it.effect.each<[string, (node: Node) => void]>([
    [
      "answers null",
      (node) => {
        node.genesis = undefined
      }
    ],
    [
      "says that it was pruned",
      (node) => {
        node.genesisFailure = "state"
      }
    ]
  ])("cannot be told from one without its first block, which %s: that one passes", ([, prune]) => {
    const [a, b] = [new Node("a"), new Node("b")]
    prune(a)
    return Effect.gen(function* () {
      const { genesis, providers } = yield* providersOf([a, b])
      const first = yield* providers.current
      expect(hostOf(first)).toBe("a")
      expect(genesis.known).toBeUndefined()
      expect(hostOf(yield* providers.other(first))).toBe("b")
      expect(genesis.known).toBe(hash("a"))
      yield* fail(providers, "timeout")
      yield* fail(providers, "rate_limited", { retryAfter: 60_000 })
      yield* TestClock.adjust("1 second")
      a.asked = []
      expect(yield* currentHost(providers)).toBe("a")
      expect(a.asked).toEqual(["eth_chainId"])
    }).pipe(quiet)
  })

  it.effect("is not taken for the right one because it does not answer", () => {
    const node = new Node("a")
    node.genesisFailure = "timeout"
    return Effect.gen(function* () {
      const { providers } = yield* providersOf([node], hash("a"))
      expect(yield* Effect.flip(providers.current)).toMatchObject({ reason: "timeout" })
      node.genesisFailure = undefined
      node.genesis = hash("b")
      yield* TestClock.adjust("1 second")
      expect(yield* Effect.flip(providers.current)).toBeInstanceOf(WrongChain)
    }).pipe(quiet)
  })
})
