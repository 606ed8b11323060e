import fs, { chmodSync, existsSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { syncBuiltinESMExports } from "node:module"
import { basename } from "node:path"
import { fileURLToPath } from "node:url"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { acquire, InstanceLocked } from "../../src/Sql/InstanceLock.ts"
import { StoreUnusable } from "../../src/Sql.ts"
import { temporaryDatabase } from "../lib/store.ts"
import { start } from "../lib/tilld.ts"

const typescript = new URL("../../scripts/typescript.mjs", import.meta.url).href
const holderFile = fileURLToPath(new URL("../lib/lockHolder.ts", import.meta.url))

/** Another process that holds the lock of the database. */
const startHolder = (database: string) =>
  Effect.tap(start(process.execPath, ["--import", typescript, holderFile, database]), ({ line }) => line(/^held$/))

it.scopedLive("a second holder is refused with the process id of the first", () =>
  Effect.gen(function* () {
    const database = yield* temporaryDatabase
    const holder = yield* startHolder(database)
    const refused = yield* Effect.flip(Effect.scoped(acquire(database, "keys list")))
    expect(refused).toBeInstanceOf(InstanceLocked)
    expect(refused.message).toContain(`tilld serve, process ${holder.pid}`)
  })
)

it.scopedLive("two paths of one database share one lock", () =>
  Effect.gen(function* () {
    const database = yield* temporaryDatabase
    writeFileSync(database, "")
    symlinkSync(database, `${database}.link`)
    yield* acquire(database, "serve")
    const refused = yield* Effect.flip(Effect.scoped(acquire(`${database}.link`, "serve")))
    expect(refused).toBeInstanceOf(InstanceLocked)
  })
)

it.scopedLive("a link to a database that is created later shares its lock, too", () =>
  Effect.gen(function* () {
    const database = yield* temporaryDatabase
    symlinkSync(basename(database), `${database}.link`)
    yield* acquire(`${database}.link`, "serve")
    writeFileSync(database, "")
    for (const path of [database, `${database}.link`]) {
      expect(yield* Effect.flip(Effect.scoped(acquire(path, "restore")))).toBeInstanceOf(InstanceLocked)
    }
  })
)

it.scopedLive("a process that cannot write its id for lack of space reports that, and holds no lock", () =>
  Effect.gen(function* () {
    const database = yield* temporaryDatabase
    const { writeFileSync: write } = fs
    const setWrite = (writeFile: typeof write) => {
      fs.writeFileSync = writeFile
      syncBuiltinESMExports()
    }
    const full: typeof write = () => {
      throw Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" })
    }
    yield* Effect.acquireRelease(
      Effect.sync(() => setWrite(full)),
      () => Effect.sync(() => setWrite(write))
    )
    for (let i = 0; i < 2; i++) {
      const error = yield* Effect.flip(Effect.scoped(acquire(database, "restore")))
      expect(error.message).toContain("ENOSPC")
    }
  })
)

it.scopedLive("only the owner and its group can open the lock file, even if it had other permissions", () =>
  Effect.gen(function* () {
    const database = yield* temporaryDatabase
    writeFileSync(`${database}.lock`, "")
    // Who may read it can lock it too: a shared lock is enough.
    for (const mode of [0o666, 0o644]) {
      chmodSync(`${database}.lock`, mode)
      yield* Effect.scoped(acquire(database, "serve"))
      expect(statSync(`${database}.lock`).mode & 0o777).toBe(0o640)
    }
  })
)

it.scopedLive("the lock of a killed process is free at once", () =>
  Effect.gen(function* () {
    const database = yield* temporaryDatabase
    const holder = yield* startHolder(database)
    expect(yield* holder.end("SIGKILL")).toMatchObject({ signal: "SIGKILL" })
    expect(existsSync(`${database}.pid`)).toBe(true)
    yield* acquire(database, "serve")
  })
)

it.scopedLive("the end of the scope frees the lock, also within one process", () =>
  Effect.gen(function* () {
    const database = yield* temporaryDatabase
    yield* Effect.scoped(
      Effect.gen(function* () {
        yield* acquire(database, "serve")
        const refused = yield* Effect.flip(Effect.scoped(acquire(database, "serve")))
        expect(refused).toMatchObject({ _tag: "InstanceLocked", pid: process.pid })
      })
    )
    expect(existsSync(`${database}.pid`)).toBe(false)
    yield* acquire(database, "serve")
  })
)

it.scopedLive("the process id of a dead holder is not reported", () =>
  Effect.gen(function* () {
    const database = yield* temporaryDatabase
    yield* acquire(database, "serve")
    // No process has this id: Linux stops at 2^22.
    for (const text of ["99999999 serve\n", "0 serve\n", "-1 serve", "nonsense", ""]) {
      writeFileSync(`${database}.pid`, text)
      const refused = yield* Effect.flip(Effect.scoped(acquire(database, "serve")))
      expect(refused).toMatchObject({ _tag: "InstanceLocked", pid: undefined })
      expect(refused.message).not.toContain("99999999")
    }
  })
)

it.scopedLive("an unusable folder is a clear error", () =>
  Effect.gen(function* () {
    const database = yield* temporaryDatabase
    writeFileSync(database, "")
    const refused = yield* Effect.flip(acquire(`${database}/tilld.db`, "serve"))
    expect(refused).toBeInstanceOf(StoreUnusable)
    expect(refused.message).toContain(database)
  })
)
