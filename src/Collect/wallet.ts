/**
 * What a seed shows of an account: its extended public key, addresses to compare, and a proof that it is held. `tilld wallet new`:
 * a seed is made, shown once at the terminal, and asked for again.
 */
import { createHash, randomBytes, randomInt } from "node:crypto"
import { entropyToMnemonic, mnemonicToSeedSync } from "@scure/bip39"
import { wordlist } from "@scure/bip39/wordlists/english"
import { Clock, Effect } from "effect"
import { checkOutput, writeOutput } from "../Backup/files.ts"
import { iso } from "../lib/moment.ts"
import { parseChallenge, proofMessage, proofOf } from "../Payments/addresses/walletProof.ts"
import { hdWallet } from "../Settings/hdWallet.ts"
import { goOffline } from "./offline.ts"
import { collectRefusal } from "./Plan.ts"
import {
  askAtTerminal,
  clearScreen,
  makeKeystore,
  readSeed,
  type SeedSource,
  showAtTerminal,
  withAccountKey
} from "./seed.ts"

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

/** 24 words. */
const entropyBytes = 32
const askedWords = 3
/** A password that is tried a thousand times a second lasts for years. */
const shortestPassword = 12

/** Entropy that is no weaker than either the system's or what dice showed. */
export const mixedEntropy = (system: Uint8Array, rolls: string): Buffer =>
  createHash("sha256").update(system).update(rolls, "utf8").digest()

const drawEntropy = Effect.fnUntraced(function* (dice: boolean) {
  const system = randomBytes(entropyBytes)
  if (!dice) return system
  const rolls = yield* askAtTerminal("What your dice show, such as 99 rolls (not shown): ", true)
  if (rolls.trim() === "") return yield* collectRefusal("No rolls were given: leave out --dice to do without them.")
  const both = mixedEntropy(system, rolls)
  system.fill(0)
  return both
})

const columns = 4

/** The words with their numbers, in four columns. */
const wordTable = (words: ReadonlyArray<string>): string => {
  const rows = words.length / columns
  const cell = (i: number) => `${`${i + 1}`.padStart(4)} ${(words[i] ?? "").padEnd(10)}`
  return Array.from({ length: rows }, (_, row) =>
    Array.from({ length: columns }, (_, column) => cell(column * rows + row))
      .join("")
      .trimEnd()
  ).join("\n")
}

/** Places of words to ask for, each once. */
const drawPlaces = (count: number): ReadonlyArray<number> => {
  const places = new Set<number>()
  while (places.size < askedWords) places.add(randomInt(count))
  return [...places].sort((a, b) => a - b)
}

/** Shows the words until three of them are known: who cannot say them has not written them down. */
const showWords = Effect.fnUntraced(
  function* (words: ReadonlyArray<string>) {
    let isKnown = false
    let note = "Write these words down on paper, in their order. They are shown only now, and are all your money."
    while (!isKnown) {
      yield* showAtTerminal(`${note}\n\n${wordTable(words)}\n\n`, clearScreen)
      yield* askAtTerminal("Press Enter once you have them; the screen is cleared. ", false)
      yield* showAtTerminal("", clearScreen)
      isKnown = true
      for (const place of drawPlaces(words.length)) {
        const answer = yield* askAtTerminal(`Word ${place + 1}: `, false)
        isKnown &&= answer.trim().toLowerCase() === words[place]
      }
      note = "One of these words was another. Here they are again; three others will be asked."
    }
  },
  // Also where it is interrupted while they are shown.
  Effect.ensuring(Effect.ignore(showAtTerminal("", clearScreen)))
)

/** Asks until the same is typed twice: the words were shown already. */
const askPassword = Effect.gen(function* () {
  let note = ""
  while (true) {
    const question = `${note}A password for the keystore, ${shortestPassword} characters or more (not shown): `
    const password = yield* askAtTerminal(question, true)
    const isLong = password.length >= shortestPassword
    if (isLong && (yield* askAtTerminal("The same again: ", true)) === password) return password
    note = isLong ? "The two differ. " : "That is shorter. "
  }
})

export interface NewWalletRequest {
  readonly dice: boolean
  /** Where an encrypted keystore of the seed goes. */
  readonly keystore: string | undefined
  readonly force: boolean
}

/** Makes a seed, and gives its 64 bytes. */
export const newWallet = Effect.fn("Collect.newWallet")(function* ({ dice, force, keystore }: NewWalletRequest) {
  yield* goOffline
  if (keystore !== undefined) yield* checkOutput(keystore, force)
  const entropy = yield* drawEntropy(dice)
  const mnemonic = entropyToMnemonic(entropy, wordlist)
  yield* showWords(mnemonic.split(" "))
  if (keystore !== undefined) yield* writeOutput(keystore, makeKeystore(entropy, yield* askPassword), force)
  entropy.fill(0)
  return mnemonicToSeedSync(mnemonic)
})
