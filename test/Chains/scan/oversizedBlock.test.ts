import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { AddressSet } from "../../../src/Chains/ledger/AddressSet.ts"
import { makeClient, type RpcRequest } from "../../../src/Chains/rpc/Rpc.ts"
import { RpcError } from "../../../src/Chains/rpc/RpcError.ts"
import { readRange } from "../../../src/Chains/scan/readRange.ts"
import { contractsOf } from "../../../src/Chains/scan/transfers.ts"
import type { ChainName } from "../../../src/Domain/Chain.ts"
import { clockTest } from "../../lib/scopedTest.ts"
import { address, alice, bridged, usdc, withTokens } from "../around.ts"
import {
  capped,
  cappedInUnknownWords,
  cut,
  type LogCap,
  ModelChain,
  type ModelTransaction,
  token
} from "../ModelChain.ts"

/** Another watched address; of many, none has its checksum. */
const watchedToo = (n: number): string => `0x${(0xf000_0000 + n).toString(16).padStart(40, "0")}`
const stranger = address(0xbad)

/** Transfers of a token to someone else. */
const noise = (count: number, contract = usdc): ReadonlyArray<ModelTransaction> =>
  Array.from({ length: count }, () => token(contract, stranger, 1n))

/** What the last block of a chain has for those who are watched: alice, and some others. */
const read = (chain: ModelChain, count: number, { client = chain.client, name = "base", stuck = false } = {}) => {
  const settings = { ...withTokens, chain: name as ChainName }
  const watched = new AddressSet()
  watched.add(alice)
  for (let i = 1; i < count; i++) watched.add(watchedToo(i))
  const [from, last] = [chain.blocks[10], chain.blocks.at(-1)]
  if (from === undefined || last === undefined) return Effect.dieMessage("the chain has these blocks")
  const source = { client, chain: settings, contracts: contractsOf(settings, []), watched, stuck }
  return Effect.map(readRange(source, from, last), ({ transfers }) =>
    transfers.map(({ amount, currency }) => `${currency} ${amount}`)
  )
}

/** A node with a block 11 of these transactions, and money for alice at their end. */
const flooded = (logCap: LogCap, ...transactions: ReadonlyArray<ModelTransaction>) => {
  const chain = new ModelChain(10)
  chain.logCap = logCap
  chain.mine(...transactions, token(bridged, alice, 6n), token(usdc, alice, 5n))
  return chain
}
const money = ["USDC.e 6", "USDC 5"]

/** Calls of each method, in the order in which they were first made. */
const callsOf = (chain: ModelChain) => {
  const calls: Record<string, number> = {}
  for (const { method } of chain.batches.flat()) calls[method] = (calls[method] ?? 0) + 1
  return calls
}

/** The ways in which a provider keeps its responses small. */
const caps = [
  ["that names its cap", capped(10_000)],
  ["that refuses in words that nobody knows", cappedInUnknownWords(10_000)],
  ["that cuts its answer", cut(10_000)]
] as const

describe("a block with more logs than a provider gives at once", () => {
  it.effect.each(caps)("is read from its receipts, from one %s", ([, cap]) =>
    Effect.gen(function* () {
      for (const name of ["base", "ethereum"]) {
        const chain = flooded(cap, ...noise(6_001), ...noise(4_000, bridged))
        expect((yield* read(chain, 600, { name })).sort()).toEqual([...money].sort())
        expect(callsOf(chain)).toMatchObject({ eth_getLogs: 1, eth_getBlockReceipts: 1, eth_getBlockByHash: 1 })
        expect(chain.count("eth_getTransactionReceipt")).toBe(0)
      }
    })
  )

  clockTest("is read completely where one address alone gets too many", function* () {
    const chain = flooded(capped(20), ...Array.from({ length: 30 }, () => token(usdc, alice, 1n)))
    expect((yield* read(chain, 2)).length).toBe(32)
    expect(callsOf(chain)).toMatchObject({ eth_getLogs: 1, eth_getBlockReceipts: 1 })
  })

  clockTest("is read by the receipts of its transactions where those of a block are not served", function* () {
    const chain = flooded(capped(100), ...noise(101))
    chain.unserved.add("eth_getBlockReceipts")
    expect(yield* read(chain, 10_001)).toEqual(money)
    expect(callsOf(chain)).toMatchObject({ eth_getTransactionReceipt: 103 })
  })

  it.effect.each([
    ["lack one", (receipts: ReadonlyArray<object>) => receipts.slice(0, -1)],
    ["have one twice", (receipts: ReadonlyArray<object>) => [...receipts.slice(0, -1), receipts[0]]],
    [
      "are another block's",
      (receipts: ReadonlyArray<object>) => receipts.map((one) => ({ ...one, blockHash: `0x${"7".repeat(64)}` }))
    ],
    [
      "lack logs that their bloom has",
      (receipts: ReadonlyArray<object>) =>
        receipts.map((one) => ({ ...one, logs: [], logsBloom: `0x01${"0".repeat(510)}` }))
    ]
  ] as const)("is not believed of receipts that %s", ([, distort]) =>
    Effect.gen(function* () {
      const chain = flooded(capped(100), ...noise(101))
      chain.distort = ({ method }, answer) =>
        method === "eth_getBlockReceipts" ? distort(answer as ReadonlyArray<object>) : answer
      // The receipts of its transactions are asked for instead.
      expect(yield* read(chain, 10_001)).toEqual(money)
      expect(callsOf(chain)).toMatchObject({ eth_getTransactionReceipt: 103 })
    })
  )

  clockTest("is not read from receipts whose logs do not explain the block's bloom", function* () {
    const chain = flooded(capped(100), ...noise(101))
    chain.distort = ({ method }, answer) =>
      method === "eth_getBlockByHash" ? { ...(answer as object), logsBloom: `0x${"f".repeat(512)}` } : answer
    const error = yield* Effect.flip(read(chain, 10_001))
    expect(error.message).toContain("block 11 has logs that no receipt has")
  })

  clockTest("fails with its number where every way is refused", function* () {
    const chain = flooded(capped(100), ...noise(101))
    chain.unserved.add("eth_getBlockReceipts").add("eth_getTransactionReceipt")
    const error = yield* Effect.flip(read(chain, 10_001))
    expect(error).toMatchObject({ reason: "refused" })
    expect((error as RpcError).summary).toMatch(
      /^every way to read the logs of block 11 at model failed \(refused\)\. Remedy: /
    )
  })

  clockTest("is read from its receipts after a timeout only when the provider failed the last time too", function* () {
    const chain = flooded(capped(10_000))
    const isWhole = ({ method, params: [filter] }: RpcRequest) =>
      method === "eth_getLogs" && Object.hasOwn(filter as object, "fromBlock")
    const { counters, host, sendEach } = chain.client
    const client = makeClient({
      counters,
      host,
      sendEach: (calls) =>
        calls.some(isWhole)
          ? new RpcError({ host, method: "eth_getLogs", reason: "timeout", detail: "" })
          : sendEach(calls)
    })
    expect(yield* Effect.flip(read(chain, 600, { client }))).toMatchObject({ reason: "timeout" })
    expect(chain.batches).toEqual([])
    expect((yield* read(chain, 600, { client, stuck: true })).sort()).toEqual([...money].sort())
  })
})

describe("a response with a round number of logs", () => {
  clockTest("of several blocks may be truncated, and is not used", function* () {
    const chain = flooded(cut(1_000), ...noise(1_001))
    chain.mine()
    expect(yield* Effect.flip(read(chain, 600))).toMatchObject({ reason: "range", method: "eth_getLogs" })
  })

  clockTest("of one block is read from its receipts, and may turn out complete", function* () {
    const chain = flooded(cut(5_000), ...noise(998))
    expect((yield* read(chain, 600)).sort()).toEqual([...money].sort())
    expect(callsOf(chain)).toMatchObject({ eth_getLogs: 1, eth_getBlockReceipts: 1 })
  })

  clockTest("costs no further call when the number is not round", function* () {
    const chain = flooded(cut(5_000), ...noise(1_999))
    expect(yield* read(chain, 600)).toEqual(money)
    expect(callsOf(chain)).toEqual({ eth_getLogs: 1, eth_getBlockByNumber: 1 })
  })
})
