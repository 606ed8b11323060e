import { BigDecimal, Effect, type Scope, Struct } from "effect"
import type { Providers } from "../Chains/providers/Providers.ts"
import { isToken } from "../Domain/Currency.ts"
import { QuoteCurrency } from "../Domain/Quote.ts"
import type { ChainSettings, SettingsShape } from "../Settings.ts"
import { feedsOf, makeChainlink } from "./sources/chainlink.ts"
import { makeCoinbase, makeGet, makeKraken } from "./sources/exchanges.ts"
import type { PriceSource } from "./sources/PriceSource.ts"

/** What has a price: tokens, and the fiat currencies that are on, but the dollar. */
export const pricedCurrencies = ({ currencies }: SettingsShape["rates"]): ReadonlyArray<QuoteCurrency> =>
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
export const makeSources = <R>(
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
