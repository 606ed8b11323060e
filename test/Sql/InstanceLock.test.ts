import { execFileSync, spawnSync } from "node:child_process"
import fs, {
  chmodSync,
  chownSync,
  existsSync,
  lchownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { basename, dirname, join } from "node:path"
import { beforeAll, expect, it } from "@effect/vitest"
import { DateTime, Effect } from "effect"
import { buildSync } from "esbuild"
import { recordBackup } from "../../src/Backup/lastBackup.ts"
import { acquire, InstanceLocked } from "../../src/Sql/InstanceLock.ts"
import * as Sql from "../../src/Sql.ts"
import { StoreUnusable } from "../../src/Sql.ts"
import { replaceFs } from "../lib/replacedFs.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { temporaryDatabase, temporaryFolder } from "../lib/store.ts"
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

liveTest("two paths of one database share one lock, also where it is created later", function* () {
  const database = yield* temporaryDatabase
  symlinkSync(basename(database), `${database}.link`)
  yield* acquire(`${database}.link`, "serve")
  for (const isThere of [false, true]) {
    if (isThere) writeFileSync(database, "")
    for (const path of [database, `${database}.link`]) expect(yield* refusedHere(path)).toBeInstanceOf(InstanceLocked)
  }
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

liveTest("a pid file that tilld has not made names no holder, and is not waited for", function* () {
  const database = yield* temporaryDatabase
  const running = `${database}.running`
  writeFileSync(running, `${process.pid} serve\n`)
  yield* acquire(database, "serve")
  const others: ReadonlyArray<(file: string) => void> = [
    (file) => execFileSync("mkfifo", [file]),
    (file) => symlinkSync(running, file),
    (file) => mkdirSync(file),
    (file) => writeFileSync(file, `${process.pid} serve ${"x".repeat(4_096)}\n`)
  ]
  for (const make of others) {
    rmSync(`${database}.pid`, { recursive: true })
    make(`${database}.pid`)
    expect(foundElsewhere(database)).toEqual({
      holder: {},
      message: expect.stringContaining("has not given its name")
    })
  }
  rmSync(`${database}.pid`)
})

liveTest("a pipe in the place of the lock file is not waited for", function* () {
  const database = yield* temporaryDatabase
  execFileSync("mkfifo", [`${database}.lock`])
  expect(foundElsewhere(database)).toEqual({ message: expect.stringContaining("is not as tilld makes it") })
})

liveTest("a folder in the place of the pid file, or a file in that of the folder, is named", function* () {
  const database = yield* temporaryDatabase
  mkdirSync(`${database}.pid`)
  expect((yield* refusedHere(database)).message).toMatch(new RegExp(`${database}.pid.*: move that folder away$`))
  writeFileSync(database, "")
  const refused = yield* refusedHere(`${database}/tilld.db`)
  expect(refused).toBeInstanceOf(StoreUnusable)
  expect(refused.message).toContain(database)
})

liveTest("a note about the log that tilld has not made is refused where it counts, and not waited for", function* () {
  const database = yield* temporaryDatabase
  const note = `${database}.wal-of`
  const refusal = { message: expect.stringContaining(`${note} is not as tilld makes it`) }
  // Nothing could take its place.
  mkdirSync(note)
  expect(foundElsewhere(database)).toEqual(refusal)
  rmSync(note, { recursive: true })
  const others: ReadonlyArray<() => void> = [
    () => execFileSync("mkfifo", [note]),
    () => symlinkSync(`${database}.none`, note),
    () => writeFileSync(note, "1/1 ".repeat(1_025))
  ]
  for (const make of others) {
    make()
    yield* Effect.scoped(acquire(database, "serve"))
    for (const suffix of ["", "-wal"]) writeFileSync(`${database}${suffix}`, "")
    expect(foundElsewhere(database)).toEqual(refusal)
    for (const suffix of ["", "-wal", ".wal-of"]) rmSync(`${database}${suffix}`)
  }
})

/** A file of this user's elsewhere, and a database in a folder that is another user's where this one may make it so. */
const besideVictim = Effect.gen(function* () {
  const database = yield* temporaryDatabase
  const victim = join(yield* temporaryFolder, "victim")
  writeFileSync(victim, "secret", { mode: 0o600 })
  if (process.getuid?.() === 0) chownSync(dirname(database), 12345, 23456)
  const expectUnchanged = () => {
    const { mode, uid } = statSync(victim)
    expect([readFileSync(victim, "utf8"), mode & 0o777, uid]).toEqual(["secret", 0o600, process.getuid?.()])
  }
  return { database, victim, expectUnchanged }
})

liveTest("a lock file that may be another file is refused by its name, and nothing is changed", function* () {
  const { database, expectUnchanged, victim } = yield* besideVictim
  const lock = `${database}.lock`
  const makers: ReadonlyArray<() => void> = [
    () => symlinkSync(victim, lock),
    () => symlinkSync(`${victim}-2`, lock),
    () => linkSync(victim, lock),
    () => mkdirSync(lock),
    () => writeFileSync(lock, "SQLite format 3")
  ]
  for (const make of makers) {
    make()
    const refused = yield* refusedHere(database)
    expect(refused).toBeInstanceOf(StoreUnusable)
    expect(refused.message).toMatch(new RegExp(`^${lock} is not as tilld makes it, .*, and remove it$`))
    expectUnchanged()
    expect([existsSync(`${victim}-2`), existsSync(`${database}.pid`)]).toEqual([false, false])
    rmSync(lock, { recursive: true })
  }
  // An empty file with two names, too.
  writeFileSync(victim, "")
  linkSync(victim, lock)
  expect((yield* refusedHere(database)).message).toContain(lock)
  expect(statSync(victim).mode & 0o777).toBe(0o600)
})

liveTest("a link that replaces the lock file while that is opened gets neither its mode nor its owner", function* () {
  const { database, expectUnchanged, victim } = yield* besideVictim
  const { lstatSync: look } = fs
  const replaced = ((path: string) => {
    const found = look(path, { throwIfNoEntry: false })
    if (path === `${database}.lock`) symlinkSync(victim, path)
    return found
  }) as typeof look
  yield* replaceFs({ lstatSync: replaced })
  expect((yield* refusedHere(database)).message).toContain("ELOOP")
  expectUnchanged()
})

type Writing = (database: string, check: Effect.Effect<void>) => Effect.Effect<void, unknown>
const note = { madeAt: DateTime.unsafeMake(5_000), file: "-", sha256: "" }
const written: ReadonlyArray<readonly [link: string, file: string, write: Writing]> = [
  [".pid", ".pid", (database, check) => Effect.scoped(Effect.zipRight(acquire(database, "serve"), check))],
  [".wal-of", ".wal-of", (database, check) => Effect.provide(check, Sql.layer(database))],
  [
    `.last-backup.${process.pid}.partial`,
    ".last-backup",
    (database, check) => Effect.zipRight(recordBackup(database, note), check)
  ]
]

for (const [link, file, write] of written) {
  liveTest(`a link in the place of a file that is written anew is replaced: ${file}`, function* () {
    const { database, expectUnchanged, victim } = yield* besideVictim
    const check = Effect.sync(() => {
      expectUnchanged()
      expect(lstatSync(database + file)).toMatchObject({ nlink: 1, uid: statSync(dirname(database)).uid })
    })
    for (const make of [symlinkSync, linkSync]) {
      make(victim, database + link)
      yield* write(database, check)
      expectUnchanged()
    }
  })
}

it.scopedLive.skipIf(process.getuid?.() !== 0)(
  "a link of another user's is followed only to a folder of that user, and root's is everywhere",
  () =>
    Effect.gen(function* () {
      const { database, victim } = yield* besideVictim
      writeFileSync(`${victim}.pid`, "of another program")
      symlinkSync(victim, `${database}.2`)
      symlinkSync(`${database}.2`, database)
      const acquired = Effect.scoped(acquire(database, "serve"))
      for (const link of [database, `${database}.2`]) lchownSync(link, 12345, 23456)
      const refused = yield* Effect.flip(acquired)
      expect(refused).toBeInstanceOf(StoreUnusable)
      expect(refused.message).toMatch(
        new RegExp(`^${database}.2 is a link of 12345's to a folder .*, or remove the link$`)
      )
      expect([existsSync(`${victim}.lock`), readFileSync(`${victim}.pid`, "utf8")]).toEqual([
        false,
        "of another program"
      ])
      chownSync(dirname(victim), 12345, 23456)
      yield* acquired
      expect(existsSync(`${victim}.lock`)).toBe(true)
      chownSync(dirname(victim), 0, 0)
      lchownSync(`${database}.2`, 0, 0)
      yield* acquired
    })
)

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
