/** What there is to collect: the receiving addresses with a balance, read from the chains. */
import { BigDecimal, Effect } from "effect"
import { type Asset, assetsOf, holdingKey, readHoldings } from "../Chains/balances/holdings.ts"
import { type ChainAccess, reading } from "../Chains/providers/chainAccess.ts"
import { getL1Fee, sendBatch } from "../Chains/rpc/methods.ts"
import { getPricedHead } from "../Chains/rpc/sendingMethods.ts"
import { chainTraits, type Network } from "../Domain/Chain.ts"
import { decimalText, nativeToken } from "../Domain/Currency.ts"
import { type PriceOf, usdOf, usdText } from "../Domain/Quote.ts"
import {
  type awaitedText,
  byAddress,
  heldAt,
  type ReceivedPayment,
  receivingPath
} from "../Payments/addresses/receivedPayment.ts"
import { readTip, singleBytes } from "./fees.ts"

/** Gas of a transfer of coin, and of a token's with what brings its gas or carries it out. */
const usualGas = { coin: 21_000n, token: 90_000n }

/** A balance of a receiving address. */
export interface UnsweptRow extends Network {
  readonly account: string
  /** Undefined where the wallet's key does not tell its account. */
  readonly path: string | undefined
  readonly address: string
  readonly payments: ReadonlyArray<string>
  readonly currency: string
  /** Base units. */
  readonly amount: string
  /** With the decimals of the currency. */
  readonly decimal: string
  /** Undefined where no price is known. */
  readonly usd: string | undefined
  /** What collecting it costs at present, about; undefined where no price is known. */
  readonly gasUsd: string | undefined
  /** Whether it is worth more than that; undefined where that is not known. */
  readonly worthwhile: boolean | undefined
  /** Why a plan leaves it out. */
  readonly waitsFor: keyof typeof awaitedText | undefined
}

/** The balances of a chain's receiving addresses that are worth `minUsd` at least, or whose price is not known. */
export const readUnswept = Effect.fn("Collect.readUnswept")(function* (
  access: ChainAccess,
  received: ReadonlyArray<ReceivedPayment>,
  price: PriceOf,
  minUsd: BigDecimal.BigDecimal
) {
  const addresses = byAddress(received)
  if (addresses.length === 0) return []
  const { chain, mode } = access.chain
  const assets = assetsOf(access.chain)
  const { dataFee, head, holdings, tip } = yield* reading(access, (client) =>
    Effect.gen(function* () {
      const [head] = yield* sendBatch(client, [getPricedHead])
      const [dataFee] = chainTraits[chain].hasL1Fee ? yield* sendBatch(client, [getL1Fee(singleBytes)]) : [0n]
      const tip = yield* readTip(client, head.baseFee)
      const all = addresses.map(([{ address }]) => address)
      return { dataFee, head, tip, holdings: yield* readHoldings(client, assets, all, head) }
    })
  )
  const coin = { symbol: nativeToken(chain), decimals: 18 }
  const costOf = ({ contract }: Asset) =>
    usdOf(price, coin, (contract === undefined ? usualGas.coin : usualGas.token) * (head.baseFee + tip) + dataFee)
  return addresses.flatMap((all) => {
    const [first] = all
    return assets.flatMap((asset) => {
      const amount = holdings.get(holdingKey(asset.symbol, first.address)) ?? 0n
      const usd = usdOf(price, asset, amount)
      if (amount === 0n || (usd && BigDecimal.lessThan(usd, minUsd))) return []
      const gas = costOf(asset)
      const held = heldAt(all, asset.symbol)
      const row: UnsweptRow = {
        ...{ chain, mode, account: first.account, path: receivingPath(first), address: first.address },
        ...{ payments: all.map(({ payment }) => payment), currency: asset.symbol, amount: `${amount}` },
        ...{ decimal: decimalText(`${amount}`, asset.decimals) ?? "", usd: usdText(usd), gasUsd: usdText(gas) },
        worthwhile: usd && gas && BigDecimal.greaterThan(usd, gas),
        waitsFor: held && held.amount >= amount ? held.is : undefined
      }
      return [row]
    })
  })
})
