/** The end of a copy that is in PostgreSQL. The copy's connection has the lease, so that no node works meanwhile. */
import { Effect } from "effect"
import packageJson from "../../../package.json" with { type: "json" }
import { oneValue } from "../Db.ts"
import { InstanceLocked } from "../InstanceLock.ts"
import { StoreUnusable } from "../StoreUnusable.ts"
import { newestSchema } from "../schema.ts"
import { batch, type CopiedTable, type CopySource, type CopyTarget } from "../transfer.ts"
import { StoreConnection, type StorePlace } from "./Connection.ts"
import { type Holder, selectHolder, takeWhileOpen } from "./lease.ts"
import { migrateIn, prepare, schemaOf } from "./migrate.ts"

/** An index of a large table takes long. */
const longestStatement = 24 * 3_600_000

/** A connection that has the lease until it is closed, with the scope. */
const openWithLease = (place: StorePlace) =>
  Effect.gen(function* () {
    const connection = yield* Effect.acquireRelease(StoreConnection.open(place, longestStatement), (opened) =>
      Effect.sync(() => opened.close())
    )
    // The other end may need longer for its indexes.
    yield* connection.script("SET idle_in_transaction_session_timeout = 0")
    // A copy that was killed gives the lease back, also in the middle of an index.
    yield* connection.script("SET client_connection_check_interval = '1s'")
    const db = connection.db()
    const epoch = yield* oneValue<number>(db, takeWhileOpen, ["tilld store copy", packageJson.version])
    if (epoch !== undefined) return connection
    const holder = yield* db.get<Holder>(selectHolder)
    return yield* new InstanceLocked({
      pid: undefined,
      message: `${holder?.node ?? "A node"} works on the store in PostgreSQL: stop tilld on every node first`
    })
  })

/** PostgreSQL with no table of its own but those that a node needs to wait for the lease. In a transaction until `COMMIT`. */
export const openNewServer = Effect.fnUntraced(function* (place: StorePlace) {
  yield* prepare(place)
  const connection = yield* openWithLease(place)
  const tables = `SELECT count(*) FROM pg_class WHERE relnamespace = current_schema()::regnamespace
    AND relkind IN ('r', 'p', 'v', 'm', 'f') AND relname NOT IN ('migrations', 'lease')`
  if ((yield* oneValue<number>(connection.db(), tables)) !== 0) {
    return yield* new StoreUnusable({
      message: `The schema ${place.schema} of PostgreSQL has tables already: nothing was copied. Name another one in database.schema; or drop it, if a copy of this store is all that it has`
    })
  }
  yield* connection.script("BEGIN")
  yield* migrateIn(connection.db(), place)
  return connection
})

/** PostgreSQL with a store of the newest schema, as it is now. In a transaction until `COMMIT`. */
export const openServer = Effect.fnUntraced(function* (place: StorePlace) {
  const refuse = (why: string) =>
    new StoreUnusable({ message: `The schema ${place.schema} of PostgreSQL ${why}: nothing was copied` })
  const look = yield* StoreConnection.open(place)
  const found = "SELECT count(*) FROM pg_tables WHERE schemaname = ? AND tablename IN ('migrations', 'lease')"
  const isThere = yield* Effect.ensuring(
    oneValue<number>(look.db(), found, [place.schema]),
    Effect.sync(() => look.close())
  )
  if (isThere !== 2) return yield* refuse("has no store")
  const connection = yield* openWithLease(place)
  const schema = yield* schemaOf(connection.db())
  if (schema !== newestSchema) {
    return yield* refuse(
      schema === 0
        ? "has no store"
        : `has schema ${schema}, and this version knows ${newestSchema}: start the newer of the two once`
    )
  }
  yield* connection.script("BEGIN ISOLATION LEVEL REPEATABLE READ")
  return connection
})

const printed = (column: string, type: string): string => {
  if (type === "BLOB") return `encode(${column}, 'hex')`
  return type === "INTEGER" ? `${column}::text` : column
}
const parsed = (text: string, type: string): string => {
  if (type === "BLOB") return `decode(${text}, 'hex')`
  return type === "INTEGER" ? `${text}::bigint` : text
}

export const serverSource = (connection: StoreConnection): CopySource => ({
  read: ({ columns, key, name }) => {
    const values = columns.map((column) => printed(column.name, column.type))
    // With the table's name: without it the order would be that of the texts.
    const order = key.map((column) => `${name}.${column}`)
    let isOver = false
    return Effect.as(
      connection.script(
        `DECLARE copied NO SCROLL CURSOR FOR SELECT ${values.join(", ")} FROM ${name} ORDER BY ${order.join(", ")}`
      ),
      Effect.gen(function* () {
        if (isOver) return []
        const rows = yield* connection.lists(`FETCH ${batch} FROM copied`)
        isOver = rows.length < batch
        if (isOver) yield* connection.script("CLOSE copied")
        return rows
      })
    )
  }
})

const inSchema = "current_schema()::regnamespace"
/** Of each: the statement that drops it, and the one that makes it again. */
const references = `SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname),
    format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
  FROM pg_constraint WHERE connamespace = ${inSchema} AND contype = 'f' ORDER BY oid`
const indexes = `SELECT format('DROP INDEX %s', indexrelid::regclass), pg_get_indexdef(indexrelid)
  FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid WHERE relnamespace = ${inSchema}
    AND NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = indexrelid) ORDER BY indexrelid`
/** Statements after which a new row gets the number after the greatest, as in a file. */
const numbers = `SELECT format('SELECT setval(pg_get_serial_sequence(%L, %L), (SELECT max(%I) FROM %I))::text',
    quote_ident(table_name), column_name, column_name, table_name)
  FROM information_schema.columns WHERE table_schema = current_schema AND is_identity = 'YES'`

/** Writes into what `openNewServer` has made. */
export const serverTarget = (connection: StoreConnection, tables: ReadonlyArray<CopiedTable>) =>
  Effect.gen(function* () {
    const [referring, indexing] = [yield* connection.lists(references), yield* connection.lists(indexes)]
    const names = tables.map(({ name }) => name)
    const triggers = (change: string) => names.map((name) => `ALTER TABLE ${name} ${change} TRIGGER USER`)
    const run = (statements: ReadonlyArray<string | null | undefined>) =>
      Effect.forEach(statements, (statement) => connection.script(statement ?? ""), { discard: true })
    yield* run([
      ...[...referring, ...indexing].map(([drop]) => drop),
      ...triggers("DISABLE"),
      `TRUNCATE ${names.join(", ")}`
    ])
    return {
      ...serverSource(connection),
      insert: ({ columns, name }, rows) => {
        const all = columns.map((column) => column.name).join(", ")
        const texts = columns.map((_, i) => `$${i + 1}::text[]`).join(", ")
        const values = columns.map((column) => parsed(`given.${column.name}`, column.type)).join(", ")
        return connection.lists(
          `INSERT INTO ${name} (${all}) OVERRIDING SYSTEM VALUE SELECT ${values} FROM unnest(${texts}) AS given (${all})`,
          columns.map((_, i) => rows.map((row) => row[i]))
        )
      },
      complete: Effect.gen(function* () {
        yield* run([...[...indexing, ...referring].map(([, make]) => make), ...triggers("ENABLE")])
        yield* run((yield* connection.lists(numbers)).map(([set]) => set))
        // Without it the first queries would be planned as for empty tables.
        yield* run([`ANALYZE ${names.join(", ")}`])
      })
    } satisfies CopyTarget
  })
