/** Why a plan must not be signed, whoever has made it: the machine that it comes from may be an attacker's. */
import { isAddressEqual, maxUint256 } from "viem"
import { multicall3Address } from "../Chains/rpc/contractViews.ts"
import { chainNames, chainTraits, modes } from "../Domain/Chain.ts"
import { iso } from "../Domain/Timestamp.ts"
import { presets } from "../Settings/publicNetworks.ts"
import { isWhole, type Plan, type PlannedMove, receiverOf } from "./Plan.ts"
import { gwei, networkText } from "./planText.ts"

const billion = 10n ** 9n

/** Wei for a unit of gas that no one pays on purpose: ten times what chains have asked for in their worst hours. */
const ceilings: Readonly<Partial<Record<Plan["chain"], bigint>>> = {
  ethereum: 1_000n * billion,
  polygon: 20_000n * billion
}
const rollupCeiling = 100n * billion

/** The highest fee that is signed for a chain without being asked to: wei for a unit of gas. */
export const feeCeiling = (chain: Plan["chain"]): bigint => ceilings[chain] ?? rollupCeiling

/** No transfer takes more gas, nor does what surrounds those of a batch. */
const mostGas = 2_000_000n
/** Seconds for which an authorization may be valid, from the plan's block on. */
const longestValidity = 31 * 86_400

const same = (a: string, b: string): boolean => isAddressEqual(a as `0x${string}`, b as `0x${string}`)

export interface SigningLimits {
  /** Addresses that money may go to; empty: any. Refunds go to customers, and are not limited. */
  readonly allow: ReadonlyArray<string>
  /** Wei for a unit of gas. */
  readonly feeCeiling: bigint
}

const changed = "The plan was changed after it was made: its digest does not fit. Make a new one with tilld sweep plan."

/** A public network's chain id under another name would be signed by someone who takes it for a test. */
const networkProblem = (plan: Plan): string | undefined => {
  for (const mode of modes) {
    for (const chain of chainNames) {
      const { chainId, name } = presets[mode][chain]
      if (chainId === plan.chainId && (chain !== plan.chain || mode !== plan.mode)) {
        return `The plan is for ${networkText(plan)}, but that chain id is ${name}'s: make a new one with the right chain_id.`
      }
    }
  }
  return undefined
}

const moveProblem = (plan: Plan, { amount, gas, nonce, token, way }: PlannedMove): string | undefined => {
  const of = token === undefined ? undefined : plan.tokens[token]
  if ((way === "native") !== (token === undefined) || (token !== undefined && of === undefined)) return "names no token"
  if ((way === "authorization") !== (nonce === undefined)) return "has no nonce, or one that it does not need"
  if (way === "authorization" && of?.domain === undefined) return "is of a token without authorizations"
  if (BigInt(amount) > maxUint256) return "has an amount that no token can have"
  return BigInt(gas) > mostGas ? `has more gas than ${mostGas}, which no transfer takes` : undefined
}

/** Line breaks in a name could add lines to what the signer reads. */
const name = /^[A-Za-z0-9._-]{1,64}$/
const mostDecimals = 36

const nameProblem = ({ chain, coin, moves, tokens }: Plan): string | undefined => {
  const names = [...tokens.map(({ symbol }) => symbol), ...moves.flatMap(({ refund }) => refund ?? [])]
  const wrong = names.find((each) => !name.test(each))
  if (wrong !== undefined) return `The plan has a name that is none: ${JSON.stringify(wrong)}.`
  if (coin !== chainTraits[chain].nativeToken) return `The coin of ${chain} is not ${JSON.stringify(coin)}.`
  return tokens.some(({ decimals }) => decimals > mostDecimals)
    ? `The plan has a token with more than ${mostDecimals} decimals.`
    : undefined
}

const shapeProblem = (plan: Plan): string | undefined => {
  if (plan.moves.length === 0) return "The plan moves nothing: there is nothing to sign."
  const misnamed = nameProblem(plan)
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
  return undefined
}

const receiverProblem = (plan: Plan, allow: ReadonlyArray<string>, move: PlannedMove): string | undefined => {
  const to = receiverOf(plan, move)
  if (/^0x0{40}$/.test(to)) return "The plan sends to the zero address: no one could ever spend it."
  if ([plan.sponsor, ...plan.moves].some(({ address }) => same(address, to))) {
    return `${to} is one of the plan's own addresses: name another destination.`
  }
  const { tokens, wrongTokens = {} } = presets[plan.mode][plan.chain]
  const contracts = [...plan.tokens.map(({ contract }) => contract), ...Object.values({ ...tokens, ...wrongTokens })]
  if ([multicall3Address, ...contracts].some((contract) => same(contract, to))) {
    return `${to} is a contract, of a token or of Multicall3: what is sent there is lost.`
  }
  if (allow.length > 0 && move.refund === undefined && !allow.some((allowed) => same(allowed, to))) {
    return `${to} is not in sweep.allow, nor given with --allow: add it there if it is yours.`
  }
  return undefined
}

const feeProblem = ({ fees }: Plan, ceiling: bigint): string | undefined => {
  const highest = fees.reduce((most, fee) => (BigInt(fee.most) > most ? BigInt(fee.most) : most), 0n)
  if (fees.some(({ most, tip }, i) => BigInt(tip) > BigInt(most) || BigInt(most) < BigInt(fees[i - 1]?.most ?? 0))) {
    return "The steps of the plan's fees do not rise, or one has a tip above its fee: make a new plan."
  }
  return highest > ceiling
    ? `The plan's highest fee is ${gwei(highest)} gwei for a unit of gas, above ${gwei(ceiling)}: make a new plan when gas is cheaper, or say --fee-ceiling-gwei ${gwei(highest)}.`
    : undefined
}

/** Why a plan must not be signed; undefined where it may. */
export const planProblem = (plan: Plan, { allow, feeCeiling: ceiling }: SigningLimits): string | undefined => {
  if (!isWhole(plan)) return changed
  const problem = networkProblem(plan) ?? shapeProblem(plan)
  if (problem !== undefined) return problem
  for (const move of plan.moves) {
    const wrong = receiverProblem(plan, allow, move)
    if (wrong !== undefined) return wrong
  }
  return feeProblem(plan, ceiling)
}
