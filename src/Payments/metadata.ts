/**
 * The metadata of payments after their creation: its change, and the index by which it is searched. A creation writes no
 * row of the index: `Housekeeping` adds them soon, in the order of payments, and a search reads those behind one by one.
 */
import { Data, Effect, Either } from "effect"
import { keepWithin } from "../Auth/UsageRepo.ts"
import type { Accounted } from "../Domain/Event.ts"
import { merged, termsOf } from "../Domain/Metadata.ts"
import type { Payment } from "../Domain/Payment.ts"
import { Settings } from "../Settings.ts"
import { anyRow, type CommitWith, type Db, type StoreUnavailable, Tx, Writer } from "../Sql.ts"
import { shownMoney } from "./shownMoney.ts"

/** The metadata would be too large with the change. */
export class MetadataRefused extends Data.TaggedError("MetadataRefused")<{ readonly message: string }> {}

/** SQL: the last payment whose metadata is in `metadata_terms`. */
export const lastIndexed = "(SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'metadata_indexed')"

type Indexed = Pick<Payment, "account" | "mode" | "createdAt" | "sequence" | "metadata">

const termRows = ({ account, createdAt, metadata, mode, sequence }: Indexed) =>
  termsOf(metadata).map(([key, value]) => [account, mode, key, value, createdAt, sequence])
const addTerm = "INSERT INTO metadata_terms VALUES (?, ?, ?, ?, ?, ?)"
const removeTerm = `DELETE FROM metadata_terms
  WHERE (account_id, mode, key, value, created_at, sequence) = (?, ?, ?, ?, ?, ?)`

/** Whether there are payments whose metadata is not indexed. */
export const areUnindexed = (db: Db) => anyRow(db, `SELECT 1 FROM payments WHERE sequence > ${lastIndexed} LIMIT 1`, [])

/** Indexes the metadata of so many more payments. True where there may be others. */
export const indexMetadata = (limit: number) =>
  Effect.gen(function* () {
    const tx = yield* Tx
    const page = yield* tx.all<Indexed>(
      `SELECT sequence, account_id AS account, mode, created_at AS createdAt, metadata FROM payments
       WHERE sequence > ${lastIndexed} ORDER BY sequence LIMIT ?`,
      [limit]
    )
    yield* tx.runEach(addTerm, page.flatMap(termRows))
    const { sequence } = page.at(-1) ?? {}
    if (sequence !== undefined)
      yield* tx.run("UPDATE meta SET value = ? WHERE key = 'metadata_indexed'", [`${sequence}`])
    return page.length === limit
  })

/**
 * Changes keys of a payment's metadata, see `merged`, in any status. Events that are stored keep theirs; later ones have the
 * new. Undefined where there is no payment.
 *
 * @param find reads the payment
 * @param alsoCommit also commits, in the same transaction
 */
export const changeMetadata = Effect.fn("Payments.changeMetadata")(function* (
  find: (db: Db) => Effect.Effect<Payment | undefined, StoreUnavailable>,
  change: string,
  alsoCommit: CommitWith<Accounted> = () => Effect.void
) {
  const writer = yield* Writer
  const { quotaBytes } = (yield* Settings).accounts
  return yield* writer.write(
    Effect.gen(function* () {
      const tx = yield* Tx
      const before = yield* find(tx)
      if (before === undefined) return undefined
      const metadata = yield* Either.mapLeft(
        merged(before.metadata, change),
        (message) => new MetadataRefused({ message })
      )
      yield* keepWithin(before, quotaBytes)
      const payment = { ...before, metadata }
      yield* tx.run("UPDATE payments SET metadata = ? WHERE id = ?", [metadata, payment.id])
      if (yield* anyRow(tx, `SELECT 1 WHERE ? <= ${lastIndexed}`, [payment.sequence])) {
        yield* tx.runEach(removeTerm, termRows(before))
        yield* tx.runEach(addTerm, termRows(payment))
      }
      const changed: Accounted = { payment, ...(yield* shownMoney(tx, payment.id)) }
      yield* alsoCommit(changed)
      return changed
    })
  )
})
