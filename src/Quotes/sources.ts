import { BigDecimal, Effect, Option, type Scope } from "effect"
import type { Providers } from "../Chains/providers/Providers.ts"
import { QuoteCurrency } from "../Domain/Quote.ts"
import type { ChainSettings, SettingsShape } from "../Settings.ts"
import { makeChainlink } from "./sources/chainlink.ts"
import { makeCoinbase } from "./sources/coinbase.ts"
import { feedsOf } from "./sources/feeds.ts"
import { makeGet } from "./sources/fetchJson.ts"
import { makeKraken } from "./sources/kraken.ts"
import type { PricePoint, PriceSource } from "./sources/PriceSource.ts"

/** The fixed prices of the configuration, which never expire. */
const makeFixed = (prices: Readonly<Record<string, string>>): PriceSource => ({
  name: "fixed",
  kind: "fixed",
  read: Effect.succeed({
    points: QuoteCurrency.literals.flatMap((symbol): ReadonlyArray<PricePoint> => {
      const price = Option.flatMap(Option.fromNullable(prices[symbol]), BigDecimal.fromString)
      return Option.toArray(price).map((price) => ({
        symbol,
        price,
        observedAt: Number.NEGATIVE_INFINITY,
        maxAge: Number.POSITIVE_INFINITY
      }))
    }),
    refused: []
  })
})

/**
 * The price sources of the configuration. With fixed prices no other source is used.
 *
 * @param providersOf how a configured chain is reached
 */
export const makeSources = (
  { chains, rates }: SettingsShape,
  providersOf: (chain: ChainSettings) => Providers
): Effect.Effect<ReadonlyArray<PriceSource>, never, Scope.Scope> =>
  Effect.gen(function* () {
    if (rates.sources.includes("fixed")) return [makeFixed(rates.fixed)]
    const get = yield* makeGet
    return rates.sources.flatMap((source): ReadonlyArray<PriceSource> => {
      switch (source) {
        case "chainlink":
          return chains.flatMap((chain) => {
            const feeds = feedsOf(chain)
            return feeds === undefined ? [] : [makeChainlink(chain.chain, providersOf(chain), feeds)]
          })
        case "coinbase":
          return [makeCoinbase(get, rates.coinbaseUrl)]
        case "kraken":
          return [makeKraken(get, rates.krakenUrl)]
        default:
          return []
      }
    })
  })
