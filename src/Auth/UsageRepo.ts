import { Effect } from "effect"
import { QuotaExceeded } from "../Domain/AccountErrors.ts"
import type { AccountId } from "../Domain/Ids.ts"
import { type Db, Tx } from "../Sql.ts"

// What accounts take of the disk. The store's triggers keep the sums; here they are read.

/** What an account has stored, and what that may still lead to, in bytes. */
export interface Usage {
  readonly account: AccountId
  readonly stored: number
  /** What open payments and unfinished deliveries may still have to store. */
  readonly reserved: number
}

/** An attempt with all that is kept of its answer; the schedule has six of them. */
const attempt = 700
/** A delivery without its URL, which counts twice: a row of more than half a page has a page to itself. */
const delivery = 500
const attemptsEach = 6
/** Events that an open payment has ahead: it is detected, and it ends. */
const eventsEach = 2

const columns = `account_id AS account, sum(bytes) AS stored,
  sum(unfinished * ${attemptsEach * attempt} + ${eventsEach} * (open_bytes + open_payments *
    (2 * endpoint_bytes + (endpoints + 1) * ${delivery + attemptsEach * attempt}))) AS reserved`

/** Of every account that has stored anything, the largest first. */
export const all = (db: Db) =>
  db.all<Usage>(`SELECT ${columns} FROM usage GROUP BY account_id ORDER BY stored + reserved DESC, account_id`)

/** An operator hears of it at this part of the quota. */
const alarmAt = 0.8

/** Whether an operator should hear that an account will soon be refused. */
export const isNearlyFull = ({ reserved, stored }: Usage, quota: number): boolean =>
  stored + reserved >= alarmAt * quota

/**
 * Refuses what would take an account beyond its quota. It runs behind the statements of what is asked for, in their
 * transaction, which the refusal undoes.
 */
export const keepWithin = (account: AccountId, quota: number) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const usage = yield* tx.get<Usage>(`SELECT ${columns} FROM usage WHERE account_id = ?`, [account])
    if (usage !== undefined && usage.stored + usage.reserved > quota) return yield* new QuotaExceeded({ quota })
  })
