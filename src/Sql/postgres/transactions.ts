import { Effect } from "effect"
import { StoreUnavailable } from "../Db.ts"
import type { Transactions } from "../Writer.ts"
import { reopened, type StoreConnection, type StorePlace } from "./Connection.ts"

/** How long after its end an unknown outcome is asked for again. */
const pause = "200 millis"

interface Begun {
  readonly connection: StoreConnection
  /** The transaction's number. */
  readonly xid: string
}

/** Gives the number of the transaction, and no row once another node has taken the lease. Until its end none can. */
const fence = "SELECT pg_current_xact_id()::text AS xid FROM lease WHERE epoch = ? FOR KEY SHARE"

/** The transactions of the writer, on a connection of their own, for as long as the lease has this epoch. */
export const makeTransactions = (place: StorePlace, epoch: number) =>
  Effect.gen(function* () {
    const { connect } = yield* reopened(place)
    let begun: Begun | undefined

    /**
     * Whether a transaction was committed whose COMMIT nobody answered: its number says so, and never what is in the store.
     * Asks until PostgreSQL answers, since its callers must be told neither of the two before it is known.
     */
    const outcome = (xid: string): Effect.Effect<void, StoreUnavailable> =>
      Effect.gen(function* () {
        const db = (yield* connect).db()
        const row = yield* db.get<{ status: string | null }>("SELECT pg_xact_status(CAST(? AS xid8)) AS status", [xid])
        return row?.status ?? "unknown"
      }).pipe(
        Effect.catchAll(() => Effect.succeed("in progress")),
        Effect.flatMap((status) => {
          if (status === "in progress") return Effect.delay(outcome(xid), pause)
          if (status === "committed") return Effect.void
          const message =
            "The store is unavailable (08007): the transaction was not committed; nothing was stored"
          return new StoreUnavailable({ code: "08007", message })
        })
      )

    const transactions: Transactions = {
      begin: Effect.gen(function* () {
        const connection = yield* connect
        const db = connection.db()
        const [, row] = yield* Effect.all([connection.script("BEGIN"), db.get<{ xid: string }>(fence, [epoch])], {
          concurrency: "unbounded"
        })
        begun = { connection, xid: row?.xid ?? "" }
        if (row !== undefined) return () => connection.db()
        yield* transactions.rollback
        return yield* new StoreUnavailable({
          code: "FENCED",
          message: "The store is unavailable: another node has taken over"
        })
      }),
      commit: Effect.suspend(() => {
        if (begun === undefined) return Effect.die("no transaction is open")
        const { connection, xid } = begun
        return connection.script("COMMIT").pipe(
          // Of a transaction in which a statement has failed it is a ROLLBACK, and no error.
          Effect.filterOrFail(
            (done) => done === "COMMIT",
            () => "rolled back"
          ),
          Effect.catchAll(() => Effect.interruptible(outcome(xid)))
        )
      }),
      isFar: true,
      rollback: Effect.suspend(() =>
        begun?.connection.isOpen ? Effect.asVoid(begun.connection.script("ROLLBACK")) : Effect.void
      )
    }
    return transactions
  })
