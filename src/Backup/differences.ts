/** What to look at after a restore: how much the former database has that the backup lacks, and what is open. */
import Database from "better-sqlite3"
import { Effect } from "effect"
import type { ChainName, Mode } from "../Domain/Chain.ts"
import type { PaymentCurrency } from "../Domain/Currency.ts"
import { deadlineSql } from "../Domain/Payment.ts"
import { iso } from "../lib/moment.ts"
import type { Db } from "../Sql.ts"
import { onDisk } from "./files.ts"

/** Rows that the backup lacks, by the columns that tell them apart. */
const missing = (table: string, ...columns: ReadonlyArray<string>): string =>
  `FROM ${table} AS a WHERE NOT EXISTS (
     SELECT 1 FROM backup.${table} AS b WHERE ${columns.map((column) => `b.${column} = a.${column}`).join(" AND ")})`

/** Rows that are in both, with another value in the backup. */
const changed = (table: string, column: string): string =>
  `FROM ${table} AS a JOIN backup.${table} AS b USING (id) WHERE a.${column} IS NOT b.${column}`

/** What is counted, in tables that every schema has. */
const compared = {
  payments: missing("payments", "id"),
  changedPayments: changed("payments", "status"),
  invoices: missing("invoices", "id"),
  exceptions: missing("exceptions", "id"),
  decisions: changed("exceptions", "outcome"),
  refunds: missing("refunds", "id"),
  events: missing("events", "id"),
  deliveries: missing("deliveries", "event_id", "id"),
  accounts: missing("accounts", "id"),
  people: missing("people", "id"),
  keys: missing("api_keys", "id"),
  revokedKeys: changed("api_keys", "revoked_at"),
  endpoints: missing("endpoints", "id"),
  deletedEndpoints: changed("endpoints", "deleted_at"),
  /** Administrative acts. After a restore another one may have the same number. */
  acts: missing("audit", "sequence", "at", "act", "detail")
}

/** How much of each the database in place has and the backup lacks. */
export type Differences = { readonly [What in keyof typeof compared]: number }

/** A payment that has got money, and that the backup lacks. `decimals`: of its token, as `Payment` has it. */
interface LostMoney {
  readonly payment: string
  readonly merchantRef: string
  readonly chain: ChainName
  readonly mode: Mode
  readonly address: string
  readonly amount: string
  readonly currency: PaymentCurrency
  readonly decimals: number | null
}

/** The newest, as many as a person reads. Each becomes an exception, which names the address but no order. */
const lostMoney = `SELECT a.id AS payment, a.merchant_ref AS merchantRef, a.chain, a.mode, a.address, a.received AS amount, a.currency,
    (SELECT decimals FROM main.tokens WHERE id = a.token) AS decimals
  ${missing("payments", "id")} AND a.received <> '0' ORDER BY a.sequence DESC LIMIT 100`

/** Compares the database in place with the backup; both are complete, and neither is changed. */
export const differencesOf = (inPlace: string, backup: string) =>
  onDisk(`${inPlace} could not be compared with the backup`, () => {
    const database = new Database(inPlace, { readonly: true, timeout: 5_000 })
    try {
      database.prepare("ATTACH ? AS backup").run(backup)
      const count = (sql: string) => database.prepare(`SELECT count(*) ${sql}`).pluck().get()
      return {
        lost: Object.fromEntries(Object.entries(compared).map(([what, sql]) => [what, count(sql)])) as Differences,
        lostMoney: database.prepare<[], LostMoney>(lostMoney).all()
      }
    } finally {
      database.close()
    }
  })

/** Payments of the backup whose end is not known, and deliveries that will be made, `now` in Unix milliseconds. */
export const openIn = Effect.fn("Backup.openIn")(function* (db: Db, now: number, newest: number | null) {
  const payments = yield* db.get<{ count: number; pastDue: number; oldest: number | null }>(
    `SELECT count(*) AS count, count(*) FILTER (WHERE ${deadlineSql} < ?) AS pastDue, min(created_at) AS oldest
     FROM payments WHERE status IN ('pending', 'detecting')`,
    [now]
  )
  const deliveries = yield* db.get<{ n: number }>("SELECT count(*) AS n FROM deliveries WHERE done_at IS NULL")
  const lastDay = yield* db.get<{ n: number }>("SELECT count(*) AS n FROM payments WHERE created_at > ?", [
    (newest ?? now) - 24 * 60 * 60 * 1000
  ])
  const oldest = payments?.oldest ?? null
  return {
    openPayments: payments?.count ?? 0,
    /** Open ones whose deadline has passed meanwhile. */
    pastDuePayments: payments?.pastDue ?? 0,
    oldestOpenPayment: oldest === null ? null : iso(oldest),
    /** Those that were made after the backup are made again. */
    pendingDeliveries: deliveries?.n ?? 0,
    /** Payments that were created in the last 24 hours of the backup. */
    paymentsInLastDay: lastDay?.n ?? 0
  }
})
