import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import fs, { mkdirSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs"
import { basename, join, resolve } from "node:path"
import { pathToFileURL } from "node:url"
import { describe, expect } from "@effect/vitest"
import { generateX25519Identity, identityToRecipient } from "age-encryption"
import Database from "better-sqlite3"
import { DateTime, Effect, Schedule } from "effect"
import { CopierProgram } from "../../src/Backup/childProcess.ts"
import { publish } from "../../src/Backup/files.ts"
import { lastBackup } from "../../src/Backup/lastBackup.ts"
import { backUp } from "../../src/Backup.ts"
import { withDashLast } from "../../src/commands/backup.ts"
import { configuration } from "../commands/installation.ts"
import { built, PATH } from "../lib/processes.ts"
import { replaceFs } from "../lib/replacedFs.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { startTilld } from "../lib/tilld.ts"
import { change, installation, paid, query } from "./backing.ts"

const recipient = Effect.promise(() => generateX25519Identity().then(identityToRecipient))

/** On a file system without hard links, such as FAT: no test may mount one. */
const withoutHardLinks = replaceFs({
  linkSync: () => {
    throw Object.assign(new Error("EPERM: operation not permitted, link"), { code: "EPERM" })
  }
})

/** On a disk with so many bytes free. */
const withFree = (bavail: number) => replaceFs({ statfsSync: (() => ({ bavail, bsize: 1 })) as never })

/** Names in the folder each time that it was synced. */
const namesAtSyncs = (folder: string) => {
  const synced: Array<ReadonlyArray<string>> = []
  const { fsyncSync } = fs
  const syncing = (descriptor: number) => {
    if (fs.fstatSync(descriptor).ino === statSync(folder).ino) synced.push(readdirSync(folder))
    fsyncSync(descriptor)
  }
  return Effect.as(replaceFs({ fsyncSync: syncing }), synced)
}

describe("tilld backup", () => {
  liveTest("writes a database and behind it its time and SHA-256, with mode 0600, and records the time", function* () {
    const { backUp, beside, folder, path } = yield* installation
    const { bytes, file, madeAt, payments, sha256 } = yield* backUp("new.db")
    expect(yield* query(file, "SELECT id FROM payments ORDER BY sequence")).toEqual([
      { id: "pay_0" },
      { id: "pay_1" },
      { id: "pay_2" }
    ])
    expect(payments).toBe(3)
    const content = readFileSync(file)
    expect(content.subarray(bytes).toString()).toBe(`\n${madeAt} sha256 ${sha256}\n`)
    expect(createHash("sha256").update(content.subarray(0, -65)).digest("hex")).toBe(sha256)
    expect((statSync(file).mode & 0o777).toString(8)).toBe("600")
    const last = yield* lastBackup(path)
    expect({ ...last, madeAt: last && DateTime.formatIso(last.madeAt) }).toEqual({ madeAt, file })
    expect(readdirSync(folder).sort()).toEqual(["data", "new.db"])
    expect(beside().filter((name) => name.includes("partial"))).toEqual([])
  })

  liveTest("writes a new file, or with --force over a backup, and never into the database's own", function* () {
    const { backUp, folder, path } = yield* installation
    mkdirSync(join(folder, "some folder"))
    writeFileSync(join(folder, "there"), "kept")
    yield* change(join(folder, "plain.db"), "CREATE TABLE t (a)")
    const refused: ReadonlyArray<readonly [name: string, force: boolean, why: string]> = [
      ["there", false, "exists already: name another file, or --force"],
      ["some folder", true, "is a folder"],
      ["there", true, "is not a backup, and --force replaces nothing else"],
      ["plain.db", true, "is not a backup"],
      ["data/master.key", true, "is not a backup"],
      ["../../../dev/null", true, "is not a regular file"],
      ["nowhere/new.db", false, "it does not exist: check its name, make the folder, or mount its disk"],
      ["there/new.db", false, "it is not a folder"],
      ...["", "-wal", "-shm", ".lock"].map(
        (suffix) => [`data/${basename(path)}${suffix}`, true, "belongs to the database"] as const
      )
    ]
    for (const [name, force, why] of refused) {
      const error = yield* Effect.flip(backUp(name, { force }))
      expect(error, name).toMatchObject({ _tag: "PathRefused", message: expect.stringContaining(why) })
    }
    expect(readFileSync(join(folder, "there"), "utf8")).toBe("kept")
    rmSync(join(folder, "there"))
    yield* backUp("there")
    yield* backUp("there", { force: true, recipients: [yield* recipient] })
    expect(readFileSync(join(folder, "there"), "latin1")).toMatch(/^age-encryption/)
    yield* backUp("there", { force: true })
    expect(readFileSync(join(folder, "there"), "latin1")).toMatch(/^SQLite format 3/)
  })

  liveTest("encrypts to every recipient, and refuses what is none", function* () {
    const { backUp, exists, folder, restore } = yield* installation
    const identities = yield* Effect.promise(() => Promise.all([generateX25519Identity(), generateX25519Identity()]))
    const recipients = yield* Effect.promise(() => Promise.all(identities.map((each) => identityToRecipient(each))))
    const { file } = yield* backUp("sealed.age", { recipients })
    expect(readFileSync(file, "latin1")).toMatch(/^age-encryption.org\/v1\n(?![\s\S]*SQLite format)/)
    const other = yield* Effect.promise(() => generateX25519Identity())
    const identity = join(folder, "identity")
    const given: ReadonlyArray<readonly [text: string | undefined, why: string]> = [
      [undefined, "is encrypted: give --identity FILE"],
      [other, "cannot be decrypted"],
      ["# none", "it has no AGE-SECRET-KEY"],
      ["AGE-SECRET-KEY-1SECRET", "cannot be used"]
    ]
    for (const [text, why] of given) {
      writeFileSync(identity, text ?? "")
      const error = yield* Effect.flip(restore("sealed.age", text === undefined ? {} : { identity }))
      expect(error).toMatchObject({ _tag: "AgeUnusable", message: expect.stringContaining(why) })
      expect(error.message).not.toContain("SECRET-KEY-1SECRET")
    }
    for (const each of identities) {
      writeFileSync(identity, `# mine\n${each}\n`)
      expect(yield* restore("sealed.age", { identity })).toMatchObject({ madeAt: expect.any(String) })
    }
    truncateSync(file, statSync(file).size - 1)
    const cut = yield* Effect.flip(restore("sealed.age", { identity, force: true }))
    expect(cut.message).toContain("sealed.age could not be read")
    yield* backUp("plain.db")
    expect((yield* Effect.flip(restore("plain.db", { identity }))).message).toContain("is not encrypted")
    for (const recipient of ["age1nonsense", "", other]) {
      const error = yield* Effect.flip(backUp("never.age", { recipients: [recipient] }))
      expect(error).toMatchObject({ _tag: "AgeUnusable" })
      expect(error.message).not.toContain(other)
    }
    expect(exists("never.age")).toBe(false)
  })

  liveTest("needs no hard links, and replaces no file without them either", function* () {
    const { backUp, folder, path, restore } = yield* installation
    yield* withoutHardLinks
    const { file } = yield* backUp("new.db")
    expect(statSync(file).mode & 0o777).toBe(0o600)
    writeFileSync(join(folder, "partial"), "new")
    writeFileSync(join(folder, "there"), "kept")
    const error = yield* Effect.flip(publish(join(folder, "partial"), join(folder, "there"), false))
    expect(error.message).toContain("EEXIST")
    expect(readFileSync(join(folder, "there"), "utf8")).toBe("kept")
    const { kept } = yield* restore("new.db")
    expect(yield* query(kept ?? "", "SELECT count(*) AS n FROM payments")).toEqual([{ n: 3 }])
    expect(yield* query(path, "SELECT count(*) AS n FROM payments")).toEqual([{ n: 3 }])
  })

  liveTest("beside the database leaves as much free as it takes, since a full disk stops payments", function* () {
    const { backUp, exists, path } = yield* installation
    const other = new Database(path)
    other.exec("SELECT * FROM payments")
    yield* Effect.addFinalizer(() => Effect.sync(() => other.close()))
    yield* change(path, ...paid(3))
    const wanted = 2 * (statSync(path).size + statSync(`${path}-wal`).size)
    const recipients = [yield* recipient]
    yield* withFree(wanted - 1)
    const error = yield* Effect.flip(Effect.asVoid(backUp("a.age", { recipients })))
    expect(error).toMatchObject({
      _tag: "BackupFailed",
      message: expect.stringContaining("are free beside the database")
    })
    expect(exists("a.age")).toBe(false)
    // So does an unencrypted one that is written there.
    expect(yield* Effect.flip(Effect.asVoid(backUp("a.db")))).toEqual(error)
    yield* withFree(wanted)
    yield* backUp("a.age", { recipients })
    yield* backUp("a.db")
  })

  liveTest("syncs the folder once the file has its name: a power cut must not take it away", function* () {
    const { backUp, folder } = yield* installation
    const synced = yield* namesAtSyncs(folder)
    yield* backUp("one.db")
    expect(synced).toEqual([expect.arrayContaining(["one.db"])])
    yield* backUp("one.db", { force: true })
    expect(synced).toHaveLength(2)
  })

  liveTest("of files that the daemon considers lost fails with its message, and opens none of them", function* () {
    const { backUp, beside, folder } = yield* installation
    const before = beside()
    const error = yield* Effect.flip(backUp("new.db", { daemonRefuses: Effect.succeed("the log was removed") }))
    expect(error).toMatchObject({ _tag: "BackupFailed", message: "tilld serve says: the log was removed" })
    expect([beside(), readdirSync(folder)]).toEqual([before, ["data"]])
  })

  liveTest("stopped by SIGTERM leaves no file, and exits with an error", function* () {
    const { folder, path } = yield* installation
    writeFileSync(join(folder, "tilld.toml"), configuration.replaceAll("data/tilld.db", path))
    // Readers wait for it, and with them the copy, once its file is there.
    const holder = new Database(path)
    holder.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE")
    yield* Effect.addFinalizer(() => Effect.sync(() => holder.close()))
    const into = join(folder, "into")
    mkdirSync(into)
    const backup = yield* startTilld(["backup", join(into, "new.db"), "--config", join(folder, "tilld.toml")])
    yield* Effect.sync(() => readdirSync(into).length).pipe(
      Effect.repeat({ until: (files) => files > 0, schedule: Schedule.spaced("5 millis") })
    )
    const { code } = yield* backup.end("SIGTERM")
    expect([code, readdirSync(into)]).toEqual([1, []])
  })

  liveTest("of a damaged database fails, leaves no file, and replaces no former backup", function* () {
    const { backUp, folder, path } = yield* installation
    const { file } = yield* backUp("old.db")
    const former = readFileSync(file)
    yield* change(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    const bytes = readFileSync(path)
    writeFileSync(path, bytes.fill(7, 8192, 60_000))
    expect(yield* Effect.flip(backUp("new.db"))).toMatchObject({ _tag: "BackupFailed" })
    expect(readdirSync(folder)).toEqual(["data", "old.db"])
    expect(yield* Effect.flip(backUp("old.db", { force: true }))).toMatchObject({ _tag: "BackupFailed" })
    expect(readFileSync(file).equals(former)).toBe(true)
  })
})

liveTest("to standard output that is a file is complete, or fails where the file may not grow enough", function* () {
  const made = yield* installation
  const to = yield* recipient
  writeFileSync(join(made.folder, "tilld.toml"), configuration)
  const into = (name: string, limit: string) =>
    spawnSync(
      "sh",
      [
        "-c",
        `exec prlimit ${limit} "$0" "$1" backup --config tilld.toml --recipient ${to} - > ${name}`,
        process.execPath,
        resolve(built("tilld.js"))
      ],
      { cwd: made.folder, encoding: "utf8", env: { PATH } }
    )
  const whole = into("whole.tilld", "--fsize=unlimited")
  expect(whole.status, whole.stderr).toBe(0)
  // Longer than the copy that it is made from, which may not grow further either.
  const cut = into("cut.tilld", `--fsize=${statSync(join(made.folder, "whole.tilld")).size - 10}:`)
  expect([cut.status, cut.stderr]).toEqual([1, expect.stringContaining("EFBIG")])
})

liveTest("of tilld backup, options may come after a - too", function* () {
  const words = (text: string) => ["node", "tilld", ...text.split(" ")]
  expect(withDashLast(words("backup - --config x"))).toEqual(words("backup --config x -"))
  for (const same of ["backup --config x -", "backup -- - x", "accounts create --live-xpub - --name x"]) {
    expect(withDashLast(words(same))).toEqual(words(same))
  }
})

liveTest("where a file may grow to all but the end of its SHA-256, there is no backup", function* () {
  const made = yield* installation
  yield* made.backUp("whole.tilld")
  const bytes = statSync(join(made.folder, "whole.tilld")).size - 10
  const limit = join(made.folder, "limit.mjs")
  const limited = join(made.folder, "limited.mjs")
  writeFileSync(
    limit,
    `import { execFileSync } from "node:child_process"
     execFileSync("prlimit", ["--pid", String(process.pid), "--fsize=${bytes}:"])`
  )
  const imports = [limit, built("chunks/copier.js")].map((file) => `import ${JSON.stringify(pathToFileURL(file))}`)
  writeFileSync(limited, imports.join("\n"))
  const { message } = yield* Effect.asVoid(backUp(join(made.folder, "cut.tilld"), false, made.options)).pipe(
    Effect.provideService(CopierProgram, pathToFileURL(limited)),
    Effect.flip
  )
  expect(message).toContain("EFBIG")
  expect(made.exists("cut.tilld")).toBe(false)
})
