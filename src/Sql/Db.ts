import type Database from "better-sqlite3"
import { Context, Effect, Schema } from "effect"

export type Param = string | number | bigint | Uint8Array | null

/**
 * The disk is full or failing, or another process holds the database. Nothing of the command was stored, and a later
 * retry may succeed. Every other SQL error is a defect.
 */
export class StoreUnavailable extends Schema.TaggedError<StoreUnavailable>()("StoreUnavailable", {
  code: Schema.String,
  message: Schema.String
}) {}

/**
 * Runs SQL. Each statement is prepared once. `Row` is the type of the selected rows, declared by the calling repository.
 */
export interface Db {
  readonly all: <Row extends object>(
    sql: string,
    params?: ReadonlyArray<Param>
  ) => Effect.Effect<ReadonlyArray<Row>, StoreUnavailable>
  readonly get: <Row extends object>(
    sql: string,
    params?: ReadonlyArray<Param>
  ) => Effect.Effect<Row | undefined, StoreUnavailable>
  readonly run: (sql: string, params?: ReadonlyArray<Param>) => Effect.Effect<void, StoreUnavailable>
  /** The same statement for each of many rows. */
  readonly runEach: (sql: string, rows: ReadonlyArray<ReadonlyArray<Param>>) => Effect.Effect<void, StoreUnavailable>
  /** The number of statements run so far that may have changed the database. */
  readonly writes: () => number
  /** The number of rows changed so far. */
  readonly changes: Effect.Effect<number, StoreUnavailable>
}

/** Whether a query gives any row. */
export const anyRow = (db: Db, sql: string, params: ReadonlyArray<Param> = []) =>
  Effect.map(db.get(sql, params), (row) => row !== undefined)

/** The rows of a query with one column: the values of that. */
export const allValues = <Value>(db: Db, sql: string, params: ReadonlyArray<Param> = []) =>
  Effect.map(db.all(sql, params), (rows) => rows.map((row): Value => Object.values(row)[0]))

/** The same of a query for one row at most; undefined for NULL too. */
export const oneValue = <Value>(db: Db, sql: string, params: ReadonlyArray<Param> = []) =>
  Effect.map(allValues<Value | null>(db, sql, params), ([value]) => value ?? undefined)

/** The number of rows of a query. One that may have many has a LIMIT. */
export const countRows = (db: Db, sql: string, params: ReadonlyArray<Param> = []) =>
  Effect.map(oneValue<number>(db, `SELECT count(*) FROM (${sql})`, params), (count = 0) => count)

/** Puts undefined, as domain types have it, in place of SQL's NULL: in the row itself, which nothing else holds yet. */
export const withoutNulls = <Row extends object>(row: Row): Row => {
  const fields = row as Record<string, unknown>
  for (const name in fields) if (fields[name] === null) fields[name] = undefined
  return row
}

/**
 * The rows of a query that names each column as the field of a domain type: `created_at AS createdAt`. NULL is undefined,
 * so that `Row` can be that type.
 */
export const allRows = <Row extends object>(db: Db, sql: string, params: ReadonlyArray<Param> = []) =>
  Effect.map(db.all<Row>(sql, params), (rows): ReadonlyArray<Row> => rows.map(withoutNulls))

/** The same of a query for one row at most. */
export const oneRow = <Row extends object>(db: Db, sql: string, params: ReadonlyArray<Param>) =>
  Effect.map(db.get<Row>(sql, params), (row) => row && withoutNulls(row))

/** A condition of a query, with its parameters. */
export type SqlCondition = readonly [sql: string, ...params: ReadonlyArray<Param>]

/** A condition with these parameters; none where one of them is undefined. */
export const when = (sql: string, ...params: ReadonlyArray<Param | undefined>): ReadonlyArray<SqlCondition> =>
  params.includes(undefined) ? [] : [[sql, ...(params as ReadonlyArray<Param>)]]

/** All of the conditions, and their parameters in order. */
export const allOf = (conditions: ReadonlyArray<SqlCondition>) => ({
  where: conditions.map(([sql]) => sql).join(" AND "),
  params: conditions.flatMap(([, ...params]) => params)
})

/**
 * The transaction that a command of the writer runs in. What writes requires it; a query that any connection may run takes
 * a `Db` instead.
 */
export class Tx extends Context.Tag("tilld/Sql/Tx")<
  Tx,
  Db & {
    /**
     * Registers an action for after COMMIT and before the callers get their results: the place to change a cache or to
     * wake a worker. A function that several commands of a group register runs once, after the last of them.
     */
    readonly afterCommit: (action: () => void) => void
  }
>() {}

/** A command of one statement. */
export const execute = (sql: string, params: ReadonlyArray<Param> = []): Effect.Effect<void, StoreUnavailable, Tx> =>
  Effect.flatMap(Tx, (tx) => tx.run(sql, params))

/** Stores a row, in place of one with the same key. */
export const replaceRow = (table: string, key: ReadonlyArray<string>, row: Readonly<Record<string, Param>>) => {
  const columns = Object.keys(row)
  const changed = columns.filter((column) => !key.includes(column)).map((column) => `${column} = excluded.${column}`)
  return execute(
    `INSERT INTO ${table} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})
     ON CONFLICT (${key.join(", ")}) DO UPDATE SET ${changed.join(", ")}`,
    Object.values(row)
  )
}

/** How many rows a statement changes or deletes. */
export const changedRows = (sql: string, params: ReadonlyArray<Param>): Effect.Effect<number, StoreUnavailable, Tx> =>
  Effect.flatMap(Tx, (tx) => Effect.map(tx.all(`${sql} RETURNING 1`, params), (rows) => rows.length))

/** Whether it changes or deletes any, or as many as `least`. */
export const changes = (sql: string, params: ReadonlyArray<Param>, least = 1) =>
  Effect.map(changedRows(sql, params), (count) => count >= least)

/** What is also committed, in the transaction that makes `result`. */
export type CommitWith<A> = (result: A) => Effect.Effect<void, StoreUnavailable, Tx>

/** A separate read-only connection. It sees every acknowledged write and never waits for the writer. */
export class Reader extends Context.Tag("tilld/Sql/Reader")<Reader, Db>() {}

/**
 * What distinguishes a database server's present history from that of a restored copy, or of a standby that was promoted and
 * may lack what was acknowledged. Undefined where the database is a file.
 */
export class StoreHistory extends Context.Reference<StoreHistory>()("tilld/Sql/StoreHistory", {
  defaultValue: (): string | undefined => undefined
}) {}

const reasons: ReadonlyArray<readonly [code: RegExp, reason: string]> = [
  [/^SQLITE_FULL/, "the disk or its quota is full. Remedy: free some space; tilld goes on by itself"],
  [/^SQLITE_(BUSY|LOCKED)/, "another process holds the database. Remedy: end it; only tilld may write to the file"],
  [/^SQLITE_(IOERR|CANTOPEN|READONLY)/, "the disk answered with an error. Remedy: check it, and the file's permissions"]
]

/** The code that SQLite or the system gives an error; "" for none. */
export const codeOf = (cause: unknown): string =>
  typeof cause === "object" && cause !== null && "code" in cause && typeof cause.code === "string" ? cause.code : ""

/** Whether SQLite found a page of the file that cannot be right. */
export const isDamage = (cause: unknown): boolean => /^SQLITE_(CORRUPT|NOTADB)/.test(codeOf(cause))

const unavailable = (cause: unknown): StoreUnavailable => {
  const code = codeOf(cause)
  const known = reasons.find(([pattern]) => pattern.test(code))
  if (known === undefined) throw cause
  return new StoreUnavailable({ code, message: `The store is unavailable (${code}): ${known[1]}` })
}

/**
 * SQLite's planner uses the value of a bound LIMIT, and recompiles the statement each time it is bound, which takes
 * longer than most statements run. It does not look into an expression. Source: `sqlite3ExprIsInteger` in SQLite's
 * expr.c.
 */
const withoutReplanning = (sql: string): string => sql.replaceAll("LIMIT ?", "LIMIT ? + 0")

/**
 * Runs statements on a better-sqlite3 connection. Not the client of @effect/sql: it takes longer to find a prepared
 * statement than SQLite takes to run it, and a payment would take twice the time. `damaged` is called with an error that
 * means that the file is damaged.
 */
export const fromDatabase = (database: Database.Database, damaged: (cause: unknown) => void = () => {}): Db => {
  const attempt = <A>(execute: () => A): Effect.Effect<A, StoreUnavailable> =>
    Effect.try({
      try: execute,
      catch: (cause) => {
        if (isDamage(cause)) damaged(cause)
        return unavailable(cause)
      }
    })
  const prepared = new Map<string, Database.Statement>()
  let writes = 0
  const prepare = (sql: string): Database.Statement => {
    let statement = prepared.get(sql)
    if (statement === undefined) {
      statement = database.prepare(withoutReplanning(sql))
      prepared.set(sql, statement)
    }
    if (!statement.readonly) writes++
    return statement
  }
  const db: Omit<Db, "changes"> = {
    all: <Row extends object>(sql: string, params: ReadonlyArray<Param> = []) =>
      attempt(() => prepare(sql).all(params) as ReadonlyArray<Row>),
    get: <Row extends object>(sql: string, params: ReadonlyArray<Param> = []) =>
      attempt(() => prepare(sql).get(params) as Row | undefined),
    run: (sql, params = []) => attempt(() => void prepare(sql).run(params)),
    runEach: (sql, rows) =>
      attempt(() => {
        const statement = prepare(sql)
        for (const params of rows) statement.run(params)
      }),
    writes: () => writes
  }
  return {
    ...db,
    changes: Effect.map(
      oneValue<number>({ ...db, changes: Effect.succeed(0) }, "SELECT total_changes()"),
      (count = 0) => count
    )
  }
}
