import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Layer } from "effect"
import * as Sql from "../../src/Sql.ts"

/** In memory where the system has such a folder: no commit of a test waits for the disk. */
export const scratch = existsSync("/dev/shm") ? "/dev/shm" : tmpdir()

/** A folder of its own for one test, gone with the scope. */
export const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(scratch, "tilld-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

export const temporaryDatabase = Effect.map(temporaryFolder, (folder) => join(folder, "tilld.db"))

/** A database file of its own. In memory there would be no second reader. */
export const tempStore = Layer.unwrapScoped(Effect.map(temporaryDatabase, Sql.layer))
