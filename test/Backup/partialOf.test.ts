import { spawnSync } from "node:child_process"
import { readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { partialOf } from "../../src/Backup/files.ts"
import { temporaryFolder } from "../lib/store.ts"

it.scoped("leftovers of an ended backup are removed, and files of a running one stay", () =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const { pid: ended } = spawnSync("true")
    const other = `x.db.${process.ppid}.partial`
    for (const name of [other, `x.db.${ended}.partial`, `y.db.${ended}.partial`]) writeFileSync(join(folder, name), "")
    yield* partialOf(join(folder, "x.db"))
    expect(readdirSync(folder).sort()).toEqual([other, `y.db.${ended}.partial`].sort())
  })
)
