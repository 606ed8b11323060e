import { BigDecimal, Context, Duration, Effect, Layer, Random } from "effect"
import { Networks } from "../Chains/providers/Networks.ts"
import { QuoteCurrency } from "../Domain/Quote.ts"
import { Settings } from "../Settings.ts"
import { Workers } from "../Telemetry/Workers.ts"
import { combine, type PriceStatus, type Silent, type SourcePrice } from "./combine.ts"
import type { PriceReading, PriceSource, PriceSourceError } from "./sources/PriceSource.ts"
import { makeSources } from "./sources.ts"

export type { PriceStatus } from "./combine.ts"

/** From one look at a source to the next. */
export const refreshInterval = Duration.seconds(30)
/** How long a source is left alone after its first failure; it doubles with each that follows, up to the longest. */
const firstBackOff = Duration.toMillis("5 seconds")
const longestBackOff = Duration.toMillis("5 minutes")
/** One failure is daily business, and the prices outlive it. */
const notable = 2

/** What is known of a source. */
interface Known {
  readonly source: PriceSource
  told: ReadonlyMap<QuoteCurrency, SourcePrice>
  silent: ReadonlyMap<QuoteCurrency, Silent>
  /** Why it could not be read, until it can again. */
  trouble: Silent | undefined
  /** Since it was last read. */
  failures: number
}

const keep = (known: Known, { points, refused }: PriceReading): void => {
  const { kind, name } = known.source
  known.told = new Map(points.map((point) => [point.symbol, { ...point, source: name, kind }]))
  known.silent = new Map(refused.map(({ reason, symbol }) => [symbol, { source: name, reason }]))
  known.trouble = undefined
}

const readInto = Effect.fn("Prices.read")(function* (known: Known) {
  const { name } = known.source
  const noted = Effect.annotateLogs({ source: name })
  yield* Effect.matchEffect(known.source.read, {
    onSuccess: (reading) => {
      const back = known.failures >= notable
      keep(known, reading)
      known.failures = 0
      return back ? noted(Effect.logInfo("the price source is read again")) : Effect.void
    },
    onFailure: ({ reason }: PriceSourceError) => {
      known.trouble = { source: name, reason }
      known.failures++
      const log = known.failures === notable ? Effect.logWarning : Effect.logDebug
      return noted(log("the price source cannot be read")).pipe(Effect.annotateLogs({ reason }))
    }
  })
})

/** Milliseconds until a source is asked again. */
const pause = Effect.fnUntraced(function* ({ failures }: Known) {
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

/** Prices from these sources; none is known before the first `refresh`, or before `run`. */
export const makePrices = Effect.fnUntraced(function* (sources: ReadonlyArray<PriceSource>) {
  // A price is asked for where no effect runs, and is only as good as it is young.
  const clock = yield* Effect.clock
  const alive = (yield* Workers).worker("prices", refreshInterval)
  const all = sources.map(
    (source): Known => ({ source, told: new Map(), silent: new Map(), trouble: undefined, failures: 0 })
  )

  // What was said in this millisecond: a burst of payments asks for one price again and again.
  const said = new Map<QuoteCurrency, PriceStatus>()
  let saidAt = Number.NaN

  const of = (symbol: QuoteCurrency): PriceStatus => {
    if (symbol === "USD") return dollar
    const now = clock.unsafeCurrentTimeMillis()
    if (now !== saidAt) said.clear()
    saidAt = now
    const known = said.get(symbol) ?? combinedAt(symbol, now)
    said.set(symbol, known)
    return known
  }

  const combinedAt = (symbol: QuoteCurrency, now: number): PriceStatus => {
    const told = all.flatMap((known) => known.told.get(symbol) ?? [])
    const silent = all.flatMap((known) => known.trouble ?? known.silent.get(symbol) ?? [])
    return combine(symbol, told, silent, now)
  }

  const read = (known: Known) => Effect.tap(readInto(known), () => said.clear())

  const follow = (known: Known) =>
    alive(read(known)).pipe(
      Effect.zipRight(Effect.flatMap(pause(known), Effect.sleep)),
      Effect.forever,
      Effect.annotateLogs({ service: "prices" })
    )

  return Prices.of({
    of,
    usd: (symbol) => of(symbol).price,
    told: () => all.flatMap(({ told }) => [...told.values()]),
    status: () => QuoteCurrency.literals.filter((symbol) => symbol !== "USD").map(of),
    refresh: Effect.forEach(all, read, { concurrency: "unbounded", discard: true }),
    run: Effect.zipRight(Effect.forEach(all, follow, { concurrency: "unbounded", discard: true }), Effect.never)
  })
})

/** What one unit of a currency is worth in USD, from memory: nobody who asks waits for a source. */
export class Prices extends Context.Tag("tilld/Quotes/Prices")<
  Prices,
  {
    /** Undefined while no price is fresh, or while sources contradict each other. Above zero. */
    readonly usd: (symbol: QuoteCurrency) => BigDecimal.BigDecimal | undefined
    /** The price and what it rests on, or why there is none. */
    readonly of: (symbol: QuoteCurrency) => PriceStatus
    /** The same of every currency but USD. */
    readonly status: () => ReadonlyArray<PriceStatus>
    /** What each source last said of each currency, however old that is. */
    readonly told: () => ReadonlyArray<SourcePrice>
    /** Reads every source once. */
    readonly refresh: Effect.Effect<void>
    /** Reads every source again and again, until it is interrupted. One that fails holds up no other. */
    readonly run: Effect.Effect<never>
  }
>() {
  /** The sources of the configuration. */
  static readonly layer = Layer.scoped(
    Prices,
    Effect.gen(function* () {
      const settings = yield* Settings
      const networks = yield* Networks
      const { fixed, sources } = settings.rates
      const unread = sources.filter(
        (source) => source === "coingecko" || (source !== "fixed" && sources.includes("fixed"))
      )
      if (unread.length > 0) {
        yield* Effect.logWarning(
          "price sources that are not asked: fixed prices stand alone, and coingecko is not read"
        ).pipe(Effect.annotateLogs({ sources: unread.join(", ") }))
      }
      const prices = yield* makePrices(yield* makeSources(settings, (chain) => networks.connected(chain).providers))
      // Fixed prices are there from the start; for the others nobody waits.
      if (sources.includes("fixed") && Object.keys(fixed).length > 0) yield* prices.refresh
      return prices
    })
  )
}
