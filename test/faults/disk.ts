import { spawnSync } from "node:child_process"
import { rmSync, writeFileSync } from "node:fs"
import { constants } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { temporaryFolder } from "../lib/store.ts"

const source = fileURLToPath(new URL("./disk.c", import.meta.url))

/** What a call to a file can be answered with. */
export interface DiskFault {
  readonly call: "write" | "sync"
  readonly error: "ENOSPC" | "EDQUOT" | "EIO" | "EROFS"
}

/** A disk below some folders that fails on demand; gone with the scope. */
export interface Disk {
  /** Of a daemon that is on it, and whether its changes are written down. */
  readonly env: (roots: ReadonlyArray<string>, journal?: string) => Readonly<Record<string, string>>
  /** Answers calls so from now on. */
  readonly set: (fault: DiskFault) => Effect.Effect<void>
  readonly mend: Effect.Effect<void>
}

/** Compiles it: there is no way to make a real disk fail without being root. */
export const makeDisk = Effect.gen(function* () {
  const folder = yield* temporaryFolder
  const [library, fault] = [join(folder, "disk.so"), join(folder, "fault")]
  const args = ["-shared", "-fPIC", "-O2", "-o", library, source, "-ldl", "-lpthread"]
  const { error, status, stderr } = spawnSync("cc", args, { encoding: "utf8" })
  if (status !== 0) {
    return yield* Effect.dieMessage(
      `the simulated disk needs Linux and a C compiler (Debian, Ubuntu: apt-get install gcc libc6-dev): ${error ?? stderr}`
    )
  }
  const disk: Disk = {
    env: (roots, journal) => ({
      LD_PRELOAD: library,
      UV_USE_IO_URING: "0",
      DISK_ROOTS: roots.join(":"),
      DISK_FAULT: fault,
      ...(journal === undefined ? {} : { DISK_JOURNAL: journal })
    }),
    set: ({ call, error }) => Effect.sync(() => writeFileSync(fault, `${call} ${constants.errno[error]}`)),
    mend: Effect.sync(() => rmSync(fault, { force: true }))
  }
  return disk
})
