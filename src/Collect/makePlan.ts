/**
 * Makes the plan of a collection or of refunds: reads balances and nonces, has every move simulated and its gas estimated, chooses
 * the cheaper way for each token, and names what it leaves out. It needs no key, and changes nothing.
 */
import { BigDecimal, Effect, Either } from "effect"
import { balanceAt, getTransactionCount } from "../Chains/rpc/balanceMethods.ts"
import { getL1Fee, sendBatch, sendInBatches } from "../Chains/rpc/methods.ts"
import type { RpcClient } from "../Chains/rpc/Rpc.ts"
import { getPendingCount } from "../Chains/rpc/sendingMethods.ts"
import { chainTraits } from "../Domain/Chain.ts"
import { nativeToken } from "../Domain/Currency.ts"
import { type PriceOf, usdOf } from "../Domain/usdValue.ts"
import { hdWallet, sponsorAddress } from "../Payments/addresses/hdWallet.ts"
import type { ReceivedPayment } from "../Payments/addresses/receivedOperation.ts"
import { type ChainAccess, reading, readingBy, readPricedHead } from "./access.ts"
import { collectRefusal } from "./CollectRefused.ts"
import { batchBytes, feeSteps, type Market, readTip, sanestTip, singleBytes, withDataMargin } from "./fees.ts"
import { type Asset, assetsOf, readBalances, usdText } from "./holdings.ts"
import {
  digested,
  type LeftOut,
  type Plan,
  type PlannedMove,
  type PlannedToken,
  planFormat,
  type Unsigned,
  withUsedTokens
} from "./Plan.ts"
import { planProblem } from "./planChecks.ts"
import { authorizationOf, gasOfEach, type PossibleTransfer, refusalsOf } from "./simulation.ts"
import { readUsed } from "./standing.ts"
import { costOf, mostInBatch, sponsorNeeds } from "./transactions.ts"

/** Seconds for which authorizations are good: time to sign where there is no network. */
const authorizedFor = 24 * 3600

/** Gas of a transaction that carries authorizations: its base, its data's list, and Multicall3's own. */
const batchGas = 60_000n

/** An open exception whose money goes back. */
export interface PlannedRefund {
  readonly id: string
  readonly address: string
  readonly index: number
  readonly currency: string
  readonly amount: bigint
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
interface Candidate {
  readonly address: string
  readonly index: number
  readonly asset: Asset
  readonly amount: bigint
  readonly refund?: string
}

/** A candidate that the chain would move, and the gas of its own transaction. */
interface Movable extends Candidate {
  readonly gas: bigint
}

const leftOutOf = ({ address, amount, asset, index }: Candidate, why: string): LeftOut => ({
  ...{ address, index, currency: asset.symbol, amount: `${amount}`, why }
})

/** Why a payment's address is left alone, unless open ones are included. */
const openReason = (all: ReadonlyArray<ReceivedPayment>): string | undefined => {
  const open = all.find(({ isOpen }) => isOpen)
  if (open !== undefined) return `payment ${open.payment} is open`
  const undecided = all.find(({ openExceptions }) => openExceptions > 0)
  return undecided === undefined ? undefined : `payment ${undecided.payment} has an open exception`
}

const groupsOf = (
  received: ReadonlyArray<ReceivedPayment>
): ReadonlyArray<readonly [ReceivedPayment, ReadonlyArray<ReceivedPayment>]> => {
  const found = new Map<string, Array<ReceivedPayment>>()
  for (const one of received) found.set(one.address, [...(found.get(one.address) ?? []), one])
  return [...found.values()].flatMap((all) => (all[0] === undefined ? [] : [[all[0], all] as const]))
}

/** The balances that may move, and those that a rule leaves out. */
const choose = Effect.fnUntraced(function* (access: ChainAccess, request: PlanRequest, assets: ReadonlyArray<Asset>) {
  const wallet = hdWallet(request.xpub)
  const groups = groupsOf(request.received)
  yield* request.onProgress(`reading the balances of ${groups.length} addresses`)
  const { of } = yield* readBalances(
    access,
    assets,
    groups.map(([{ address }]) => address)
  )
  const candidates: Array<Candidate> = []
  const leftOut: Array<LeftOut> = []
  for (const [i, [{ address, index }, all]] of groups.entries()) {
    const isOwn = wallet.address(index) === address
    const open = request.includeOpen ? undefined : openReason(all)
    for (const asset of assets) {
      const candidate = { address, index, asset, amount: of.get(asset.symbol)?.[i] ?? 0n }
      if (candidate.amount === 0n) continue
      const why = isOwn ? open : "it is of another wallet: plan with that one's extended public key (--xpub)"
      if (why === undefined) candidates.push(candidate)
      else leftOut.push(leftOutOf(candidate, why))
    }
  }
  return { candidates, leftOut }
})

/** The exceptions that go back, each of which must be there to the unit. */
const chooseRefunds = Effect.fnUntraced(function* (
  access: ChainAccess,
  request: PlanRequest,
  assets: ReadonlyArray<Asset>
) {
  const wallet = hdWallet(request.xpub)
  const addresses = [...new Set(request.refunds.map(({ address }) => address))]
  const { of } = yield* readBalances(access, assets, addresses)
  const left = new Map<string, bigint>()
  const candidates: Array<Candidate> = []
  for (const { address, amount, currency, id, index } of request.refunds) {
    const asset = assets.find(({ symbol }) => symbol === currency)
    if (asset === undefined) {
      return yield* collectRefusal(
        `${id} is of ${currency}, which tilld does not move on this chain: send it back by hand`
      )
    }
    if (wallet.address(index) !== address) {
      return yield* collectRefusal(
        `${id} is at ${address}, of another wallet: name that one's extended public key (--xpub)`
      )
    }
    const key = `${address} ${currency}`
    const has = left.get(key) ?? of.get(currency)?.[addresses.indexOf(address)] ?? 0n
    if (has < amount)
      return yield* collectRefusal(`${id} is ${amount} base units of ${currency}, and ${address} has ${has}`)
    left.set(key, has - amount)
    candidates.push({ address, index, asset, amount, refund: id })
  }
  return { candidates, leftOut: [] }
})

const transferOf = ({ destination }: PlanRequest, { address, amount, asset, refund }: Candidate): PossibleTransfer => ({
  from: address,
  to: destination,
  contract: asset.contract,
  // All of a coin's balance cannot be sent, and its gas does not depend on the amount.
  amount: asset.contract === undefined && refund === undefined ? 1n : amount
})

/** Has each candidate simulated: what the chain would refuse is left out. */
const simulate = Effect.fnUntraced(function* (
  client: RpcClient,
  request: PlanRequest,
  candidates: ReadonlyArray<Candidate>
) {
  const transfers = candidates.map((candidate) => transferOf(request, candidate))
  const { found, seesFees } = yield* refusalsOf(client, transfers)
  const gas = yield* gasOfEach(client, transfers)
  const movable: Array<Movable> = []
  const leftOut: Array<LeftOut> = []
  for (const [i, candidate] of candidates.entries()) {
    const estimate = gas[i]
    const why = found[i] ?? (estimate && Either.isLeft(estimate) ? estimate.left : undefined)
    if (why !== undefined || estimate === undefined) leftOut.push(leftOutOf(candidate, why ?? "it was not estimated"))
    else movable.push({ ...candidate, gas: Either.getOrThrow(estimate) })
  }
  return { movable, leftOut, seesFees }
})

interface Costs extends Pick<Plan, "dataFees" | "fees" | "gas"> {
  /** Wei that a unit of gas costs at present. */
  readonly price: bigint
}

/** The fees of the plan, and what the sponsor's transactions take. `receiver`: an address that it may send gas to. */
const readCosts = Effect.fnUntraced(function* (
  client: RpcClient,
  access: ChainAccess,
  { feeSteps: steps, maxFee }: PlanRequest,
  { baseFee, tip }: Market,
  { moves, receiver, sponsor }: { readonly moves: number; readonly receiver: string; readonly sponsor: string }
) {
  const { hasL1Fee } = chainTraits[access.chain.chain]
  const [batchFee, singleFee] = hasL1Fee
    ? yield* sendBatch(client, [getL1Fee(batchBytes(Math.min(moves, mostInBatch))), getL1Fee(singleBytes)])
    : [0n, 0n]
  const [gas = Either.right(21_000n)] = yield* gasOfEach(client, [
    { from: sponsor, to: receiver, contract: undefined, amount: 0n }
  ])
  const funding = Either.getOrElse(gas, () => 21_000n)
  const costs: Costs = {
    price: baseFee + tip,
    fees: yield* feeSteps({ baseFee, tip }, steps, maxFee),
    dataFees: { batch: `${withDataMargin(batchFee)}`, single: `${withDataMargin(singleFee)}` },
    // Where a plain transfer takes more than elsewhere, every transaction does: Arbitrum counts its data so.
    gas: { batch: `${batchGas + (funding > 21_000n ? funding - 21_000n : 0n)}`, funding: `${funding}` }
  }
  return costs
})

/** What is known of the addresses before anything moves. */
interface Standing {
  /** Wei, by address. */
  readonly coins: ReadonlyMap<string, bigint>
  readonly nonces: ReadonlyMap<string, number>
}

type AuthorizationOf = Effect.Effect.Success<ReturnType<typeof authorizationOf>>

/** A token that moves, and how. */
interface WayOfToken {
  readonly token: PlannedToken
  readonly extraGas: bigint | undefined
}

const missing = (needs: bigint, has: bigint): bigint => (needs > has ? needs - has : 0n)

/** The gas of a signed transfer within a batch: without the base of a transaction of its own. */
const shareOf = (gas: bigint, extraGas: bigint): bigint => missing(gas, 21_000n) + extraGas

/** The cheaper way for a token. What funded addresses keep of their gas counts as spent: it stays there. */
const cheaperWay = (
  asset: Asset,
  moves: ReadonlyArray<Movable>,
  costs: Costs,
  { coins }: Standing,
  authorization: AuthorizationOf
): WayOfToken => {
  const { decimals, symbol } = asset
  const plain = { token: { symbol, contract: asset.contract ?? "", decimals }, extraGas: undefined }
  if (authorization === undefined) return plain
  const { domain, extraGas } = authorization
  // One whose nonce is the exception's: no other plan pays it again.
  if (moves.some(({ refund }) => refund !== undefined)) return { token: { ...plain.token, domain }, extraGas }
  const batches = BigInt(Math.ceil(moves.length / mostInBatch))
  const signed = moves.reduce((sum, { gas }) => sum + shareOf(gas, extraGas), batches * BigInt(costs.gas.batch))
  const signedCost = signed * costs.price + batches * BigInt(costs.dataFees.batch)
  const plainCost = moves.reduce((sum, { address, gas }) => {
    const funding = missing(costOf(costs, gas), coins.get(address) ?? 0n)
    const sending = BigInt(costs.gas.funding) * costs.price + BigInt(costs.dataFees.single)
    return sum + (funding === 0n ? gas * costs.price : funding + sending)
  }, 0n)
  return signedCost <= plainCost ? { token: { ...plain.token, domain }, extraGas } : plain
}

/** Wei that moving it costs at present, about. */
const presentCost = ({ asset, gas }: Movable, costs: Costs, way: WayOfToken | undefined): bigint => {
  const single = BigInt(costs.dataFees.single)
  if (asset.contract === undefined) return gas * costs.price + single
  if (way?.extraGas !== undefined) return shareOf(gas, way.extraGas) * costs.price
  return (gas + BigInt(costs.gas.funding)) * costs.price + 2n * single
}

/** Why it is not worth moving; undefined where it is, and for refunds, whose amount is owed. */
const worthless = (
  { minUsd, price }: PlanRequest,
  coin: Pick<Asset, "decimals" | "symbol">,
  { amount, asset, refund }: Candidate,
  cost: bigint
): string | undefined => {
  if (refund !== undefined) return undefined
  const usd = usdOf(price, asset, amount)
  const gas = usdOf(price, coin, cost)
  const takesAll = BigDecimal.isZero(minUsd)
  if (usd === undefined) {
    return takesAll ? undefined : `no price of ${asset.symbol} is known: --min-usd 0 takes it whatever it is worth`
  }
  if (BigDecimal.lessThan(usd, minUsd)) return `it is worth ${usdText(usd)} USD, below --min-usd`
  return gas !== undefined && BigDecimal.lessThanOrEqualTo(usd, gas)
    ? `it is worth ${usdText(usd)} USD, and its gas costs ${usdText(gas)}`
    : undefined
}

/** The moves of one address: its tokens first, its coin with what is left of it. */
const movesOf = (
  request: PlanRequest,
  coin: Asset,
  own: ReadonlyArray<Movable>,
  costs: Costs,
  ways: ReadonlyArray<WayOfToken>,
  { coins, nonces }: Standing
) => {
  const moves: Array<PlannedMove> = []
  const leftOut: Array<LeftOut> = []
  const [{ address } = { address: "" }] = own
  let has = coins.get(address) ?? 0n
  let nonce = nonces.get(address) ?? 0
  const inOrder = [...own].sort(
    (a, b) => Number(a.asset.contract === undefined) - Number(b.asset.contract === undefined)
  )
  for (const one of inOrder) {
    const { asset, gas, index, refund } = one
    const token = ways.findIndex((way) => way.token.symbol === asset.symbol)
    const way = ways[token]
    const cost = costOf(costs, gas)
    const isCoin = asset.contract === undefined
    const amount = isCoin && refund === undefined ? missing(has, cost) : one.amount
    const why =
      amount === 0n
        ? "it is less than its gas may cost"
        : worthless(request, coin, { ...one, amount }, presentCost(one, costs, way))
    if (why !== undefined) {
      leftOut.push(leftOutOf(one, why))
      continue
    }
    const common = { address, index, ...(refund === undefined ? {} : { refund }), amount: `${amount}` }
    if (way?.extraGas !== undefined) {
      moves.push({ way: "authorization", token, ...common, gas: `${shareOf(gas, way.extraGas)}`, funding: "0" })
      continue
    }
    const takes = isCoin ? cost + amount : cost
    const funding = missing(takes, has)
    has = missing(has, takes)
    moves.push({
      ...(isCoin ? { way: "native" as const } : { way: "token" as const, token }),
      ...{ ...common, gas: `${gas}`, funding: `${funding}`, nonce }
    })
    nonce += 1
  }
  return { moves, leftOut }
}

const nothingMoves = (leftOut: ReadonlyArray<LeftOut>) => {
  const reasons = [...new Set(leftOut.map(({ why }) => why))].slice(0, 5)
  return collectRefusal(
    reasons.length === 0
      ? "There is nothing to move: tilld addresses --unswept shows what there is"
      : `There is nothing to move: ${reasons.join("; ")}`
  )
}

/** The plan, and whether fees that tokens keep would have been seen. */
export const makePlan = Effect.fn("Collect.makePlan")(function* (access: ChainAccess, request: PlanRequest) {
  const { chain, chainId, mode } = access.chain
  const all = assetsOf(access.chain)
  const { currencies = all.map(({ symbol }) => symbol), destination, refunds, xpub } = request
  const sponsor = sponsorAddress(xpub)
  const { account } = hdWallet(xpub)
  if (account === undefined) {
    return yield* collectRefusal("The extended public key does not tell its account: it has to be of m/44'/60'/n'")
  }
  const chosen = yield* refunds.length > 0 ? chooseRefunds(access, request, all) : choose(access, request, all)
  const candidates = chosen.candidates.filter(
    ({ asset, refund }) => refund !== undefined || currencies.includes(asset.symbol)
  )
  const [first] = candidates
  if (first === undefined) return yield* nothingMoves(chosen.leftOut)
  const coin = { symbol: nativeToken(chain), decimals: 18, contract: undefined }
  const addresses = [...new Set(candidates.map(({ address }) => address))]

  const { head, of } = yield* readBalances(access, [coin], addresses)
  const [counts, otherCounts = counts] = yield* readingBy(access, {}, (client) =>
    sendInBatches(client, [...addresses, sponsor].map(getTransactionCount))
  )
  const differing = [...addresses, sponsor].find((_, i) => counts[i] !== otherCounts[i])
  if (differing !== undefined) {
    return yield* collectRefusal(
      `Providers differ on the nonce of ${differing}: one is behind, or wrong. Try again, and look in a block explorer if that lasts`
    )
  }
  const standing: Standing = {
    coins: new Map(addresses.map((address, i) => [address, of.get(coin.symbol)?.[i] ?? 0n])),
    nonces: new Map(addresses.map((address, i) => [address, counts[i] ?? 0]))
  }
  const nonce = counts[addresses.length] ?? 0
  const [pending, hasWei] = yield* reading(access, (client) =>
    sendBatch(client, [getPendingCount(sponsor), balanceAt(sponsor, head)])
  )
  if (pending > nonce) {
    return yield* collectRefusal(
      `${pending - nonce} transactions of the sponsor ${sponsor} are under way: wait until they are mined`
    )
  }
  yield* request.onProgress(`simulating ${candidates.length} transfers`)
  const simulated = yield* reading(access, (client) => simulate(client, request, candidates))
  const { baseFee } = yield* readPricedHead(access)
  const tips = yield* readingBy(access, {}, (client) => readTip(client, baseFee))
  const market = { baseFee, tip: sanestTip(chain, baseFee, tips) }
  const costs = yield* reading(access, (client) =>
    readCosts(client, access, request, market, { moves: candidates.length, receiver: first.address, sponsor })
  )
  const validBefore = head.time + authorizedFor
  const tokens = all.filter(({ symbol }) =>
    simulated.movable.some(({ asset }) => asset.contract && asset.symbol === symbol)
  )
  const ways = yield* Effect.forEach(
    tokens,
    (asset) =>
      Effect.map(
        reading(access, (client) =>
          authorizationOf(
            client,
            { chainId, validBefore },
            { symbol: asset.symbol, contract: asset.contract ?? "", decimals: asset.decimals },
            { sponsor, to: destination }
          )
        ),
        (authorization) =>
          cheaperWay(
            asset,
            simulated.movable.filter((one) => one.asset.symbol === asset.symbol),
            costs,
            standing,
            authorization
          )
      ),
    { concurrency: 1 }
  )
  const made = addresses.map((address) =>
    movesOf(
      request,
      coin,
      simulated.movable.filter((one) => one.address === address),
      costs,
      ways,
      standing
    )
  )
  const moves = made.flatMap((one) => one.moves)
  const leftOut = [...chosen.leftOut, ...simulated.leftOut, ...made.flatMap((one) => one.leftOut)]
  if (moves.length === 0) return yield* nothingMoves(leftOut)
  const unsigned: Unsigned = {
    ...{ format: planFormat, chain, mode, chainId, account, coin: coin.symbol },
    block: { number: head.number, hash: head.hash, time: head.time },
    destination,
    ...withUsedTokens({ tokens: ways.map(({ token }) => token), moves }),
    ...{ leftOut, fees: costs.fees, dataFees: costs.dataFees, gas: costs.gas, validBefore },
    sponsor: { address: sponsor, nonce, needsWei: "0", hasWei: `${hasWei}` }
  }
  const needsWei = `${sponsorNeeds(digested(unsigned))}`
  const plan = digested({ ...unsigned, sponsor: { ...unsigned.sponsor, needsWei } })
  const problem = planProblem(plan, { allow: [], feeCeiling: BigInt(costs.fees.at(-1)?.most ?? 0) })
  if (problem !== undefined) return yield* collectRefusal(problem)
  const used = yield* reading(access, (client) => readUsed(client, plan))
  const sent = plan.moves.find((_, place) => used.get(place) === true)
  if (sent !== undefined) {
    return yield* collectRefusal(
      `${sent.refund} was sent back already, by an authorization of ${sent.address}: look there in a block explorer, and note it by tilld payments refunded ${sent.refund} --tx HASH`
    )
  }
  return { plan, seesFees: simulated.seesFees }
})
