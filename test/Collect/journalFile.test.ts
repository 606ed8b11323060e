import fs, {
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { Effect, Exit, Runtime, Scope } from "effect"
import { openJournal } from "../../src/Collect/journal.ts"
import { acquire } from "../../src/Sql/InstanceLock.ts"
import { replaceFs } from "../lib/replacedFs.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { temporaryFolder } from "../lib/store.ts"
import { refusal } from "./refusal.ts"

const journalPath = Effect.map(temporaryFolder, (folder) => join(folder, "signed.json.journal"))
const opened = (path: string) => Effect.scoped(openJournal(path))

liveTest("is no link, no folder, and no other file", function* () {
  const path = yield* journalPath
  const other = `${path}.other`
  const text = "not a journal, and without an end of line"
  writeFileSync(other, text, { mode: 0o644 })
  const cases: ReadonlyArray<readonly [make: () => void, said: string]> = [
    [() => symlinkSync(other, path), "is a link, which is not followed"],
    [() => mkdirSync(path), "cannot be used"],
    [() => writeFileSync(path, text), "is not a journal"]
  ]
  for (const [make, said] of cases) {
    make()
    expect(yield* refusal(opened(path))).toContain(said)
    expect(existsSync(path)).toBe(true)
    rmSync(path, { recursive: true })
  }
  expect([readFileSync(other, "utf8"), statSync(other).mode & 0o777]).toEqual([text, 0o644])
})

liveTest("is its owner's alone, without a line that was cut short", function* () {
  const path = yield* journalPath
  const line = `${JSON.stringify({ event: "sending", at: 1, place: 0, step: 0, hash: "0x" })}\n`
  writeFileSync(path, `${line}{"event":"begun","at`, { mode: 0o644 })
  const { entries } = yield* opened(path)
  expect(entries).toEqual([JSON.parse(line)])
  expect([readFileSync(path, "utf8"), statSync(path).mode & 0o777]).toEqual([line, 0o600])
})

const begun = { event: "begun", at: 1, checksum: "", left: [], block: 1, before: {} }
const result = { digest: "", transfers: [], totals: [], differences: [] }
const totals = [{ currency: "USDC", decimals: 6, before: "much", received: "0", gas: "0", stayed: "0" }]

liveTest("with an account or a beginning that is none is damaged", function* () {
  const path = yield* journalPath
  const finished = [null, {}, { ...result, totals }].map((each) => ({ event: "finished", at: 1, result: each }))
  for (const [line, ...entries] of [
    ...finished.map((each) => [2, begun, each] as const),
    [1, { ...begun, before: { "ETH 0x": "much" } }] as const
  ]) {
    writeFileSync(path, entries.map((entry) => `${JSON.stringify(entry)}\n`).join(""))
    expect(yield* refusal(opened(path))).toContain(`Line ${line} of ${path} is damaged`)
  }
})

it.scopedLive.skipIf(process.geteuid?.() !== 0)("is not another user's [needs root]", () =>
  Effect.gen(function* () {
    const path = yield* journalPath
    writeFileSync(path, "", { mode: 0o666 })
    chownSync(path, 65_534, 65_534)
    expect(yield* refusal(opened(path))).toContain("it is another user's: run this as that user")
    expect(statSync(path)).toMatchObject({ uid: 65_534, size: 0 })
  })
)

liveTest("of a run that another one excludes is not made", function* () {
  const path = yield* journalPath
  yield* acquire(path, "sweep broadcast")
  expect(yield* refusal(opened(path))).toContain(`Another process works on ${path}`)
  expect(existsSync(path)).toBe(false)
})

liveTest("is taken from no other run by one that is refused", function* () {
  const path = yield* journalPath
  const first = yield* Scope.make()
  yield* Effect.provideService(openJournal(path), Scope.Scope, first)
  const runtime = yield* Effect.runtime()
  const { fchmodSync: chmod } = fs
  // The first one ends when another one has opened the file.
  const replacing = replaceFs({
    fchmodSync: (...args) => {
      Runtime.runSync(runtime, Scope.close(first, Exit.void))
      chmod(...args)
    }
  })
  expect(yield* refusal(Effect.scoped(Effect.zipRight(replacing, openJournal(path))))).toContain(
    `Another process works on ${path}`
  )
  yield* Scope.close(first, Exit.void)
  yield* openJournal(path)
  expect(existsSync(path)).toBe(true)
})

liveTest("may be gone when its run ends", function* () {
  const path = yield* journalPath
  yield* Effect.scoped(Effect.tap(openJournal(path), () => Effect.sync(() => rmSync(path))))
  expect(existsSync(path)).toBe(false)
})
