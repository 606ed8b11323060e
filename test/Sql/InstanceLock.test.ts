import { spawnSync } from "node:child_process"
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { basename, dirname, join } from "node:path"
import { beforeAll, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { buildSync } from "esbuild"
import { acquire, InstanceLocked } from "../../src/Sql/InstanceLock.ts"
import { StoreUnusable } from "../../src/Sql.ts"
import { replaceFs } from "../lib/replacedFs.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { temporaryDatabase } from "../lib/store.ts"
import { root, start } from "../lib/tilld.ts"

/** The other process's program as one file: it is loaded in a tenth of the time that its modules take. */
const holderFile = join(root, "node_modules/.cache/lockHolder.mjs")
beforeAll(() => {
  buildSync({
    ...{ entryPoints: [join(root, "test/lib/lockHolder.ts")], outfile: holderFile, bundle: true },
    ...{ platform: "node", format: "esm", external: ["better-sqlite3"] }
  })
})

/** Another process that holds the lock of the database. */
const startHolder = (database: string) =>
  Effect.tap(start(process.execPath, [holderFile, database]), ({ line }) => line(/^held$/))

liveTest("a second holder is refused with the process id of the first", function* () {
  const database = yield* temporaryDatabase
  const holder = yield* startHolder(database)
  const refused = yield* Effect.flip(Effect.scoped(acquire(database, "keys list")))
  expect(refused).toBeInstanceOf(InstanceLocked)
  expect(refused.message).toContain(`tilld serve, process ${holder.pid}`)
})

/** Why the lock is not given in this process. */
const refusedHere = (database: string) => Effect.flip(Effect.scoped(acquire(database, "restore")))

liveTest("a database that is a link is refused: the lock of the file itself is another one", function* () {
  const database = yield* temporaryDatabase
  for (const target of [basename(database), "missing"]) {
    symlinkSync(target, `${database}.link`)
    const refused = yield* refusedHere(`${database}.link`)
    expect(refused).toBeInstanceOf(StoreUnusable)
    expect(refused.message).toMatch(/link is a link, which is not followed: give the name of the file itself$/)
    rmSync(`${database}.link`)
  }
  expect(existsSync(`${database}.link.lock`)).toBe(false)
})

liveTest("a process that cannot write its id for lack of space reports that, and holds no lock", function* () {
  const database = yield* temporaryDatabase
  yield* replaceFs({
    writeFileSync: () => {
      throw Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" })
    }
  })
  for (let i = 0; i < 2; i++) expect((yield* refusedHere(database)).message).toContain("ENOSPC")
})

liveTest("only the owner and its group can open the lock file, even if it had other permissions", function* () {
  const database = yield* temporaryDatabase
  writeFileSync(`${database}.lock`, "")
  // Who may read it can lock it too: a shared lock is enough.
  for (const mode of [0o666, 0o644]) {
    chmodSync(`${database}.lock`, mode)
    yield* Effect.scoped(acquire(database, "serve"))
    expect(statSync(`${database}.lock`).mode & 0o777).toBe(0o640)
  }
})

liveTest("the lock of a killed process is free at once", function* () {
  const database = yield* temporaryDatabase
  const holder = yield* startHolder(database)
  expect(yield* holder.end("SIGKILL")).toMatchObject({ signal: "SIGKILL" })
  expect(existsSync(`${database}.pid`)).toBe(true)
  yield* acquire(database, "serve")
})

liveTest("the end of the scope frees the lock, also within one process", function* () {
  const database = yield* temporaryDatabase
  yield* Effect.scoped(
    Effect.gen(function* () {
      yield* acquire(database, "serve")
      expect(readFileSync(`${database}.pid`, "utf8")).toBe(`${process.pid} serve\n`)
      const refused = yield* refusedHere(database)
      expect(refused).toMatchObject({ _tag: "InstanceLocked", pid: process.pid })
    })
  )
  expect(existsSync(`${database}.pid`)).toBe(false)
  yield* acquire(database, "serve")
})

liveTest("the process id of a dead holder is not reported", function* () {
  const database = yield* temporaryDatabase
  yield* acquire(database, "serve")
  // No process has this id: Linux stops at 2^22.
  for (const text of ["99999999 serve\n", "0 serve\n", "-1 serve", "nonsense", ""]) {
    writeFileSync(`${database}.pid`, text)
    const refused = yield* refusedHere(database)
    expect(refused).toMatchObject({ _tag: "InstanceLocked", pid: undefined })
    expect(refused.message).not.toContain("99999999")
  }
})

/** What another process finds: who holds the lock, and why it does not get it. It is ended where it waits for ever. */
const foundElsewhere = (database: string, runner: ReadonlyArray<string> = []) => {
  const [program = "", ...args] = [...runner, process.execPath, holderFile, database, "find"]
  const ended = spawnSync(program, args, { timeout: 30_000, killSignal: "SIGKILL", encoding: "utf8" })
  expect({ signal: ended.signal, stderr: ended.stderr }).toEqual({ signal: null, stderr: "" })
  return JSON.parse(ended.stdout) as { readonly holder?: object; readonly message: string }
}

liveTest("a folder in the place of the pid file, or a file in that of the folder, is named", function* () {
  const database = yield* temporaryDatabase
  mkdirSync(`${database}.pid`)
  expect((yield* refusedHere(database)).message).toContain(`${database}.pid`)
  writeFileSync(database, "")
  const refused = yield* refusedHere(`${database}/tilld.db`)
  expect(refused).toBeInstanceOf(StoreUnusable)
  expect(refused.message).toContain(database)
})

it.scopedLive.skipIf(process.getuid?.() !== 0)(
  "what another user owns is used by that user, or given away by choice",
  () =>
    Effect.gen(function* () {
      const database = yield* temporaryDatabase
      const folder = dirname(database)
      const asOther = ["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups"]
      for (const [uid, owner] of [
        [0, "root"],
        [12_345, "12345"]
      ] as const) {
        chownSync(folder, uid, uid)
        chmodSync(folder, 0o755)
        expect(foundElsewhere(database, asOther)).toEqual({
          message: `User 54321 may not read and write ${folder} (of ${owner}): run this as ${owner}, or chown 54321: ${folder}`
        })
      }
      // What is in it may not even be looked for.
      chmodSync(folder, 0o700)
      expect(foundElsewhere(database, asOther).message).toContain(`: run this as 12345, or chown 54321: ${folder} `)
      chownSync(folder, 54_321, 0)
      chmodSync(folder, 0o500)
      expect(foundElsewhere(database, asOther).message).toMatch(/: chmod u\+rwX \S+$/)
      chownSync(folder, 0, 0)
    })
)

liveTest("a second try within one process leaves the lock to the first", function* () {
  const database = yield* temporaryDatabase
  yield* acquire(database, "serve")
  expect(yield* refusedHere(database)).toBeInstanceOf(InstanceLocked)
  // It says "held", and waits, where it gets the lock.
  const other = spawnSync(process.execPath, [holderFile, database], { timeout: 20_000 })
  expect([other.signal, `${other.stdout}`, `${other.stderr}`]).toEqual([null, "", ""])
})
