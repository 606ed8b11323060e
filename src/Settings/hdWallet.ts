import { createHash } from "node:crypto"
import { HDKey } from "viem/accounts"
import { childKey, type ExtendedKey, receivingAddress } from "./childKey.ts"

const accountDepth = 3

/**
 * The fingerprint of a wallet; undefined when `text` is not the extended public key (BIP-32, base58check, `xpub…`) of an
 * account, `m/44'/60'/n'`.
 */
export const walletIdentity = (text: string): string | undefined => {
  if (!text.startsWith("xpub")) return undefined
  try {
    const { chainCode, depth, publicKey } = HDKey.fromExtendedKey(text)
    if (depth !== accountDepth || publicKey === null || chainCode === null) return undefined
    return Buffer.concat([publicKey, chainCode]).toString("hex")
  } catch {
    return undefined
  }
}

/** The public half of a wallet: enough to derive every receiving address, and nothing that spends. */
export interface HdWallet {
  /** Identifies the wallet in the store: a hash of account key and chain code, which reveals neither. */
  readonly fingerprint: string
  /** The n of its account `m/44'/60'/n'`; undefined where the key is not a hardened child. */
  readonly account: number | undefined
  /** The key of the external chain, whose children get the addresses. */
  readonly external: ExtendedKey
  /** The address of index 0 on the second branch, which pays for what is collected and receives no payment. */
  readonly sponsor: string
  /** The receiving address of `index` (0 to 2^31 − 1) on the external chain, in EIP-55 form. */
  readonly address: (index: number) => string
}

/** Reads an `xpub…`; throws on anything that is not one. */
export const parseExtendedKey = (xpub: string): ExtendedKey => {
  const { chainCode, publicKey } = HDKey.fromExtendedKey(xpub)
  if (publicKey === null || chainCode === null) throw new Error("an extended key without public key or chain code")
  return { publicKey, chainCode }
}

/** Hardened children have their number plus this as their index: BIP-32. */
export const hardened = 0x80000000

/** `xpub` is an account-level extended public key, `m/44'/60'/n'`, that Settings has checked. */
export const hdWallet = (xpub: string): HdWallet => {
  const account = parseExtendedKey(xpub)
  const external = childKey(account, 0)
  const { index } = HDKey.fromExtendedKey(xpub)
  return {
    fingerprint: createHash("sha256").update(account.publicKey).update(account.chainCode).digest("hex").slice(0, 32),
    account: index >= hardened ? index - hardened : undefined,
    external,
    sponsor: receivingAddress(childKey(account, 1), 0),
    address: (index) => receivingAddress(external, index)
  }
}

/** The address that pays for what is collected from a wallet. */
export const sponsorAddress = (xpub: string): string => hdWallet(xpub).sponsor
