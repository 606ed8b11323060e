import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Layer } from "effect"
import type { YieldWrap } from "effect/Utils"
import { migrateFile } from "../../src/Sql/migrate.ts"
import * as Sql from "../../src/Sql.ts"
import { type Param, Reader, StoreUnavailable, Tx, Writer } from "../../src/Sql.ts"

/** In memory where the system has such a folder: no commit of a test waits for the disk. */
export const scratch = existsSync("/dev/shm") ? "/dev/shm" : tmpdir()

/** A folder of its own for one test, gone with the scope. */
export const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(scratch, "tilld-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

export const temporaryDatabase = Effect.map(temporaryFolder, (folder) => join(folder, "tilld.db"))

let template: Buffer | undefined

/** The bytes of a migrated database: to migrate one takes twice as long as all else of a store. */
const migrated = Effect.scoped(
  Effect.gen(function* () {
    if (template !== undefined) return template
    const path = yield* temporaryDatabase
    yield* Effect.orDie(migrateFile(path))
    template = readFileSync(path)
    return template
  })
)

/** The path of a migrated database. */
export const migratedDatabase = Effect.tap(temporaryDatabase, (path) =>
  Effect.map(migrated, (bytes) => writeFileSync(path, bytes))
)

/** A store of its own: a file, since in memory there would be no second reader. */
export const tempStore = Layer.unwrapScoped(Effect.map(migratedDatabase, (path) => Sql.layer(path)))

/** What the body of a test yields: the body is written as for `Effect.gen`. */
export type Yielded = YieldWrap<Effect.Effect<unknown, unknown, unknown>>

export const inTransaction = <A, E>(command: Effect.Effect<A, E, Tx>) =>
  Effect.flatMap(Writer, (writer) => writer.write(command))

/** Changes the store by a statement of the test's own. */
export const execute = (sql: string, params: ReadonlyArray<Param> = []) =>
  inTransaction(Effect.flatMap(Tx, (tx) => tx.run(sql, params)))

/** Rows of the store. */
export const rows = <Row extends object>(sql: string, params: ReadonlyArray<Param> = []) =>
  Effect.flatMap(Reader, (reader) => reader.all<Row>(sql, params))

/** Stores the default account, once. */
export const storeAccount = execute(
  "INSERT INTO accounts (id, name, created_at) VALUES ('default', 'Shop', 0) ON CONFLICT DO NOTHING"
)

/** The writer, which refuses a command as a full disk does when `refuses` says so. */
export const refusingWriter = (refuses: () => boolean) =>
  Layer.effect(
    Writer,
    Effect.map(Writer, (writer): Writer["Type"] => ({
      write: (command) =>
        Effect.suspend(() =>
          refuses() ? new StoreUnavailable({ code: "SQLITE_FULL", message: "full" }) : writer.write(command)
        )
    }))
  )
