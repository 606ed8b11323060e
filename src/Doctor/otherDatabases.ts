import { blindJump, furthestIn, furthestOf, type Mark, unitFolder } from "../Payments/addresses/IndexMark.ts"
import { type OtherUse, overtakenIn } from "../Payments/addresses/otherMarks.ts"
import { configuredWallets } from "../Payments/addresses/walletUsers.ts"
import type { SettingsShape } from "../Settings.ts"
import { type Finding, warn } from "./Finding.ts"

/** The wallets of a database. */
export interface StoredWallets {
  /** The next index of each, with a pending jump, by fingerprint. */
  readonly nexts: Mark["wallets"]
  /** Fingerprints of those that accounts have brought. */
  readonly ofAccounts: ReadonlyArray<string>
}

/** The wallets in use that another database on this machine has used further: by its mark in `markFolder`. */
export const overtakenWallets = (
  { database: { path }, wallets }: SettingsShape,
  markFolder: string,
  { nexts, ofAccounts }: StoredWallets
): ReadonlyArray<OtherUse> => {
  const folders = [markFolder, unitFolder]
  const used = new Set([...configuredWallets(wallets).map(({ fingerprint }) => fingerprint), ...ofAccounts])
  const overtaken = overtakenIn(folders, path, furthestOf([nexts, furthestIn(folders, path)]))
  return [...overtaken.values()].filter(({ wallet }) => used.has(wallet))
}

/** The index at which the next start goes on. */
export const nextAfter = ({ next }: OtherUse): number => next + blindJump

export const otherDatabase = (use: OtherUse): Finding =>
  warn(
    "address numbering",
    `${use.database} has handed out addresses of wallet ${use.wallet} up to index ${use.next - 1}: the next start goes on at ${nextAfter(use)}`,
    "point database.path back, if this is not meant"
  )
