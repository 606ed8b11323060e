/** The table `quotes`. A quote is used once a payment names it. */
import { Effect } from "effect"
import type { Owner } from "../Domain/Account.ts"
import type { QuoteId } from "../Domain/Ids.ts"
import type { QuoteObject } from "../Domain/Quote.ts"
import { type Db, execute, oneValue, Tx } from "../Sql.ts"

export interface StoredQuote {
  readonly id: QuoteId
  readonly quote: QuoteObject
  /** Unix milliseconds; the last at which it can be used. */
  readonly validUntil: number
  /** Whether a payment names it. */
  readonly used: boolean
}

export const insert = (owner: Owner, quote: QuoteObject, createdAt: number, validUntil: number) =>
  execute("INSERT INTO quotes (id, account_id, mode, body, created_at, valid_until) VALUES (?, ?, ?, ?, ?, ?)", [
    quote.id,
    owner.account,
    owner.mode,
    JSON.stringify(quote),
    createdAt,
    validUntil
  ])

/** A quote of this owner; undefined for one of another account or mode. */
export const byOwner = (db: Db, { account, mode }: Owner, id: string) =>
  Effect.map(
    db.get<{ id: QuoteId; body: string; valid_until: number; used: number }>(
      `SELECT id, body, valid_until, EXISTS (SELECT 1 FROM payments WHERE quote_id = quotes.id) AS used
       FROM quotes WHERE id = ? AND account_id = ? AND mode = ?`,
      [id, account, mode]
    ),
    (row): StoredQuote | undefined =>
      row && { id: row.id, quote: JSON.parse(row.body), validUntil: row.valid_until, used: row.used === 1 }
  )

/** The terms of a quote, whosever it is: for the payment that names it. */
export const byId = (db: Db, id: QuoteId) =>
  Effect.map(
    oneValue<string>(db, "SELECT body FROM quotes WHERE id = ?", [id]),
    (body): QuoteObject | undefined => body && JSON.parse(body)
  )

/** The cursor of `forget`: the last quote that it looked at; Unix milliseconds. */
export interface QuoteCursor {
  readonly createdAt: number
  readonly id: string
}

/**
 * Deletes, of the next `limit` quotes behind `after` that were made up to `until` (Unix milliseconds), those that no payment
 * names. Gives the last one that it looked at; undefined when there are no more.
 */
export const forget = (until: number, after: QuoteCursor | undefined, limit: number) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const old = yield* tx.all<QuoteCursor>(
      `SELECT id, created_at AS createdAt FROM quotes
       WHERE created_at <= ? AND (created_at, id) > (?, ?) ORDER BY created_at, id LIMIT ?`,
      [until, after?.createdAt ?? 0, after?.id ?? "", limit]
    )
    yield* tx.run(
      `DELETE FROM quotes WHERE id IN (SELECT value FROM json_each(?))
         AND NOT EXISTS (SELECT 1 FROM payments WHERE quote_id = quotes.id)`,
      [JSON.stringify(old.map(({ id }) => id))]
    )
    return old.length === limit ? old.at(-1) : undefined
  })
