import { Redacted } from "effect"
import type { Usage } from "../Auth/UsageRepo.ts"
import { closeAccounts } from "../Auth/UsageRepo.ts"
import { backupAge } from "../Backup/lastBackup.ts"
import { iso } from "../lib/moment.ts"
import { cut } from "../lib/text.ts"
import { unmetNeeds } from "../Payments/openNeeds.ts"
import { hdWallet } from "../Settings/hdWallet.ts"
import type { ChainSettings, SettingsShape } from "../Settings.ts"
import { type Finding, fail, ok, warn } from "./Finding.ts"
import { recentDays, type StoreFacts } from "./storeFacts.ts"

const day = 86_400_000
/** Addresses of an account-level wallet: indexes that are not hardened. */
const allIndexes = 2 ** 31
/** How far the newest event may be ahead of the clock, which NTP may have set back a little. Milliseconds. */
const usualStep = 60_000
/** Days to a full disk below which the growth is a warning, and below which it is a failure. */
const soonFull = 30
const nearlyFull = 3
/** Hours after which a backup is old, and after which backups count as stopped. */
const oldBackup = 26
const lostBackup = 72

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

/** Open exceptions by kind. */
export const examineExceptions = ({ exceptions }: StoreFacts): Finding => {
  const name = "exceptions"
  if (exceptions.length === 0) return ok(name, "none is open")
  const kinds = exceptions.map(({ count, kind }) => `${count} ${kind}`).join(", ")
  const oldest = Math.min(...exceptions.map((each) => each.oldest))
  return warn(name, `open: ${kinds}; the oldest since ${iso(oldest)}`, "decide on them: tilld payments exceptions")
}

/** Accounts that are close to their quota, or have used it up: their sales are refused. */
export const examineQuotas = (usages: ReadonlyArray<Usage>): ReadonlyArray<Finding> =>
  closeAccounts(usages).map(({ level, remedy, summary }) =>
    level === "full" ? fail("quota", summary, remedy) : warn("quota", summary, remedy)
  )

/** Receivers that do not accept their webhooks. */
export const examineEndpoints = ({ failing }: StoreFacts): ReadonlyArray<Finding> => {
  const name = "webhook endpoints"
  if (failing.length === 0) return [ok(name, "no delivery waits after a failed attempt")]
  return failing.map(({ failed, reason, receiver, since: first, url, waiting }) =>
    warn(
      name,
      `${receiver} (${[new URL(url).host, ...(reason === null ? [] : [cut(reason, 200)])].join(": ")}): ${waiting} deliveries wait after a failed attempt, ${failed} of the last ${recentDays} days have failed for good; the first is of ${iso(first)}`,
      "tilld webhooks list --status failing shows what the receiver answers"
    )
  )
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

/** Whether the disk fills up at the rate of the last days. `used` and `free` in bytes. */
export const examineGrowth = (
  { events }: StoreFacts,
  { free, used }: { readonly free: number; readonly used: number },
  now: number
): ReadonlyArray<Finding> => {
  const days = Math.min(recentDays, (now - (events.oldest ?? now)) / day)
  if (events.count === 0 || days < 1) return []
  const daily = (used * events.recent) / events.count / days
  const left = free / daily
  const finding = `the database grows by about ${(daily / 1e6).toPrecision(2)} MB a day; the disk lasts ${left > 3650 ? "for years" : `${Math.floor(left)} days`}`
  const remedy = "free some space, or move database.path"
  if (left < nearlyFull) return [fail("disk trend", finding, remedy)]
  return [left < soonFull ? warn("disk trend", finding, remedy) : ok("disk trend", finding)]
}

/** A clock that is behind what the database already knows has been set back. `isRight`: it agrees with a chain's now. */
export const examineTimes = (
  { events: { newest } }: StoreFacts,
  now: number,
  isRight: boolean
): ReadonlyArray<Finding> => {
  if (newest === null || newest - now <= usualStep) return []
  const name = "clock"
  const finding = `the newest event is of ${iso(newest)}, ${((newest - now) / 1000).toFixed(0)} s ahead of it: it was set back`
  return [
    isRight
      ? warn(
          name,
          `${finding}, and agrees with a chain's`,
          "look at the payments that were made while it was ahead: their expiresAt is as wrong"
        )
      : fail(name, finding, "let chrony or systemd-timesyncd set the clock: payments expire by it")
  ]
}

/** The age of the last good backup, Unix milliseconds; undefined where none is recorded. */
export const examineBackup = (last: number | undefined, now: number): Finding => {
  const name = "backup"
  if (last === undefined) return warn(name, "none is recorded", "make them by a timer: docs/backup.md")
  const remedy = "look at the backup's timer and its log"
  const hours = backupAge(last, now) / 3_600_000
  if (hours === Number.POSITIVE_INFINITY) {
    return warn(
      name,
      `the last good one is of ${iso(last)}, when this machine's clock was ahead`,
      `make one: ${remedy}`
    )
  }
  const finding = `the last good one is ${hours.toFixed(1)} hours old`
  if (hours > lostBackup) return fail(name, finding, remedy)
  return hours > oldBackup ? warn(name, finding, remedy) : ok(name, finding)
}
