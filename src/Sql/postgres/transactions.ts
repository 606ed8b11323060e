import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import { oneValue, StoreUnavailable } from "../Db.ts"
import type { Transactions } from "../Writer.ts"
import { fenced, isFenced, reopened, type StoreConnection, type StorePlace } from "./Connection.ts"
import { isOwn, type Lease } from "./lease.ts"

/** How long after its end an unknown outcome is asked for again. */
const pause = "200 millis"

interface Begun {
  readonly connection: StoreConnection
  /** What the transaction leaves as its mark. */
  readonly mark: string
}

/**
 * Leaves the mark of a transaction; gives no row once another node has taken the lease. Until the transaction's end none can.
 */
const fence = `UPDATE last_commit SET mark = ? FROM (SELECT FROM lease WHERE ${isOwn} FOR KEY SHARE) AS own RETURNING mark`

/**
 * Whether the last transaction of this node left this mark. Waits for the end of one that is open; gives no row once another
 * node has taken the lease, which may have left a mark since.
 */
const lastMark = `SELECT mark = ? AS done FROM lease, last_commit WHERE ${isOwn}
  FOR KEY SHARE OF lease FOR UPDATE OF last_commit`

/** The transactions of the writer, on a connection of their own, for as long as this node has the lease. */
export const makeTransactions = (place: StorePlace, { epoch, history, lost }: Lease) =>
  Effect.gen(function* () {
    const { connect } = yield* reopened(place, { lost })
    let begun: Begun | undefined

    /**
     * Whether a transaction was committed whose COMMIT nobody answered: its mark says so. Its number would not, since a server
     * that crashed gives numbers again. Asks until PostgreSQL answers, since its callers must be told neither of the two
     * before it is known; this node ends where it has lost the lease.
     */
    const outcome = (mark: string): Effect.Effect<void, StoreUnavailable> =>
      Effect.flatMap(connect, (connection) => oneValue<number>(connection.db(), lastMark, [mark, epoch, history])).pipe(
        Effect.catchIf(
          ({ code }) => code !== fenced,
          () => Effect.succeed(undefined)
        ),
        Effect.flatMap((done) => {
          if (done === undefined) return Effect.delay(outcome(mark), pause)
          if (done === 1) return Effect.void
          const message = "The store is unavailable (08007): the transaction was not committed; nothing was stored"
          return new StoreUnavailable({ code: "08007", message })
        })
      )

    const transactions: Transactions = {
      begin: Effect.gen(function* () {
        const connection = yield* connect
        const db = connection.db()
        const mark = randomUUID()
        const [, left] = yield* Effect.all(
          [connection.script("BEGIN"), oneValue<string>(db, fence, [mark, epoch, history])],
          { concurrency: "unbounded" }
        )
        begun = { connection, mark }
        if (left !== undefined) return () => connection.db()
        yield* transactions.rollback
        return yield* isFenced
      }),
      commit: Effect.suspend(() => {
        if (begun === undefined) return Effect.die("no transaction is open")
        const { connection, mark } = begun
        return connection.script("COMMIT").pipe(
          // Of a transaction in which a statement has failed it is a ROLLBACK, and no error.
          Effect.filterOrFail(
            (done) => done === "COMMIT",
            () => "rolled back"
          ),
          Effect.catchAll(() => Effect.interruptible(outcome(mark)))
        )
      }),
      isFar: true,
      rollback: Effect.suspend(() =>
        begun?.connection.isOpen ? Effect.asVoid(begun.connection.script("ROLLBACK")) : Effect.void
      )
    }
    return transactions
  })
