/**
 * The USD price of every currency, from memory: a reader never waits for a source. Workers read each source every 30
 * seconds, with back-off after failures, and keep what it last reported; `combine` makes one price of it, or gives the reason
 * why there is none. Only fresh prices count, and none is given where fresh ones differ by more than the tolerance. A Chainlink
 * or fixed price is preferred; otherwise it is the median of the HTTP sources. Called by quotes,
 * for the worth of payments, and by `tilld doctor`.
 */
import { BigDecimal, Context, Duration, Effect, Layer, Order, Random, type Scope, Struct } from "effect"
import { Networks } from "../Chains/providers/Networks.ts"
import { makeProviders, type Providers } from "../Chains/providers/Providers.ts"
import { Rpc } from "../Chains/rpc/Rpc.ts"
import { isToken } from "../Domain/Currency.ts"
import { QuoteCurrency } from "../Domain/Quote.ts"
import { type ChainSettings, Settings, type SettingsShape } from "../Settings.ts"
import { Workers } from "../Telemetry/Workers.ts"
import { feedsOf, makeChainlink } from "./sources/chainlink.ts"
import { makeCoinbase, makeGet, makeKraken } from "./sources/exchanges.ts"
import { ageText, type PricePoint, type PriceSource, type PriceSourceError } from "./sources/PriceSource.ts"
import { rateOf, showDecimal } from "./sources/rate.ts"

/** The last price of a currency that a source reported. */
export interface SourcePrice extends PricePoint {
  readonly source: string
  readonly kind: PriceSource["kind"]
}

/** Why a source has no price of a currency. */
interface MissingPrice {
  readonly source: string
  readonly reason: string
}

/** The price of a currency at a moment, or the reason why there is none. */
export interface PriceStatus {
  readonly symbol: QuoteCurrency
  /** USD for one unit; undefined where there is none, for the `reason`. */
  readonly price: BigDecimal.BigDecimal | undefined
  /** The source of that price. */
  readonly source: string | undefined
  /** Milliseconds since that price was observed; for a median, since the oldest of its prices was. */
  readonly age: number | undefined
  /** (highest − lowest) / lowest of the fresh prices. Undefined with fewer than two. */
  readonly spread: BigDecimal.BigDecimal | undefined
  /** The sources with a fresh price. */
  readonly fresh: ReadonlyArray<string>
  /** Why there is no price, or why some sources have none. */
  readonly reason: string | undefined
}

/** The reason where no source was read yet, or none is configured. */
export const unread = "no source has one"

/** Tokens that stand for one USD. */
export const stablecoins: ReadonlySet<QuoteCurrency> = new Set(["USDC", "USDT", "DAI"])

/** Sources may differ by this part of the lowest price: 0.01 for stablecoins, 0.02 otherwise. */
export const toleranceOf = (symbol: QuoteCurrency): BigDecimal.BigDecimal =>
  BigDecimal.make(stablecoins.has(symbol) ? 1n : 2n, 2)

const isFresh = ({ maxAge, observedAt, price }: PricePoint, now: number): boolean =>
  // A time in the future means that the clock was set back: the age is unknown.
  price.value > 0n && now >= observedAt && now - observedAt <= maxAge

const byPrice = Order.mapInput(BigDecimal.Order, ({ price }: SourcePrice) => price)
const half = BigDecimal.make(5n, 1)
const percent = BigDecimal.make(100n, 0)
const zero = BigDecimal.make(0n, 0)

/** Of prices in ascending order, at least one. */
const medianOf = (sorted: readonly [SourcePrice, ...ReadonlyArray<SourcePrice>]): BigDecimal.BigDecimal => {
  const at = (index: number) => (sorted[index] ?? sorted[0]).price
  const middle = Math.floor(sorted.length / 2)
  return sorted.length % 2 === 1 ? at(middle) : BigDecimal.multiply(BigDecimal.sum(at(middle - 1), at(middle)), half)
}

/** The price that counts: the newest of Chainlink's, or the operator's fixed one, else the median of the others. */
const chosen = (
  sorted: readonly [SourcePrice, ...ReadonlyArray<SourcePrice>]
): Pick<SourcePrice, "price" | "source" | "observedAt"> => {
  const preferred = sorted.filter(({ kind }) => kind !== "http").sort((a, b) => b.observedAt - a.observedAt)[0]
  if (preferred !== undefined) return preferred
  const names = sorted.map(({ source }) => source).sort()
  return {
    price: medianOf(sorted),
    source: names.length === 1 ? sorted[0].source : `median of ${names.join(", ")}`,
    observedAt: Math.min(...sorted.map(({ observedAt }) => observedAt))
  }
}

const whyStale = ({ observedAt, source }: SourcePrice, now: number): MissingPrice => ({
  source,
  reason: now >= observedAt ? `its last price is ${ageText(now - observedAt)} old` : "its last price is of unknown age"
})

/** The price of a currency at `now`, Unix milliseconds, from what all sources have reported. */
export const combine = (
  symbol: QuoteCurrency,
  reported: ReadonlyArray<SourcePrice>,
  missing: ReadonlyArray<MissingPrice>,
  now: number
): PriceStatus => {
  const [lowest, ...others] = reported.filter((one) => isFresh(one, now)).sort(byPrice)
  const none = { symbol, price: undefined, source: undefined, age: undefined }
  const stale = reported.filter((one) => !isFresh(one, now)).map((one) => whyStale(one, now))
  const named = new Map([...stale, ...missing].map(({ reason, source }) => [source, reason]))
  const lacking = Array.from(named, ([source, why]) => `${source}: ${why}`).join("; ")
  if (lowest === undefined) return { ...none, spread: undefined, fresh: [], reason: lacking || unread }
  const fresh = [lowest, ...others].map(({ source }) => source)
  const highest = others.at(-1)
  const difference = highest === undefined ? zero : BigDecimal.subtract(highest.price, lowest.price)
  const spread = highest && (difference.value === 0n ? zero : rateOf(difference, lowest.price))
  const tolerance = toleranceOf(symbol)
  if (highest !== undefined && BigDecimal.greaterThan(difference, BigDecimal.multiply(lowest.price, tolerance))) {
    const limit = showDecimal(BigDecimal.multiply(tolerance, percent))
    const [low, high] = [lowest, highest].map(({ price, source }) => `${source} says ${showDecimal(price)}`)
    return { ...none, spread, fresh, reason: `${low} and ${high}, which differ by more than ${limit} %` }
  }
  const { observedAt, price, source } = chosen([lowest, ...others])
  // A fixed price has no time and is always current.
  const age = Number.isFinite(observedAt) ? now - observedAt : 0
  return { symbol, price, source, age, spread, fresh, reason: lacking || undefined }
}

/** What has a price: tokens, and the fiat currencies that are on, but the dollar. */
const pricedCurrencies = ({ currencies }: SettingsShape["rates"]): ReadonlyArray<QuoteCurrency> =>
  QuoteCurrency.literals.filter((one) => one !== "USD" && (isToken(one) || currencies.includes(one)))

/** The fixed prices of the configuration, which never expire. */
const makeFixed = (prices: SettingsShape["rates"]["fixed"]): PriceSource => ({
  name: "fixed",
  kind: "fixed",
  read: Effect.succeed({
    points: Struct.entries(prices).map(([symbol, price]) => ({
      ...{ symbol, price: BigDecimal.unsafeFromString(price ?? "") },
      ...{ observedAt: Number.NEGATIVE_INFINITY, maxAge: Number.POSITIVE_INFINITY }
    })),
    refused: []
  })
})

/** The price sources of the configuration; with fixed prices no other. `providersOf`: how a configured chain is reached. */
const makeSources = <R>(
  { chains, rates }: SettingsShape,
  providersOf: (chain: ChainSettings) => Effect.Effect<Providers, never, R>
): Effect.Effect<ReadonlyArray<PriceSource>, never, R | Scope.Scope> =>
  Effect.gen(function* () {
    if (rates.sources.includes("fixed")) return [makeFixed(rates.fixed)]
    const get = yield* makeGet
    const wanted = pricedCurrencies(rates)
    const sources: Array<PriceSource> = []
    for (const source of rates.sources) {
      if (source === "coinbase") sources.push(makeCoinbase(get, rates.coinbaseUrl, wanted))
      if (source === "kraken") sources.push(makeKraken(get, rates.krakenUrl, wanted))
      for (const chain of source === "chainlink" ? chains : []) {
        const feeds = feedsOf(chain)
        if (feeds !== undefined) sources.push(makeChainlink(chain.chain, yield* providersOf(chain), feeds))
      }
    }
    return sources
  })

/** Interval between two reads of a source. */
export const refreshInterval = Duration.seconds(30)
/** Pause after the first failure of a source; it doubles with each further one, up to the longest. */
const firstBackOff = Duration.toMillis("5 seconds")
const longestBackOff = Duration.toMillis("5 minutes")
/** Consecutive failures before a warning: a single one is common, and prices stay valid longer. */
const warnFrom = 2

/** A source, with the result of its last reads. */
interface SourceState {
  readonly source: PriceSource
  reported: ReadonlyMap<QuoteCurrency, SourcePrice>
  missing: ReadonlyMap<QuoteCurrency, MissingPrice>
  /** Why its last read failed; undefined where it did not. */
  trouble: MissingPrice | undefined
  /** Consecutive failures. */
  failures: number
}

const readInto = Effect.fn("Prices.read")(function* (state: SourceState) {
  const { kind, name } = state.source
  const noted = Effect.annotateLogs({ source: name })
  yield* Effect.matchEffect(state.source.read, {
    onSuccess: ({ points, refused }) => {
      const back = state.failures >= warnFrom
      state.reported = new Map(points.map((point) => [point.symbol, { ...point, source: name, kind }]))
      state.missing = new Map(refused.map(({ reason, symbol }) => [symbol, { source: name, reason }]))
      state.trouble = undefined
      state.failures = 0
      return back ? noted(Effect.logInfo("the price source is read again")) : Effect.void
    },
    onFailure: ({ reason }: PriceSourceError) => {
      state.trouble = { source: name, reason }
      state.failures++
      const log = state.failures === warnFrom ? Effect.logWarning : Effect.logDebug
      return noted(log("the price source cannot be read")).pipe(Effect.annotateLogs({ reason }))
    }
  })
})

/** Milliseconds until a source is read again. */
const pause = Effect.fnUntraced(function* ({ failures }: SourceState) {
  if (failures === 0) return Duration.toMillis(refreshInterval)
  const jitter = yield* Random.nextRange(0.8, 1.2)
  return Math.min(longestBackOff, Math.ceil(firstBackOff * 2 ** (failures - 1) * jitter))
})

const dollar: PriceStatus = {
  symbol: "USD",
  price: BigDecimal.make(1n, 0),
  source: "its definition",
  age: 0,
  spread: undefined,
  fresh: [],
  reason: undefined
}

/** Prices from these sources; none is known before the first `refresh`, or before `run`. `wanted`: what `status` has. */
export const makePrices = Effect.fnUntraced(function* (
  sources: ReadonlyArray<PriceSource>,
  wanted: ReadonlyArray<QuoteCurrency> = []
) {
  // Prices are read outside of effects, and are only valid while fresh.
  const clock = yield* Effect.clock
  const alive = (yield* Workers).worker("prices", refreshInterval)
  const all = sources.map(
    (source): SourceState => ({ source, reported: new Map(), missing: new Map(), trouble: undefined, failures: 0 })
  )

  // The results of a tenth of a second: a burst of payments asks for one price again and again.
  const cached = new Map<QuoteCurrency, PriceStatus>()
  let cachedAt = Number.NEGATIVE_INFINITY

  /** The price with its sources, or the reason why there is none. */
  const of = (symbol: QuoteCurrency): PriceStatus => {
    if (symbol === "USD") return dollar
    const now = clock.unsafeCurrentTimeMillis()
    if (Math.abs(now - cachedAt) >= 100) cached.clear()
    if (cached.size === 0) cachedAt = now
    const status = cached.get(symbol) ?? combinedAt(symbol, now)
    cached.set(symbol, status)
    return status
  }

  const combinedAt = (symbol: QuoteCurrency, now: number): PriceStatus => {
    const reported = all.flatMap((state) => state.reported.get(symbol) ?? [])
    const missing = all.flatMap((state) => state.trouble ?? state.missing.get(symbol) ?? [])
    return combine(symbol, reported, missing, now)
  }

  const read = (state: SourceState) => Effect.tap(readInto(state), () => cached.clear())

  const follow = (state: SourceState) =>
    alive(read(state)).pipe(
      Effect.zipRight(Effect.flatMap(pause(state), Effect.sleep)),
      Effect.forever,
      Effect.annotateLogs({ service: "prices" })
    )

  return {
    of,
    /** Above zero; undefined while no price is fresh, or while sources contradict each other. */
    usd: (symbol: QuoteCurrency) => of(symbol).price,
    /** The last price that each source reported of each currency, however old. */
    reported: (): ReadonlyArray<SourcePrice> => all.flatMap(({ reported }) => [...reported.values()]),
    /** The price, or why there is none, of every currency that is on, but USD. */
    status: (): ReadonlyArray<PriceStatus> => wanted.map(of),
    /** Reads every source once. */
    refresh: Effect.forEach(all, read, { concurrency: "unbounded", discard: true }),
    /** Reads every source periodically until it is interrupted. A source that fails does not delay the others. */
    run: Effect.zipRight(Effect.forEach(all, follow, { concurrency: "unbounded", discard: true }), Effect.never)
  }
})

/** What one unit of a currency is worth in USD. */
export class Prices extends Context.Tag("tilld/Quotes/Prices")<
  Prices,
  Effect.Effect.Success<ReturnType<typeof makePrices>>
>() {
  /** The sources of the configuration. */
  static readonly layer = Layer.scoped(
    Prices,
    Effect.gen(function* () {
      const settings = yield* Settings
      const networks = yield* Networks
      const found = yield* makeSources(settings, (chain) => Effect.succeed(networks.providersOf(chain)))
      const prices = yield* makePrices(found, pricedCurrencies(settings.rates))
      // Fixed prices are known from the start; the start does not wait for other sources.
      if (settings.rates.sources.includes("fixed")) yield* prices.refresh
      return prices
    })
  )
}

/** The prices as a daemon that starts now would get them: each source is read once. For commands. */
export const readPrices = Effect.fn("Quotes.readPrices")(function* (settings: SettingsShape) {
  const rpc = yield* Rpc
  const sources = yield* makeSources(settings, (chain) =>
    makeProviders(chain, chain, rpc, undefined, settings.payments.soleProviderPatience)
  )
  const prices = yield* makePrices(sources, pricedCurrencies(settings.rates))
  yield* prices.refresh
  return prices
}, Effect.scoped)
