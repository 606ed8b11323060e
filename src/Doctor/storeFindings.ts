import { Redacted } from "effect"
import { unmetNeeds } from "../Payments/openNeeds.ts"
import { hdWallet } from "../Settings/hdWallet.ts"
import type { ChainSettings, SettingsShape } from "../Settings.ts"
import { type Finding, fail, ok, warn } from "./Finding.ts"
import type { StoreFacts } from "./storeFacts.ts"

/** Addresses of an account-level wallet: indexes that are not hardened. */
const allIndexes = 2 ** 31
const percent = (share: number): string => `${(100 * share).toPrecision(2)} %`

/** Requirements of open payments on the configuration: without them the daemon does not start. */
export const examineNeeds = (
  chains: ReadonlyArray<ChainSettings>,
  { openNeeds }: StoreFacts
): ReadonlyArray<Finding> => {
  const unmet = unmetNeeds(chains, openNeeds)
  return unmet.length === 0
    ? [ok("open payments", "the configuration has every chain and token that they need")]
    : unmet.map(({ at, need, remedy }) => fail(at, need, remedy))
}

/** The use of each wallet, and whether other software would find its money. */
export const examineUse = ({ wallets }: StoreFacts): ReadonlyArray<Finding> =>
  Array.from(wallets, ([fingerprint, { gap, next, paid }]) => {
    const name = `use of wallet ${fingerprint}`
    const finding = `${next} addresses given out (${percent(next / allIndexes)}), ${paid} paid, at most ${gap} unpaid in a row: other software needs a gap limit above that`
    return next > 0.8 * allIndexes ? warn(name, finding, "give tilld another account's key") : ok(name, finding)
  })

/** Whether anyone has shown that the live wallet's seed is still held: what is paid to a lost one is lost. */
export const examineSeed = ({ wallets }: SettingsShape, { proofs }: StoreFacts): ReadonlyArray<Finding> => {
  if (wallets.live === undefined) return []
  const name = "seed of the live wallet"
  const provenOn = proofs.get(hdWallet(Redacted.value(wallets.live)).fingerprint)
  return [
    provenOn === undefined
      ? warn(
          name,
          "it was never shown that you hold it, and what is paid to a lost seed is lost",
          "sign what tilld wallet challenge --mode live prints: docs/collect.md"
        )
      : ok(name, `it signed on ${provenOn}`)
  ]
}
