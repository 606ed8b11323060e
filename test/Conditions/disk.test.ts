import { spawnSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect } from "@effect/vitest"
import { Effect, Layer, type Scope, TestClock } from "effect"
import { makeJudge } from "../../src/Conditions/judge.ts"
import { keyOf } from "../../src/Conditions/standing.ts"
import * as Sql from "../../src/Sql.ts"
import { Workers } from "../../src/Telemetry/Workers.ts"
import { replaceFs } from "../lib/replacedFs.ts"
import { clockTest } from "../lib/scopedTest.ts"
import { testSettingsLayer } from "../lib/settings.ts"
import { temporaryFolder } from "../lib/store.ts"
import { chainsOf, waitingToCollect } from "./surroundings.ts"

const size = 1.15e9

/** A folder, and what takes so many bytes of its disk. */
interface SmallDisk {
  readonly folder: string
  readonly take: (bytes: number) => void
}

/** A file system of its own in memory, which root may mount; undefined where nobody may. */
const mounted: Effect.Effect<SmallDisk | undefined, never, Scope.Scope> = Effect.gen(function* () {
  const folder = yield* temporaryFolder
  const { status } = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${size}`, "tmpfs", folder])
  if (status !== 0) return undefined
  yield* Effect.addFinalizer(() => Effect.sync(() => spawnSync("umount", ["-l", folder])))
  let files = 0
  return { folder, take: (bytes) => writeFileSync(join(folder, `file ${files++}`), Buffer.alloc(bytes, 1)) }
})

/** One whose free bytes are only said. */
const said: Effect.Effect<SmallDisk, never, Scope.Scope> = Effect.gen(function* () {
  const folder = yield* temporaryFolder
  let bavail = size
  yield* replaceFs({ statfsSync: (() => ({ bavail, bsize: 1 })) as never })
  return {
    folder,
    take: (bytes) => {
      bavail -= bytes
    }
  }
})

const fills = ({ folder, take }: SmallDisk) => {
  const path = join(folder, "tilld.db")
  return Effect.gen(function* () {
    const { look } = yield* makeJudge(() => [])
    const keys = Effect.map(look, (found) => found.map(keyOf).filter((key) => key.startsWith("disk")))
    const told: Array<string> = []
    for (let i = 0; i < 10; i++) {
      told.push((yield* keys).join(" "))
      take(20e6)
      yield* TestClock.adjust("10 minutes")
    }
    // Known after an hour: 0.12 GB an hour of 1 GB are nine hours.
    expect(told.slice(0, 5)).toEqual(["", "", "", "", ""])
    expect(told[6]).toBe("disk_filling")
    expect(told[9]).toBe("disk_low disk_filling")
  }).pipe(
    Effect.provide(
      Layer.mergeAll(
        Sql.layer(path),
        Workers.layer,
        chainsOf(() => []),
        waitingToCollect(0n)
      ).pipe(Layer.provideMerge(testSettingsLayer(path)))
    )
  )
}

describe("a disk that fills up is told of hours before, and once little is left", () => {
  clockTest("by a file system that is full", function* () {
    const disk = yield* mounted
    if (disk !== undefined) yield* fills(disk)
  })

  clockTest("by what the system says, where none may be mounted", function* () {
    yield* fills(yield* said)
  })
})
