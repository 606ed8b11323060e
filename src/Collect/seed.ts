/** Where the seed of a wallet comes from: words that are typed without an echo, a file descriptor, or a keystore; never arguments or the environment. */
import { closeSync, readFileSync } from "node:fs"
import { isatty } from "node:tty"
import { entropyToMnemonic, mnemonicToSeedSync, validateMnemonic } from "@scure/bip39"
import { wordlist } from "@scure/bip39/wordlists/english"
import { Effect, Either } from "effect"
import { type CollectRefused, collectRefusal } from "./CollectRefused.ts"
import { openKeystore } from "./keystore.ts"
import { readTextFile } from "./readJsonFile.ts"
import { askAtTerminal } from "./terminal.ts"

const lengths = new Set([12, 15, 18, 21, 24])

/** Why these are no words of a seed; never with a word itself, which is a part of the secret. */
const wordsProblem = (words: ReadonlyArray<string>): string | undefined => {
  if (words.join("") === "") return "There are no words: is the file empty?"
  const { length } = words
  const unknown = words.findIndex((word) => !wordlist.includes(word))
  if (unknown !== -1) return `Word ${unknown + 1} of ${length} is not in the word list of BIP-39: check its spelling.`
  if (!lengths.has(length)) return `These are ${length} words: a seed has 12, 15, 18, 21 or 24, all in one line.`
  return validateMnemonic(words.join(" "), wordlist)
    ? undefined
    : `The checksum of these ${length} words is wrong: one is another word, or in another place.`
}

const asMnemonic = (text: string): Either.Either<string, CollectRefused> => {
  const words = text.trim().toLowerCase().split(/\s+/)
  const problem = wordsProblem(words)
  return problem === undefined ? Either.right(words.join(" ")) : Either.left(collectRefusal(problem))
}

/** The seed of 12 to 24 words, 64 bytes, with the passphrase that belongs to them, if any: BIP-39. */
export const seedOf = (text: string, passphrase = ""): Either.Either<Uint8Array, CollectRefused> =>
  Either.map(asMnemonic(text), (mnemonic) => mnemonicToSeedSync(mnemonic, passphrase))

/** The words that a keystore holds as their entropy, 16 to 32 bytes. */
export const wordsOfKeystore = (text: string, password: string): Either.Either<string, CollectRefused> =>
  Either.flatMap(openKeystore(text, password), (entropy) =>
    Either.try({
      try: () => entropyToMnemonic(entropy, wordlist),
      catch: () => collectRefusal("The keystore holds something else than the entropy of a seed's words.")
    })
  )

/** The lines that a file descriptor has. */
const readDescriptor = Effect.fnUntraced(function* (fd: number) {
  if (isatty(fd)) {
    return yield* collectRefusal(
      `File descriptor ${fd} is a terminal, which would show what is typed: leave out --seed-fd.`
    )
  }
  return yield* Effect.try({
    try: () => {
      const text = readFileSync(fd, "utf8")
      if (fd > 2) closeSync(fd)
      return text.split(/\r?\n/)
    },
    catch: (cause) =>
      collectRefusal(
        `File descriptor ${fd} cannot be read (${cause instanceof Error ? cause.message : cause}): open it for this command, as with ${fd}< FILE.`
      )
  })
})

export interface SeedSource {
  /** Has the words in its first line and their passphrase, if any, in the second; with a keystore its password instead of the words. */
  readonly fd: number | undefined
  readonly keystore: string | undefined
}

/** Reads the seed of a wallet, 64 bytes. */
export const readSeed = Effect.fn("Collect.readSeed")(function* ({ fd, keystore }: SeedSource) {
  const lines = fd === undefined ? undefined : yield* readDescriptor(fd)
  const encrypted = keystore === undefined ? undefined : yield* readTextFile(keystore)
  const prompt = `${encrypted === undefined ? "The words of the seed" : "The keystore's password"} (not shown): `
  const first = lines === undefined ? yield* askAtTerminal(prompt, true) : (lines[0] ?? "")
  // Before the passphrase is asked for: a wrong word is found at once.
  if (encrypted === undefined) yield* asMnemonic(first)
  const question = "The passphrase of the words (not shown; empty if they have none): "
  const passphrase = lines === undefined ? yield* askAtTerminal(question, true) : lines[1]
  // After it: the terminal shows what is typed while a keystore's key is derived.
  return yield* seedOf(encrypted === undefined ? first : yield* wordsOfKeystore(encrypted, first), passphrase)
})
