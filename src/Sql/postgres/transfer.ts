/** The end of a copy that is in PostgreSQL. The copy's connection has the lease, so that no node works meanwhile. */
import { Effect } from "effect"
import packageJson from "../../../package.json" with { type: "json" }
import { oneValue } from "../Db.ts"
import { InstanceLocked } from "../InstanceLock.ts"
import { StoreUnusable } from "../StoreUnusable.ts"
import { newestSchema } from "../schema.ts"
import { batch, type CopiedTable, type CopySource, type CopyTarget, selectRows } from "../transfer.ts"
import { StoreConnection, type StorePlace } from "./Connection.ts"
import { type Holder, selectHolder, takeWhileOpen } from "./lease.ts"
import { migrateIn, prepare, schemaOf } from "./migrate.ts"

/** An index of a large table takes long. */
const longestStatement = 24 * 3_600_000

/** Tables beside those that a node needs to wait for the lease. */
const otherTables = `SELECT count(*) FROM pg_class WHERE relnamespace = current_schema()::regnamespace
  AND relkind IN ('r', 'p', 'v', 'm', 'f') AND relname NOT IN ('migrations', 'lease', 'last_commit')`

/**
 * A connection with the lease until the scope ends, in a transaction: with the store that is there, or with a new one of the
 * newest schema, which the transaction makes.
 */
export const openTransfer = Effect.fnUntraced(function* (place: StorePlace, isNew: boolean) {
  if (isNew) yield* prepare(place)
  const connection = yield* Effect.acquireRelease(StoreConnection.open(place, longestStatement), (opened) =>
    Effect.sync(() => opened.close())
  )
  // The other end may take long for its indexes.
  yield* connection.script("SET idle_in_transaction_session_timeout = 0")
  // A copy that was killed gives the lease back, also in the midst of an index. PostgreSQL on Windows has no such setting.
  yield* Effect.exit(connection.script("SET client_connection_check_interval = '1s'"))
  const db = connection.db()
  const refuse = (why: string) => new StoreUnusable({ message: `The schema ${place.schema} of PostgreSQL ${why}` })
  if ((yield* oneValue(db, "SELECT CAST(to_regclass('lease') AS TEXT)")) === undefined)
    return yield* refuse("has no store")
  if ((yield* oneValue(db, takeWhileOpen, ["tilld store copy", packageJson.version])) === undefined) {
    const { node = "A node" } = (yield* db.get<Holder>(selectHolder)) ?? {}
    const message = `${node} works on the store in PostgreSQL: stop tilld on every node first`
    return yield* new InstanceLocked({ pid: undefined, message })
  }
  if (isNew && (yield* oneValue(db, otherTables)) !== 0) {
    return yield* refuse(
      "has tables already: name another one in database.schema; or drop it, if it has nothing but a copy"
    )
  }
  const schema = yield* schemaOf(db)
  if (!isNew && schema !== newestSchema) {
    return yield* refuse(
      `has schema ${schema}, and this version knows ${newestSchema}: start the newer of the two once`
    )
  }
  yield* connection.script("BEGIN ISOLATION LEVEL REPEATABLE READ")
  if (isNew) yield* migrateIn(db, place)
  return connection
})

export const serverSource = (connection: StoreConnection): CopySource => ({
  read: (table) => {
    let isOver = false
    const next = Effect.gen(function* () {
      if (isOver) return []
      const rows = yield* connection.lists(`FETCH ${batch} FROM copied`)
      isOver = rows.length < batch
      if (isOver) yield* connection.script("CLOSE copied")
      return rows
    })
    return Effect.as(connection.script(`DECLARE copied NO SCROLL CURSOR FOR ${selectRows(table)}`), next)
  }
})

/** Of each: the statement that drops it, and the one that makes it again. */
const references = `SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname),
    format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
  FROM pg_constraint WHERE connamespace = current_schema()::regnamespace AND contype = 'f' ORDER BY oid`
const indexes = `SELECT format('DROP INDEX %s', indexrelid::regclass), pg_get_indexdef(indexrelid)
  FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE relnamespace = current_schema()::regnamespace
    AND NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = indexrelid) ORDER BY indexrelid`
/** Statements after which a new row gets the number after the greatest, as in a file. */
const numbers = `SELECT format('SELECT setval(pg_get_serial_sequence(%L, %L), (SELECT max(%I) FROM %I))::text',
    quote_ident(table_name), column_name, column_name, table_name)
  FROM information_schema.columns WHERE table_schema = current_schema AND is_identity = 'YES'`

/** Writes into a new store, as `openTransfer` has made it. */
export const serverTarget = Effect.fnUntraced(function* (
  connection: StoreConnection,
  tables: ReadonlyArray<CopiedTable>
) {
  const [referring, indexing] = [yield* connection.lists(references), yield* connection.lists(indexes)]
  const names = tables.map(({ name }) => name)
  const triggers = (change: string) => names.map((name) => [`ALTER TABLE ${name} ${change} TRIGGER USER`])
  const run = (statements: ReadonlyArray<ReadonlyArray<string | null>>, which = 0) =>
    Effect.forEach(statements, (row) => connection.script(row[which] ?? ""), { discard: true })
  yield* run([...referring, ...indexing, ...triggers("DISABLE"), [`TRUNCATE ${names.join(", ")}`]])
  return {
    ...serverSource(connection),
    insert: ({ columns, name }, rows) => {
      const all = columns.map((column) => column.name).join(", ")
      const texts = columns.map((_, i) => `$${i + 1}::text[]`).join(", ")
      const values = columns.map(({ name, type }) => {
        if (type === "BLOB") return `decode(given.${name}, 'hex')`
        return type === "INTEGER" ? `given.${name}::bigint` : `given.${name}`
      })
      return connection.lists(
        `INSERT INTO ${name} (${all}) OVERRIDING SYSTEM VALUE SELECT ${values.join(", ")} FROM unnest(${texts}) AS given (${all})`,
        columns.map((_, i) => rows.map((row) => row[i]))
      )
    },
    complete: Effect.gen(function* () {
      yield* run([...indexing, ...referring], 1)
      // Without ANALYZE the first queries would be planned as for empty tables.
      yield* run([...triggers("ENABLE"), ...(yield* connection.lists(numbers)), [`ANALYZE ${names.join(", ")}`]])
    })
  } satisfies CopyTarget
})
