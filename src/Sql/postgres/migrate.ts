import { Effect } from "effect"
import pg from "pg"
import packageJson from "../../../package.json" with { type: "json" }
import { type Db, oneValue } from "../Db.ts"
import { migrations, newerSchema, newestSchema, noteVersion, numberOf, selectVersion } from "../schema.ts"
import { StoreConnection, type StorePlace } from "./Connection.ts"
import { ofDefinitions } from "./dialect.ts"
import { functions } from "./functions.ts"

/**
 * The lease of the node that works, see lease.ts. Its primary key is the epoch: a transaction that holds that (FOR KEY
 * SHARE) delays whoever takes the lease, and no renewal.
 */
const leaseTable = `CREATE TABLE IF NOT EXISTS lease (
  epoch BIGINT PRIMARY KEY,
  holder TEXT NOT NULL,
  version TEXT NOT NULL,
  until TIMESTAMPTZ NOT NULL,
  pid BIGINT NOT NULL,
  began TIMESTAMPTZ,
  taken TIMESTAMPTZ[] NOT NULL DEFAULT '{}'
)`
const freeLease = "INSERT INTO lease SELECT 0, '', '', '-infinity', 0 WHERE NOT EXISTS (SELECT 1 FROM lease)"
/** What the last transaction of the writer left, see transactions.ts. */
const lastCommitTable = "CREATE TABLE IF NOT EXISTS last_commit (mark TEXT NOT NULL)"
const noCommit = "INSERT INTO last_commit SELECT '' WHERE NOT EXISTS (SELECT 1 FROM last_commit)"
const migrationsTable = `CREATE TABLE IF NOT EXISTS migrations (
  migration_id BIGINT PRIMARY KEY,
  name TEXT NOT NULL,
  created_at TIMESTAMPTZ NOT NULL DEFAULT now()
)`

const inTransaction = <A, E>(db: Db, work: Effect.Effect<A, E>) =>
  Effect.zipRight(db.run("BEGIN"), work).pipe(Effect.tap(() => db.run("COMMIT")))

/** Any number that no other program uses: of two nodes that start together one waits for the other. */
const preparing = "SELECT pg_advisory_xact_lock(7455332)"

const withConnection = <A, E>(place: StorePlace, use: (db: Db) => Effect.Effect<A, E>) =>
  Effect.acquireUseRelease(
    StoreConnection.open(place),
    (opened) => use(opened.db()),
    (opened) => Effect.sync(() => opened.close())
  )

/** Makes what a node needs to wait for the lease, where it is not there yet: the schema, and the lease itself. */
export const prepare = (place: StorePlace) =>
  withConnection(place, (db) =>
    inTransaction(
      db,
      Effect.forEach(
        [
          preparing,
          `CREATE SCHEMA IF NOT EXISTS ${pg.escapeIdentifier(place.schema)}`,
          migrationsTable,
          leaseTable,
          freeLease,
          lastCommitTable,
          noCommit
        ],
        (statement) => db.run(statement),
        { discard: true }
      )
    )
  )

/** The number of the store's schema; 0 where it has none yet. */
export const schemaOf = (db: Db) =>
  Effect.map(oneValue<number>(db, "SELECT max(migration_id) FROM migrations"), (newest = 0) => newest)

/** The number of the store's schema. Fails when it is newer than this version knows. */
export const refuseNewer = (db: Db, { schema }: StorePlace) =>
  Effect.gen(function* () {
    const current = yield* schemaOf(db)
    if (current <= newestSchema) return current
    const writer = yield* oneValue<string>(db, selectVersion)
    return yield* newerSchema(`The schema ${schema} of PostgreSQL`, writer, current, newestSchema)
  })

/** Migrates the store to the newest schema, in the caller's transaction, and notes this version as its writer. */
export const migrateIn = (db: Db, place: StorePlace) =>
  Effect.gen(function* () {
    const current = yield* refuseNewer(db, place)
    const due = Object.entries(migrations).filter(([name]) => numberOf(name) > current)
    const definitions = due.flatMap(([, statements]) => ofDefinitions(statements))
    for (const definition of current === 0 ? [...functions, ...definitions] : definitions) yield* db.run(definition)
    for (const [name] of due) {
      yield* db.run("INSERT INTO migrations (migration_id, name) VALUES (?, ?)", [numberOf(name), name])
    }
    yield* db.run(noteVersion, [packageJson.version])
  })

/** The same in a transaction of its own. */
export const migrateServer = (place: StorePlace) =>
  withConnection(place, (db) => inTransaction(db, migrateIn(db, place)))
