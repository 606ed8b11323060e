/**
 * What there is to collect: the receiving addresses with a balance. And what may move: these balances, or exceptions that go
 * back, without what a rule or the chain itself refuses.
 */
import { Array as Arr, BigDecimal, Effect, Either, Option } from "effect"
import { formatUnits } from "viem"
import { type Asset, assetsOf, holdingKey, readHoldings } from "../Chains/balances/holdings.ts"
import { type ChainAccess, reading, readingBy } from "../Chains/providers/chainAccess.ts"
import { getL1Fee, sendBatch } from "../Chains/rpc/methods.ts"
import type { RpcClient } from "../Chains/rpc/Rpc.ts"
import { getPricedHead } from "../Chains/rpc/sendingMethods.ts"
import { chainTraits, type Network } from "../Domain/Chain.ts"
import { decimalText, nativeToken } from "../Domain/Currency.ts"
import type { RefundId } from "../Domain/Ids.ts"
import { type PriceOf, usdOf, usdText } from "../Domain/Quote.ts"
import { quantityText } from "../lib/quantities.ts"
import {
  awaitedText,
  byAddress,
  heldAt,
  type ReceivedPayment,
  receivingPath
} from "../Payments/addresses/receivedPayment.ts"
import { hdWallet } from "../Settings/hdWallet.ts"
import { readTip, singleBytes } from "./fees.ts"
import { collectRefusal, type LeftOut } from "./Plan.ts"
import { gasOfEach, type PossibleTransfer, refusalsOf } from "./simulation.ts"

/** A refund that a plan pays: of an open exception, or one that was noted for a receiver. */
export interface PlannedRefund {
  readonly id: RefundId
  /** As it was asked for: `exc_…` or `ref_…`. */
  readonly of: string
  readonly exception?: string | undefined
  /** Who gets it; otherwise the plan's destination. */
  readonly to?: string | undefined
  readonly address: string
  readonly index: number
  readonly currency: string
  readonly amount: bigint
  /** How many transactions that the address has sent tilld has noted; 0 if absent. */
  readonly notedTransactions?: number | undefined
  /** Base units of the currency at the address that count for its payment; 0 if absent. */
  readonly kept?: bigint
  /** Why it is not decided on yet. */
  readonly undecidable?: string | undefined
}

/** What is asked for. */
export interface PlanRequest {
  /** An account's extended public key, which Settings or the command has checked. */
  readonly xpub: string
  readonly received: ReadonlyArray<ReceivedPayment>
  /** EIP-55 form. */
  readonly destination: string
  /** Symbols; undefined for all of the chain. */
  readonly currencies: ReadonlyArray<string> | undefined
  readonly minUsd: BigDecimal.BigDecimal
  /** Wei for a unit of gas. */
  readonly maxFee: bigint | undefined
  readonly feeSteps: number
  /** Instead of a collection. */
  readonly refunds: ReadonlyArray<PlannedRefund>
  readonly price: PriceOf
  readonly onProgress: (text: string) => Effect.Effect<void>
}

/** A balance that may move. */
export interface Candidate {
  readonly address: string
  readonly index: number
  readonly asset: Asset
  readonly amount: bigint
  readonly refund?: PlannedRefund
}

/** A candidate that the chain would move, and the gas of its own transaction. */
export interface Movable extends Candidate {
  readonly gas: bigint
}

/** Why a candidate stays. */
export const leftOutOf = ({ address, amount, asset, index }: Candidate, why: string): LeftOut => ({
  ...{ address, index, currency: asset.symbol, decimals: asset.decimals, amount: `${amount}`, why }
})

/** A candidate, or on the left why it is left out. */
const decided = <A extends Candidate>(candidate: A, why: string | undefined): Either.Either<A, LeftOut> =>
  why === undefined ? Either.right(candidate) : Either.left(leftOutOf(candidate, why))

export const separate = <A>(all: Iterable<Either.Either<A, LeftOut>>) => {
  const [leftOut, movable] = Arr.separate(all)
  return { movable, leftOut }
}

const nameKey = "name that one's extended public key (--xpub)"

/** The head, and what addresses have then. */
const readHead = (client: RpcClient, assets: ReadonlyArray<Asset>, addresses: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const [head] = yield* sendBatch(client, [getPricedHead])
    return { head, holdings: yield* readHoldings(client, assets, addresses, head) }
  })

export const readAtHead = (access: ChainAccess, assets: ReadonlyArray<Asset>, addresses: ReadonlyArray<string>) =>
  reading(access, (client) => readHead(client, assets, addresses))

/** The balances that may move, and those that a rule leaves out. */
export const choose = Effect.fnUntraced(function* (
  access: ChainAccess,
  { onProgress, received, xpub }: PlanRequest,
  assets: ReadonlyArray<Asset>
) {
  const wallet = hdWallet(xpub)
  const groups = byAddress(received)
  yield* onProgress(`reading the balances of ${quantityText(groups.length, "address")}`)
  const { holdings } = yield* readAtHead(
    access,
    assets,
    groups.map(([{ address }]) => address)
  )
  return separate(
    groups.flatMap((all) => {
      const [{ address, index }] = all
      const isOther = wallet.address(index) !== address
      return assets.flatMap((asset) => {
        const has = holdings.get(holdingKey(asset.symbol, address))
        if (has === undefined) return []
        const held = heldAt(all, asset.symbol)
        const free = has - (held?.amount ?? 0n)
        const one: Candidate = { address, index, asset, amount: has }
        if (isOther) return [decided(one, `it is of another wallet: ${nameKey}`)]
        if (held === undefined) return [decided(one, undefined)]
        const waits = decided(
          { ...one, amount: free > 0n ? held.amount : has },
          `payment ${held.payment} ${awaitedText[held.is]}`
        )
        return free > 0n ? [decided({ ...one, amount: free }, undefined), waits] : [waits]
      })
    })
  )
})

/**
 * Why refunds are not paid, by their ids: one is not decided on yet, or its address has less at the head of one of two providers,
 * beside what counts for the payment and goes back before.
 */
export const uncovered = Effect.fn("Collect.uncovered")(function* (
  access: ChainAccess,
  refunds: ReadonlyArray<PlannedRefund>
) {
  const assets = assetsOf(access.chain).filter(({ symbol }) => refunds.some(({ currency }) => currency === symbol))
  const addresses = [...new Set(refunds.map(({ address }) => address))]
  const heads = yield* readingBy(access, { mustBeTwo: true }, (client) => readHead(client, assets, addresses))
  const found = new Map<string, string>()
  const taken = new Map<string, bigint>()
  for (const { address, amount, currency, id, kept = 0n, notedTransactions = 0, of: name, undecidable } of refunds) {
    const key = holdingKey(currency, address)
    const { mostGas } = chainTraits[access.chain.chain]
    // What was noted of the address may have paid its gas out of the coin that counts.
    const gas = currency === nativeToken(access.chain.chain) ? BigInt(notedTransactions) * mostGas : 0n
    const before = taken.get(key) ?? (kept > gas ? kept - gas : 0n)
    const has = heads.map(({ holdings }) => (holdings.get(key) ?? before) - before)
    const free = has.reduce((least, one) => (one > least ? least : one > 0n ? one : 0n), amount)
    const shown = (of: bigint) => formatUnits(of, assets.find(({ symbol }) => symbol === currency)?.decimals ?? 0)
    if (undecidable !== undefined) found.set(id, `${name} waits: ${undecidable}`)
    else if (free >= amount) taken.set(key, before + amount)
    else {
      const why = `${name} is ${shown(amount)} ${currency}, and ${address} has ${shown(free)} for it, beside what counts for its payment: look in a block explorer, send it back with another wallet unless it was sent, and note that by tilld payments refunded ${name} --tx HASH`
      found.set(id, why)
    }
  }
  return found
})

/** The exceptions that go back. */
export const chooseRefunds = Effect.fnUntraced(function* (
  { refunds, xpub }: PlanRequest,
  assets: ReadonlyArray<Asset>
) {
  const wallet = hdWallet(xpub)
  const movable: Array<Candidate> = []
  for (const refund of refunds) {
    const { address, amount, currency, index, of: name } = refund
    const asset = assets.find(({ symbol }) => symbol === currency)
    if (asset === undefined) {
      return yield* collectRefusal(
        `${name} is of ${currency}, which tilld does not move on this chain: send it back by hand`
      )
    }
    if (wallet.address(index) !== address) {
      return yield* collectRefusal(`${name} is at ${address}, of another wallet: ${nameKey}`)
    }
    movable.push({ address, index, asset, amount, refund })
  }
  return { movable, leftOut: [] }
})

const transferOf = ({ destination }: PlanRequest, { address, amount, asset, refund }: Candidate): PossibleTransfer => ({
  from: address,
  to: refund?.to ?? destination,
  contract: asset.contract,
  // All of a coin's balance cannot be sent, and its gas does not depend on the amount.
  amount: asset.contract === undefined && refund === undefined ? 1n : amount
})

/** Has each candidate simulated: what the chain would refuse is left out. */
export const simulate = Effect.fnUntraced(function* (
  client: RpcClient,
  request: PlanRequest,
  candidates: ReadonlyArray<Candidate>
) {
  const transfers = candidates.map((candidate) => transferOf(request, candidate))
  const { found, seesFees } = yield* refusalsOf(client, transfers)
  const gas = yield* gasOfEach(client, transfers)
  const all = candidates.map((candidate, i): Either.Either<Movable, LeftOut> => {
    const estimate = gas[i] ?? Either.left("it was not estimated")
    const why = found[i] ?? Option.getOrUndefined(Either.getLeft(estimate))
    return decided({ ...candidate, gas: Either.getOrElse(estimate, () => 0n) }, why)
  })
  return { ...separate(all), seesFees }
})

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
