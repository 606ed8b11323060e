import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect } from "@effect/vitest"
import { Clock, Effect, Redacted } from "effect"
import { HDKey, mnemonicToAccount } from "viem/accounts"
import { lookAtStore } from "../../src/Doctor/storeFacts.ts"
import { examineSeed } from "../../src/Doctor/storeFindings.ts"
import { iso } from "../../src/lib/moment.ts"
import { isSignedBy, parseProof, proofMessage, proofOf } from "../../src/Payments/addresses/walletProof.ts"
import { hdWallet } from "../../src/Settings/hdWallet.ts"
import { besideDaemon, configuration, installation } from "../commands/installation.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { liveXpub, testSettings, testXpub } from "../lib/settings.ts"
import { otherPhrase, phrase } from "./plans.ts"
import { failing } from "./refusal.ts"

/** An installation beside its daemon, with the live wallet of the account 0 of the phrase. */
const furnished = Effect.gen(function* () {
  const home = yield* installation
  writeFileSync(join(home.folder, "tilld.toml"), configuration.replace("[wallets]", `[wallets]\nlive = "${liveXpub}"`))
  yield* home.start()
  return home
})

const ask = ["wallet", "challenge", "--mode"]

liveTest(
  "the holder of the seed proves it offline, the server notes the day, and doctor reminds no more",
  function* () {
    const { database, tilld } = yield* furnished
    const settings = testSettings(database, {
      wallets: { live: Redacted.make(liveXpub), test: Redacted.make(testXpub) }
    })
    const now = yield* Clock.currentTimeMillis
    const finding = () => {
      const { facts } = lookAtStore(database, false, [])
      return examineSeed(settings, facts ?? expect.fail("no facts"))
    }
    expect(finding()).toMatchObject([
      { status: "warn", remedy: expect.stringContaining("tilld wallet challenge --mode live") }
    ])

    const challenge = (yield* tilld([...ask, "live"])).stdout.trim()
    const { fingerprint } = hdWallet(liveXpub)
    const day = iso(now).slice(0, 10)
    expect(challenge).toBe(`tilld-0-${fingerprint}-${day}`)
    // The machine with the seed has neither the configuration nor the database.
    const proved = yield* tilld(["wallet", "prove", challenge, "--seed-fd", "0"], { TILLD_CONFIG: "" }, phrase)
    expect(proved).toMatchObject({ code: 0, stderr: expect.stringContaining("tilld wallet check") })
    const proof = proved.stdout.trim()
    expect(proof).toMatch(new RegExp(`^${challenge}\\.0x[0-9a-f]{130}$`))

    const checked = yield* tilld(["wallet", "check", proof, "--json"])
    expect(checked).toMatchObject({ code: 0, stderr: "" })
    const { address } = mnemonicToAccount(phrase)
    expect(JSON.parse(checked.stdout)).toEqual({ wallet: fingerprint, day, address })
    expect(finding()).toEqual([{ status: "ok", name: "seed of the live wallet", finding: `it signed on ${day}` }])
    // A proof of an earlier day that comes later is good, and replaces no later day.
    const older = challenge.replace(day, iso(now - 86_400_000).slice(0, 10))
    const signature = yield* Effect.promise(() =>
      mnemonicToAccount(phrase).signMessage({ message: proofMessage(older) })
    )
    expect((yield* tilld(["wallet", "check", proofOf(older, signature)])).code).toBe(0)
    expect(finding()).toMatchObject([{ status: "ok", finding: `it signed on ${day}` }])
    const audit = JSON.parse((yield* tilld(["audit", "--json"])).stdout)
    expect(JSON.stringify(audit)).toContain("wallet check")
  }
)

liveTest("a proof of another seed, wallet or day is refused, and notes nothing", function* () {
  const { database, tilld } = yield* furnished
  const challenge = (yield* tilld([...ask, "test"])).stdout.trim()
  const now = yield* Clock.currentTimeMillis
  const day = (distance: number) => iso(now + distance * 86_400_000).slice(0, 10)
  const offline: ReadonlyArray<readonly [challenge: string, input: string, said: string]> = [
    [challenge, otherPhrase, "The seed is not the wallet's: its account m/44'/60'/1' is"],
    [challenge, `${phrase}\nmore`, "The seed is not the wallet's"],
    [challenge.replace(day(0), day(2)), phrase, "for later days is not made"],
    ["tilld-1", phrase, "This is not a challenge"]
  ]
  for (const [text, input, said] of offline) {
    expect(yield* tilld(["wallet", "prove", text, "--seed-fd", "0"], {}, input)).toMatchObject(failing(1, said))
  }
  const { fingerprint } = hdWallet(testXpub)
  const signed = Effect.fnUntraced(function* (text: string, addressIndex = 0) {
    const key = mnemonicToAccount(phrase, { accountIndex: 1, addressIndex })
    return proofOf(text, yield* Effect.promise(() => key.signMessage({ message: proofMessage(text) })))
  })
  const right = yield* signed(challenge)
  const other = hdWallet(HDKey.fromMasterSeed(new Uint8Array(32)).derive("m/44'/60'/0'").publicExtendedKey).fingerprint
  const online: ReadonlyArray<readonly [proof: string, said: string]> = [
    [yield* signed(challenge, 1), "is not signed by the wallet's first address"],
    // A day that was not signed.
    [right.replace(day(0), day(-1)), "not signed by the wallet's first address"],
    [yield* signed(`tilld-1-${fingerprint}-2020-01-01`), "is of a challenge of 2020-01-01, and counts for 31 days"],
    [yield* signed(`tilld-1-${fingerprint}-${day(2)}`), `is of a challenge of ${day(2)}`],
    [yield* signed(challenge.replace(fingerprint, other)), `configuration nor an account has the wallet ${other}`],
    [right.slice(0, -2), "This is not a proof"],
    ["x", "This is not a proof"]
  ]
  for (const [proof, said] of online) {
    expect(yield* tilld(["wallet", "check", proof])).toMatchObject(failing(1, said))
  }
  const { facts } = lookAtStore(database, false, [])
  expect(facts?.proofs.size).toBe(0)
  expect((yield* tilld(["wallet", "check", right])).code).toBe(0)
  expect(yield* isSignedBy(parseProof(right) ?? expect.fail("no proof"), hdWallet(liveXpub))).toBe(false)
})

liveTest("a wallet that is not configured cannot be asked", function* () {
  const { tilld } = yield* besideDaemon
  expect(yield* tilld([...ask, "live"])).toMatchObject(failing(1, "There is no live wallet"))
  expect(yield* tilld(["wallet", "sponsor", "--mode", "live"])).toMatchObject(failing(2, "has no wallet of this mode"))
  const { address } = mnemonicToAccount(phrase, { path: "m/44'/60'/1'/1/0" })
  expect(yield* tilld(["wallet", "sponsor", "--mode", "test", "--json"])).toMatchObject({
    stdout: `${JSON.stringify({ address })}\n`
  })
})
