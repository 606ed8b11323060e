/** Transfers that a holder signs and anybody carries out, https://eips.ethereum.org/EIPS/eip-3009 */
import { Either } from "effect"
import {
  decodeFunctionResult,
  domainSeparator,
  encodeFunctionData,
  encodePacked,
  type Hex,
  keccak256,
  parseAbi,
  toHex
} from "viem"
import type { ContractView, ViewResult } from "../Chains/rpc/contractViews.ts"
import type { Plan, PlannedMove, PlannedToken } from "./Plan.ts"

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
