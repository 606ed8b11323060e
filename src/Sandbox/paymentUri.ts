/** A wallet's handling of the URI of a checkout page's link and code: https://eips.ethereum.org/EIPS/eip-681 */
import { type Address, encodeFunctionData, erc20Abi } from "viem"
import type { LocalCall } from "./LocalChain.ts"

export interface WalletCall extends LocalCall {
  readonly chainId: number
}

const native = /^ethereum:(0x[0-9a-fA-F]{40})@(\d+)\?value=(\d+)$/
const token = /^ethereum:(0x[0-9a-fA-F]{40})@(\d+)\/transfer\?address=(0x[0-9a-fA-F]{40})&uint256=(\d+)$/

/** The transaction that a payment's URI asks for; undefined for any other text. */
export const walletCall = (uri: string): WalletCall | undefined => {
  const [, to, chainId, value] = native.exec(uri) ?? []
  if (to !== undefined && value !== undefined) {
    return { chainId: Number(chainId), to: to as Address, value: BigInt(value), gas: 100_000n }
  }
  const [, contract, on, receiver, units] = token.exec(uri) ?? []
  if (contract === undefined || units === undefined) return undefined
  const args = [receiver as Address, BigInt(units)] as const
  const data = encodeFunctionData({ abi: erc20Abi, functionName: "transfer", args })
  return { chainId: Number(on), to: contract as Address, data, gas: 200_000n }
}

/** The URI of the link "open in a wallet" in a checkout page's HTML. */
export const uriOfPage = (html: string): string | undefined =>
  /href="(ethereum:[^"]+)"/.exec(html)?.[1]?.replaceAll("&amp;", "&")
