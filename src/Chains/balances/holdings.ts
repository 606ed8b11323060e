/** What receiving addresses have on a chain. */
import { type Array as Arr, Effect } from "effect"
import { nativeToken } from "../../Domain/Currency.ts"
import type { QuoteCurrency } from "../../Domain/Quote.ts"
import type { BlockRef } from "../../Domain/Receipt.ts"
import type { ChainSettings } from "../../Settings.ts"
import { readPackedBalances, readTokenBalances } from "../rpc/capabilities.ts"
import type { RpcClient } from "../rpc/Rpc.ts"

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

/** Reads what addresses have after a block. */
export const readHoldings = Effect.fn("Balances.readHoldings")(function* (
  client: RpcClient,
  assets: ReadonlyArray<{ readonly symbol: string; readonly contract: string | undefined }>,
  addresses: ReadonlyArray<string>,
  at: BlockRef
) {
  const lower = addresses.map((address) => address.toLowerCase())
  const found = new Map<string, bigint>()
  const readOne = ({ contract, symbol }: (typeof assets)[number]) =>
    Effect.map(
      contract === undefined ? readPackedBalances(client, lower, at) : readTokenBalances(client, contract, lower, at),
      (balances) => {
        for (const [i, amount] of balances.entries()) {
          if (amount > 0n) found.set(holdingKey(symbol, lower[i] ?? ""), amount)
        }
      }
    )
  yield* Effect.forEach(assets, readOne, { concurrency: 2, discard: true })
  return found as Holdings
})
