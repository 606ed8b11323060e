import { describe, expect, it } from "@effect/vitest"
import { BigDecimal, Clock, Duration, Effect, Redacted } from "effect"
import { type Abi, type Address, encodeFunctionData, type Hash, type Hex } from "viem"
import { gasOf } from "../../../src/Chains/providers/gas.ts"
import { makeProviders } from "../../../src/Chains/providers/Providers.ts"
import { makeClient, Rpc } from "../../../src/Chains/rpc/Rpc.ts"
import { RpcError } from "../../../src/Chains/rpc/RpcError.ts"
import { type Feed, feedsOf, makeChainlink } from "../../../src/Quotes/sources/chainlink.ts"
import type { PriceReading } from "../../../src/Quotes/sources/PriceSource.ts"
import contracts from "../../../src/Sandbox/contracts.json" with { type: "json" }
import { type LocalChain, multicall3Contract, startLocalChain } from "../../../src/Sandbox/LocalChain.ts"
import { liveTestOn } from "../../lib/scopedTest.ts"
import { testChain } from "../../lib/settings.ts"

const abi = contracts.PriceFeed.abi as Abi
const seconds = Effect.map(Clock.currentTimeMillis, (now) => BigInt(Math.floor(now / 1000)))

/** A chain that has the public network's id, with feed contracts where the public network has them. */
const start = Effect.fnUntraced(function* (name: "ethereum" | "base") {
  const chain = yield* startLocalChain({ chain: name, chainId: name === "ethereum" ? 1 : 8453, tokens: [] })
  const settings = testChain({ chain: name, mode: "live", chainId: chain.chainId, rpcUrls: [Redacted.make(chain.url)] })
  const feeds = feedsOf(settings) ?? { prices: {} }
  const [from] = yield* chain.rpc<ReadonlyArray<Address>>("eth_accounts")
  const deployment = yield* chain.rpc<Hash>("eth_sendTransaction", [{ from, data: contracts.PriceFeed.bytecode }])
  yield* chain.mine()
  const { contractAddress } = yield* chain.rpc<{ contractAddress: Address }>("eth_getTransactionReceipt", [deployment])
  const code = yield* chain.rpc<Hex>("eth_getCode", [contractAddress, "latest"])
  const list = Object.values(feeds.prices).flat()
  const addresses = [...list.map((feed) => feed.address), feeds.sequencerUptime ?? []].flat()
  for (const address of addresses) yield* chain.rpc("anvil_setCode", [address, code])
  yield* Effect.forEach(list, (feed) => describeAs(chain, feed, feed.description), { concurrency: 1 })
  yield* chain.mine()
  return { chain, settings, feeds }
})

const tell = (chain: LocalChain, to: string, functionName: string, args: ReadonlyArray<unknown>) =>
  chain.send({ to: to as Address, data: encodeFunctionData({ abi, functionName, args }), gas: 300_000n })

const describeAs = (chain: LocalChain, { address }: Feed, description: string, decimals = 8) =>
  tell(chain, address, "describe", [description, decimals])

const report = (chain: LocalChain, address: string, answer: bigint, ago = 0) =>
  Effect.flatMap(seconds, (now) => tell(chain, address, "report", [answer, now - BigInt(ago), now - BigInt(ago)]))

const feedFor = (
  { prices }: { readonly prices: Readonly<Record<string, ReadonlyArray<Feed>>> },
  description: string
) => {
  const all = Object.values(prices).flat()
  return all.find((feed) => feed.description === description) ?? expect.unreachable(`there is no ${description}`)
}

const answers: Readonly<Record<string, bigint>> = {
  "ETH / USD": 3_000_12345678n,
  "WBTC / BTC": 99_900_000n,
  "BTC / USD": 100_000_00000000n,
  "USDC / USD": 99_990_000n,
  "USDT / USD": 1_00010000n,
  "DAI / USD": 1_00000000n,
  "MATIC / USD": 25_000_000n,
  "EUR / USD": 1_10000000n,
  "GBP / USD": 1_30000000n
}

const reportAll = (chain: LocalChain, feeds: NonNullable<ReturnType<typeof feedsOf>>) => {
  const tellOf = (feed: Feed) => report(chain, feed.address, answers[feed.description] ?? 1n)
  const all = Effect.forEach(Object.values(feeds.prices).flat(), tellOf, { concurrency: 1 })
  return Effect.zipRight(all, chain.mine())
}

const shown = ({ points, refused }: PriceReading) => ({
  ...Object.fromEntries(points.map(({ price, symbol }) => [symbol, BigDecimal.format(price)])),
  ...Object.fromEntries(refused.map(({ reason, symbol }) => [symbol, reason]))
})

/** A source on the chain's feeds, and the calls that it makes. */
const sourceOn = Effect.fnUntraced(function* ({ feeds, settings }: Effect.Effect.Success<ReturnType<typeof start>>) {
  const rpc = yield* Rpc
  const batches: Array<number> = []
  const counting: Rpc["Type"] = {
    client: (url) => {
      const { counters, host, sendEach } = rpc.client(url)
      return makeClient({
        host,
        counters,
        sendEach: (calls) => {
          if (calls.some(({ method }) => method === "eth_call")) batches.push(calls.length)
          return sendEach(calls)
        }
      })
    }
  }
  const providers = yield* makeProviders(settings, settings, counting, undefined, Duration.minutes(10))
  return { source: makeChainlink(settings.chain, providers, feeds), batches }
})

const test = liveTestOn(Rpc.layer)

describe("Chainlink's feeds", () => {
  test("are read in one call, checked once, and multiplied where no feed is in USD", function* () {
    const world = yield* start("ethereum")
    const { chain, feeds } = world
    yield* reportAll(chain, feeds)
    const { batches, source } = yield* sourceOn(world)
    const good = {
      ETH: "3000.12345678",
      WBTC: "99900",
      USDC: "0.9999",
      USDT: "1.0001",
      DAI: "1",
      MATIC: "0.25",
      EUR: "1.1",
      GBP: "1.3"
    }
    expect(shown(yield* source.read)).toEqual(good)
    expect(batches).toEqual([1, 1])
    expect(shown(yield* source.read)).toEqual(good)
    expect(batches).toEqual([1, 1, 1])

    // No answer that is not above zero, or too old by its feed's own heartbeat, is a price.
    const at = (description: string) => feedFor(feeds, description).address
    yield* report(chain, at("ETH / USD"), 0n)
    yield* report(chain, at("WBTC / BTC"), 99_900_000n, 86_400)
    yield* report(chain, at("DAI / USD"), -1n)
    yield* report(chain, at("MATIC / USD"), 25_000_000n, 3_600 + 540)
    yield* report(chain, at("USDC / USD"), 1_00000000n, 86_400 + 601)
    yield* report(chain, at("EUR / USD"), 1_10000000n, -3_600)
    yield* chain.mine()
    const { points, refused } = yield* source.read
    expect(shown({ points, refused })).toEqual({
      ...good,
      ETH: "ETH / USD: its answer is 0",
      DAI: "DAI / USD: its answer is -1",
      USDC: expect.stringMatching(/^USDC \/ USD: it was last updated 1d 10m \ds? ?ago$/),
      EUR: "EUR / USD: it was updated in the future, by this machine's clock"
    })
    // As old as the oldest of its feeds, and usable for no longer than what was read lives.
    const now = yield* Clock.currentTimeMillis
    const wbtc = points.find(({ symbol }) => symbol === "WBTC")
    expect(Math.round((now - (wbtc?.observedAt ?? 0)) / 10_000)).toBe(8_640)
    for (const point of points) expect(point.observedAt + point.maxAge).toBeLessThanOrEqual(now + 120_000)
  })

  test("are checked by their description, may have any decimals, and are read without Multicall3 too", function* () {
    const world = yield* start("ethereum")
    const { chain, feeds } = world
    yield* reportAll(chain, feeds)
    yield* describeAs(chain, feedFor(feeds, "MATIC / USD"), "POL / USD")
    yield* describeAs(chain, feedFor(feeds, "ETH / USD"), "BTC / USD")
    yield* describeAs(chain, feedFor(feeds, "DAI / USD"), "DAI / USD", 18)
    yield* report(chain, feedFor(feeds, "DAI / USD").address, 999n * 10n ** 15n)
    yield* chain.rpc("anvil_setCode", [feedFor(feeds, "GBP / USD").address, "0x"])
    yield* chain.rpc("anvil_setCode", [feedFor(feeds, "EUR / USD").address, "0x60006000fd"])
    yield* chain.rpc("anvil_setCode", [multicall3Contract.address, "0x"])
    yield* chain.mine()
    const { batches, source } = yield* sourceOn(world)
    expect(shown(yield* source.read)).toMatchObject({
      MATIC: "0.25",
      DAI: "0.999",
      ETH: 'ETH / USD: it calls itself "BTC / USD"',
      GBP: "GBP / USD: what it returns is not an answer of a price feed",
      EUR: expect.stringContaining("EUR / USD: ")
    })
    expect(batches).toEqual([1, 18, 1, 9])
    // What was wrong is looked at again.
    yield* describeAs(chain, feedFor(feeds, "ETH / USD"), "ETH / USD")
    yield* chain.mine()
    expect(shown(yield* source.read)).toMatchObject({ ETH: "3000.12345678" })
  })

  test("have no price while the sequencer is down, from another chain, or from an unreachable provider", function* () {
    const world = yield* start("base")
    const { chain, feeds, settings } = world
    const uptime = feeds.sequencerUptime ?? ""
    const { address } = feedFor(feeds, "MXN / USD")
    const { source } = yield* sourceOn(world)
    yield* report(chain, address, 5_400_000n)
    yield* chain.mine()
    // Its feed has not been started.
    expect((yield* Effect.flip(source.read)).reason).toBe("the chain's sequencer is down")
    yield* report(chain, uptime, 0n, 86_400)
    yield* chain.mine()
    expect(shown(yield* source.read)).toEqual({ MXN: "0.054" })
    yield* report(chain, uptime, 1n)
    yield* chain.mine()
    expect((yield* Effect.flip(source.read)).message).toBe("chainlink on base: the chain's sequencer is down")

    const elsewhere = yield* sourceOn({ ...world, settings: { ...settings, chainId: 10 } })
    expect((yield* Effect.flip(elsewhere.source.read)).reason).toBe("its provider serves another chain")
    process.kill(chain.pid, "SIGKILL")
    yield* chain.ended
    expect((yield* Effect.flip(source.read)).reason).toBe("eth_call failed (unreachable)")
  })
})

it("feeds are those of the public networks, in live mode", () => {
  expect(feedsOf(testChain({ chain: "ethereum", mode: "live", chainId: 1 }))?.prices.ETH).toHaveLength(1)
  expect(feedsOf(testChain({ chain: "ethereum", mode: "live", chainId: 31_337 }))).toBeUndefined()
  expect(feedsOf(testChain({ chain: "ethereum", mode: "test", chainId: 1 }))).toBeUndefined()
  expect(feedsOf(testChain({ chain: "arbitrum", mode: "live", chainId: 42_161 }))).toBeUndefined()
})

describe("the L1 data fee", () => {
  test("is what the chain's oracle reports for a transfer, and nothing where there is no oracle", function* () {
    const chain = yield* startLocalChain({ chain: "base", chainId: 8453, tokens: [] })
    const client = (yield* Rpc).client(Redacted.make(chain.url))
    expect(yield* gasOf("base", client, 7n)).toEqual({ price: 7n, l1Fee: 0n })
    // CALLDATASIZE 36, or it reverts; else the argument, times 1,000,000,000.
    const oracle = "0x36602414600b57600080fd5b600435633b9aca000260005260206000f3"
    yield* chain.rpc("anvil_setCode", ["0x420000000000000000000000000000000000000F", oracle])
    expect(yield* gasOf("base", client, 7n)).toEqual({ price: 7n, l1Fee: 120_000_000_000n })
    expect(yield* gasOf("optimism", client, 7n)).toEqual({ price: 7n, l1Fee: 120_000_000_000n })
    expect(yield* gasOf("arbitrum", client, 7n)).toEqual({ price: 7n, l1Fee: 0n })
    yield* chain.rpc("anvil_setCode", ["0x420000000000000000000000000000000000000F", "0x600080fd"])
    expect(yield* gasOf("base", client, 7n)).toBeUndefined()
    const error = new RpcError({ host: "h", method: "eth_call", reason: "timeout", detail: "" })
    const silent = makeClient({ ...client, sendEach: () => error })
    expect(yield* gasOf("base", silent, 7n)).toBeUndefined()
  })
})
