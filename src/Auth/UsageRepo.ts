import { Effect } from "effect"
import { type Owner, QuotaExceeded } from "../Domain/Account.ts"
import { AccountId } from "../Domain/Ids.ts"
import { allRows, type Db, oneRow, type StoreUnavailable, Tx } from "../Sql.ts"

// The storage use of accounts, and their quotas. Triggers of the schema maintain the sums; here they are read and
// compared with the quota.

/** The account that always exists. It is the operator's own: no quota refuses its sales unless the operator sets one. */
export const defaultAccount = AccountId.make("default")

/** An account's storage use and quota, in bytes. */
export interface Usage {
  readonly account: AccountId
  readonly stored: number
  /** The most that its open payments may still store: they always continue, and each event is stored per endpoint. */
  readonly promised: number
  /** Undefined: no quota but the disk. */
  readonly quota: number | undefined
}

/** How many times its quota an account's rows and what its open payments may yet store may take together. */
const mostPromised = 4

/** How much of its quota an account has used: from 1 on everything new is refused. 0 where it has none. */
export const shareOf = ({ promised, quota, stored }: Omit<Usage, "account">): number =>
  quota === undefined ? 0 : Math.max(stored, (stored + promised) / mostPromised) / quota

/** An account's quota in SQL, or NULL for none. `configured`: `accounts.quota_bytes`. */
const quotaOf = (account: string, configured: string) =>
  `(SELECT nullif(coalesce(quota_bytes, iif(id = '${defaultAccount}', 0, ${configured})), 0) FROM accounts WHERE id = ${account})`

/** Whether an account has stored its quota or more, in SQL. */
export const isFull = (account: string, configured: string) =>
  `coalesce((SELECT sum(bytes) FROM usage WHERE account_id = ${account}) >= ${quotaOf(account, configured)}, FALSE)`

/** Bytes of a delivery without its URL, which counts twice: a row of more than half a page takes a whole page. */
const delivery = 500
/** Bytes of the six attempts of a schedule, as they are logged beyond the quota: without what the receiver answered. */
const attempts = 1_200
/** Events that an open payment may still have: its detection and its end. */
const eventsEach = 2

const columns = `coalesce(sum(bytes), 0) AS stored, coalesce(sum(${eventsEach} * (open_bytes + open_payments *
  (2 * endpoint_bytes + endpoints * ${delivery + attempts}))), 0) AS promised`

const select = (where: string) => `SELECT account_id AS account, ${columns}, ${quotaOf("account_id", "?")} AS quota
  FROM usage ${where} GROUP BY account_id ORDER BY stored DESC, account_id`

/** The rows of every account, those that have stored most first. Its parameter: `accounts.quota_bytes`. */
export const selectUsages = select("")

/** The usage of every account, those that have stored most first. `configured`: `accounts.quota_bytes`. */
export const all = (db: Db, configured: number) => allRows<Usage>(db, selectUsages, [configured])

const usageBy = (statement: string) => (db: Db, account: AccountId, configured: number) =>
  Effect.map(
    oneRow<Usage>(db, statement, [configured, account]),
    (row): Usage => row ?? { account, stored: 0, promised: 0, quota: undefined }
  )

/** The usage of one account. */
export const of = usageBy(select("WHERE account_id = ?"))
const ofTestMode = usageBy(select("WHERE account_id = ? AND mode = 'test'"))
const ofLiveMode = usageBy(select("WHERE account_id = ? AND mode = 'live'"))

/** How much of its quota the test mode of an account with a live one may use: a key for trials must not stop live sales. */
const testPart = 0.5

/**
 * Fails when the account has used up its quota or, where it has anything live, its test mode half of that. Runs in the
 * transaction that stores something of a mode, or of none: before it does, so that payments are refused exactly while
 * `shareOf` is 1 or more; after an endpoint, by which what is promised multiplies. `configured`: `accounts.quota_bytes`.
 */
export const keepWithin = (
  { account, mode }: Pick<Owner, "account"> & Partial<Owner>,
  configured: number
): Effect.Effect<void, QuotaExceeded | StoreUnavailable, Tx> =>
  Effect.flatMap(Tx, (tx) =>
    Effect.flatMap(of(tx, account, configured), (usage) => {
      const { quota, stored } = usage
      if (quota === undefined) return Effect.void
      const share = shareOf(usage)
      if (share >= 1) return new QuotaExceeded({ quota, by: stored >= quota ? "rows" : "payments" })
      if (mode !== "test" || share < testPart) return Effect.void
      const modes = Effect.zip(ofTestMode(tx, account, configured), ofLiveMode(tx, account, configured))
      return Effect.flatMap(modes, ([test, live]) =>
        shareOf(test) >= testPart && live.stored > 0 ? new QuotaExceeded({ quota, by: "test" }) : Effect.void
      )
    })
  )

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
    const remedy = `raise it: tilld accounts change ${account} --quota SIZE`
    return [{ account, level, stored, quota, summary: summaryOf(usage, quota, level), remedy }]
  })

export const levelsOf = (accounts: ReadonlyArray<CloseAccount>): ReadonlyMap<AccountId, QuotaLevel> =>
  new Map(accounts.map(({ account, level }) => [account, level]))
