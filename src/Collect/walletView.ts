/** What a seed shows of an account: its extended public key, addresses to compare, and a proof that it is held. */
import { Clock, Effect } from "effect"
import { iso } from "../Domain/Timestamp.ts"
import { hdWallet } from "../Payments/addresses/hdWallet.ts"
import { parseChallenge, proofMessage, proofOf } from "../Payments/addresses/walletProof.ts"
import { collectRefusal } from "./CollectRefused.ts"
import { withAccountKey } from "./keys.ts"
import { goOffline } from "./offline.ts"
import { readSeed, type SeedSource } from "./seed.ts"

/** Addresses that are shown to be compared with another wallet's. */
const shownAddresses = 3

/** The public side of account n; overwrites the seed. */
export const viewAccount = (seed: Uint8Array, account: number) =>
  withAccountKey(seed, account, ({ signer, xpub }) =>
    Effect.sync(() => ({
      path: `m/44'/60'/${account}'`,
      xpub,
      fingerprint: hdWallet(xpub).fingerprint,
      addresses: Array.from({ length: shownAddresses }, (_, index) => ({
        path: `m/44'/60'/${account}'/0/${index}`,
        address: signer(index).address
      })),
      sponsor: { path: `m/44'/60'/${account}'/1/0`, address: signer("sponsor").address }
    }))
  )
export type AccountView = Effect.Effect.Success<ReturnType<typeof viewAccount>>

/** `tilld wallet xpub`. */
export const readAccount = Effect.fn("Collect.readAccount")(function* (source: SeedSource, account: number) {
  yield* goOffline
  return yield* viewAccount(yield* readSeed(source), account)
})

/** `tilld wallet prove`: signs a challenge with the key of the wallet's first address. */
export const proveWallet = Effect.fn("Collect.proveWallet")(function* (source: SeedSource, challenge: string) {
  yield* goOffline
  const asked = parseChallenge(challenge)
  if (asked === undefined) {
    return yield* collectRefusal(
      "This is not a challenge: give the word that tilld wallet challenge has printed on the server."
    )
  }
  const now = yield* Clock.currentTimeMillis
  if (asked.day > iso(now + 86_400_000).slice(0, 10)) {
    return yield* collectRefusal(
      `The challenge is of ${asked.day}, and the clock of this machine says ${iso(now)}: a proof for later days is not made. Set the clock, or ask for a new challenge.`
    )
  }
  return yield* withAccountKey(
    yield* readSeed(source),
    asked.account,
    Effect.fnUntraced(function* ({ signer, xpub }) {
      const { fingerprint } = hdWallet(xpub)
      if (fingerprint !== asked.fingerprint) {
        return yield* collectRefusal(
          `The seed is not the wallet's: its account m/44'/60'/${asked.account}' is ${fingerprint}, and the challenge asks ${asked.fingerprint}. A passphrase makes another seed, too.`
        )
      }
      const signature = yield* Effect.promise(() => signer(0).signMessage({ message: proofMessage(challenge) }))
      return proofOf(challenge, signature)
    })
  )
})
