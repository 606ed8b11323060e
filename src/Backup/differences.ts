/** Facts to check after a restore: what the former database has and the backup lacks, and what is open. */
import Database from "better-sqlite3"
import { Effect } from "effect"
import { deadlineSql } from "../Domain/Payment.ts"
import { iso } from "../lib/moment.ts"
import type { Db } from "../Sql.ts"
import { onDisk } from "./files.ts"

/** Maximum rows of each list. The counts are of all. */
const longestList = 1_000

export interface LostPayment {
  readonly id: string
  readonly merchantRef: string
  readonly account: string
  readonly mode: string
  readonly status: string
  readonly amount: string
  readonly currency: string
  readonly chain: string
  readonly address: string
  readonly createdAt: string
}

/** Data of the database in place that the backup lacks. */
export interface Differences {
  readonly payments: number
  /** The first of them. */
  readonly lostPayments: ReadonlyArray<LostPayment>
  /** Payments that are in both, with another status. */
  readonly changedPayments: number
  readonly acts: number
  /** Administrative acts that are undone, oldest first. */
  readonly undone: ReadonlyArray<{
    readonly at: string
    readonly who: string
    readonly act: string
    readonly detail: unknown
  }>
}

const missing = "FROM payments AS p WHERE NOT EXISTS (SELECT 1 FROM backup.payments AS b WHERE b.id = p.id)"
const later = `FROM audit AS a WHERE NOT EXISTS (SELECT 1 FROM backup.audit AS b
  WHERE b.sequence = a.sequence AND b.at = a.at AND b.act = a.act AND b.detail = a.detail)`

const compare = (database: Database.Database): Differences => {
  const count = (sql: string) => database.prepare<[], { n: number }>(`SELECT count(*) AS n ${sql}`).get()?.n ?? 0
  return {
    payments: count(missing),
    lostPayments: database
      .prepare<[number], Omit<LostPayment, "createdAt"> & { created_at: number }>(
        `SELECT id, merchant_ref AS merchantRef, account_id AS account, mode, status, amount, currency, chain, address,
           created_at ${missing} ORDER BY sequence LIMIT ?`
      )
      .all(longestList)
      .map(({ created_at, ...payment }) => ({ ...payment, createdAt: iso(created_at) })),
    changedPayments: count("FROM payments AS p JOIN backup.payments AS b USING (id) WHERE p.status <> b.status"),
    acts: count(later),
    undone: database
      .prepare<[number], { at: number; who: string; act: string; detail: string }>(
        `SELECT at, who, act, detail ${later} ORDER BY sequence LIMIT ?`
      )
      .all(longestList)
      .map(({ act, at, detail, who }) => ({ at: iso(at), who, act, detail: JSON.parse(detail) as unknown }))
  }
}

/** Compares the database in place with the backup; both are complete, and neither is changed. */
export const differencesOf = (inPlace: string, backup: string) =>
  onDisk(`${inPlace} could not be compared with the backup`, () => {
    const database = new Database(inPlace, { readonly: true, timeout: 5_000 })
    try {
      database.prepare("ATTACH ? AS backup").run(backup)
      return compare(database)
    } finally {
      database.close()
    }
  })

/** Open payments of the backup by chain. */
export interface OpenPayments {
  readonly mode: string
  readonly chain: string
  readonly status: string
  readonly count: number
  readonly oldest: string
  /** Those whose deadline has passed meanwhile. */
  readonly pastDue: number
}

/** Deliveries that the backup has as pending: those that were made after it are made again. */
export interface PendingDeliveries {
  readonly account: string
  readonly mode: string
  readonly count: number
}

/** Payments of the backup whose end is not known, and deliveries that will be made, `now` in Unix milliseconds. */
export const openIn = Effect.fn("Backup.openIn")(function* (db: Db, now: number, newest: number | null) {
  const payments = yield* db.all<Omit<OpenPayments, "oldest"> & { oldest: number }>(
    `SELECT mode, chain, status, count(*) AS count, min(created_at) AS oldest,
       sum(${deadlineSql} < ?) AS pastDue
     FROM payments WHERE status IN ('pending', 'detecting') GROUP BY mode, chain, status ORDER BY mode, chain, status`,
    [now]
  )
  const deliveries = yield* db.all<PendingDeliveries>(
    `SELECT account_id AS account, mode, count(*) AS count FROM deliveries WHERE done_at IS NULL
     GROUP BY account_id, mode ORDER BY account_id, mode`
  )
  const lastDay = yield* db.get<{ n: number }>("SELECT count(*) AS n FROM payments WHERE created_at > ?", [
    (newest ?? now) - 24 * 60 * 60 * 1000
  ])
  return {
    openPayments: payments.map(({ oldest, ...row }): OpenPayments => ({ ...row, oldest: iso(oldest) })),
    pendingDeliveries: deliveries,
    /** Payments that were created in the last 24 hours of the backup. */
    paymentsInLastDay: lastDay?.n ?? 0
  }
})
