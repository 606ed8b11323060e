import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { minedTransaction, minedTransfers } from "../../../src/Chains/providers/minedTransaction.ts"
import { clockTest } from "../../lib/scopedTest.ts"
import { someProviders } from "../../lib/soleProvider.ts"
import { alice } from "../around.ts"
import { coin, ModelChain, token } from "../ModelChain.ts"

clockTest(
  "a mined transaction is found, where the chain's provider responds with that transaction and no other",
  function* () {
    const chain = new ModelChain(3)
    const { aside, providers } = someProviders(chain.client)
    const good = coin(alice, 1n)
    const bad = coin(alice, 2n, { fails: true })
    const { hash: blockHash } = chain.mine(good, bad)
    chain.mineMany(2)
    const found = { blockHash, blockNumber: 4, confirmations: 3 }
    expect(yield* minedTransaction(providers, good.hash)).toEqual({ ...found, succeeded: true })
    expect(yield* minedTransaction(providers, bad.hash)).toEqual({ ...found, succeeded: false })
    expect(yield* minedTransaction(providers, coin(alice, 3n).hash)).toBeUndefined()

    chain.distort = ({ method }, answer) =>
      method === "eth_getTransactionReceipt" ? { ...(answer as object), transactionHash: bad.hash } : answer
    expect(yield* minedTransaction(providers, good.hash)).toBeUndefined()
    expect(aside).toEqual([])

    chain.failure = "timeout"
    expect(yield* Effect.flip(minedTransaction(providers, good.hash))).toMatchObject({ reason: "timeout" })
    expect(aside).toEqual(["timeout"])
  }
)

clockTest("a transaction that one of several has counts once another has it, as deep as that one says", function* () {
  const chain = new ModelChain(3)
  const [other, third] = [chain.twin(), chain.twin()]
  const paid = coin(alice, 1n)
  chain.mine(paid)
  chain.mineMany(5)
  const lacking = (node: ModelChain) => {
    node.distort = ({ method }, answer) => (method === "eth_getTransactionReceipt" ? null : answer)
  }
  const by = (...nodes: readonly [ModelChain, ...Array<ModelChain>]) => {
    const { providers } = someProviders(nodes[0].client, ...nodes.slice(1).map(({ client }) => client))
    return minedTransaction(providers, paid.hash)
  }
  other.behind = 2
  expect(yield* by(chain, other)).toMatchObject({ blockNumber: 4, confirmations: 4 })
  lacking(other)
  expect((yield* Effect.flip(by(chain, other))).message).toMatch(/no two providers say the same.*Remedy: try again/)
  expect((yield* Effect.flip(by(other, chain))).message).toMatch(/no two providers say the same/)
  expect(yield* by(chain, other, third)).toMatchObject({ confirmations: 6 })
  lacking(third)
  expect(yield* by(chain, other, third)).toBeUndefined()
  other.failure = "timeout"
  expect(yield* Effect.flip(by(chain, other))).toMatchObject({ reason: "inconsistent" })
})

clockTest("where one decides alone, another one that disagrees now is not outvoted", function* () {
  const chain = new ModelChain(3)
  const other = chain.twin()
  const paid = coin(alice, 1n)
  chain.mine(paid)
  chain.mineMany(5)
  other.distort = ({ method }, answer) => (method === "eth_getTransactionReceipt" ? null : answer)
  const some = someProviders(chain.client, other.client)
  const providers = { ...some.providers, decidesAlone: () => true }
  expect(yield* Effect.flip(minedTransaction(providers, paid.hash))).toMatchObject({ reason: "inconsistent" })
  other.failure = "timeout"
  expect(yield* minedTransaction(providers, paid.hash)).toMatchObject({ confirmations: 6 })
})

clockTest("what a transaction transfers counts once two providers agree on it", function* () {
  const chain = new ModelChain(3)
  const [other, third] = [chain.twin(), chain.twin()]
  const contract = `0x${"c".repeat(40)}`
  const [tokens, coins] = [token(contract, alice, 5n), coin(alice, 7n)]
  chain.mine(tokens, coins)
  const { aside, providers } = someProviders(chain.client, other.client, third.client)
  const transfersOf = ({ hash }: typeof coins) => Effect.map(minedTransfers(providers, hash), (one) => one?.transfers)
  const to = alice.toLowerCase()
  // The log before it is another event.
  const ofToken = [{ contract, from: expect.any(String), to, amount: 5n, position: "log:1" }]
  expect(yield* transfersOf(tokens)).toEqual(ofToken)
  expect(yield* transfersOf(coins)).toMatchObject([{ contract: undefined, to, amount: 7n, position: "tx" }])
  // One that waits is in no block, and its provider is as good as before.
  chain.distort = ({ method }, answer) =>
    method === "eth_getTransactionReceipt"
      ? null
      : /Transaction/.test(method)
        ? { ...(answer as object), blockHash: null }
        : answer
  other.distort = chain.distort
  expect(yield* transfersOf(coins)).toBeUndefined()
  expect(aside).toEqual([])
  other.distort = chain.twin().distort
  const hiding = (node: ModelChain) => {
    node.distort = ({ method }, answer) =>
      method === "eth_getTransactionReceipt" ? { ...(answer as object), logs: [] } : answer
  }
  hiding(chain)
  expect(yield* transfersOf(tokens)).toEqual(ofToken)
  hiding(other)
  expect(yield* transfersOf(tokens)).toEqual([])
  third.failure = "timeout"
  other.distort = chain.twin().distort
  expect(yield* Effect.flip(transfersOf(tokens))).toMatchObject({ reason: "inconsistent" })
})
