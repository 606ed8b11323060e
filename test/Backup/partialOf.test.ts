import { spawnSync } from "node:child_process"
import { chmodSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { partialOf } from "../../src/Backup/files.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { temporaryFolder } from "../lib/store.ts"

liveTest("leftovers of an ended backup are removed, and files of a running one stay", function* () {
  const folder = yield* temporaryFolder
  const { pid: ended } = spawnSync("true")
  const other = `x.db.${process.ppid}.partial`
  for (const name of [other, `x.db.${ended}.partial`, `y.db.${ended}.partial`]) writeFileSync(join(folder, name), "")
  yield* partialOf(join(folder, "x.db"))
  expect(readdirSync(folder).sort()).toEqual([other, `y.db.${ended}.partial`].sort())
})

it.scoped.skipIf(process.getuid?.() !== 0)(
  "another user's leftovers, and a folder that cannot be read, stop nothing",
  () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const left = `x.db.${spawnSync("true").pid}.partial`
      writeFileSync(join(folder, left), "")
      for (const mode of [0o1777, 0o1733]) {
        chmodSync(folder, mode)
        yield* Effect.acquireRelease(
          Effect.sync(() => process.seteuid?.(65_534)),
          () => Effect.sync(() => process.seteuid?.(0))
        ).pipe(
          Effect.zipRight(partialOf(join(folder, "x.db"))),
          Effect.tap((path) => Effect.sync(() => writeFileSync(path, "", { flag: "wx" }))),
          Effect.scoped
        )
        expect(readdirSync(folder)).toEqual([left])
      }
    })
)
