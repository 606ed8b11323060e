import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect } from "@effect/vitest"
import { besideDaemon } from "../commands/installation.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { temporaryFolder } from "../lib/store.ts"
import { Dice } from "../sim/Dice.ts"
import { makeDisk } from "./disk.ts"
import { afterPowerCut } from "./powerCut.ts"

liveTest("a backup is on disk, byte by byte, before it gets its name", function* () {
  const { tilld } = yield* besideDaemon
  const disk = yield* makeDisk
  const [backups, journal] = [yield* temporaryFolder, join(yield* temporaryFolder, "journal")]
  const made = yield* tilld(["backup", join(backups, "one.db")], disk.env([backups], journal))
  expect(made.code, made.stderr).toBe(0)
  expect(readdirSync(backups)).toEqual(["one.db"])
  const whole = readFileSync(join(backups, "one.db"))
  // A rename is not in it.
  const changes = readFileSync(journal)
  for (let seed = 0; seed < 200; seed++) {
    const dice = new Dice(String(seed))
    const shown = afterPowerCut(changes, () => undefined, dice)
    const contents = [...shown].flatMap(([path, content]) => (path.endsWith(".partial") ? [content] : []))
    expect(contents.map((content) => content?.equals(whole))).toEqual([true])
  }
})
