import type { AccountId } from "../Domain/Ids.ts"
import { shareOf, type Usage } from "./UsageRepo.ts"

/** How close an account is to its quota: `near` from 80 % on, `full` where everything new is refused. */
export type QuotaLevel = "near" | "full"

/** An account that is close to its quota. */
export interface CloseAccount {
  readonly account: AccountId
  readonly level: QuotaLevel
  /** Bytes. */
  readonly stored: number
  readonly quota: number
  readonly summary: string
  readonly remedy: string
}

export const shares: Readonly<Record<QuotaLevel, number>> = { near: 0.8, full: 1 }
/** Hysteresis: a reached level ends this far below: deletions and new payments would cross it every hour. */
const hysteresis = 0.05

const isAt = (level: QuotaLevel, share: number, before: QuotaLevel | undefined): boolean =>
  share >= shares[level] - (before === level || before === "full" ? hysteresis : 0)

const percentOf = (usage: Usage): string => `${Math.floor(100 * shareOf(usage))} %`

const summaryOf = (usage: Usage, quota: number, level: QuotaLevel): string => {
  const what = shareOf(usage) * quota > usage.stored ? ", by what its open payments may yet store" : ""
  const refused = "its new payments, quotes and endpoints are refused with 507"
  return `account ${usage.account} has used ${percentOf(usage)} of its quota${what}: ${level === "full" ? refused : `at 100 % ${refused}`}`
}

/** The accounts that are close to their quotas. `before`: those that were when it was last asked. */
export const closeAccounts = (
  usages: ReadonlyArray<Usage>,
  before: ReadonlyMap<AccountId, QuotaLevel> = new Map()
): ReadonlyArray<CloseAccount> =>
  usages.flatMap((usage): ReadonlyArray<CloseAccount> => {
    const { account, quota, stored } = usage
    if (quota === undefined) return []
    const share = shareOf(usage)
    const was = before.get(account)
    const level = isAt("full", share, was) ? "full" : isAt("near", share, was) ? "near" : undefined
    if (level === undefined) return []
    const remedy = `raise it: tilld accounts change ${account} --quota`
    return [{ account, level, stored, quota, summary: summaryOf(usage, quota, level), remedy }]
  })

export const levelsOf = (accounts: ReadonlyArray<CloseAccount>): ReadonlyMap<AccountId, QuotaLevel> =>
  new Map(accounts.map(({ account, level }) => [account, level]))
