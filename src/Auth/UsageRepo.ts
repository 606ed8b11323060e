import { Effect } from "effect"
import { QuotaExceeded } from "../Domain/AccountErrors.ts"
import type { AccountId } from "../Domain/Ids.ts"
import { type Db, Tx } from "../Sql.ts"

// The disk usage of accounts. Triggers of the schema maintain the sums; here they are read and compared with the quota.

/** The disk usage of an account, in bytes. */
export interface Usage {
  readonly account: AccountId
  readonly stored: number
  /** What its open payments and unfinished deliveries may still store. */
  readonly reserved: number
}

/** Bytes of an attempt with its stored response. The schedule has six attempts. */
const attempt = 700
/** Bytes of a delivery without its URL, which counts twice: a row of more than half a page takes a whole page. */
const delivery = 500
const attemptsEach = 6
/** Events that an open payment may still have: its detection and its end. */
const eventsEach = 2

const columns = `account_id AS account, sum(bytes) AS stored,
  sum(unfinished * ${attemptsEach * attempt} + ${eventsEach} * (open_bytes + open_payments *
    (2 * endpoint_bytes + (endpoints + 1) * ${delivery + attemptsEach * attempt}))) AS reserved`

/** The usage of every account that has stored anything, the largest first. */
export const all = (db: Db) =>
  db.all<Usage>(`SELECT ${columns} FROM usage GROUP BY account_id ORDER BY stored + reserved DESC, account_id`)

/** The operator is warned at this part of the quota. */
const alarmAt = 0.8

/** Whether the operator should be warned that an account will soon reach its quota. */
export const isNearlyFull = ({ reserved, stored }: Usage, quota: number): boolean =>
  stored + reserved >= alarmAt * quota

/**
 * Fails when the account is beyond its quota, in bytes. Runs after the statements that store something, in the same
 * transaction: the failure rolls them back.
 */
export const keepWithin = (account: AccountId, quota: number) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const usage = yield* tx.get<Usage>(`SELECT ${columns} FROM usage WHERE account_id = ?`, [account])
    if (usage !== undefined && usage.stored + usage.reserved > quota) return yield* new QuotaExceeded({ quota })
  })
