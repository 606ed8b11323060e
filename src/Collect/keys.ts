/**
 * The keys of a wallet, derived from its seed where it is signed, and overwritten afterwards. Paths are m/44'/60'/n'/0/i for
 * receiving addresses, and m/44'/60'/n'/1/0 for the sponsor's. viem takes a private key as a text, which JavaScript cannot
 * overwrite: that copy is gone with the process, which ends after its one command.
 */
import { Effect } from "effect"
import { toHex } from "viem"
import { HDKey, privateKeyToAccount } from "viem/accounts"
import { hardened } from "../Settings/hdWallet.ts"

/** The key of a wallet's account, m/44'/60'/n'. */
export interface AccountKey {
  readonly account: number
  readonly xpub: string
  /** The signer at an index of the first branch, or the sponsor. */
  readonly signer: (index: number | "sponsor") => ReturnType<typeof privateKeyToAccount>
}

/** The keys of an account and its two branches. Each key on the way to them is overwritten at once. */
const branchesOf = (seed: Uint8Array, account: number) => {
  let key = HDKey.fromMasterSeed(seed)
  for (const index of [44, 60, account]) {
    const next = key.deriveChild(hardened + index)
    key.wipePrivateData()
    key = next
  }
  return { key, receiving: key.deriveChild(0), sponsor: key.deriveChild(1) }
}

const signerOf = (branch: HDKey, index: number): ReturnType<typeof privateKeyToAccount> => {
  const derived = branch.deriveChild(index)
  const { privateKey } = derived
  if (privateKey === null) throw new Error("a derived key without its private half")
  const signer = privateKeyToAccount(toHex(privateKey))
  derived.wipePrivateData()
  return signer
}

/** Runs `use` with the key of account n, and overwrites the seed and all keys when it has ended. `seed`: 64 bytes, BIP-39. */
export const withAccountKey = <A, E, R>(
  seed: Uint8Array,
  account: number,
  use: (key: AccountKey) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.acquireUseRelease(
    Effect.sync(() => branchesOf(seed, account)),
    ({ key, receiving, sponsor }) =>
      use({
        account,
        xpub: key.publicExtendedKey,
        signer: (index) => (index === "sponsor" ? signerOf(sponsor, 0) : signerOf(receiving, index))
      }),
    (keys) =>
      Effect.sync(() => {
        for (const key of Object.values(keys)) key.wipePrivateData()
        seed.fill(0)
      })
  )
