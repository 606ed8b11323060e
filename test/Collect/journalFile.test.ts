import fs, { existsSync, rmSync } from "node:fs"
import { syncBuiltinESMExports } from "node:module"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { Effect, Exit, Runtime, Scope } from "effect"
import { openJournal } from "../../src/Collect/journal.ts"
import { acquire } from "../../src/Sql/InstanceLock.ts"
import { temporaryFolder } from "../lib/store.ts"
import { refusal } from "./refusal.ts"

const journalPath = Effect.map(temporaryFolder, (folder) => join(folder, "signed.json.journal"))

it.scoped("a run that another one excludes makes no file", () =>
  Effect.gen(function* () {
    const path = yield* journalPath
    yield* acquire(path, "sweep broadcast")
    expect(yield* refusal(Effect.scoped(openJournal(path)))).toContain(`Another process works on ${path}`)
    expect(existsSync(path)).toBe(false)
  })
)

it.scoped("a run that is refused takes its file from no other run", () =>
  Effect.gen(function* () {
    const path = yield* journalPath
    const first = yield* Scope.make()
    yield* Effect.provideService(openJournal(path), Scope.Scope, first)
    const runtime = yield* Effect.runtime()
    const { fchmodSync: chmod } = fs
    const setChmod = (fchmodSync: typeof chmod) =>
      Effect.sync(() => {
        Object.assign(fs, { fchmodSync })
        syncBuiltinESMExports()
      })
    // The first one ends when another one has opened the file.
    yield* Effect.acquireRelease(
      setChmod((...args) => {
        Runtime.runSync(runtime, Scope.close(first, Exit.void))
        chmod(...args)
      }),
      () => setChmod(chmod)
    )
    expect(yield* refusal(Effect.scoped(openJournal(path)))).toContain(`Another process works on ${path}`)
    yield* setChmod(chmod)
    yield* Scope.close(first, Exit.void)
    yield* openJournal(path)
    expect(existsSync(path)).toBe(true)
  })
)

it.scoped("ends also where its file is gone", () =>
  Effect.gen(function* () {
    const path = yield* journalPath
    yield* Effect.scoped(Effect.tap(openJournal(path), () => Effect.sync(() => rmSync(path))))
    expect(existsSync(path)).toBe(false)
  })
)
