import { chownSync, lstatSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { expect, it } from "@effect/vitest"
import { DateTime, Effect } from "effect"
import { lastBackupAt, recordBackup } from "../../src/Backup/lastBackup.ts"
import { temporaryDatabase, temporaryFolder } from "../lib/store.ts"

it.scoped("a link in the place of the file that it is written to is replaced", () =>
  Effect.gen(function* () {
    const database = yield* temporaryDatabase
    const victim = join(yield* temporaryFolder, "victim")
    writeFileSync(victim, "secret")
    if (process.getuid?.() === 0) chownSync(dirname(database), 12345, 23456)
    symlinkSync(victim, `${database}.last-backup.${process.pid}.partial`)
    yield* recordBackup(database, { madeAt: DateTime.unsafeMake(5000), file: "-", sha256: "" })
    expect([readFileSync(victim, "utf8"), statSync(victim).uid]).toEqual(["secret", process.getuid?.()])
    expect(yield* lastBackupAt(database)).toBe(5000)
    expect(lstatSync(`${database}.last-backup`).uid).toBe(statSync(dirname(database)).uid)
  })
)
