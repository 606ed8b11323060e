/**
 * The transactions of a plan, in the order in which they are sent, before they are signed; and the authorizations that some carry,
 * transfers that a holder signs and anybody carries out, https://eips.ethereum.org/EIPS/eip-3009. Both who signs and who sends
 * makes them of the plan: what was signed is sent only where it is the same.
 */
import { Array as Arr, Either } from "effect"
import {
  decodeFunctionResult,
  domainSeparator,
  encodeFunctionData,
  encodePacked,
  erc20Abi,
  type Hex,
  keccak256,
  multicall3Abi,
  parseAbi,
  type TransactionSerializableEIP1559,
  toHex,
  zeroHash
} from "viem"
import { type ContractView, multicall3Address, type ViewResult } from "../Chains/rpc/contractViews.ts"
import { type Plan, type PlannedMove, type PlannedToken, receiverOf, tokenOf } from "./Plan.ts"

const abi = parseAbi([
  "function TRANSFER_WITH_AUTHORIZATION_TYPEHASH() view returns (bytes32)",
  "function DOMAIN_SEPARATOR() view returns (bytes32)",
  "function name() view returns (string)",
  "function version() view returns (string)",
  "function authorizationState(address authorizer, bytes32 nonce) view returns (bool)",
  "function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)"
])

const primaryType = "TransferWithAuthorization"
const types = {
  [primaryType]: [
    { name: "from", type: "address" },
    { name: "to", type: "address" },
    { name: "value", type: "uint256" },
    { name: "validAfter", type: "uint256" },
    { name: "validBefore", type: "uint256" },
    { name: "nonce", type: "bytes32" }
  ]
} as const

const typeHash = keccak256(
  toHex(`${primaryType}(${types[primaryType].map(({ name, type }) => `${type} ${name}`).join(",")})`)
)

const asked = ["TRANSFER_WITH_AUTHORIZATION_TYPEHASH", "DOMAIN_SEPARATOR", "name", "version"] as const

/** What a token is asked, to know whether it takes authorizations. */
export const authorizationViews = (contract: string): ReadonlyArray<ContractView> =>
  asked.map((functionName) => ({ to: contract, data: encodeFunctionData({ abi, functionName }) }))

const decodeText = (functionName: "name" | "version", result: ViewResult = Either.left("")): string | undefined =>
  Either.getOrUndefined(
    Either.flatMap(result, (data) => Either.try(() => decodeFunctionResult({ abi, functionName, data })))
  )

/**
 * The domain of a token's signatures, by its answers to `authorizationViews`: where its type is the standard's, and its domain is
 * that of its name and version on this chain, recomputed. Undefined otherwise.
 */
export const domainOf = (
  contract: string,
  chainId: number,
  [type, separator, name, version]: ReadonlyArray<ViewResult>
): PlannedToken["domain"] => {
  const [named, versioned] = [decodeText("name", name), decodeText("version", version)]
  if (named === undefined || versioned === undefined) return undefined
  const whole = { name: named, version: versioned }
  const is = (result: ViewResult | undefined, hash: Hex) =>
    result !== undefined && Either.isRight(result) && result.right.toLowerCase() === hash
  const expected = domainSeparator({ domain: { ...whole, chainId, verifyingContract: contract as Hex } })
  return is(type, typeHash) && is(separator, expected) ? whole : undefined
}

/** One transfer to be signed. */
export interface Authorization {
  readonly from: Hex
  readonly to: Hex
  readonly value: bigint
  readonly validAfter: bigint
  readonly validBefore: bigint
  readonly nonce: Hex
}

/**
 * The nonce follows from the plan: signed twice, a plan has the same authorizations, and each is used once. That of a refund
 * follows from the refund's id, whatever its amount: however many plans have it, one of them pays.
 */
export const authorizationNonce = (
  { chainId, digest }: Pick<Plan, "chainId" | "digest">,
  { contract }: Pick<PlannedToken, "contract">,
  { refund }: Pick<PlannedMove, "refund">,
  place: number
): Hex =>
  refund === undefined
    ? keccak256(encodePacked(["bytes32", "uint256"], [digest as Hex, BigInt(place)]))
    : keccak256(toHex(`tilld refund ${chainId} ${contract.toLowerCase()} ${refund}`))

/** What the holder signs, as EIP-712 has it. */
export const typedData = (
  { chainId }: Pick<Plan, "chainId">,
  { contract, domain }: PlannedToken,
  message: Authorization
) => ({ domain: { ...domain, chainId, verifyingContract: contract as Hex }, types, primaryType, message }) as const

export type Signature = Readonly<{ r: Hex; s: Hex; yParity: number }>

/** The call that carries it out. */
export const authorizedCall = (message: Authorization, { r, s, yParity }: Signature): Hex => {
  const { from, nonce, to, validAfter, validBefore, value } = message
  const args = [from, to, value, validAfter, validBefore, nonce, 27 + yParity, r, s] as const
  return encodeFunctionData({ abi, functionName: "transferWithAuthorization", args })
}

/** Whether an authorization was carried out, by whomever. */
export const usedView = (contract: string, address: string, nonce: Hex): ContractView => ({
  to: contract,
  data: encodeFunctionData({ abi, functionName: "authorizationState", args: [address as Hex, nonce] })
})

/** Undefined where that is no answer to it. */
export const isUsed = (result: ViewResult | undefined): boolean | undefined =>
  result !== undefined && Either.isRight(result) && /^0x0{63}[01]$/.test(result.right)
    ? result.right.endsWith("1")
    : undefined

/** Authorizations that one transaction carries. */
export const mostInBatch = 100

type Variant = TransactionSerializableEIP1559 & { nonce: number } & Record<"gas" | "maxFeePerGas" | "value", bigint>

/** A transaction of the plan, before it is signed. */
export interface Unsent {
  /** The sponsor, or the address of its move. */
  readonly from: string
  /** The i of the signer's path; undefined for the sponsor's. */
  readonly index: number | undefined
  /** The moves that it makes, by their places in the plan; of a funding none. */
  readonly moves: ReadonlyArray<number>
  /** The place of the transaction that brings its gas. */
  readonly after: number | undefined
  /** Wei that it pays on top for its data, at most. */
  readonly dataFee: bigint
  /** For each step of the fees. */
  readonly variants: Arr.NonEmptyReadonlyArray<Variant>
  /** Of a batch: the smaller one that is sent instead where this move is left out. */
  readonly without?: (place: number) => Unsent
}

const asAuthorization = (plan: Plan, token: PlannedToken, move: PlannedMove, place: number): Authorization => ({
  from: move.address as Hex,
  to: receiverOf(plan, move) as Hex,
  value: BigInt(move.amount),
  validAfter: 0n,
  validBefore: BigInt(plan.validBefore),
  nonce: authorizationNonce(plan, token, move, place)
})

/** The authorizations of a plan, with their tokens and the places of their moves. */
export const authorizationsOf = (plan: Plan) =>
  plan.moves.flatMap((move, place) => {
    const token = tokenOf(plan, move)
    return move.way === "authorization" && token !== undefined
      ? [{ place, token, move, message: asAuthorization(plan, token, move, place) }]
      : []
  })

/** What a transaction of one move costs at most: by default at the highest step, with the fee of its data. */
export const costOf = (
  { dataFees, fees }: Pick<Plan, "dataFees" | "fees">,
  gas: bigint,
  step = fees.length - 1
): bigint => gas * BigInt(fees[step]?.most ?? 0) + BigInt(dataFees.single)

/** Each step's transaction. `value` may depend on the step: what a higher fee costs cannot be sent. */
const variantsOf = (
  { chainId, fees }: Plan,
  call: { readonly to: string; readonly data?: Hex; readonly nonce: number; readonly gas: bigint },
  value: (step: number) => bigint = () => 0n
): Unsent["variants"] =>
  Arr.map(fees, ({ most, tip }, step) => ({
    type: "eip1559",
    chainId,
    nonce: call.nonce,
    to: call.to as Hex,
    ...(call.data === undefined ? {} : { data: call.data }),
    gas: call.gas,
    value: value(step),
    maxFeePerGas: BigInt(most),
    maxPriorityFeePerGas: BigInt(tip)
  }))

const unsigned: Signature = { r: zeroHash, s: zeroHash, yParity: 0 }

/** The sponsor's batches of authorizations. `signatures` are in the order of `authorizationsOf`. */
const batches = (plan: Plan, signatures: ReadonlyArray<Signature>): ReadonlyArray<Unsent> => {
  const all = authorizationsOf(plan).map(({ message, move, place, token }, i) => ({
    ...{ move, place },
    // One that somebody has carried out already fails alone.
    ...{ target: token.contract as Hex, allowFailure: true },
    callData: authorizedCall(message, signatures[i] ?? unsigned)
  }))
  return Arr.chunksOf(all, mostInBatch).map((part, i): Unsent => {
    const made = (calls: typeof all): Unsent => ({
      ...{ from: plan.sponsor.address, index: undefined, after: undefined, dataFee: BigInt(plan.dataFees.batch) },
      moves: calls.map(({ place }) => place),
      variants: variantsOf(plan, {
        to: multicall3Address,
        data: encodeFunctionData({ abi: multicall3Abi, functionName: "aggregate3", args: [calls] }),
        nonce: plan.sponsor.nonce + i,
        gas: calls.reduce((sum, { move }) => sum + BigInt(move.gas), BigInt(plan.gas.batch))
      })
    })
    return { ...made(part), without: (left) => made(part.filter(({ place }) => place !== left)) }
  })
}

/** The sponsor's transaction that brings the gas of a move. */
const fundingOf = (plan: Plan, { address, funding }: PlannedMove, nonce: number): Unsent => ({
  ...{ from: plan.sponsor.address, index: undefined, after: undefined, moves: [] },
  dataFee: BigInt(plan.dataFees.single),
  variants: variantsOf(plan, { to: address, nonce, gas: BigInt(plan.gas.funding) }, () => BigInt(funding))
})

const callOf = (plan: Plan, move: PlannedMove) => {
  const common = { nonce: move.nonce ?? 0, gas: BigInt(move.gas) }
  const to = receiverOf(plan, move)
  const token = tokenOf(plan, move)
  if (token === undefined) return { ...common, to }
  const args = [to as Hex, BigInt(move.amount)] as const
  return { ...common, to: token.contract, data: encodeFunctionData({ abi: erc20Abi, functionName: "transfer", args }) }
}

/** The transaction of a move itself. Of coin, a higher step sends less: the amount of the plan is the last one's. */
const ownOf = (plan: Plan, move: PlannedMove, place: number, after: number | undefined): Unsent => {
  const gas = BigInt(move.gas)
  const isExact = move.way === "token" || move.refund !== undefined
  const amount = move.way === "token" ? 0n : BigInt(move.amount)
  return {
    ...{ from: move.address, index: move.index, after, moves: [place], dataFee: BigInt(plan.dataFees.single) },
    variants: variantsOf(plan, callOf(plan, move), (step) =>
      isExact ? amount : amount + costOf(plan, gas) - costOf(plan, gas, step)
    )
  }
}

/** `signatures`: of the authorizations; what is sent without one is refused by the chain. */
export const plannedTransactions = (plan: Plan, signatures: ReadonlyArray<Signature>): ReadonlyArray<Unsent> => {
  const all: Array<Unsent> = [...batches(plan, signatures)]
  let nonce = plan.sponsor.nonce + all.length
  plan.moves.forEach((move, place) => {
    if (move.way === "authorization") return
    const isFunded = move.funding !== "0"
    if (isFunded) all.push(fundingOf(plan, move, nonce++))
    all.push(ownOf(plan, move, place, isFunded ? all.length - 1 : undefined))
  })
  return all
}

/** Wei that a transaction pays at most, at the last step: for its gas, and for its data. */
export const highestFeeOf = ({ dataFee, variants }: Unsent): bigint => {
  const { gas, maxFeePerGas } = Arr.lastNonEmpty(variants)
  return gas * maxFeePerGas + dataFee
}

/** Wei that a transaction takes from its sender at most, with what it sends: the same at each step of a move of coin. */
export const mostOf = (unsent: Unsent): bigint => highestFeeOf(unsent) + Arr.lastNonEmpty(unsent.variants).value

/** Wei that the sponsor needs at most. */
export const sponsorNeeds = (plan: Plan): bigint =>
  plannedTransactions(plan, []).reduce((sum, unsent) => (unsent.index === undefined ? sum + mostOf(unsent) : sum), 0n)
