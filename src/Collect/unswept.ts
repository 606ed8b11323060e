/** What there is to collect: the receiving addresses with a balance, read from the chains. */
import { BigDecimal, Effect } from "effect"
import { getL1Fee, sendBatch } from "../Chains/rpc/methods.ts"
import { decimalText } from "../Domain/amountDecimals.ts"
import { chainTraits, type Network } from "../Domain/Chain.ts"
import { nativeToken } from "../Domain/Currency.ts"
import { type PriceOf, usdOf } from "../Domain/usdValue.ts"
import type { ReceivedPayment } from "../Payments/addresses/receivedOperation.ts"
import { type ChainAccess, reading } from "./access.ts"
import { readTip } from "./fees.ts"
import { type Asset, assetsOf, readBalances, usdText } from "./holdings.ts"

/** Gas of a transfer of coin, and of a token's with what brings its gas or carries it out. */
const usualGas = { coin: 21_000n, token: 90_000n }
/** Bytes of a transfer of a token, for the fee of its data. */
const transferBytes = 200

/** A balance of a receiving address. */
export interface UnsweptRow extends Network {
  readonly account: string
  /** Absent where the wallet's key does not tell its account. */
  readonly path?: string
  readonly address: string
  readonly payments: ReadonlyArray<string>
  readonly currency: string
  /** Base units. */
  readonly amount: string
  /** With the decimals of the currency. */
  readonly decimal: string
  /** Absent where no price is known. */
  readonly usd?: string
  /** What collecting it costs at present, about; absent where no price is known. */
  readonly gasUsd?: string
  /** Whether it is worth more than that; absent where that is not known. */
  readonly worthwhile?: boolean
  /** Why a plan leaves it out. */
  readonly waitsFor?: "payment" | "exception"
}

export const receivingPath = ({
  index,
  walletAccount
}: Pick<ReceivedPayment, "index" | "walletAccount">): string | undefined =>
  walletAccount === undefined ? undefined : `m/44'/60'/${walletAccount}'/0/${index}`

/** Payments at one address, which has one each, unless the database was restored. */
const byAddress = (received: ReadonlyArray<ReceivedPayment>) => {
  const found = new Map<string, Array<ReceivedPayment>>()
  for (const one of received) found.set(one.address, [...(found.get(one.address) ?? []), one])
  return [...found.values()]
}

/** Wei that a unit of gas costs above the base fee at present, and a transaction's data. */
const readCost = (access: ChainAccess, baseFee: bigint) =>
  reading(access, (client) =>
    Effect.gen(function* () {
      const tip = yield* readTip(client, baseFee)
      const { hasL1Fee } = chainTraits[access.chain.chain]
      const [dataFee] = hasL1Fee ? yield* sendBatch(client, [getL1Fee(transferBytes)]) : [0n]
      return { tip, dataFee }
    })
  )

const less = (a: BigDecimal.BigDecimal | undefined, b: BigDecimal.BigDecimal): boolean =>
  a !== undefined && BigDecimal.lessThan(a, b)

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
  const { head, of } = yield* readBalances(
    access,
    assets,
    addresses.flatMap(([first]) => first?.address ?? [])
  )
  const { dataFee, tip } = yield* readCost(access, head.baseFee)
  const coin = { symbol: nativeToken(chain), decimals: 18 }
  const costOf = ({ contract }: Asset) =>
    usdOf(price, coin, (contract === undefined ? usualGas.coin : usualGas.token) * (head.baseFee + tip) + dataFee)
  return addresses.flatMap((all, i): ReadonlyArray<UnsweptRow> => {
    const [first] = all
    if (first === undefined) return []
    const path = receivingPath(first)
    const waitsFor = all.some(({ isOpen }) => isOpen)
      ? "payment"
      : all.some(({ openExceptions }) => openExceptions > 0)
        ? "exception"
        : undefined
    return assets.flatMap((asset) => {
      const amount = of.get(asset.symbol)?.[i] ?? 0n
      const usd = usdOf(price, asset, amount)
      if (amount === 0n || less(usd, minUsd)) return []
      const gas = costOf(asset)
      const [usdShown, gasUsd] = [usdText(usd), usdText(gas)]
      return [
        {
          ...{ chain, mode, account: first.account },
          ...(path === undefined ? {} : { path }),
          ...{ address: first.address, payments: all.map(({ payment }) => payment) },
          ...{ currency: asset.symbol, amount: `${amount}`, decimal: decimalText(`${amount}`, asset.decimals) ?? "" },
          ...(usdShown === undefined ? {} : { usd: usdShown }),
          ...(gasUsd === undefined ? {} : { gasUsd }),
          ...(usd === undefined || gas === undefined ? {} : { worthwhile: BigDecimal.greaterThan(usd, gas) }),
          ...(waitsFor === undefined ? {} : { waitsFor })
        }
      ]
    })
  })
})
