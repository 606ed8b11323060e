/** What receiving addresses have on a chain, and what that is worth. */
import { BigDecimal, Effect } from "effect"
import { readPackedBalances, readTokenBalances } from "../Chains/rpc/capabilities.ts"
import { sendBatch } from "../Chains/rpc/methods.ts"
import { getPricedHead, type PricedHead } from "../Chains/rpc/sendingMethods.ts"
import { nativeToken } from "../Domain/Currency.ts"
import type { QuoteCurrency } from "../Domain/Quote.ts"
import type { ChainSettings } from "../Settings.ts"
import { type ChainAccess, reading } from "./access.ts"

/** A coin or a token of a chain. */
export interface Asset {
  readonly symbol: QuoteCurrency
  readonly decimals: number
  /** Lower case; undefined for the chain's own coin. */
  readonly contract: string | undefined
}

/** The chain's coin, then the tokens of its configuration. */
export const assetsOf = (chain: ChainSettings): ReadonlyArray<Asset> => [
  { symbol: nativeToken(chain.chain), decimals: 18, contract: undefined },
  ...chain.tokens.map(({ address, decimals, symbol }) => ({ symbol, decimals, contract: address }))
]

/** The balances of addresses: for each asset, base units in the order of the addresses. */
export interface Balances {
  readonly head: PricedHead
  readonly of: ReadonlyMap<string, ReadonlyArray<bigint>>
}

/** Reads the balances of addresses at the head. A token's may be of a block or two later. */
export const readBalances = Effect.fn("Collect.readBalances")(function* (
  access: ChainAccess,
  assets: ReadonlyArray<Asset>,
  addresses: ReadonlyArray<string>
) {
  const lower = addresses.map((address) => address.toLowerCase())
  return yield* reading(access, (client) =>
    Effect.gen(function* () {
      const [head] = yield* sendBatch(client, [getPricedHead])
      const found = yield* Effect.forEach(
        assets,
        ({ contract }) =>
          contract === undefined ? readPackedBalances(client, lower, head) : readTokenBalances(client, contract, lower),
        { concurrency: 2 }
      )
      const balances: Balances = { head, of: new Map(assets.map(({ symbol }, i) => [symbol, found[i] ?? []])) }
      return balances
    })
  )
})

/** USD with two digits behind the point, rounded down. */
export const usdText = (usd: BigDecimal.BigDecimal | undefined): string | undefined => {
  if (usd === undefined) return undefined
  const cents = BigDecimal.scale(usd, 2).value
  return `${cents / 100n}.${(cents % 100n).toString().padStart(2, "0")}`
}
