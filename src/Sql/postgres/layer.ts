import { Context, Effect, Layer } from "effect"
import { Workers } from "../../Telemetry/Workers.ts"
import { type Db, Reader, StoreHistory } from "../Db.ts"
import { FilesHealth, StoreHealth } from "../StoreHealth.ts"
import { makeWriter, Writer } from "../Writer.ts"
import { reopened, type StorePlace } from "./Connection.ts"
import type { Lease } from "./lease.ts"
import { makeTransactions } from "./transactions.ts"

/** Queries, each on the next of several connections: a slow one delays those behind it on its own alone. */
export const makeReader = (place: StorePlace, lost: Lease["lost"], connections: number) =>
  Effect.map(Effect.replicateEffect(reopened(place, { lost }), connections), (pool): Db => {
    let next = 0
    const any = Effect.suspend(() =>
      Effect.map(pool[next++ % pool.length]?.connect ?? Effect.never, (connection) => connection.db())
    )
    return {
      all: (sql, params) => Effect.flatMap(any, (db) => db.all(sql, params)),
      get: (sql, params) => Effect.flatMap(any, (db) => db.get(sql, params)),
      run: (sql, params) => Effect.flatMap(any, (db) => db.run(sql, params)),
      runEach: (sql, rows) => Effect.flatMap(any, (db) => db.runEach(sql, rows)),
      writes: () => 0,
      changes: Effect.succeed(0)
    }
  })

/** The writer and the reader of a schema of PostgreSQL, for the node that has this lease. */
export const serverStore = (place: StorePlace, lease: Lease, connections = 4) =>
  Layer.scopedContext(
    Effect.gen(function* () {
      const health = new FilesHealth([])
      const writer = yield* makeWriter(yield* makeTransactions(place, lease), Effect.void, health)
      ;(yield* Workers).condition("store", () => health.reason())
      const reader = yield* makeReader(place, lease.lost, connections)
      return Context.make(Reader, reader).pipe(
        Context.add(Writer, writer),
        Context.add(StoreHealth, health),
        Context.add(StoreHistory, lease.history)
      )
    })
  )
