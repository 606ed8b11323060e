/** Why a plan must not be signed, whoever has made it: the machine that it comes from may be an attacker's. */
import { formatEther, hexToBytes } from "viem"
import { multicall3Address } from "../Chains/rpc/contractViews.ts"
import { isSameAddress } from "../Domain/Address.ts"
import { chainNames, chainTraits, modes } from "../Domain/Chain.ts"
import { decimalsOf, isToken } from "../Domain/Currency.ts"
import { iso } from "../lib/moment.ts"
import { shownLine } from "../lib/text.ts"
import { presets } from "../Settings/publicNetworks.ts"
import { gwei } from "./fees.ts"
import { isWhole, type Plan, type PlannedMove, receiverOf, tokenOf } from "./Plan.ts"
import { highestCost, networkText, type PlannedReceiver, receiversOf } from "./planText.ts"
import { costOf, plannedTransactions } from "./transactions.ts"

const billion = 10n ** 9n
const milli = 10n ** 15n

/**
 * What is signed without being asked to, in wei. `unit`: for a unit of gas, ten times what chains have asked for in their worst
 * hours. `total` and `each`: for all fees together, and more for each move; a transfer in a busy hour, with its funding.
 */
const ceilings = {
  ethereum: { unit: 1_000n * billion, total: 50n * milli, each: 5n * milli },
  polygon: { unit: 20_000n * billion, total: 2_000n * milli, each: 200n * milli }
}
const rollup = { unit: 100n * billion, total: 5n * milli, each: milli / 2n }
const ceilingsOf = (chain: Plan["chain"]) => (chain === "ethereum" || chain === "polygon" ? ceilings[chain] : rollup)

/** The highest fee that is signed for a chain without being asked to: wei for a unit of gas. */
export const feeCeiling = (chain: Plan["chain"]): bigint => ceilingsOf(chain).unit

/** The highest sum of all fees that is signed without being asked to: wei. */
export const totalFeeCeiling = ({ chain, moves }: Plan): bigint => {
  const { each, total } = ceilingsOf(chain)
  return total + each * BigInt(moves.length)
}

/** No transfer takes more gas, nor does what surrounds those of a batch. */
const mostGas = 2_000_000n
/** Seconds for which an authorization may be valid, from the plan's block on. */
const longestValidity = 31 * 86_400

/** Seconds that a plan may be older than now, or ahead: clocks of machines without a network drift. */
const oldest = 7 * 86_400
const mostAhead = 3_600

export interface SigningLimits {
  /** Addresses that money may go to; empty: any. */
  readonly allow: ReadonlyArray<string>
  /** Whole addresses of customers that refunds may go to besides. */
  readonly refundTo?: ReadonlyArray<string>
  /** Wei for a unit of gas. */
  readonly feeCeiling: bigint
  /** Wei for all fees together; absent: any. */
  readonly totalFeeCeiling?: bigint
  /** The clock of the machine that signs, Unix seconds; absent: the plan may be of any time. */
  readonly now?: number | undefined
}

const changed = "The plan was changed after it was made: its digest does not fit. Make a new one with tilld sweep plan."

/** A public network's chain id under another name would be signed by someone who takes it for a test. */
const networkProblem = (plan: Plan): string | undefined => {
  const all = modes.flatMap((mode) => chainNames.map((chain) => ({ mode, chain, ...presets[mode][chain] })))
  const other = all.find(({ chainId }) => chainId === plan.chainId)
  if (other === undefined || (other.chain === plan.chain && other.mode === plan.mode)) return undefined
  return `The plan is for ${networkText(plan)}, but that chain id is ${other.name}'s: make a new one with the right chain_id.`
}

const moveProblem = (plan: Plan, move: PlannedMove): string | undefined => {
  const { amount, funding, gas, nonce, refund, token, way } = move
  const of = tokenOf(plan, move)
  if ((way === "native") !== (token === undefined) || (token !== undefined && of === undefined)) return "names no token"
  if ((way === "authorization") !== (nonce === undefined)) return "has no nonce, or one that it does not need"
  if (way === "authorization" && of?.domain === undefined) return "is of a token without authorizations"
  if (refund === undefined && !isSameAddress(receiverOf(plan, move), plan.destination)) {
    return "is no refund, and goes elsewhere than to the plan's destination"
  }
  const uses = way === "authorization" ? 0n : costOf(plan, BigInt(gas))
  const sends = way === "native" && refund !== undefined ? BigInt(amount) : 0n
  if (BigInt(funding) > uses + sends) return "gets more coin from the sponsor than it uses"
  return BigInt(gas) > mostGas ? `has more gas than ${mostGas}, which no transfer takes` : undefined
}

/** Line breaks in a name could add lines to what the signer reads. */
const name = /^[A-Za-z0-9._-]{1,64}$/

const nameProblem = ({ chain, coin, moves, tokens }: Plan): string | undefined => {
  const names = [
    ...tokens.map(({ symbol }) => symbol),
    ...moves.flatMap(({ exception, refund }) => [exception ?? [], refund ?? []].flat())
  ]
  const wrong = names.find((each) => !name.test(each))
  if (wrong !== undefined) return `The plan has a name that is none: ${shownLine(JSON.stringify(wrong), 80)}.`
  if (coin !== chainTraits[chain].nativeToken)
    return `The coin of ${chain} is not ${shownLine(JSON.stringify(coin), 80)}.`
  return undefined
}

/** What a token is called, and what its amounts mean, is said by the server: on public networks it is known here. */
const tokenProblem = ({ chain, chainId, coin, mode, moves, tokens }: Plan): string | undefined => {
  const { name: network, tokens: known, wrongTokens, ...preset } = presets[mode][chain]
  for (const [place, { contract, decimals, symbol }] of tokens.entries()) {
    const others = tokens.slice(0, place)
    if (!isToken(symbol)) return `The plan calls ${contract} ${symbol}, which is no token that tilld takes.`
    if (symbol === coin || others.some((other) => other.symbol === symbol || isSameAddress(other.contract, contract))) {
      return `The plan has two currencies with the symbol or the contract of ${symbol}: amounts could not be told apart.`
    }
    if (moves.every(({ token }) => token !== symbol)) return `The plan names ${symbol}, which no move uses.`
    const [called] =
      Object.entries({ ...wrongTokens, ...known }).find(([, address]) => isSameAddress(address, contract)) ?? []
    if (called !== undefined && called !== symbol) {
      return `The plan calls ${contract} ${symbol}, and it is the ${called} of ${network}.`
    }
    const usual = decimalsOf[symbol]
    if (chainId === preset.chainId && decimals !== usual) {
      return `The plan counts ${symbol} in ${decimals} decimals, and on ${network} it has ${usual}.`
    }
  }
  return undefined
}

/** A nonce is good for one transaction: with two, the chain would choose between them. */
const transactionProblem = (plan: Plan): string | undefined => {
  const used = new Set<string>()
  for (const { from, variants } of plannedTransactions(plan, [])) {
    const [{ data = "0x", gas, nonce }] = variants
    const key = `${from.toLowerCase()} ${nonce}`
    if (used.has(key)) return `The plan uses nonce ${nonce} of ${from} twice: make a new one.`
    used.add(key)
    // With less no chain takes it: its base, and its data as Ethereum counts it (EIP-7623), which is the most.
    const least = hexToBytes(data).reduce((sum, byte) => sum + (byte === 0 ? 10 : 40), 21_000)
    if (gas < least) {
      return `The plan has ${gas} gas where ${from} needs ${least}: make one without the provider that is wrong.`
    }
  }
  return undefined
}

const timeProblem = ({ block, moves, validBefore }: Plan, now: number): string | undefined => {
  const clock = `the clock of this machine says ${iso(now * 1000)}`
  if (now - block.time > oldest || block.time - now > mostAhead) {
    const is = now - block.time > oldest ? "more than 7 days old" : "more than an hour ahead"
    return `The plan is as of ${iso(block.time * 1000)}, and ${clock}: it is ${is}. Set the clock, make a new plan, or say --any-age.`
  }
  return now >= validBefore && moves.some(({ way }) => way === "authorization")
    ? `The plan's signed transfers end at ${iso(validBefore * 1000)}, and ${clock}: make a new plan, or say --any-age.`
    : undefined
}

const shapeProblem = (plan: Plan): string | undefined => {
  if (plan.moves.length === 0) return "The plan moves nothing: there is nothing to sign."
  const misnamed = nameProblem(plan) ?? tokenProblem(plan)
  if (misnamed !== undefined) return misnamed
  for (const [place, move] of plan.moves.entries()) {
    const problem = moveProblem(plan, move)
    if (problem !== undefined) return `Move ${place + 1} of the plan, from ${move.address}, ${problem}.`
  }
  if ([plan.gas.batch, plan.gas.funding].some((gas) => BigInt(gas) > mostGas)) {
    return `The plan gives the sponsor's transactions more than ${mostGas} gas, which they cannot need.`
  }
  if (plan.validBefore - plan.block.time > longestValidity) {
    return `The plan's authorizations would be valid until ${iso(plan.validBefore * 1000)}: too long.`
  }
  const refunds = plan.moves.flatMap(({ refund }) => refund ?? [])
  if (new Set(refunds).size < refunds.length) return "The plan pays one refund twice: make a new one."
  return transactionProblem(plan)
}

const receiverProblem = (
  plan: Plan,
  { allow, refundTo = [] }: SigningLimits,
  { address: to, moves: [first], role }: PlannedReceiver
): string | undefined => {
  if (/^0x0{40}$/.test(to)) return "The plan sends to the zero address: no one could ever spend it."
  if ([plan.sponsor, ...plan.moves].some(({ address }) => isSameAddress(address, to))) {
    return `${to} is one of the plan's own addresses: name another destination.`
  }
  const { tokens, wrongTokens = {} } = presets[plan.mode][plan.chain]
  const contracts = [...plan.tokens.map(({ contract }) => contract), ...Object.values({ ...tokens, ...wrongTokens })]
  if ([multicall3Address, ...contracts].some((contract) => isSameAddress(contract, to))) {
    return `${to} is a contract, of a token or of Multicall3: what is sent there is lost.`
  }
  if (allow.length === 0 || allow.some((allowed) => isSameAddress(allowed, to))) return undefined
  if (role === "collected") return `${to} is not in sweep.allow, nor given with --allow: add it there if it is yours.`
  return refundTo.some((customer) => isSameAddress(`0x${customer.replace(/^0x/i, "")}`, to))
    ? undefined
    : // Without the address, which would be copied from here.
      `The refund of ${first.exception ?? first.refund} goes to an address that is not in sweep.allow, nor given with --allow or --refund-to: give the customer's whole address with --refund-to, from your own note.`
}

const feeProblem = (plan: Plan, { feeCeiling: ceiling, totalFeeCeiling: most }: SigningLimits): string | undefined => {
  const { coin, fees } = plan
  const highest = fees.reduce((most, fee) => (BigInt(fee.most) > most ? BigInt(fee.most) : most), 0n)
  if (fees.some(({ most, tip }, i) => BigInt(tip) > BigInt(most) || BigInt(most) < BigInt(fees[i - 1]?.most ?? 0))) {
    return "The steps of the plan's fees do not rise, or one has a tip above its fee: make a new plan."
  }
  if (highest > ceiling) {
    return `The plan's highest fee is ${gwei(highest)} gwei for a unit of gas, above ${gwei(ceiling)}: make a new plan when gas is cheaper, or say --fee-ceiling-gwei ${gwei(highest)}.`
  }
  const total = highestCost(plan)
  return most !== undefined && total > most
    ? `The plan's fees are ${formatEther(total)} ${coin} at most in total, above ${formatEther(most)}: make a new plan when gas is cheaper, or say --max-total-fee ${formatEther(total)}.`
    : undefined
}

/** Why a plan must not be signed; undefined where it may. */
export const planProblem = (plan: Plan, limits: SigningLimits): string | undefined => {
  if (!isWhole(plan)) return changed
  const aged = limits.now === undefined ? undefined : timeProblem(plan, limits.now)
  const problem = aged ?? networkProblem(plan) ?? feeProblem(plan, limits) ?? shapeProblem(plan)
  if (problem !== undefined) return problem
  for (const receiver of receiversOf(plan)) {
    const wrong = receiverProblem(plan, limits, receiver)
    if (wrong !== undefined) return wrong
  }
  return undefined
}
