/**
 * Where the seed of a wallet comes from: words that are typed without an echo, a file descriptor, or a keystore; never arguments
 * or the environment. And its keys, derived where it is signed, and overwritten afterwards. Paths are m/44'/60'/n'/0/i for
 * receiving addresses, and m/44'/60'/n'/1/0 for the sponsor's. viem takes a private key as a text, which JavaScript cannot
 * overwrite: that copy is gone with the process, which ends after its one command.
 *
 * Questions are asked at the terminal itself, whatever the standard streams are: what is secret is in none of them. Keystores are
 * of version 3 and hold the entropy of the words,
 * https://ethereum.org/en/developers/docs/data-structures-and-encoding/web3-secret-storage/
 */
import { createCipheriv, createDecipheriv, pbkdf2Sync, randomBytes, scryptSync, timingSafeEqual } from "node:crypto"
import { closeSync, openSync, readFileSync, writeSync } from "node:fs"
import { StringDecoder } from "node:string_decoder"
import { isatty, ReadStream } from "node:tty"
import { entropyToMnemonic, mnemonicToSeedSync, validateMnemonic } from "@scure/bip39"
import { wordlist } from "@scure/bip39/wordlists/english"
import { Effect, Either, Schema } from "effect"
import { keccak256, toHex } from "viem"
import { HDKey, privateKeyToAccount } from "viem/accounts"
import { shown } from "../lib/text.ts"
import { hardened } from "../Settings/hdWallet.ts"
import { type CollectRefused, collectRefusal } from "./Plan.ts"
import { readTextFile } from "./readJsonFile.ts"

const enter = new Set(["\r", "\n"])
const erase = new Set(["\u007f", "\b"])
const eraseLine = "\u0015"
const interrupt = new Set(["\u0003", "\u0004"])

const noTerminal = collectRefusal(
  "There is no terminal to ask at: run this in one, or answer by its options, which --help lists."
)

/** Clears the screen and what was scrolled out of it. */
export const clearScreen = "\u001b[2J\u001b[3J\u001b[H"

/** Adds what was typed to a line. Whether the line is complete, or given up. */
const typed = (line: Array<string>, letters: string): "more" | "done" | "stop" => {
  for (const letter of letters) {
    if (enter.has(letter)) return "done"
    if (interrupt.has(letter)) return "stop"
    if (letter === eraseLine) line.length = 0
    else if (erase.has(letter)) line.pop()
    else line.push(letter)
  }
  return "more"
}

const openTerminal = Effect.try({ try: () => openSync("/dev/tty", "r+"), catch: () => noTerminal })

/** Writes to the terminal alone. */
export const showAtTerminal = (text: string, before = ""): Effect.Effect<void, CollectRefused> =>
  Effect.acquireUseRelease(
    openTerminal,
    (fd) => Effect.sync(() => writeSync(fd, before + shown(text))),
    (fd) => Effect.sync(() => closeSync(fd))
  )

/** Reads a line of the terminal; `isHidden`: without showing what is typed. Ctrl-C fails. */
export const askAtTerminal = (question: string, isHidden: boolean): Effect.Effect<string, CollectRefused> =>
  Effect.acquireUseRelease(
    Effect.flatMap(openTerminal, (fd) =>
      Effect.sync(() => {
        const input = new ReadStream(fd)
        // Its own handling of keys shows them.
        if (isHidden) input.setRawMode(true)
        writeSync(fd, shown(question))
        return { fd, input }
      })
    ),
    ({ input }) =>
      Effect.async<string, CollectRefused>((resume) => {
        const decoder = new StringDecoder("utf8")
        const line: Array<string> = []
        input.on("data", (bytes) => {
          const state = typed(line, decoder.write(bytes))
          if (state !== "more") input.removeAllListeners("data")
          if (state === "done") resume(Effect.succeed(line.join("")))
          if (state === "stop") resume(Effect.fail(collectRefusal("Stopped: nothing was done.")))
        })
        input.on("error", (cause) =>
          resume(Effect.fail(collectRefusal(`The terminal cannot be read: ${cause.message}`)))
        )
        input.on("end", () => resume(Effect.fail(collectRefusal("The terminal was closed: nothing was done."))))
      }),
    ({ fd, input }) =>
      Effect.sync(() => {
        if (isHidden) {
          input.setRawMode(false)
          writeSync(fd, "\n")
        }
        input.destroy()
      })
  )

const Hex = Schema.String.pipe(Schema.pattern(/^(0x)?([0-9a-fA-F]{2})*$/))

const Keystore = Schema.Struct({
  version: Schema.Literal(3),
  crypto: Schema.Struct({
    cipher: Schema.Literal("aes-128-ctr"),
    ciphertext: Hex,
    cipherparams: Schema.Struct({ iv: Hex.pipe(Schema.filter((hex) => hex.replace(/^0x/, "").length === 32)) }),
    mac: Hex,
    kdf: Schema.Literal("scrypt", "pbkdf2"),
    kdfparams: Schema.Struct({
      dklen: Schema.Literal(32),
      salt: Hex,
      n: Schema.optional(Schema.Int.pipe(Schema.between(2, 1_048_576))),
      r: Schema.optional(Schema.Int.pipe(Schema.between(1, 64))),
      p: Schema.optional(Schema.Int.pipe(Schema.between(1, 16))),
      c: Schema.optional(Schema.Int.pipe(Schema.between(1, 10_000_000))),
      prf: Schema.optional(Schema.Literal("hmac-sha256"))
    })
  })
})
type Keystore = typeof Keystore.Type

const bytesOf = (hex: string): Buffer => Buffer.from(hex.replace(/^0x/, ""), "hex")

/** What others write too: a quarter of a gigabyte and a second for each password that is tried. */
const usual = { n: 262_144, r: 8, p: 1 }

const derive = ({ kdf, kdfparams }: Pick<Keystore["crypto"], "kdf" | "kdfparams">, password: string): Buffer => {
  const { c = 262_144, n = usual.n, p = usual.p, r = usual.r, salt } = kdfparams
  return kdf === "scrypt"
    ? // A gigabyte, and what surrounds it: another file could take all memory for minutes, and nothing could end that.
      scryptSync(password, bytesOf(salt), 32, { N: n, r, p, maxmem: 2 ** 30 + 2 ** 20 })
    : pbkdf2Sync(password, bytesOf(salt), c, 32, "sha256")
}

const macOf = (key: Buffer, ciphertext: Buffer): Buffer =>
  bytesOf(keccak256(Buffer.concat([key.subarray(16, 32), ciphertext])))

/** The bytes that a keystore holds. */
export const openKeystore = (text: string, password: string): Either.Either<Buffer, CollectRefused> =>
  Either.gen(function* () {
    const { crypto } = yield* Either.mapLeft(Schema.decodeUnknownEither(Schema.parseJson(Keystore))(text), () =>
      collectRefusal("The file is not a keystore of version 3 with aes-128-ctr, and pbkdf2 or scrypt (p: 16 at most).")
    )
    const key = yield* Either.try({
      try: () => derive(crypto, password),
      catch: () =>
        collectRefusal("The keystore's scrypt takes more than 1 GiB, or is none: write it with n 262144, r 8 and p 1.")
    })
    const ciphertext = bytesOf(crypto.ciphertext)
    const [mac, expected] = [macOf(key, ciphertext), bytesOf(crypto.mac)]
    if (mac.length !== expected.length || !timingSafeEqual(mac, expected)) {
      return yield* Either.left(
        collectRefusal("The keystore does not open: the password is wrong, or the file is damaged.")
      )
    }
    const decipher = createDecipheriv("aes-128-ctr", key.subarray(0, 16), bytesOf(crypto.cipherparams.iv))
    const content = Buffer.concat([decipher.update(ciphertext), decipher.final()])
    key.fill(0)
    return content
  })

/** A keystore that holds `bytes`. */
export const makeKeystore = (bytes: Uint8Array, password: string): string => {
  const [salt, iv] = [randomBytes(32), randomBytes(16)]
  const kdfparams = { dklen: 32, salt: salt.toString("hex"), ...usual } as const
  const key = derive({ kdf: "scrypt", kdfparams }, password)
  const cipher = createCipheriv("aes-128-ctr", key.subarray(0, 16), iv)
  const ciphertext = Buffer.concat([cipher.update(bytes), cipher.final()])
  const mac = macOf(key, ciphertext).toString("hex")
  key.fill(0)
  const content = { ciphertext: ciphertext.toString("hex"), cipherparams: { iv: iv.toString("hex") }, mac }
  const crypto = { cipher: "aes-128-ctr", ...content, kdf: "scrypt", kdfparams }
  return `${JSON.stringify({ version: 3, id: globalThis.crypto.randomUUID(), crypto }, undefined, 2)}\n`
}

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
