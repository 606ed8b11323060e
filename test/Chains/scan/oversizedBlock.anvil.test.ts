import { describe, expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { type Address, encodeFunctionData, getAddress, type Hex } from "viem"
import { AddressSet } from "../../../src/Chains/ledger/AddressSet.ts"
import { getHead, sendBatch } from "../../../src/Chains/rpc/methods.ts"
import { Rpc } from "../../../src/Chains/rpc/Rpc.ts"
import { readRange } from "../../../src/Chains/scan/readRange.ts"
import { contractsOf } from "../../../src/Chains/scan/transfers.ts"
import { batcherAbi, batcherAddress, localTokens, startLocalChain } from "../../../src/Sandbox/LocalChain.ts"
import { startFaultProxy } from "../../lib/faultProxy.ts"
import { chainSettings } from "../world.ts"

const address = (n: number): Address => getAddress(`0x${n.toString(16).padStart(40, "0")}` as Hex)
const [alice, stranger] = [address(0xa11ce), address(0xbad)]

const symbols = ["USDC", "USDT"] as const
const base = chainSettings({
  chain: "base",
  tokens: symbols.map((symbol) => ({ symbol, address: localTokens[symbol].address.toLowerCase(), decimals: 6 }))
})

/** A block of a real node with 31 transfers, the last to alice, behind a provider that gives 20 logs at once. */
const flooded = Effect.gen(function* () {
  const chain = yield* startLocalChain({ chain: "base", chainId: 31_337, tokens: symbols })
  const proxy = yield* startFaultProxy(chain.url)
  const before = yield* chain.head
  const { address: usdc } = localTokens.USDC
  const send = (to: ReadonlyArray<Address>) =>
    chain.send({
      to: batcherAddress,
      data: encodeFunctionData({
        abi: batcherAbi,
        functionName: "sendTokens",
        args: [to.map(() => usdc), to, to.map(() => 1n)]
      })
    })
  yield* chain.payToken({ symbol: "USDC", to: batcherAddress, amount: 100n })
  yield* send(Array.from({ length: 15 }, () => stranger))
  yield* send(Array.from({ length: 14 }, () => stranger))
  yield* chain.payToken({ symbol: "USDC", to: alice, amount: 5n })
  yield* chain.mine()
  yield* proxy.set("logLimit", { logs: 20 })
  return { before, chain, proxy }
})

describe("a block of a real node with more logs than its provider gives", () => {
  it.scopedLive("is read from its receipts, whose bloom is the block's", () =>
    Effect.gen(function* () {
      const { before, proxy } = yield* flooded
      const client = (yield* Rpc).client(Redacted.make(proxy.url))
      const watched = new AddressSet()
      watched.add(alice)
      // Too many for a filter of receivers: the provider gets the contracts only.
      for (let i = 1; i < 600; i++) watched.add(`0x${(0xf000_0000 + i).toString(16).padStart(40, "0")}`)
      const [head] = yield* sendBatch(client, [getHead])
      expect(head.number).toBe(before.number + 1)
      const source = { client, chain: base, contracts: contractsOf(base, []), watched }
      const after = { number: before.number, hash: before.hash, time: before.timestamp }
      const { transfers } = yield* readRange(source, after, head)
      expect(transfers.map(({ address, amount }) => [address, amount])).toEqual([[alice.toLowerCase(), 5n]])
      expect([proxy.count("eth_getLogs"), proxy.count("eth_getBlockReceipts")]).toEqual([1, 1])
    }).pipe(Effect.provide(Rpc.layer))
  )
})
