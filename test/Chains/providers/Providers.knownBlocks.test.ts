import { expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { WrongChain } from "../../../src/Chains/providers/chainIdentity.ts"
import { Rpc } from "../../../src/Chains/rpc/Rpc.ts"
import { examineProviders } from "../../../src/Doctor/providers.ts"
import { testChain } from "../../lib/settings.ts"
import { currentHost, hash, Node, now, providersOf, quiet } from "../providing.ts"

/** A network that is known by its first block and one behind it. */
const knownBlocks = [
  { number: 0, hash: hash("a") },
  { number: 500, hash: hash("5") }
]
const ofKnown = (nodes: ReadonlyArray<Node>, stored?: string) => providersOf(nodes, stored, { knownBlocks })

it.effect.each<[string, (other: Node, right: Node) => unknown, reason: string]>([
  ["first block", (other) => Object.assign(other, { genesis: hash("b") }), `its first block is ${hash("b")}`],
  ["later block", (other) => other.kept.set(500, hash("6")), `its block 500 is ${hash("6")}, and that of`],
  [
    "later block, where all have pruned the first one,",
    (other, right) => {
      other.genesis = right.genesis = undefined
      other.kept.set(500, hash("6"))
    },
    `its block 500 is ${hash("6")}, and that of`
  ]
])("a node with another %s serves another chain, also where nothing is stored", ([, forge, reason]) => {
  const [a, b] = [new Node("a"), new Node("b")]
  forge(a, b)
  b.kept.set(500, hash("5"))
  return Effect.gen(function* () {
    const providers = yield* ofKnown([a, b])
    expect(yield* currentHost(providers)).toBe("b")
    expect(providers.health(yield* now)).toEqual([
      { host: "a", healthy: false, reason: expect.stringContaining(reason) },
      { host: "b", healthy: true }
    ])
    // Nor is it one to be asked which chain this is.
    expect(yield* providers.agree(yield* providers.current)).toEqual({ genesis: hash("a") })
    const alone = yield* ofKnown([a])
    expect(yield* Effect.flip(alone.current)).toBeInstanceOf(WrongChain)
  }).pipe(quiet)
})

it.effect("a node without either known block passes by its chain id, and each block is asked for once", () => {
  const node = new Node("a")
  node.genesis = undefined
  return Effect.gen(function* () {
    const providers = yield* ofKnown([node])
    expect(yield* currentHost(providers)).toBe("a")
    expect(yield* currentHost(providers)).toBe("a")
    expect(node.asked).toEqual(["eth_chainId", "eth_getBlockByNumber", "eth_getBlockByNumber"])
  }).pipe(quiet)
})

it.effect("a database that was started on another chain is not continued", () => {
  const node = new Node("a")
  return Effect.gen(function* () {
    const providers = yield* ofKnown([node], hash("b"))
    expect(yield* Effect.flip(providers.current)).toBeInstanceOf(WrongChain)
    node.genesis = hash("b")
    const others = yield* ofKnown([node], hash("b"))
    expect(yield* Effect.flip(others.current)).toBeInstanceOf(WrongChain)
  }).pipe(quiet)
})

it.effect("doctor fails for a provider of another chain with the network's id", () => {
  const node = new Node("a")
  node.genesis = hash("b")
  return Effect.gen(function* () {
    const { findings, usable } = yield* examineProviders(testChain({ chainId: 77, knownBlocks }))
    expect(usable).toEqual([])
    expect(findings[0]).toEqual({
      status: "fail",
      name: "base.test a",
      finding: expect.stringContaining(`its first block is ${hash("b")}, and chains.base.test began with ${hash("a")}`),
      remedy: expect.stringMatching(/^check rpc_urls/)
    })
  }).pipe(Effect.provide(Layer.succeed(Rpc, { client: () => node.client })))
})
