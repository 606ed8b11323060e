import { openSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { entropyToMnemonic } from "@scure/bip39"
import { wordlist } from "@scure/bip39/wordlists/english"
import { Effect, Either } from "effect"
import { HDKey, mnemonicToAccount } from "viem/accounts"
import { checkOutput, writeOutput } from "../../src/Backup/files.ts"
import {
  makeKeystore,
  openKeystore,
  readSeed,
  seedOf,
  withAccountKey,
  wordsOfKeystore
} from "../../src/Collect/seed.ts"
import { mixedEntropy } from "../../src/Collect/wallet.ts"
import { hdWallet, sponsorAddress } from "../../src/Settings/hdWallet.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { temporaryFolder } from "../lib/store.ts"
import { phrase } from "./plans.ts"
import { refusal } from "./refusal.ts"

const seed = (text: string, passphrase?: string) => Either.getOrThrow(seedOf(text, passphrase))
const problem = <A>(result: Either.Either<A, { readonly message: string }>): string =>
  Either.isLeft(result) ? result.left.message : expect.fail("it was taken")

// https://github.com/trezor/python-mnemonic/blob/master/vectors.json, with the passphrase TREZOR.
const bip39: ReadonlyArray<readonly [words: string, seed: string]> = [
  [
    `${"abandon ".repeat(11)}about`,
    "c55257c360c07c72029aebc1b53c05ed0362ada38ead3e3e9efa3708e53495531f09a6987599d18264c1e1c92f2cf141630c7a3c4ab7c81b2f001698e7463b04"
  ],
  [
    "legal winner thank year wave sausage worth useful legal winner thank yellow",
    "2e8905819b8723fe2c1d161860e5ee1830318dbf49a83bd451cfb8440c28bd6fa457fe1296106559a3c80937a1c1069be3a3a5bd381ee6260e8d9739fce1f607"
  ],
  [
    `${"abandon ".repeat(23)}art`,
    "bda85446c68413707090a52022edd26a1c9462295029f2e60cd7c4f2bbd3097170af7a4d73245cafa9c3cca8d561a7c3de6f5d4a10be8ed2a5e608d68f92fcc8"
  ]
]

describe("words", () => {
  it.each(bip39)("%s give the published seed", (words, expected) => {
    expect(Buffer.from(seed(words, "TREZOR")).toString("hex")).toBe(expected)
    expect(Buffer.from(seed(`  ${words.toUpperCase().replaceAll(" ", "  ")}\n`, "TREZOR")).toString("hex")).toBe(
      expected
    )
    expect(Buffer.from(seed(words)).toString("hex")).not.toBe(expected)
  })

  it.each([
    ["test test test tset test test test test test test test junk", "Word 4 of 12 is not in the word list of BIP-39"],
    ["test test", "These are 2 words: a seed has 12, 15, 18, 21 or 24"],
    ["", "There are no words: is the file empty?"],
    [phrase.replace("junk", "test"), "The checksum of these 12 words is wrong"]
  ])("%s are refused, and the message shows none", (words, message) => {
    const said = problem(seedOf(words))
    expect(said).toContain(message)
    expect(said).not.toMatch(/tset|test|junk/)
  })
})

it("dice are mixed into the system's entropy by SHA-256 of both", () => {
  const system = Buffer.from("ab", "utf8")
  // FIPS 180-2's vector for "abc".
  expect(mixedEntropy(system, "c").toString("hex")).toBe(
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
  )
  expect(mixedEntropy(Buffer.from("aB"), "c")).not.toEqual(mixedEntropy(system, "c"))
})

// https://ethereum.org/en/developers/docs/data-structures-and-encoding/web3-secret-storage/ and, for scrypt,
// https://github.com/ethereum/go-ethereum/blob/master/accounts/keystore/testdata/v3_test_vector.json
const published = {
  pbkdf2: {
    password: "testpassword",
    secret: "7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d",
    crypto: {
      cipher: "aes-128-ctr",
      cipherparams: { iv: "6087dab2f9fdbbfaddc31a909735c1e6" },
      ciphertext: "5318b4d5bcd28de64ee5559e671353e16f075ecae9f99c7a79a38af5f869aa46",
      kdf: "pbkdf2",
      kdfparams: {
        ...{ c: 262144, dklen: 32, prf: "hmac-sha256" },
        salt: "ae3cd4e7013836a3df6bd7241b12db061dbe2c6785853cce422d148a624ce0bd"
      },
      mac: "517ead924a9d0dc3124507e3393d175ce3ff7c1e96529c6c555ce9e51205e9b2"
    }
  },
  scrypt: {
    password: "foo",
    secret: "fa7b3db73dc7dfdf8c5fbdb796d741e4488628c41fc4febd9160a866ba0f35",
    crypto: {
      cipher: "aes-128-ctr",
      cipherparams: { iv: "e0c41130a323adc1446fc82f724bca2f" },
      ciphertext: "9517cd5bdbe69076f9bf5057248c6c050141e970efa36ce53692d5d59a3984",
      kdf: "scrypt",
      kdfparams: {
        ...{ dklen: 32, n: 2, r: 8, p: 1 },
        salt: "711f816911c92d649fb4c84b047915679933555030b3552c1212609b38208c63"
      },
      mac: "d5e116151c6aa71470e67a7d42c9620c75c4d23229847dcc127794f0732b0db5"
    }
  }
}
const { password, secret } = published.pbkdf2
const keystore = (crypto: unknown) => JSON.stringify({ crypto, id: "3198bc9c-6672-5ab3-d995-4942343ae5b6", version: 3 })
const withKdf = (over: object) => ({
  ...published.scrypt.crypto,
  kdfparams: { ...published.scrypt.crypto.kdfparams, ...over }
})

describe("a keystore", () => {
  it.each(["pbkdf2", "scrypt"] as const)("as the definition has it for %s opens with its password only", (kdf) => {
    const { crypto, password, secret } = published[kdf]
    const text = keystore(crypto)
    expect(Either.getOrThrow(openKeystore(text, password)).toString("hex")).toBe(secret)
    expect(problem(openKeystore(text, `${password}e`))).toContain("the password is wrong, or the file is damaged")
  })

  it("of the entropy of words opens to these", () => {
    const text = keystore(published.pbkdf2.crypto)
    expect(Either.getOrThrow(wordsOfKeystore(text, password))).toBe(
      entropyToMnemonic(Buffer.from(secret, "hex"), wordlist)
    )
  })

  it("that tilld makes opens again, and holds its bytes nowhere in the clear", () => {
    const bytes = Buffer.from(secret, "hex")
    const [made, again] = [makeKeystore(bytes, password), makeKeystore(bytes, password)]
    expect(Either.getOrThrow(openKeystore(made, password))).toEqual(bytes)
    expect(JSON.parse(made)).toMatchObject({
      version: 3,
      crypto: { kdf: "scrypt", kdfparams: { n: 262144, r: 8, p: 1 } }
    })
    expect(made).not.toContain(secret)
    expect(JSON.parse(again).crypto.ciphertext).not.toBe(JSON.parse(made).crypto.ciphertext)
  })

  it.each([
    [
      "a damaged one",
      keystore({ ...published.pbkdf2.crypto, ciphertext: `00${published.pbkdf2.crypto.ciphertext.slice(2)}` })
    ],
    ["another cipher", keystore({ ...published.pbkdf2.crypto, cipher: "aes-128-cbc" })],
    ["another version", JSON.stringify({ version: 1, crypto: published.pbkdf2.crypto })],
    ["no JSON", "{"],
    // 64 GB of memory; and more than RFC 7914 allows for an r of 1, which OpenSSL refuses.
    ["with too large an n", keystore(withKdf({ n: 1_048_577 }))],
    ["with too small an r", keystore(withKdf({ n: 262_144, r: 1 }))]
  ])("is refused: %s", (_, text) => {
    expect(problem(openKeystore(text, password))).toMatch(
      /does not open|is not a keystore of version 3|more than 1 GiB, or is none/
    )
  })

  it("that would take more than a gigabyte, or many times as long as what others write, is not tried", () => {
    const problemWith = (kdf: object) => problem(openKeystore(keystore(withKdf(kdf)), password))
    expect(problemWith({ n: 262_144, r: 33, p: 1 })).toBe(
      "The keystore's scrypt takes more than 1 GiB, or is none: write it with n 262144, r 8 and p 1."
    )
    expect(problemWith({ n: 1_024, r: 8, p: 17 })).toContain("or scrypt (p: 16 at most)")
    for (const light of [
      { n: 4_096, r: 8, p: 6 },
      { n: 1_024, r: 8, p: 16 }
    ]) {
      expect(problemWith(light)).toContain("does not open")
    }
  })

  it("of a private key's length in bytes that no words have is refused", () => {
    expect(problem(wordsOfKeystore(makeKeystore(Buffer.alloc(15, 1), password), password))).toContain("something else")
  })
})

liveTest("a keystore's words have the passphrase of the second line", function* () {
  const folder = yield* temporaryFolder
  const [path, lines] = [join(folder, "seed.json"), join(folder, "lines")]
  writeFileSync(path, keystore(published.pbkdf2.crypto))
  writeFileSync(lines, `${password}\nTREZOR\n`)
  expect(yield* readSeed({ fd: openSync(lines, "r"), keystore: path })).toEqual(
    seed(entropyToMnemonic(Buffer.from(secret, "hex"), wordlist), "TREZOR")
  )
})

liveTest("keys are those of every wallet, and those that the server derives from the public one", function* () {
  for (const account of [0, 7]) {
    const bytes = seed(phrase)
    const expected = HDKey.fromMasterSeed(bytes).derive(`m/44'/60'/${account}'`).publicExtendedKey
    const path = (rest: string) =>
      mnemonicToAccount(phrase, { path: `m/44'/60'/${account}'/${rest}` as `m/44'/60'/${string}` }).address
    const found = yield* withAccountKey(bytes, account, ({ signer, xpub }) =>
      Effect.sync(() => ({
        xpub,
        first: signer(0).address,
        far: signer(2 ** 31 - 1).address,
        sponsor: signer("sponsor").address
      }))
    )
    expect(found).toEqual({ xpub: expected, first: path("0/0"), far: path(`0/${2 ** 31 - 1}`), sponsor: path("1/0") })
    expect(hdWallet(expected).address(2 ** 31 - 1)).toBe(found.far)
    expect(sponsorAddress(expected)).toBe(found.sponsor)
    expect(bytes).toEqual(new Uint8Array(64))
  }
})

liveTest("keys cannot sign any more when their use has ended, also by a failure", function* () {
  const bytes = seed(phrase)
  let later: (() => unknown) | undefined
  yield* Effect.flip(
    withAccountKey(bytes, 0, ({ signer }) => {
      later = () => signer(0)
      return Effect.fail("stop")
    })
  )
  expect(bytes).toEqual(new Uint8Array(64))
  expect(later).toThrow("without its private half")
})

liveTest(
  "a file is written whole and for its owner, over another one only if asked, and leaves no partial one",
  function* () {
    const path = join(yield* temporaryFolder, "signed.json")
    const partial = `${path}.${process.pid}.partial`
    writeFileSync(partial, "")
    yield* writeOutput(path, "x", false)
    expect(yield* refusal(writeOutput(path, "y", false))).toMatch(
      new RegExp(`^${path} cannot be written .*: name another file, or --force replaces it`)
    )
    expect(readFileSync(path, "utf8")).toBe("x")
    expect(statSync(path).mode & 0o777).toBe(0o600)
    yield* writeOutput(path, "y", true)
    expect(readFileSync(path, "utf8")).toBe("y")
    expect(readdirSync(dirname(path))).toEqual(["signed.json"])
  }
)

liveTest("a file that cannot be written is refused before the work for it", function* () {
  const folder = yield* temporaryFolder
  writeFileSync(join(folder, "there"), "")
  const cases = [
    ["", "The output file has no name: was a variable not set?"],
    [folder, `${folder} is a folder: name a file in it`],
    [join(folder, "none", "plan.json"), `Nothing can be written in ${join(folder, "none")} (ENOENT`],
    [join(folder, "there", "plan.json"), `Nothing can be written in ${join(folder, "there")} (ENOTDIR`]
  ] as const
  for (const [path, said] of cases) expect(yield* refusal(checkOutput(path, true))).toContain(said)
  expect(yield* refusal(checkOutput(join(folder, "there"), false))).toContain("exists already")
  yield* checkOutput(join(folder, "there"), true)
  yield* checkOutput(join(folder, "new"), false)
})
