import { expect } from "@effect/vitest"
import { BigDecimal, Effect, Either, Layer, TestClock } from "effect"
import { decodeFunctionData, encodeFunctionResult, type Hex, multicall3Abi, parseAbi } from "viem"
import { makeChainlink } from "../../../src/Quotes/sources/chainlink.ts"
import { scopedTest } from "../../lib/scopedTest.ts"
import { someProviders } from "../../lib/soleProvider.ts"
import { errorsOf, nodeClient, replies } from "../../sim/nodeClient.ts"

const test = scopedTest(Layer.empty)
const abi = parseAbi([
  "function decimals() view returns (uint8)",
  "function description() view returns (string)",
  "function latestRoundData() view returns (uint80 roundId, int256 answer, uint256 startedAt, uint256 updatedAt, uint80 answeredInRound)"
])
const feed = "0x00000000000000000000000000000000000000fe"
const uptime = "0x00000000000000000000000000000000000000af"
const now = 1_000_000

/** A node's response about the feed, and about the chain's sequencer. */
interface Says {
  /** USD. */
  readonly price: bigint
  /** Seconds since its update. */
  readonly ago: number
  readonly down?: boolean
  readonly name?: string
  /** It answers nothing. */
  readonly dead?: boolean
}

const viewOf = ({ ago, down = false, name = "ETH / USD", price }: Says, target: string, data: Hex): Hex => {
  const { functionName } = decodeFunctionData({ abi, data })
  if (functionName === "decimals") return encodeFunctionResult({ abi, functionName, result: 8 })
  if (functionName === "description") return encodeFunctionResult({ abi, functionName, result: name })
  const at = BigInt(now - ago)
  const answer = target.toLowerCase() === uptime ? BigInt(down) : price * 10n ** 8n
  return encodeFunctionResult({ abi, functionName, result: [1n, answer, at, at, 1n] })
}

const node = (says: Says, index: number) =>
  nodeClient(`node-${index}`, (calls) => {
    if (says.dead) return errorsOf("dead", calls)("unreachable", "")
    return replies(`node-${index}`, calls, ({ params: [call] }) => {
      const { args } = decodeFunctionData({ abi: multicall3Abi, data: (call as { readonly data: Hex }).data })
      const [views] = args as unknown as [ReadonlyArray<{ readonly target: string; readonly callData: Hex }>]
      const result = views.map(({ callData, target }) => {
        return { success: true, returnData: viewOf(says, target, callData) }
      })
      return encodeFunctionResult({ abi: multicall3Abi, functionName: "aggregate3", result })
    })
  })

/** The price of ETH according to these nodes, or the reason for none. */
const priceBy = (first: Says, ...others: ReadonlyArray<Says>) => {
  const { providers } = someProviders(node(first, 0), ...others.map((one, i) => node(one, i + 1)))
  const feeds = {
    prices: { ETH: [{ address: feed, description: "ETH / USD", heartbeat: 1_200 }] },
    sequencerUptime: uptime
  }
  return Effect.map(Effect.either(makeChainlink("base", providers, feeds as never).read), (read) => {
    if (Either.isLeft(read)) return read.left.reason
    const [point] = read.right.points
    return point === undefined ? read.right.refused[0]?.reason : BigDecimal.format(point.price)
  })
}

const honest: Says = { price: 3_000n, ago: 60 }
const lie: Says = { price: 30_000n, ago: 1 }
const down: Says = { ...honest, down: true }
const stale: Says = { ...honest, ago: 7_200 }

test("a missing price is a response: one of three alone sets none, at any position", function* () {
  yield* TestClock.setTime(now * 1000)
  for (const place of [0, 1, 2]) {
    const of = (one: Says): [Says, Says, Says] => [one, one, one].with(place, lie) as [Says, Says, Says]
    expect(yield* priceBy(...of(honest))).toBe("3000")
    expect(yield* priceBy(...of(down))).toContain("sequencer is down")
    expect(yield* priceBy(...of(stale))).toContain("last updated")
  }
})

test("of two that differ neither is trusted, and of three one alone removes no price", function* () {
  yield* TestClock.setTime(now * 1000)
  expect(yield* priceBy(lie, down)).toContain("sequencer is down")
  expect(yield* priceBy(stale, lie)).toContain("last updated")
  for (const refusing of [down, stale]) {
    expect(yield* priceBy(refusing, honest, honest)).toBe("3000")
    expect(yield* priceBy(honest, refusing, honest)).toBe("3000")
  }
  expect(yield* priceBy(down)).toContain("sequencer is down")
  expect(yield* priceBy(lie, honest)).toBe("one provider says 3000 and another one 30000: add a third one to rpc_urls")
  // Half a per cent is an update that one of them has not seen yet.
  expect(yield* priceBy({ ...honest, price: 3_015n }, honest)).toBe("3000")
  const misnamed = { ...honest, name: "BTC / USD" }
  expect(yield* priceBy(misnamed, honest, honest)).toBe("3000")
  expect(yield* priceBy(misnamed, honest)).toBe('ETH / USD: it calls itself "BTC / USD"')
  const dead = { ...honest, dead: true }
  expect([yield* priceBy(dead, honest), yield* priceBy(honest, dead)]).toEqual(["3000", "3000"])
})
