/**
 * That the operator still holds the key to what tilld hands out: the machine with the seed signs a challenge (EIP-191) with the
 * key of the wallet's first address, which the extended public key gives. A challenge names the account, the wallet and a day;
 * it is no secret, and a proof spends nothing.
 */
import { Effect } from "effect"
import { hashMessage, isAddressEqual, recoverAddress } from "viem"
import type { HdWallet } from "../../Settings/hdWallet.ts"
import { execute } from "../../Sql.ts"

const form = /^tilld-(\d{1,10})-([0-9a-f]{32})-(\d{4}-\d\d-\d\d)$/

export interface Challenge {
  /** The n of the wallet's account m/44'/60'/n'. */
  readonly account: number
  readonly fingerprint: string
  /** YYYY-MM-DD. */
  readonly day: string
}

/** A challenge as one word; undefined where the wallet's key is not one of an account m/44'/60'/n'. */
export const challengeOf = ({ account, fingerprint }: HdWallet, day: string): string | undefined =>
  account === undefined ? undefined : `tilld-${account}-${fingerprint}-${day}`

export const parseChallenge = (text: string): Challenge | undefined => {
  const [, account, fingerprint, day] = form.exec(text) ?? []
  return account === undefined || fingerprint === undefined || day === undefined
    ? undefined
    : { account: Number(account), fingerprint, day }
}

/** What is signed: no text of any other program. */
export const proofMessage = (challenge: string): string => `I hold the seed of the tilld wallet that asks ${challenge}`

/** A proof as one word: the challenge and its signature. */
export const proofOf = (challenge: string, signature: string): string => `${challenge}.${signature}`

/** The parts of a proof. */
export const parseProof = (text: string) => {
  const [, challenge = "", signature = ""] = /^(\S+)\.(0x[0-9a-f]{130})$/.exec(text.trim()) ?? []
  const parsed = parseChallenge(challenge)
  return parsed === undefined ? undefined : { ...parsed, challenge, signature: signature as `0x${string}` }
}

/** Whether the key of the wallet's first address signed the proof. */
export const isSignedBy = (
  { challenge, signature }: { readonly challenge: string; readonly signature: `0x${string}` },
  { address }: HdWallet
): Effect.Effect<boolean> =>
  Effect.tryPromise(() => recoverAddress({ hash: hashMessage(proofMessage(challenge)), signature })).pipe(
    Effect.map((signer) => isAddressEqual(signer, address(0) as `0x${string}`)),
    Effect.orElseSucceed(() => false)
  )

/** The keys in the table meta under which the days of proofs are. */
const provenKeys = "wallet_proven_"

/** Stores the day of a proof; an older one replaces no newer one. */
export const recordProof = ({ day, fingerprint }: Challenge) =>
  execute(
    "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value WHERE excluded.value > meta.value",
    [`${provenKeys}${fingerprint}`, day]
  )

/** Wallets whose seed was shown to be held, by fingerprint, and the day. */
export const selectProofs = `
  SELECT substr(key, ${provenKeys.length + 1}) AS wallet, value AS day FROM meta WHERE key GLOB '${provenKeys}*'`
