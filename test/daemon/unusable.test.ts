import { chmodSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { homeOn, serve } from "../lib/daemon.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { temporaryFolder } from "../lib/store.ts"
import { PATH, root, start } from "../lib/tilld.ts"

// Root may use every file, except without these capabilities.
const asOrdinary =
  process.getuid?.() === 0 ? ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all"] : ["env"]

/** The output other than the log. */
const spoken = (stderr: string) =>
  stderr
    .trimEnd()
    .split("\n")
    .filter((line) => !line.startsWith("{"))
    .join("\n")

liveTest("a daemon names an unusable resource in one line with the remedy, and exits 2", function* () {
  const { home } = yield* homeOn("base")
  const marks = yield* temporaryFolder
  const env = { PATH: PATH ?? "", TILLD_DATABASE__MARK_FOLDER: marks }
  const daemon = yield* serve(home, undefined, env)
  yield* daemon.end("SIGKILL")
  const [program = "", ...options] = asOrdinary
  const run = Effect.flatMap(
    start(program, [...options, process.execPath, join(root, "dist/tilld.js"), "serve", "--config", home.config], {
      env
    }),
    ({ ended }) => ended
  )
  const [mark = ""] = readdirSync(marks)
  const cases: ReadonlyArray<readonly [path: string, refused: number, usual: number]> = [
    [home.folder, 0o500, 0o700],
    [home.database, 0o400, 0o640],
    [`${home.database}-wal`, 0o000, 0o640],
    [join(marks, mark), 0o000, 0o600]
  ]
  for (const [path, refused, usual] of cases) {
    chmodSync(path, refused)
    const { code, stderr } = yield* run
    chmodSync(path, usual)
    expect({ code, said: spoken(stderr) }, path).toEqual({
      code: 2,
      said: expect.stringMatching(/^tilld: User \S+ may not read and write .*: chmod u\+rwX .*$/)
    })
    expect(stderr).toContain(path)
  }

  writeFileSync(home.database, "x".repeat(10_000))
  const { code, stderr } = yield* run
  expect({ code, said: spoken(stderr) }).toEqual({
    code: 2,
    said: expect.stringMatching(/^tilld: .*is damaged, or no SQLite database.*$/)
  })
})
