import { copyFileSync, renameSync } from "node:fs"
import { describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { liveTest } from "../lib/scopedTest.ts"
import { temporaryFolder } from "../lib/store.ts"
import { type Disk, type DiskFault, makeDisk } from "./disk.ts"
import { openShop, survives } from "./shop.ts"

const onDisk = (disk: Disk) =>
  Effect.flatMap(temporaryFolder, (marks) =>
    openShop((home) => ({ ...disk.env([home.folder, marks]), TILLD_DATABASE__MARK_FOLDER: marks }))
  )

describe("a disk that", () => {
  it.scopedLive.each<readonly [what: string, fault: DiskFault, words: string]>([
    ["is full", { call: "write", error: "ENOSPC" }, "the disk or its quota is full"],
    ["is mounted read-only by the system", { call: "write", error: "EROFS" }, "the disk answered with an error"],
    ["fails to write", { call: "write", error: "EIO" }, "the disk answered with an error"],
    ["does not sync, so that commits fail", { call: "sync", error: "EIO" }, "the disk answered with an error"]
  ])("%s refuses payments, loses none, and is written to again by itself", ([, fault, words]) =>
    Effect.gen(function* () {
      const disk = yield* makeDisk
      yield* survives(yield* onDisk(disk), disk.set(fault), disk.mend, words)
    })
  )
})

liveTest("a database that is replaced under the daemon is not written to until it is back", function* () {
  const shop = yield* openShop()
  const { database } = shop.home
  yield* survives(
    shop,
    Effect.sync(() => {
      renameSync(database, `${database}.away`)
      copyFileSync(`${database}.away`, database)
    }),
    Effect.sync(() => renameSync(`${database}.away`, database)),
    "is another file than the one that tilld has open"
  )
})
