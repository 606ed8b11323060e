import { describe, expect, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { WrongChain } from "../../../src/Chains/providers/chainIdentity.ts"
import { currentHost, fail, hash, hostOf, Node, now, providersOf, quiet, wait } from "../providing.ts"
import { onNewChain, onNodes } from "./onNodes.ts"

describe("a provider of another chain", () => {
  onNewChain("is never read, and asked again after ten seconds", 1, function* ({ a: node, providers }) {
    node.chainId = 1
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
  })

  onNewChain("is known by its first block, once reading has begun", 2, function* ({ b, agree, providers }) {
    expect(yield* agree).toEqual({ genesis: hash("a") })
    providers.began(hash("a"))
    // Another node may respond from now on.
    b.genesis = hash("b")
    const first = yield* providers.current
    expect(yield* providers.other(first)).toBeUndefined()
    const [, other] = providers.health(yield* now)
    expect(other?.reason).toContain("b serves another chain with the chain id of chains.base.test")
    expect(other?.reason).toContain(`${hash("b")}, and chains.base.test began with ${hash("a")}`)
    expect(other?.reason).toContain("Remedy: check rpc_urls")
    // It is checked again, as a provider with another id is.
    b.genesis = hash("a")
    yield* TestClock.adjust("10 seconds")
    expect(hostOf(yield* providers.other(first))).toBe("b")
  })

  onNewChain("is not identified by one provider against another", 3, function* ({ a, b, c, agree, providers }) {
    b.genesis = hash("b")
    c.chainId = 1
    expect(yield* agree).toEqual({
      doubt: `the providers of chains.base.test do not agree on its first block: a (1 of rpc_urls) says ${hash("a")}, b (2 of rpc_urls) says ${hash("b")}. Nothing is read until they do. Remedy: take the one of another chain out of rpc_urls of chains.base.test`
    })
    const stillDoubts = { doubt: expect.stringContaining("do not agree") }
    yield* fail(providers, "timeout")
    expect(yield* agree).toEqual(stillDoubts)
    yield* TestClock.adjust("1 hour")
    expect(yield* agree).toEqual(stillDoubts)
    expect(providers.health(yield* now).map(({ healthy }) => healthy)).toEqual([true, true, true])
    a.genesis = hash("b")
    expect(yield* agree).toEqual({ genesis: hash("b") })
  })

  onNewChain(
    "is waited for while it is silent, for a minute; then the others decide",
    2,
    function* ({ b, agree, providers }) {
      b.genesisFailure = "timeout"
      const waits = { doubt: expect.stringContaining("b (2 of rpc_urls) of chains.base.test did not say which chain") }
      expect(yield* agree).toEqual(waits)
      yield* TestClock.adjust(59_999)
      expect(yield* agree).toEqual(waits)
      yield* TestClock.adjust(1)
      expect(yield* agree).toEqual({ genesis: hash("a") })
      providers.began(hash("a"))
      b.genesisFailure = undefined
      b.genesis = hash("b")
      expect(yield* providers.other(yield* providers.current)).toBeUndefined()
    }
  )

  onNewChain(
    "is waited for on a chain of which nothing is known: the other's word alone would stand",
    2,
    function* ({ b, agree }) {
      b.chainId = 1
      expect(yield* agree).toEqual({
        doubt: expect.stringContaining("b (2 of rpc_urls) of chains.base.test did not say")
      })
      yield* TestClock.adjust("1 minute")
      expect(yield* agree).toEqual({ genesis: hash("a") })
    }
  )

  onNewChain("is not waited for longer because the clock was set back", 2, function* ({ b, agree }) {
    b.genesisFailure = "timeout"
    yield* TestClock.setTime(3_600_000)
    expect(yield* agree).toEqual({ doubt: expect.stringContaining("until the first poll after a minute. Remedy: ") })
    yield* TestClock.setTime(0)
    expect(yield* agree).toEqual({ genesis: hash("a") })
  })

  onNewChain("does not start a chain while it is silent about its chain", 2, function* ({ a, agree }) {
    a.genesisFailure = "timeout"
    expect(yield* Effect.flip(agree)).toMatchObject({ reason: "timeout" })
    yield* TestClock.adjust("1 hour")
    expect(yield* Effect.flip(agree)).toMatchObject({ reason: "timeout" })
  })

  onNodes("is recognised by the first block in the database", 2, function* ({ a, providers }) {
    a.genesis = hash("b")
    expect(yield* currentHost(providers)).toBe("b")
  })

  it.effect.each<[string, Partial<Node>]>([
    ["answers null", { genesis: undefined }],
    ["says that it was pruned", { genesisFailure: "state" }],
    ["says that it has no such block", { genesisFailure: "missing" }]
  ])("cannot be distinguished from one without its first block, which %s: that one passes", ([, state]) => {
    const [a, b] = [new Node("a"), new Node("b")]
    Object.assign(a, state)
    return Effect.gen(function* () {
      const providers = yield* providersOf([a, b])
      expect(yield* providers.agree(yield* providers.current)).toEqual({ genesis: hash("a") })
      providers.began(hash("a"))
      expect(hostOf(yield* providers.other(yield* providers.current))).toBe("b")
      yield* fail(providers, "timeout")
      yield* fail(providers, "rate_limited", { retryAfter: 60_000 })
      yield* TestClock.adjust("1 second")
      a.asked = []
      expect(yield* currentHost(providers)).toBe("a")
      expect(a.asked).toEqual(["eth_chainId"])
    }).pipe(quiet)
  })

  onNewChain("is not recognised where no node has the first block any more", 2, function* ({ a, b, agree, providers }) {
    a.genesis = b.genesis = undefined
    expect(yield* agree).toEqual({ genesis: undefined })
    providers.began(undefined)
    expect(hostOf(yield* providers.other(yield* providers.current))).toBe("b")
  })

  onNewChain(
    "is known by its first block also where it was used before reading began",
    2,
    function* ({ b, agree, providers }) {
      const first = yield* providers.current
      expect((yield* providers.others(first)).map(hostOf)).toEqual(["b"])
      providers.began((yield* agree) && hash("a"))
      b.genesis = hash("b")
      expect(yield* providers.others(first)).toEqual([])
      expect(providers.health(yield* now)[1]?.reason).toContain("b serves another chain")
    }
  )

  onNodes("is found where it became one since it was checked", 2, function* ({ a, providers }) {
    const serving = yield* providers.current
    yield* providers.verify(serving)
    a.genesis = hash("b")
    expect(yield* Effect.flip(providers.verify(serving))).toMatchObject({ expected: hash("a"), found: hash("b") })
    a.genesis = hash("a")
    a.chainId = 1
    expect(yield* Effect.flip(providers.verify(serving))).toMatchObject({ expected: 77, found: 1 })
  })

  onNewChain("is looked for among all providers, whichever serves", 2, function* ({ a, b, agree, providers }) {
    yield* fail(providers, "timeout")
    expect(yield* currentHost(providers)).toBe("b")
    a.genesisFailure = "timeout"
    expect(yield* agree).toEqual({ doubt: expect.stringContaining("a (1 of rpc_urls)") })
    a.genesisFailure = undefined
    b.genesisFailure = "timeout"
    expect(yield* Effect.flip(agree)).toMatchObject({ host: "b", reason: "timeout" })
    // A node that has pruned its first block still begins with it, where another one has it.
    b.genesisFailure = "state"
    expect(yield* agree).toEqual({ genesis: hash("a") })
  })

  onNodes("is not taken for the right one because it is silent", 1, function* ({ a: node, providers }) {
    node.genesisFailure = "timeout"
    expect(yield* Effect.flip(providers.current)).toMatchObject({ reason: "timeout" })
    node.genesisFailure = undefined
    node.genesis = hash("b")
    yield* TestClock.adjust("1 second")
    expect(yield* Effect.flip(providers.current)).toBeInstanceOf(WrongChain)
  })
})
