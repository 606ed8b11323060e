import { pbkdf2Sync } from "node:crypto"
import { describe, expect, it } from "@effect/vitest"
import { bytesToHex } from "viem"
import { HDKey, mnemonicToAccount } from "viem/accounts"
import { childKey } from "../../src/Settings/childKey.ts"
import { hdWallet, parseExtendedKey } from "../../src/Settings/hdWallet.ts"

// The published vectors of BIP-32: parent, index, child, as extended public keys.
const vectors: ReadonlyArray<readonly [name: string, parent: string, index: number, child: string]> = [
  [
    "vector 1, m/0'/1",
    "xpub68Gmy5EdvgibQVfPdqkBBCHxA5htiqg55crXYuXoQRKfDBFA1WEjWgP6LHhwBZeNK1VTsfTFUHCdrfp1bgwQ9xv5ski8PX9rL2dZXvgGDnw",
    1,
    "xpub6ASuArnXKPbfEwhqN6e3mwBcDTgzisQN1wXN9BJcM47sSikHjJf3UFHKkNAWbWMiGj7Wf5uMash7SyYq527Hqck2AxYysAA7xmALppuCkwQ"
  ],
  [
    "vector 1, m/0'/1/2'/2",
    "xpub6D4BDPcP2GT577Vvch3R8wDkScZWzQzMMUm3PWbmWvVJrZwQY4VUNgqFJPMM3No2dFDFGTsxxpG5uJh7n7epu4trkrX7x7DogT5Uv6fcLW5",
    2,
    "xpub6FHa3pjLCk84BayeJxFW2SP4XRrFd1JYnxeLeU8EqN3vDfZmbqBqaGJAyiLjTAwm6ZLRQUMv1ZACTj37sR62cfN7fe5JnJ7dh8zL4fiyLHV"
  ],
  [
    "vector 1, m/0'/1/2'/2/1000000000",
    "xpub6FHa3pjLCk84BayeJxFW2SP4XRrFd1JYnxeLeU8EqN3vDfZmbqBqaGJAyiLjTAwm6ZLRQUMv1ZACTj37sR62cfN7fe5JnJ7dh8zL4fiyLHV",
    1_000_000_000,
    "xpub6H1LXWLaKsWFhvm6RVpEL9P4KfRZSW7abD2ttkWP3SSQvnyA8FSVqNTEcYFgJS2UaFcxupHiYkro49S8yGasTvXEYBVPamhGW6cFJodrTHy"
  ],
  [
    "vector 2, m/0",
    "xpub661MyMwAqRbcFW31YEwpkMuc5THy2PSt5bDMsktWQcFF8syAmRUapSCGu8ED9W6oDMSgv6Zz8idoc4a6mr8BDzTJY47LJhkJ8UB7WEGuduB",
    0,
    "xpub69H7F5d8KSRgmmdJg2KhpAK8SR3DjMwAdkxj3ZuxV27CprR9LgpeyGmXUbC6wb7ERfvrnKZjXoUmmDznezpbZb7ap6r1D3tgFxHmwMkQTPH"
  ]
]

const mnemonic = "test test test test test test test test test test test junk"
const seed = Uint8Array.from(pbkdf2Sync(mnemonic, "mnemonic", 2048, 64, "sha512"))
const xpub = (account: number) => HDKey.fromMasterSeed(seed).derive(`m/44'/60'/${account}'`).publicExtendedKey

describe("BIP-32", () => {
  it.each(vectors)("%s", (_, parent, index, child) => {
    const derived = childKey(parseExtendedKey(parent), index)
    const published = parseExtendedKey(child)
    expect(bytesToHex(derived.publicKey)).toBe(bytesToHex(published.publicKey))
    expect(bytesToHex(derived.chainCode)).toBe(bytesToHex(published.chainCode))
  })
})

describe("receiving addresses", () => {
  it("are those that every wallet lists for the seed", () => {
    const wallet = hdWallet(xpub(0))
    expect(wallet.address(0)).toBe("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266")
    for (const index of [1, 2 ** 31 - 1]) {
      expect(wallet.address(index)).toBe(mnemonicToAccount(mnemonic, { addressIndex: index }).address)
    }
  })

  it("have their account number in their path, which the key of another child does not reveal", () => {
    expect([hdWallet(xpub(0)).account, hdWallet(xpub(7)).account]).toEqual([0, 7])
    const key = HDKey.fromMasterSeed(new Uint8Array(32)).derive("m/44'/60'/7").publicExtendedKey
    expect(hdWallet(key).account).toBeUndefined()
  })

  it("of two accounts of a seed have nothing in common, nor do their fingerprints", () => {
    const [one, two] = [hdWallet(xpub(0)), hdWallet(xpub(1))]
    expect(one.fingerprint).not.toBe(two.fingerprint)
    expect(one.address(0)).not.toBe(two.address(0))
  })

  it("do not reveal the wallet by its fingerprint", () => {
    const { chainCode, publicKey } = parseExtendedKey(xpub(0))
    const { fingerprint } = hdWallet(xpub(0))
    expect(bytesToHex(publicKey)).not.toContain(fingerprint)
    expect(bytesToHex(chainCode)).not.toContain(fingerprint)
  })
})
