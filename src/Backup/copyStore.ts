/**
 * Moves a store from a file to PostgreSQL, or back: all rows, each compared afterwards, and the address numbering, which goes
 * on where it was. The target is there when everything is right, and not before: PostgreSQL commits one transaction, a
 * file gets its name. Then the source is marked as moved, and no start uses it again.
 */
import { randomUUID } from "node:crypto"
import { chownSync, closeSync, existsSync, statSync } from "node:fs"
import Database from "better-sqlite3"
import { Cause, Clock, Duration, Effect, Either } from "effect"
import * as AuditRepo from "../Operations/AuditRepo.ts"
import { detailText } from "../Operations/auditLog.ts"
import {
  furthestIn,
  furthestOf,
  type Mark,
  markFile,
  openIndexMark,
  readMark
} from "../Payments/addresses/IndexMark.ts"
import { doubtOf, movedTo, nextOf, refuseMoved, UnitFolder } from "../Payments/addresses/numbering.ts"
import * as WalletsRepo from "../Payments/addresses/WalletsRepo.ts"
import type { SettingsShape, SettingsSource } from "../Settings.ts"
import { codeOf, type Db, fromDatabase, oneValue } from "../Sql/Db.ts"
import { openOwn, syncToDisk } from "../Sql/fileAccess.ts"
import { migrateFile } from "../Sql/migrate.ts"
import type { StoreConnection } from "../Sql/postgres/Connection.ts"
import { presentHistory } from "../Sql/postgres/lease.ts"
import { placeOf } from "../Sql/postgres/place.ts"
import { openTransfer, serverSource, serverTarget } from "../Sql/postgres/transfer.ts"
import { orUnusable, StoreUnusable } from "../Sql/StoreUnusable.ts"
import { newestSchema } from "../Sql/schema.ts"
import {
  type CopiedRow,
  type CopiedTable,
  type CopySource,
  type CopyTarget,
  copiedTables,
  fileSource,
  fileTarget
} from "../Sql/transfer.ts"
import { Tx } from "../Sql.ts"
import { BackupFailed, checkOutput, onDisk, PathRefused, partialOf, publish } from "./files.ts"

export interface StoreCopyOptions {
  readonly from: string
  readonly to: string
  /** The one of both that is a file. */
  readonly file: string
  readonly settings: SettingsShape
  readonly postgres: NonNullable<SettingsShape["postgres"]>
  readonly env: SettingsSource["env"]
  /** Who copies, for the audit log. */
  readonly who: string
  /** Called with what a long copy has done. */
  readonly tell: (text: string) => Effect.Effect<void>
}

/** Rows after which a copy says how far it is. */
const told = 100_000

const counter = (verb: string, tell: StoreCopyOptions["tell"]) => {
  let rows = 0
  return (more: number) => {
    rows += more
    return Effect.as(rows % told < more ? tell(`${rows} rows ${verb}`) : Effect.void, rows)
  }
}

const keyText = ({ columns, key }: CopiedTable, row: CopiedRow): string =>
  key.map((name) => `${name} ${row[columns.findIndex((column) => column.name === name)]}`).join(", ")

/** Copies all rows, and compares each with the source. Fails at the first that is not the same. */
const copyRows = Effect.fnUntraced(function* (
  source: CopySource,
  target: CopyTarget,
  tables: ReadonlyArray<CopiedTable>,
  tell: StoreCopyOptions["tell"]
) {
  const copied = counter("copied", tell)
  for (const table of tables) {
    const next = yield* source.read(table)
    for (let rows = yield* next; rows.length > 0; rows = yield* next) {
      yield* target.insert(table, rows)
      yield* copied(rows.length)
    }
  }
  yield* target.complete
  const compared = counter("compared", tell)
  for (const table of tables) {
    const [nextOfSource, nextOfTarget] = [yield* source.read(table), yield* target.read(table)]
    for (let isOver = false; !isOver; ) {
      const [from, to] = [yield* nextOfSource, yield* nextOfTarget]
      isOver = from.length === 0 && to.length === 0
      const longer = from.length < to.length ? to : from
      const different = longer.find((_, i) => !from[i]?.every((value, column) => value === to[i]?.[column]))
      if (different !== undefined) {
        return yield* new BackupFailed({
          message: `The copy of table ${table.name} is not the same at ${keyText(table, different)}: it was not kept, and the source is unchanged`
        })
      }
      yield* compared(from.length)
    }
  }
  return yield* compared(0)
})

/**
 * Whether the numbering of the source may go on in the target, as the source's mark or the history of its server proves;
 * `doubt`: why it may be an older copy.
 *
 * @param paths of the source and of the target: what the marks of either have handed out counts
 */
const examineNumbering = Effect.fnUntraced(function* (
  db: Db,
  { database: { markFolder } }: SettingsShape,
  paths: readonly [source: string, target: string],
  history?: string
) {
  const { token } = yield* WalletsRepo.numbering(db)
  yield* refuseMoved(token)
  const unit = yield* UnitFolder
  const folders = [markFolder, ...(existsSync(unit) ? [unit] : [])]
  const wallets = nextOf(yield* WalletsRepo.all(db))
  const handedOut = furthestOf(paths.map((path) => furthestIn(folders, path)))
  const markIn = (folder: string) =>
    Either.getOrUndefined(Either.try(() => readMark({ markFolder: folder, path: paths[0] })))
  const marks: ReadonlyArray<Mark | undefined> =
    history === undefined ? folders.map(markIn) : [{ tokens: ["", history], wallets, database: paths[0] }]
  const doubts = marks.map((mark) => doubtOf({ token, wallets }, mark, handedOut))
  return { folders, wallets, handedOut, doubt: doubts.includes(undefined) ? undefined : doubts[0] }
})
type FoundNumbering = Effect.Effect.Success<ReturnType<typeof examineNumbering>>

/** Gives the target its token, and notes the copy in its audit log. */
const adopt = (db: Db, { doubt, handedOut }: FoundNumbering, token: string, { from, to, who }: StoreCopyOptions) =>
  Effect.gen(function* () {
    yield* WalletsRepo.renewToken(token)
    for (const [wallet, next] of doubt === undefined ? [] : Object.entries(handedOut)) {
      yield* WalletsRepo.oweJumpTo(wallet, next)
    }
    const act = { via: "direct", who, account: undefined, mode: undefined, act: "store copy" } as const
    yield* AuditRepo.insert({ ...act, at: yield* Clock.currentTimeMillis, detail: detailText({ from, to }) })
  }).pipe(Effect.provideService(Tx, { ...db, afterCommit: () => undefined }))

/** Writes the marks of the new file where its daemon looks for one. Without a mark its first start jumps. */
const writeMarks = ({ folders, wallets }: FoundNumbering, path: string, token: string) =>
  Effect.forEach(folders, (markFolder) =>
    Effect.gen(function* () {
      const mark = yield* openIndexMark({ markFolder, path }, () => undefined)
      yield* mark.begin([token], wallets)
      const { gid, uid } = statSync(markFolder)
      if (process.getuid?.() === 0) chownSync(markFile({ markFolder, path }), uid, gid)
    }).pipe(Effect.scoped, Effect.ignore)
  )

const openDatabase = (path: string, readonly = false) =>
  Effect.acquireRelease(
    Effect.sync(() => new Database(path, { fileMustExist: true, readonly })),
    (database) => Effect.sync(() => database.close())
  )

/** Opens a file with a store of the newest schema, as it is now. */
const openFile = Effect.fnUntraced(function* (path: string) {
  if (!existsSync(path)) return yield* new PathRefused({ message: `There is no database ${path}` })
  const database = yield* openDatabase(path, true)
  database.exec("BEGIN")
  const db = fromDatabase(database)
  const isStore = yield* db.get("SELECT 1 FROM sqlite_schema WHERE name = 'migrations'")
  const schema = isStore && (yield* oneValue<number>(db, "SELECT max(migration_id) FROM migrations"))
  if (schema === newestSchema) return { database, db }
  const why = `has schema ${schema}, and this version knows ${newestSchema}: start the newer of the two once`
  return yield* new StoreUnusable({
    message: `${path} ${schema === undefined ? "is not a database of tilld" : why}`
  })
})

/** Fails where PostgreSQL does not say that the transaction is committed. */
const commit = (connection: StoreConnection) =>
  Effect.filterOrFail(
    connection.script("COMMIT"),
    (done) => done === "COMMIT",
    () => new BackupFailed({ message: "PostgreSQL did not commit: nothing was copied" })
  )

const markMoved = "UPDATE numbering SET token = ?"

/** What follows once the target is there. */
const afterwards = <A, E, R>(mark: Effect.Effect<A, E, R>, { from, to }: StoreCopyOptions) =>
  Effect.catchAllCause(mark, (cause) => {
    const what = `${to} is complete, and ${from} could not be marked as moved (${Cause.squash(cause)})`
    return new BackupFailed({ message: `${what}: start tilld on the copy, and never on ${from}` })
  })

const toServer = Effect.fnUntraced(function* (options: StoreCopyOptions) {
  const { env, file, postgres, settings, tell, to } = options
  const tables = copiedTables()
  const source = yield* openFile(file)
  const found = yield* examineNumbering(source.db, settings, [file, settings.database.path])
  const connection = yield* openTransfer(yield* placeOf(postgres, env), true)
  const target = yield* serverTarget(connection, tables)
  const rows = yield* copyRows(fileSource(source.database), target, tables, tell)
  const history = (yield* oneValue<string>(connection.db(), `SELECT ${presentHistory}`)) ?? ""
  yield* adopt(connection.db(), found, found.doubt === undefined ? history : randomUUID(), options)
  yield* commit(connection)
  source.database.close()
  const mark = Effect.gen(function* () {
    const database = yield* openDatabase(file)
    database.pragma("synchronous = FULL")
    yield* fromDatabase(database).run(markMoved, [movedTo(to)])
  })
  yield* afterwards(mark, options)
  return { rows, found }
})

const toFile = Effect.fnUntraced(function* (options: StoreCopyOptions) {
  const { env, file, postgres, settings, tell, to } = options
  const tables = copiedTables()
  const connection = yield* openTransfer(yield* placeOf(postgres, env), false)
  const source = connection.db()
  const history = yield* oneValue<string>(source, `SELECT ${presentHistory}`)
  const found = yield* examineNumbering(source, settings, [settings.database.path, file], history)
  const partial = yield* partialOf(file)
  closeSync(openOwn(partial))
  yield* migrateFile(partial)
  const token = randomUUID()
  const database = yield* openDatabase(partial)
  const rows = yield* copyRows(serverSource(connection), fileTarget(database, tables), tables, tell)
  yield* adopt(fromDatabase(database), found, token, options)
  database.close()
  yield* onDisk(`${file} cannot be written`, () => syncToDisk(partial))
  yield* publish(partial, file, false)
  if (found.doubt === undefined) yield* writeMarks(found, file, token)
  yield* afterwards(Effect.zipRight(source.run(markMoved, [movedTo(to)]), commit(connection)), options)
  return { rows, found }
})

/** Refuses a target that exists, or cannot be made. */
export const refuseTarget = (file: string) =>
  existsSync(file)
    ? Effect.fail(new PathRefused({ message: `${file} exists already: name a new file, or move that one away` }))
    : checkOutput(file, false)

/**
 * Copies a store, compares every row, and marks the source as moved. The caller holds the instance lock of the file. Fails
 * with `InstanceLocked` where a node works on the store in PostgreSQL, with `PathRefused` or `StoreUnusable` where an end
 * cannot be used, and with `BackupFailed`.
 */
export const copyStore = Effect.fn("Backup.copyStore")(function* (options: StoreCopyOptions) {
  const { file, from, to } = options
  const copied = Effect.gen(function* () {
    return yield* from === file ? toServer(options) : toFile(options)
  })
  const [time, { found, rows }] = yield* copied.pipe(
    orUnusable(file),
    // Of a value that an engine refuses, or of a user of PostgreSQL that may not make tables.
    Effect.catchAllDefect((defect) =>
      defect instanceof Error && codeOf(defect) !== ""
        ? new BackupFailed({ message: `Nothing was copied (${codeOf(defect)}): ${defect.message}` })
        : Effect.die(defect)
    ),
    Effect.timed
  )
  /** `jump`: why the first start makes each wallet jump; null where the numbering goes on. */
  return { from, to, rows, seconds: Math.round(Duration.toSeconds(time)), jump: found.doubt ?? null }
}, Effect.scoped)
