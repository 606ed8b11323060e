/** What receiving addresses have on a chain, and what that is worth. */
import { type Array as Arr, BigDecimal, Effect } from "effect"
import { readPackedBalances, readTokenBalances } from "../Chains/rpc/capabilities.ts"
import type { RpcClient } from "../Chains/rpc/Rpc.ts"
import { nativeToken } from "../Domain/Currency.ts"
import type { QuoteCurrency } from "../Domain/Quote.ts"
import type { BlockRef } from "../Domain/Receipt.ts"
import type { ChainSettings } from "../Settings.ts"

/** USD with two digits behind the point, rounded down. */
export const usdText = (usd: BigDecimal.BigDecimal | undefined): string | undefined => {
  if (usd === undefined) return undefined
  const cents = BigDecimal.scale(usd, 2).value
  return `${cents / 100n}.${(cents % 100n).toString().padStart(2, "0")}`
}

/** A coin or a token of a chain. */
export interface Asset {
  readonly symbol: QuoteCurrency
  readonly decimals: number
  /** Lower case; undefined for the chain's own coin. */
  readonly contract: string | undefined
}

/** The chain's coin, then the tokens of its configuration. */
export const assetsOf = (chain: ChainSettings): Arr.NonEmptyReadonlyArray<Asset> => [
  { symbol: nativeToken(chain.chain), decimals: 18, contract: undefined },
  ...chain.tokens.map(({ address, decimals, symbol }) => ({ symbol, decimals, contract: address }))
]

/** What addresses have: base units by `holdingKey`, without those that are 0. */
export type Holdings = ReadonlyMap<string, bigint>

export const holdingKey = (currency: string, address: string): string => `${currency} ${address.toLowerCase()}`

/** Reads what addresses have at the head. A token's balances may be of a block or two later. */
export const readHoldings = Effect.fn("Collect.readHoldings")(function* (
  client: RpcClient,
  assets: ReadonlyArray<{ readonly symbol: string; readonly contract: string | undefined }>,
  addresses: ReadonlyArray<string>,
  head: BlockRef
) {
  const lower = addresses.map((address) => address.toLowerCase())
  const found = new Map<string, bigint>()
  const readOne = ({ contract, symbol }: (typeof assets)[number]) =>
    Effect.map(
      contract === undefined ? readPackedBalances(client, lower, head) : readTokenBalances(client, contract, lower),
      (balances) => {
        for (const [i, amount] of balances.entries()) {
          if (amount > 0n) found.set(holdingKey(symbol, lower[i] ?? ""), amount)
        }
      }
    )
  yield* Effect.forEach(assets, readOne, { concurrency: 2, discard: true })
  return found as Holdings
})
