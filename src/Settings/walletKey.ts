import { HDKey } from "viem/accounts"

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
