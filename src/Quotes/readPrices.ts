import { Effect } from "effect"
import { makeProviders } from "../Chains/providers/Providers.ts"
import { Rpc } from "../Chains/rpc/Rpc.ts"
import { networkKey } from "../Domain/Chain.ts"
import type { SettingsShape } from "../Settings.ts"
import { makePrices } from "./Prices.ts"
import { feedsOf } from "./sources/feeds.ts"
import { makeSources } from "./sources.ts"

/** The prices as a daemon that starts now would get them: each source is read once. For commands. */
export const readPrices = Effect.fn("Quotes.readPrices")(function* (settings: SettingsShape) {
  const rpc = yield* Rpc
  const ways = new Map(
    yield* Effect.forEach(
      settings.chains.filter((chain) => feedsOf(chain) !== undefined),
      (chain) =>
        Effect.map(
          makeProviders(chain, chain, rpc, undefined, settings.payments.soleProviderPatience),
          (one) => [networkKey(chain), one] as const
        ),
      { concurrency: 1 }
    )
  )
  const sources = yield* makeSources(settings, (chain) => {
    const providers = ways.get(networkKey(chain))
    if (providers === undefined) throw new Error(`${networkKey(chain)} has no feeds`)
    return providers
  })
  const prices = yield* makePrices(sources)
  yield* prices.refresh
  return prices
}, Effect.scoped)
