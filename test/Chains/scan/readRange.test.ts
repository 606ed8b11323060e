import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { AddressSet } from "../../../src/Chains/ledger/AddressSet.ts"
import { transferTopic } from "../../../src/Chains/rpc/methods.ts"
import { readRange } from "../../../src/Chains/scan/readRange.ts"
import { contractsOf } from "../../../src/Chains/scan/transfers.ts"
import type { ChainName } from "../../../src/Domain/Chain.ts"
import { clockTest } from "../../lib/scopedTest.ts"
import { bloomOf } from "../../sim/bloom.ts"
import { alice, usdc, withTokens } from "../around.ts"
import { coin, ModelChain, token } from "../ModelChain.ts"

/** What `chain` has for alice above a block, as a chain of that name is read. */
const readAbove = (chain: ModelChain, name: ChainName, number: number, other?: ModelChain) => {
  const settings = { ...withTokens, chain: name }
  const watched = new AddressSet()
  watched.add(alice)
  const second = other && { other: Effect.succeed(other.client) }
  const source = { client: chain.client, chain: settings, contracts: contractsOf(settings, []), watched, ...second }
  const [after, last] = [chain.blocks[number], chain.blocks.at(-1)]
  if (after === undefined || last === undefined) return Effect.dieMessage("the chain has these blocks")
  const header = { ...last, logsBloom: undefined }
  return Effect.map(readRange(source, after, header), ({ end, transfers }) => {
    expect(end).toEqual({ number: last.number, hash: last.hash, time: last.time })
    return transfers
  })
}

clockTest("native transfers of failed transactions are left out, over several batches of receipts", function* () {
  const chain = new ModelChain(10)
  const fails = (i: number) => i === 3 || i === 57
  chain.mine(...Array.from({ length: 120 }, (_, i) => coin(alice, BigInt(i + 1), { fails: fails(i) })))
  const expected = Array.from({ length: 120 }, (_, i) => BigInt(i + 1)).filter((_, i) => !fails(i))
  expect((yield* readAbove(chain, "ethereum", 10)).map(({ amount }) => amount)).toEqual(expected)
})

it.effect.each([["transactionHash"], ["blockHash"]] as const)("a receipt with another %s fails the range", ([field]) =>
  Effect.gen(function* () {
    const chain = new ModelChain(10)
    chain.distort = ({ method }, answer) =>
      method === "eth_getTransactionReceipt" ? { ...(answer as object), [field]: `0x${"7".repeat(64)}` } : answer
    chain.mine(coin(alice, 5n))
    expect(yield* Effect.flip(readAbove(chain, "ethereum", 10))).toMatchObject({ reason: "inconsistent" })
  })
)

clockTest("token transfers have the time of their block, over several batches of headers", function* () {
  const chain = new ModelChain(10)
  for (let i = 11; i <= 130; i++) chain.mine(token(usdc, alice, BigInt(i)))
  const transfers = yield* readAbove(chain, "base", 10)
  expect(transfers.map(({ amount, blockNumber, blockTime }) => [amount, blockNumber, blockTime])).toEqual(
    chain.blocks.slice(11).map(({ number, time }) => [BigInt(number), number, time])
  )
})

clockTest("a range begins above the block that was read before, and ends with its last one", function* () {
  for (const name of ["ethereum", "base"] as const) {
    const chain = new ModelChain(10)
    for (let i = 11; i <= 35; i++) chain.mine(token(usdc, alice, BigInt(i)))
    expect((yield* readAbove(chain, name, 12)).map(({ blockNumber }) => blockNumber)).toEqual(
      Array.from({ length: 23 }, (_, i) => 13 + i)
    )
    expect((yield* readAbove(chain, name, 34)).map(({ blockNumber }) => blockNumber)).toEqual([35])
  }
})

clockTest("logs of a block below or above the range fail it", function* () {
  for (const range of [{ fromBlock: "0xb" }, { toBlock: "0xd" }]) {
    const chain = new ModelChain(10)
    for (let i = 11; i <= 12; i++) chain.mine(token(usdc, alice, BigInt(i)))
    // For this node, a range is one block longer.
    chain.intercept = (batch) => {
      if (chain.height === 12) chain.mine(token(usdc, alice, 13n))
      for (const { method, params } of batch) if (method === "eth_getLogs") Object.assign(params[0] as object, range)
    }
    const { detail } = yield* Effect.flip(readAbove(chain, "base", 11))
    expect(detail).toMatch(/^a log of block 1[13] came for another range$/)
  }
})

/** Every block's bloom promises a token for alice, and the logs of ranges are left out. */
const promising = (chain: ModelChain) => {
  const logsBloom = bloomOf([usdc, transferTopic, `0x${alice.slice(2).toLowerCase().padStart(64, "0")}`])
  chain.distort = ({ method, params }, answer) => {
    if (method === "eth_getBlockByNumber") return { ...(answer as object), logsBloom }
    return method === "eth_getLogs" && !Object.hasOwn(params[0] as object, "blockHash") ? [] : answer
  }
}

clockTest(
  "logs that a bloom promises are not believed to be absent by a node that does not have the block",
  function* () {
    const chain = new ModelChain(10)
    chain.mine(token(usdc, alice, 5n))
    promising(chain)
    const { distort } = chain
    let asked = 0
    chain.distort = (call, answer) => {
      if (call.method === "eth_getLogs") return []
      // After the batch with the range, a balancer takes a node whose head is block 10: it says so of headers only.
      return asked++ === 0 ? distort?.(call, answer) : null
    }
    expect(yield* Effect.flip(readAbove(chain, "base", 10))).toMatchObject({ reason: "missing" })
  }
)

clockTest(
  "logs that a bloom promises are read from another provider, and from the same one where that fails",
  function* () {
    for (const name of ["ethereum", "base"] as const) {
      const chain = new ModelChain(10)
      chain.mine(token(usdc, alice, 5n))
      const other = chain.twin()
      promising(chain)
      expect((yield* readAbove(chain, name, 10, other)).map(({ amount }) => amount)).toEqual([5n])
      other.failure = "unreachable"
      const { detail } = yield* Effect.flip(readAbove(chain, name, 10, other))
      expect(detail).toBe("the logs of block 11 were left out")
      // A bloom may promise what is not there: another provider's failure holds up nothing then.
      chain.mine()
      expect(yield* readAbove(chain, name, 11, other)).toEqual([])
    }
  }
)
