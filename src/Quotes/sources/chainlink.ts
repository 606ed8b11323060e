import { Array as Arr, BigDecimal, Clock, Duration, Effect, Either, Order } from "effect"
import { decodeFunctionResult, encodeFunctionData, type Hex, parseAbi } from "viem"
import type { Provider, Providers } from "../../Chains/providers/Providers.ts"
import { type ContractView, readContractViews, type ViewResult } from "../../Chains/rpc/contractViews.ts"
import type { ChainName } from "../../Domain/Chain.ts"
import type { QuoteCurrency } from "../../Domain/Quote.ts"
import { cut } from "../../lib/text.ts"
import { presets } from "../../Settings/publicNetworks.ts"
import type { ChainSettings } from "../../Settings.ts"
import {
  ageText,
  type PricePoint,
  type PriceReading,
  type PriceSource,
  PriceSourceError,
  readingLife
} from "./PriceSource.ts"
import { showDecimal } from "./rate.ts"

/** Added to a feed's heartbeat, for updates on a congested chain; also how far clocks may differ. */
const patience = Duration.toMillis("10 minutes")

/** https://docs.chain.link/data-feeds/api-reference */
const abi = parseAbi([
  "function decimals() view returns (uint8)",
  "function description() view returns (string)",
  "function latestRoundData() view returns (uint80 roundId, int256 answer, uint256 startedAt, uint256 updatedAt, uint80 answeredInRound)"
])
type FeedFunction = "decimals" | "description" | "latestRoundData"
const view = (to: string, functionName: FeedFunction): ContractView => ({
  to,
  data: encodeFunctionData({ abi, functionName })
})

const decoded = <A>(returned: ViewResult | undefined, decode: (data: Hex) => A): Either.Either<A, string> =>
  Either.flatMap(returned ?? Either.left("no answer"), (data) =>
    Either.try({ try: () => decode(data), catch: () => "what it returns is not an answer of a price feed" })
  )

/** Checks that a contract is the expected feed, by its description, and gives the decimals of its answers. */
const decodeKind = (feed: Feed, decimals: ViewResult | undefined, description: ViewResult | undefined) =>
  Either.flatMap(
    decoded(description, (data) => decodeFunctionResult({ abi, functionName: "description", data })),
    (found) =>
      // MATIC became POL, one for one, and some feeds took the new name.
      found === feed.description || found.replace(/^POL\b/, "MATIC") === feed.description
        ? decoded(decimals, (data) => decodeFunctionResult({ abi, functionName: "decimals", data }))
        : Either.left(`it calls itself ${JSON.stringify(cut(found, 40))}`)
  )

interface Quotation {
  readonly price: BigDecimal.BigDecimal
  readonly observedAt: number
  readonly usableUntil: number
}

/** The price of a feed at `now`, Unix milliseconds; on the left, why it has none. */
const decodeRound = (
  feed: Feed,
  decimals: number,
  returned: ViewResult | undefined,
  now: number
): Either.Either<Quotation, string> =>
  Either.flatMap(
    decoded(returned, (data) => decodeFunctionResult({ abi, functionName: "latestRoundData", data })),
    ([, answer, , updated]) => {
      const updatedAt = Number(updated) * 1000
      const usableUntil = updatedAt + feed.heartbeat * 1000 + patience
      if (answer <= 0n) return Either.left(`its answer is ${answer}`)
      if (updatedAt > now + patience) return Either.left("it was updated in the future, by this machine's clock")
      if (now > usableUntil) return Either.left(`it was last updated ${ageText(now - updatedAt)} ago`)
      return Either.right({
        price: BigDecimal.make(answer, decimals),
        observedAt: Math.min(updatedAt, now),
        usableUntil: Math.min(usableUntil, now + readingLife)
      })
    }
  )

/** The answer is 0 while the sequencer is up; `startedAt` is 0 before it is known (docs.chain.link/data-feeds/l2-sequencer-feeds). */
const decodeUptime = (returned: ViewResult | undefined): Either.Either<void, string> =>
  Either.flatMap(
    decoded(returned, (data) => decodeFunctionResult({ abi, functionName: "latestRoundData", data })),
    ([, answer, startedAt]) =>
      answer === 0n && startedAt > 0n ? Either.void : Either.left("the chain's sequencer is down")
  )

/** The product of quotations: as old as the oldest of them, and usable as long as all of them are. */
const pointOf = (symbol: QuoteCurrency, quotations: ReadonlyArray<Quotation>): PricePoint => {
  const observedAt = Math.min(...quotations.map((one) => one.observedAt))
  const price = quotations.reduce((product, one) => BigDecimal.multiply(product, one.price), BigDecimal.make(1n, 0))
  return { symbol, price, observedAt, maxAge: Math.min(...quotations.map((one) => one.usableUntil)) - observedAt }
}

const byPrice = Order.mapInput(BigDecimal.Order, ({ price }: PricePoint) => price)

/** By how much two providers may differ, as a part of the lower price: one may have a block more, and an update in it. */
const feedStep = BigDecimal.make(5n, 3)

/**
 * The price of one currency by the providers that have one, at least one: the median, of two the lower. On the left
 * where only two have one, and they cannot both be right.
 */
const middleOf = (points: Arr.NonEmptyReadonlyArray<PricePoint>): Either.Either<PricePoint, string> => {
  const sorted = Arr.sort(points, byPrice)
  const [lowest, highest] = [sorted[0], Arr.lastNonEmpty(sorted)]
  const step = BigDecimal.multiply(lowest.price, feedStep)
  if (sorted.length === 2 && BigDecimal.greaterThan(BigDecimal.subtract(highest.price, lowest.price), step)) {
    const [low, high] = [lowest, highest].map(({ price }) => showDecimal(price))
    return Either.left(`one provider says ${low} and another one ${high}: add a third one to rpc_urls`)
  }
  return Either.right(sorted[(sorted.length - 1) >> 1] ?? lowest)
}

/** The combined readings of several providers. */
const agreedOf = (readings: Arr.NonEmptyReadonlyArray<PriceReading>): PriceReading => {
  const points = Object.values(
    Arr.groupBy(
      readings.flatMap((reading) => reading.points),
      ({ symbol }) => symbol
    )
  )
  const refused = readings.flatMap((reading) => reading.refused)
  const [differing, agreed] = Arr.partitionMap(points, (all) => {
    const [{ symbol }] = all
    const [refusal, ...more] = refused.filter((one) => one.symbol === symbol)
    // "No price" is a response too: a single provider does not outvote those that give it.
    if (refusal !== undefined && all.length <= 1 + more.length) return Either.left(refusal)
    return Either.mapLeft(middleOf(all), (reason) => ({ symbol, reason }))
  })
  const priced = new Set(points.map(([{ symbol }]) => symbol))
  const unpriced = Arr.dedupeWith(refused, (one, other) => one.symbol === other.symbol)
  return { points: agreed, refused: [...differing, ...unpriced.filter(({ symbol }) => !priced.has(symbol))] }
}

/** Chainlink's feeds on a chain, read through each of the operator's own providers in one batch. */
export const makeChainlink = (chain: ChainName, providers: Providers, feeds: ChainFeeds): PriceSource => {
  const name = `chainlink on ${chain}`
  const prices = Object.entries(feeds.prices) as ReadonlyArray<[QuoteCurrency, ReadonlyArray<Feed>]>
  const all = prices.flatMap(([, list]) => list)
  /** By provider, and by address, the decimals of feeds that have been checked. */
  const checkedBy = new Map<number, Map<string, number>>()

  const readFrom = Effect.fn("Chainlink.read")(function* ({ client, index }: Provider) {
    const checked = checkedBy.get(index) ?? new Map<string, number>()
    checkedBy.set(index, checked)
    const unknown = all.filter(({ address }) => !checked.has(address))
    const troubles = new Map<string, string>()
    if (unknown.length > 0) {
      const views = unknown.flatMap(({ address }) => [view(address, "decimals"), view(address, "description")])
      const kinds = yield* readContractViews(client, views)
      unknown.forEach((feed, i) => {
        const kind = decodeKind(feed, kinds[2 * i], kinds[2 * i + 1])
        if (Either.isRight(kind)) checked.set(feed.address, kind.right)
        else troubles.set(feed.address, kind.left)
      })
    }
    const uptime = feeds.sequencerUptime === undefined ? [] : [view(feeds.sequencerUptime, "latestRoundData")]
    const returned = yield* readContractViews(client, [
      ...all.map(({ address }) => view(address, "latestRoundData")),
      ...uptime
    ])
    const now = yield* Clock.currentTimeMillis
    if (uptime.length > 0) {
      const up = decodeUptime(returned[all.length])
      if (Either.isLeft(up)) return yield* new PriceSourceError({ source: name, reason: up.left })
    }
    const quotationOf = (feed: Feed) => {
      const decimals = checked.get(feed.address)
      const quotation =
        decimals === undefined
          ? Either.left(troubles.get(feed.address) ?? "it could not be checked")
          : decodeRound(feed, decimals, returned[all.indexOf(feed)], now)
      return Either.mapLeft(quotation, (reason) => `${feed.description}: ${reason}`)
    }
    const [refused, points] = Arr.partitionMap(prices, ([symbol, list]) =>
      Either.mapBoth(Either.all(list.map(quotationOf)), {
        onLeft: (reason) => ({ symbol, reason }),
        onRight: (quotations) => pointOf(symbol, quotations)
      })
    )
    return { points, refused }
  })

  return {
    name,
    kind: "chainlink",
    read: Effect.gen(function* () {
      const serving = yield* providers.current
      const asked = [serving, ...(yield* providers.others(serving))]
      const read = (provider: Provider) =>
        Effect.either(Effect.tapErrorTag(readFrom(provider), "RpcError", (error) => providers.failed(provider, error)))
      const found = yield* Effect.forEach(asked, read, { concurrency: asked.length })
      const refusal = ({ reason }: PriceSourceError): PriceReading => ({
        points: [],
        refused: prices.map(([symbol]) => ({ symbol, reason }))
      })
      const readings = found.flatMap((one) => {
        if (Either.isRight(one)) return [one.right]
        return one.left._tag === "PriceSourceError" ? [refusal(one.left)] : []
      })
      if (Arr.isNonEmptyReadonlyArray(readings) && found.some(Either.isRight)) return agreedOf(readings)
      return yield* found[0] ?? new PriceSourceError({ source: name, reason: "no provider was asked" })
    }).pipe(
      Effect.catchTags({
        RpcError: ({ method, reason }) =>
          new PriceSourceError({ source: name, reason: `${method} failed (${reason})` }),
        WrongChain: () => new PriceSourceError({ source: name, reason: "its provider serves another chain" })
      })
    )
  }
}

/** A price feed contract of Chainlink. */
export interface Feed {
  /** What its `description()` returns. */
  readonly description: string
  readonly address: string
  /** It is updated at least this often, in seconds. */
  readonly heartbeat: number
}

/** The feeds of a chain. */
export interface ChainFeeds {
  /** The feed that reports whether the chain's sequencer is up: while it is down, no feed is updated. */
  readonly sequencerUptime?: string
  /** The price in USD is the product of the feeds. */
  readonly prices: Readonly<Partial<Record<QuoteCurrency, ReadonlyArray<Feed>>>>
}

const feed = (description: string, address: string, heartbeat: number): Feed => ({ description, address, heartbeat })

// Addresses and heartbeats as Chainlink lists them: docs.chain.link/data-feeds/price-feeds/addresses, and for the
// sequencer docs.chain.link/data-feeds/l2-sequencer-feeds.
const feeds: Readonly<Partial<Record<ChainName, ChainFeeds>>> = {
  ethereum: {
    prices: {
      ETH: [feed("ETH / USD", "0x5f4eC3Df9cbd43714FE2740f5E3616155c5b8419", 3_600)],
      WBTC: [
        feed("WBTC / BTC", "0xfdFD9C85aD200c506Cf9e21F1FD8dd01932FBB23", 86_400),
        feed("BTC / USD", "0xF4030086522a5bEEa4988F8cA5B36dbC97BeE88c", 3_600)
      ],
      USDC: [feed("USDC / USD", "0x8fFfFfd4AfB6115b954Bd326cbe7B4BA576818f6", 86_400)],
      USDT: [feed("USDT / USD", "0x3E7d1eAB13ad0104d2750B8863b489D65364e32D", 86_400)],
      DAI: [feed("DAI / USD", "0xAed0c38402a5d19df6E4c03F4E2DceD6e29c1ee9", 3_600)],
      MATIC: [feed("MATIC / USD", "0x7bAC85A8a13A4BcD8abb3eB7d6b4d632c5a57676", 3_600)],
      EUR: [feed("EUR / USD", "0xb49f677943BC038e9857d61E7d053CaA2C1734C1", 86_400)],
      GBP: [feed("GBP / USD", "0x5c0Ab2d9b5a7ed9f470386e82BB36A3613cDd4b5", 86_400)]
    }
  },
  polygon: {
    prices: {
      EUR: [feed("EUR / USD", "0x73366Fe0AA0Ded304479862808e02506FE556a98", 27)],
      GBP: [feed("GBP / USD", "0x099a2540848573e94fb1Ca0Fa420b00acbBc845a", 27)],
      MXN: [feed("MXN / USD", "0x171b16562EA3476F5C61d1b8dad031DbA0768545", 86_400)]
    }
  },
  base: {
    sequencerUptime: "0xBCF85224fc0756B9Fa45aA7892530B47e10b6433",
    prices: { MXN: [feed("MXN / USD", "0x9e8Ee77c76d4fa41306056D1C3196AF5da1600bd", 3_600)] }
  }
}

/** The feeds of a configured chain; undefined unless it is the public network that they are on. */
export const feedsOf = ({ chain, chainId, mode }: ChainSettings): ChainFeeds | undefined =>
  mode === "live" && chainId === presets.live[chain].chainId ? feeds[chain] : undefined
