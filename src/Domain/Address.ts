import { checksumAddress, type Hex } from "viem"

// For what is read in late: a namespace of viem would be in the bundle whole, and each start read all of it.
export { getAddress } from "viem"

const form = /^0x[0-9a-fA-F]{40}$/

/**
 * The EIP-55 form of an address that is written in lower case, in upper case or in that form; undefined for any other
 * text. Mixed case that fails its checksum has a typing error: https://eips.ethereum.org/EIPS/eip-55
 */
export const toChecksummed = (text: string): string | undefined => {
  if (!form.test(text)) return undefined
  const digits = text.slice(2)
  const address = checksumAddress(text.toLowerCase() as Hex)
  const isMixed = digits !== digits.toLowerCase() && digits !== digits.toUpperCase()
  return isMixed && text !== address ? undefined : address
}

/** Whether two texts are the same address, whatever their case. */
export const isSameAddress = (a: string | undefined, b: string | undefined): boolean =>
  a?.toLowerCase() === b?.toLowerCase()
