/**
 * Makes the plan of a collection or of refunds: reads balances and nonces, has every move simulated and its gas estimated, chooses
 * the cheaper way for each token, and names what it leaves out. It needs no key, and changes nothing.
 */
import { Array as Arr, BigDecimal, Effect, Either } from "effect"
import { type Asset, assetsOf, type Holdings, holdingKey } from "../Chains/balances/holdings.ts"
import { type ChainAccess, reading, readingBy, readPricedHead } from "../Chains/providers/chainAccess.ts"
import { getTransactionCount } from "../Chains/rpc/balanceMethods.ts"
import { readContractViews } from "../Chains/rpc/contractViews.ts"
import { getHead, getL1Fee, sendBatch, sendInBatches } from "../Chains/rpc/methods.ts"
import { getPendingCount } from "../Chains/rpc/sendingMethods.ts"
import { isSameAddress } from "../Domain/Address.ts"
import { chainTraits } from "../Domain/Chain.ts"
import { usdOf, usdText } from "../Domain/Quote.ts"
import { quantityText } from "../lib/quantities.ts"
import { byAddress, heldAt } from "../Payments/addresses/receivedPayment.ts"
import { hdWallet } from "../Settings/hdWallet.ts"
import {
  type Candidate,
  choose,
  chooseRefunds,
  leftOutOf,
  type Movable,
  type PlanRequest,
  readAtHead,
  separate,
  simulate,
  uncovered
} from "./candidates.ts"
import { batchBytes, feeSteps, readTip, sanestTip, singleBytes, withDataMargin } from "./fees.ts"
import {
  collectRefusal,
  digested,
  type LeftOut,
  mostApart,
  mostMoves,
  type Plan,
  type PlannedMove,
  type PlannedToken,
  planFormat,
  tokenOf,
  type Unsigned
} from "./Plan.ts"
import { planProblem } from "./planChecks.ts"
import { authorizationOf, gasOfEach } from "./simulation.ts"
import { readUsed } from "./standing.ts"
import { authorizationNonce, costOf, isUsed, mostInBatch, sponsorNeeds, usedView } from "./transactions.ts"

/** Seconds for which authorizations are good: time to sign where there is no network. */
const authorizedFor = 24 * 3600

/** Gas of a transaction that carries authorizations: its base, its data's list, and Multicall3's own. */
const batchGas = 60_000n

const missing = (needs: bigint, has: bigint): bigint => (needs > has ? needs - has : 0n)

interface Costs extends Pick<Plan, "dataFees" | "fees" | "gas"> {
  /** Wei that a unit of gas costs at present. */
  readonly price: bigint
}

/** The fees of the plan, and what the sponsor's transactions take. `receiver`: an address that it may send gas to. */
const readCosts = Effect.fnUntraced(function* (
  access: ChainAccess,
  request: PlanRequest,
  { moves, receiver, sponsor }: { readonly moves: number; readonly receiver: string; readonly sponsor: string }
) {
  const { chain } = access.chain
  const { baseFee } = yield* readPricedHead(access)
  const tip = sanestTip(chain, baseFee, yield* readingBy(access, {}, (client) => readTip(client, baseFee)))
  const sizes = [batchBytes(Math.min(moves, mostInBatch)), singleBytes]
  const [batchFee = 0n, singleFee = 0n] = chainTraits[chain].hasL1Fee
    ? yield* reading(access, (client) => sendBatch(client, sizes.map(getL1Fee)))
    : []
  const funded = { from: sponsor, to: receiver, contract: undefined, amount: 0n }
  const [gas] = yield* reading(access, (client) => gasOfEach(client, [funded]))
  const funding = gas === undefined ? 21_000n : Either.getOrElse(gas, () => 21_000n)
  const costs: Costs = {
    price: baseFee + tip,
    fees: yield* feeSteps({ baseFee, tip }, request.feeSteps, request.maxFee),
    dataFees: { batch: `${withDataMargin(batchFee)}`, single: `${withDataMargin(singleFee)}` },
    // Where a plain transfer takes more than elsewhere, every transaction does: Arbitrum counts its data so.
    gas: { batch: `${batchGas + missing(funding, 21_000n)}`, funding: `${funding}` }
  }
  return costs
})

/** A token that moves; `extraGas`: what an authorization takes more than a transfer, where it moves by those. */
interface WayOfToken {
  readonly token: PlannedToken
  readonly extraGas: bigint | undefined
}

/** What a plan is made of, apart from what moves. */
interface Basis {
  readonly request: PlanRequest
  readonly coin: Asset
  readonly costs: Costs
  /** What the addresses have of the coin, without what has to stay: that pays for no gas. */
  readonly holdings: Holdings
  readonly nonces: ReadonlyMap<string, number>
}

const coinOf = ({ coin, holdings }: Basis, address: string): bigint =>
  holdings.get(holdingKey(coin.symbol, address)) ?? 0n

/** The gas of a signed transfer within a batch: without the base of a transaction of its own. */
const shareOf = (gas: bigint, extraGas: bigint): bigint => missing(gas, 21_000n) + extraGas

/** Whether signed transfers cost less than plain ones. What funded addresses keep of their gas counts as spent: it stays there. */
const isSignedCheaper = (basis: Basis, moves: ReadonlyArray<Movable>, extraGas: bigint): boolean => {
  const { costs } = basis
  const batches = BigInt(Math.ceil(moves.length / mostInBatch))
  const signed = moves.reduce((sum, { gas }) => sum + shareOf(gas, extraGas), batches * BigInt(costs.gas.batch))
  const plain = moves.reduce((sum, { address, gas }) => {
    const funding = missing(costOf(costs, gas), coinOf(basis, address))
    const sending = BigInt(costs.gas.funding) * costs.price + BigInt(costs.dataFees.single)
    return sum + (funding === 0n ? gas * costs.price : funding + sending)
  }, 0n)
  return signed * costs.price + batches * BigInt(costs.dataFees.batch) <= plain
}

/** The way for a token. Refunds are signed where one of two providers shows that: their nonce is the refund's, and pays once. */
const wayOf = Effect.fnUntraced(function* (
  access: ChainAccess,
  basis: Basis,
  { contract = "", decimals, symbol }: Asset,
  moves: ReadonlyArray<Movable>,
  signing: Parameters<typeof authorizationOf>[1]
) {
  const token = { symbol, contract, decimals }
  const isRefund = moves.some(({ refund }) => refund !== undefined)
  const many = isRefund ? 2 : 1
  const answers = yield* readingBy(access, { many }, (client) => authorizationOf(client, signing, token))
  const found = answers.find((answer) => answer !== undefined)
  const isSigned = found !== undefined && (isRefund || isSignedCheaper(basis, moves, found.extraGas))
  const way: WayOfToken = isSigned
    ? { token: { ...token, domain: found.domain }, extraGas: found.extraGas }
    : { token, extraGas: undefined }
  return way
})

/** Wei that moving it costs at present, about; a signed refund as if it went alone. */
const presentCost = ({ asset, gas, refund }: Movable, costs: Costs, way: WayOfToken | undefined): bigint => {
  const single = BigInt(costs.dataFees.single)
  if (asset.contract === undefined && refund === undefined) return gas * costs.price + single
  const around = refund === undefined ? 0n : BigInt(costs.gas.batch)
  if (way?.extraGas !== undefined) return (shareOf(gas, way.extraGas) + around) * costs.price
  return (gas + BigInt(costs.gas.funding)) * costs.price + 2n * single
}

/** Why it is not worth moving; undefined where it is. Of a refund, whose amount is owed, only that its gas costs more. */
const worthless = (
  { coin, request: { minUsd, price } }: Basis,
  { amount, asset, refund }: Candidate,
  cost: bigint
): string | undefined => {
  const usd = usdOf(price, asset, amount)
  const gas = usdOf(price, coin, cost)
  if (usd === undefined) {
    return BigDecimal.isZero(minUsd) || refund !== undefined
      ? undefined
      : `no price of ${asset.symbol} is known: --min-usd 0 takes it whatever it is worth`
  }
  if (refund === undefined && BigDecimal.lessThan(usd, minUsd))
    return `it is worth ${usdText(usd)} USD, below --min-usd`
  return gas !== undefined && BigDecimal.lessThanOrEqualTo(usd, gas)
    ? `it is worth ${usdText(usd)} USD, and its gas costs ${usdText(gas)}`
    : undefined
}

/** The moves of one address: its tokens first, its coin with what is left of it. */
const movesOf = (basis: Basis, ways: ReadonlyArray<WayOfToken>, own: Arr.NonEmptyReadonlyArray<Movable>) => {
  const { costs } = basis
  const [{ address }] = own
  let has = coinOf(basis, address)
  let nonce = basis.nonces.get(address) ?? 0
  const [coins, tokens] = Arr.partition(own, ({ asset }) => asset.contract !== undefined)
  return [...tokens, ...coins].map((one): Either.Either<PlannedMove, LeftOut> => {
    const { asset, gas, index, refund } = one
    const isCoin = asset.contract === undefined
    const way = isCoin ? undefined : ways.find(({ token }) => token.symbol === asset.symbol)
    const cost = costOf(costs, gas)
    const isRest = isCoin && refund === undefined
    const amount = isRest ? missing(has, cost) : one.amount
    const worth = { ...one, amount: isRest ? has : amount }
    const why =
      amount === 0n ? "it is less than its gas may cost" : worthless(basis, worth, presentCost(one, costs, way))
    if (why !== undefined && refund === undefined) return Either.left(leftOutOf(one, why))
    const move = {
      ...(isCoin ? {} : { token: asset.symbol }),
      ...(refund === undefined ? {} : { refund: refund.id }),
      ...(refund?.exception === undefined ? {} : { exception: refund.exception }),
      ...(refund?.to === undefined || isSameAddress(refund.to, basis.request.destination) ? {} : { to: refund.to }),
      ...{ address, index, amount: `${amount}` }
    }
    if (way?.extraGas !== undefined) {
      return Either.right({ way: "authorization", ...move, gas: `${shareOf(gas, way.extraGas)}`, funding: "0" })
    }
    // The coin beside a refund may count for a payment, or be another customer's.
    const funding = refund === undefined ? missing(cost, has) : cost
    has = missing(has, cost)
    const costing = { gas: `${gas}`, funding: `${funding}`, nonce: nonce++ }
    return Either.right({ way: isCoin ? "native" : "token", ...move, ...costing })
  })
}

const nothingMoves = (leftOut: ReadonlyArray<LeftOut>) => {
  const reasons = Object.entries(Arr.groupBy(leftOut, ({ why }) => why)).map(
    ([why, [{ address }, ...more]]) => `${why} (${address}${more.length === 0 ? "" : `, and ${more.length} more`})`
  )
  const why = reasons.slice(0, 5).join("; ") || "tilld addresses --unswept shows what there is"
  return collectRefusal(`There is nothing to move: ${why}`)
}

/** The nonces of the addresses and of the sponsor, of whom nothing may be under way. `head`: the plan's block. */
const readNonces = Effect.fnUntraced(function* (
  access: ChainAccess,
  head: number,
  addresses: ReadonlyArray<string>,
  sponsor: string
) {
  const all = [...addresses, sponsor]
  const answers = yield* readingBy(access, {}, (client) =>
    Effect.all([sendInBatches(client, all.map(getTransactionCount)), sendBatch(client, [getHead])], { concurrency: 1 })
  )
  const [[counts], [otherCounts] = [counts]] = answers
  const heads = [head, ...answers.map(([, [{ number }]]) => number)]
  // About there it is looked for what others have moved.
  const areApart = (Math.max(...heads) - Math.min(...heads)) * chainTraits[access.chain.chain].blockSeconds > mostApart
  const moved = all.find((_, i) => counts[i] !== otherCounts[i])
  const what = areApart ? `head of the chain, ${[...new Set(heads)].join(" and ")}` : moved && `nonce of ${moved}`
  if (what !== undefined) {
    return yield* collectRefusal(
      `Providers differ on the ${what}: one is behind, or wrong. Try again, and look in a block explorer if that lasts`
    )
  }
  const pending = yield* reading(access, (client) => sendInBatches(client, all.map(getPendingCount)))
  const busy = all.find((_, i) => (pending[i] ?? 0) > (counts[i] ?? 0))
  if (busy !== undefined) {
    return yield* collectRefusal(`${busy} has a transaction under way: run its broadcast to its end, or wait for it`)
  }
  return new Map(all.map((address, i) => [address, counts[i] ?? 0]))
})

/** Refuses refunds that were paid by an authorization already, also where this plan pays without one. */
const refuseUsed = Effect.fnUntraced(function* (access: ChainAccess, plan: Plan) {
  const used = yield* reading(access, (client) => readUsed(client, plan))
  const plain = plan.moves.flatMap((move, place) => {
    const token = move.refund && move.way === "token" && tokenOf(plan, move)
    if (!token) return []
    return [{ move, view: usedView(token.contract, move.address, authorizationNonce(plan, token, move, place)) }]
  })
  const parts = yield* Effect.forEach(
    Arr.chunksOf(plain, 200),
    (part) =>
      reading(access, (client) =>
        readContractViews(
          client,
          Arr.map(part, ({ view }) => view)
        )
      ),
    { concurrency: 1 }
  )
  // Most tokens without authorizations have no such function.
  const results = parts.flat()
  const sent = plan.moves.find((_, place) => used.get(place) === true) ?? plain.find((_, i) => isUsed(results[i]))?.move
  if (sent === undefined) return
  return yield* collectRefusal(
    `${sent.exception ?? sent.refund} was sent back already, by an authorization of ${sent.address}: look there in a block explorer, and note it by tilld payments refunded ${sent.exception ?? sent.refund} --tx HASH`
  )
})

/** The plan, whether fees that tokens keep would have been seen, and what is said of refunds that pay less than their gas. */
export const makePlan = Effect.fn("Collect.makePlan")(function* (access: ChainAccess, request: PlanRequest) {
  const { chain, chainId, mode } = access.chain
  const [coin, ...tokens] = assetsOf(access.chain)
  const { currencies, destination, refunds } = request
  const { account, sponsor } = hdWallet(request.xpub)
  if (account === undefined) {
    return yield* collectRefusal("The extended public key does not tell its account: it has to be of m/44'/60'/n'")
  }
  const all = [coin, ...tokens]
  const unknown = currencies?.find((currency) => !all.some(({ symbol }) => symbol === currency))
  const there = all.map(({ symbol }) => symbol).join(", ")
  if (unknown !== undefined) return yield* collectRefusal(`${unknown} is not on ${chain}: there are ${there}`)
  const wanted = all.filter(({ symbol }) => currencies?.includes(symbol) ?? true)
  const chosen = yield* refunds.length > 0 ? chooseRefunds(request, all) : choose(access, request, wanted)
  const [candidates, tooMany] = Arr.splitAt(chosen.movable, mostMoves)
  const [first] = candidates
  if (first === undefined) return yield* nothingMoves(chosen.leftOut)
  const addresses = [...new Set(candidates.map(({ address }) => address))]
  const { head, holdings } = yield* readAtHead(access, [coin], [...addresses, sponsor])
  const nonces = yield* readNonces(access, head.number, addresses, sponsor)
  for (const { address, notedTransactions: noted = 0, of: id } of refunds) {
    const sent = nonces.get(address) ?? 0
    const why = `${address} has sent ${quantityText(sent, "transaction")}, and tilld knows of ${noted}: one of them may have sent ${id} back already. Run the broadcast that sent it to its end. If there is none, or it failed, look in a block explorer, send the refund with another wallet unless it was sent, and note it by tilld payments refunded ${id} --tx HASH`
    if (sent > noted) return yield* collectRefusal(why)
  }
  const [missed] = refunds.length === 0 ? [] : (yield* uncovered(access, refunds)).values()
  if (missed !== undefined) return yield* collectRefusal(missed)
  yield* request.onProgress(`simulating ${quantityText(candidates.length, "transfer")}`)
  const simulated = yield* reading(access, (client) => simulate(client, request, candidates))
  const costs = yield* readCosts(access, request, { moves: candidates.length, receiver: first.address, sponsor })
  const free = new Map(holdings)
  for (const all of byAddress(request.received)) {
    const key = holdingKey(coin.symbol, all[0].address)
    free.set(key, missing(holdings.get(key) ?? 0n, heldAt(all, coin.symbol)?.amount ?? 0n))
  }
  const basis: Basis = { request, coin, costs, holdings: free, nonces }
  const validBefore = head.time + authorizedFor
  const ways: Array<WayOfToken> = []
  for (const asset of tokens) {
    const moves = simulated.movable.filter((one) => one.asset === asset)
    const signing = { chainId, validBefore, sponsor, to: destination }
    if (moves.length > 0) ways.push(yield* wayOf(access, basis, asset, moves, signing))
  }
  const groups = Object.values(Arr.groupBy(simulated.movable, ({ address }) => address))
  const made = separate(groups.flatMap((own) => movesOf(basis, ways, own)))
  const { movable: moves } = made
  const later = tooMany.map((one) => leftOutOf(one, `a plan has ${mostMoves} moves at most: make another one after it`))
  const leftOut = [...chosen.leftOut, ...simulated.leftOut, ...made.leftOut, ...later]
  if (moves.length === 0) return yield* nothingMoves(leftOut)
  const unsigned: Unsigned = {
    ...{ format: planFormat, chain, mode, chainId, account, coin: coin.symbol },
    block: { number: head.number, hash: head.hash, time: head.time },
    destination,
    tokens: ways.flatMap(({ token }) => (moves.some((move) => move.token === token.symbol) ? [token] : [])),
    ...{ moves, leftOut, fees: costs.fees, dataFees: costs.dataFees, gas: costs.gas, validBefore },
    sponsor: {
      ...{ address: sponsor, nonce: nonces.get(sponsor) ?? 0, needsWei: "0" },
      hasWei: `${coinOf(basis, sponsor)}`
    }
  }
  const needsWei = `${sponsorNeeds(digested(unsigned))}`
  const plan = digested({ ...unsigned, sponsor: { ...unsigned.sponsor, needsWei } })
  const problem = planProblem(plan, { allow: [], feeCeiling: BigInt(costs.fees.at(-1)?.most ?? 0) })
  if (problem !== undefined) return yield* collectRefusal(problem)
  yield* refuseUsed(access, plan)
  const dear = simulated.movable.flatMap((one) => {
    const way = ways.find(({ token }) => token.symbol === one.asset.symbol)
    const why = worthless(basis, one, presentCost(one, costs, way))
    return one.refund && why ? [`${one.refund.of}: ${why}`] : []
  })
  return { plan, seesFees: simulated.seesFees, dear: dear.join("; ") }
})
