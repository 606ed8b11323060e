/** What may move: the balances of addresses, or exceptions that go back, without what a rule or the chain itself refuses. */
import { Array as Arr, type BigDecimal, Effect, Either, Option } from "effect"
import { formatUnits } from "viem"
import { type ChainAccess, reading } from "../Chains/providers/chainAccess.ts"
import { sendBatch } from "../Chains/rpc/methods.ts"
import type { RpcClient } from "../Chains/rpc/Rpc.ts"
import { getPricedHead } from "../Chains/rpc/sendingMethods.ts"
import { quantityText } from "../Domain/quantityText.ts"
import type { PriceOf } from "../Domain/usdValue.ts"
import { hdWallet } from "../Payments/addresses/hdWallet.ts"
import { awaitedAt, awaitedText, byAddress, type ReceivedPayment } from "../Payments/addresses/receivedPayment.ts"
import { collectRefusal } from "./CollectRefused.ts"
import { type Asset, holdingKey, readHoldings } from "./holdings.ts"
import type { LeftOut } from "./Plan.ts"
import { gasOfEach, type PossibleTransfer, refusalsOf } from "./simulation.ts"

/** An open exception whose money goes back. */
export interface PlannedRefund {
  readonly id: string
  readonly address: string
  readonly index: number
  readonly currency: string
  readonly amount: bigint
  /** How many transactions that the address has sent tilld has noted; 0 if absent. */
  readonly notedTransactions?: number
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
  readonly includeOpen: boolean
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
  readonly refund?: string
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
export const readAtHead = (access: ChainAccess, assets: ReadonlyArray<Asset>, addresses: ReadonlyArray<string>) =>
  reading(access, (client) =>
    Effect.gen(function* () {
      const [head] = yield* sendBatch(client, [getPricedHead])
      return { head, holdings: yield* readHoldings(client, assets, addresses, head) }
    })
  )

/** The balances that may move, and those that a rule leaves out. */
export const choose = Effect.fnUntraced(function* (
  access: ChainAccess,
  { includeOpen, onProgress, received, xpub }: PlanRequest,
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
  const whyNot = (all: (typeof groups)[number]): string | undefined => {
    const [{ address, index }] = all
    if (wallet.address(index) !== address) return `it is of another wallet: ${nameKey}`
    const awaited = includeOpen ? undefined : awaitedAt(all)
    return awaited && `payment ${awaited.payment} ${awaitedText[awaited.is]}`
  }
  return separate(
    groups.flatMap((all) => {
      const [{ address, index }] = all
      const why = whyNot(all)
      return assets.flatMap((asset) => {
        const amount = holdings.get(holdingKey(asset.symbol, address))
        return amount === undefined ? [] : [decided<Candidate>({ address, index, asset, amount }, why)]
      })
    })
  )
})

/** The exceptions that go back, each of which must be there to the unit. */
export const chooseRefunds = Effect.fnUntraced(function* (
  access: ChainAccess,
  { refunds, xpub }: PlanRequest,
  assets: ReadonlyArray<Asset>
) {
  const wallet = hdWallet(xpub)
  const addresses = [...new Set(refunds.map(({ address }) => address))]
  const left = new Map((yield* readAtHead(access, assets, addresses)).holdings)
  const movable: Array<Candidate> = []
  for (const { address, amount, currency, id, index } of refunds) {
    const asset = assets.find(({ symbol }) => symbol === currency)
    if (asset === undefined) {
      return yield* collectRefusal(
        `${id} is of ${currency}, which tilld does not move on this chain: send it back by hand`
      )
    }
    if (wallet.address(index) !== address) {
      return yield* collectRefusal(`${id} is at ${address}, of another wallet: ${nameKey}`)
    }
    const key = holdingKey(currency, address)
    const has = left.get(key) ?? 0n
    if (has < amount) {
      const shown = (units: bigint) => formatUnits(units, asset.decimals)
      return yield* collectRefusal(
        `${id} is ${shown(amount)} ${currency}, and ${address} has ${shown(has)}: send it back with another wallet, and note that by tilld payments refunded ${id} --tx HASH`
      )
    }
    left.set(key, has - amount)
    movable.push({ address, index, asset, amount, refund: id })
  }
  return { movable, leftOut: [] }
})

const transferOf = ({ destination }: PlanRequest, { address, amount, asset, refund }: Candidate): PossibleTransfer => ({
  from: address,
  to: destination,
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
