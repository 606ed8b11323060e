/**
 * The USD price of every currency, from memory: a reader never waits for a source. Workers read each source every 30
 * seconds, with back-off after failures, and keep what it last reported; `combineSources.ts` makes one price of it, or gives the
 * reason why there is none. A price is never too old, and never from sources that contradict each other. Called by quotes,
 * for the worth of payments, and by `tilld doctor`.
 */
import { BigDecimal, Context, Duration, Effect, Layer, Random } from "effect"
import { Networks } from "../Chains/providers/Networks.ts"
import { makeProviders } from "../Chains/providers/Providers.ts"
import { Rpc } from "../Chains/rpc/Rpc.ts"
import type { QuoteCurrency } from "../Domain/Quote.ts"
import { Settings, type SettingsShape } from "../Settings.ts"
import { Workers } from "../Telemetry/Workers.ts"
import { combine, type MissingPrice, type PriceStatus, type SourcePrice } from "./combineSources.ts"
import type { PriceSource, PriceSourceError } from "./sources/PriceSource.ts"
import { makeSources, pricedCurrencies } from "./sources.ts"

export type { PriceStatus } from "./combineSources.ts"

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
    status: () => wanted.map(of),
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
