import { spawnSync } from "node:child_process"
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { reasonOf } from "./lib/programs.ts"
import { temporaryFolder } from "./lib/store.ts"
import { PATH, root } from "./lib/tilld.ts"

/** The script behind `npm test`, among checks that pass, and a vitest that only says what `COUNTS` has. */
const project = Effect.map(temporaryFolder, (folder) => {
  for (const file of ["scripts/test.mjs", "scripts/typescript.mjs", "scripts/typescript-hooks.mjs"]) {
    cpSync(join(root, file), join(folder, file))
  }
  for (const file of ["lockfile", "sizes", "build", "openapi", "docs", "effect"]) {
    writeFileSync(join(folder, `scripts/${file}.mjs`), "")
  }
  for (const file of ["test/lib/programs.ts", "test/lib/browserPlace.ts"]) cpSync(join(root, file), join(folder, file))
  mkdirSync(join(folder, "node_modules/.bin"), { recursive: true })
  for (const name of ["esbuild", "playwright-core"]) {
    symlinkSync(join(root, "node_modules", name), join(folder, "node_modules", name))
  }
  const program = (name: string, code: string) =>
    writeFileSync(join(folder, "node_modules/.bin", name), `#!${process.execPath}\n${code}\n`, { mode: 0o755 })
  for (const name of ["biome", "depcruise", "knip"]) program(name, "")
  program("vitest", 'require("node:fs").writeFileSync(process.env.TILLD_TEST_COUNTS, process.env.COUNTS)')
  return folder
})

const here = { CI: "" }
const ci = { CI: "true" }
const times = [
  { name: "test/long.test.ts", loading: 400, running: 61_300 },
  { name: "test/short.test.ts", loading: 800, running: 2_000 }
]
const done = { passed: 3, failed: 0, skipped: 0, left: {}, times, done: true }
const curl = { left: { [reasonOf("curl")]: 2 } }

it.scoped.each([
  ["all that ran passed", here, {}, 0, "12 passed, 0 failed"],
  ["one failed", here, { failed: 1 }, 1, "Failed: 1 of the tests\n12 passed, 1 failed"],
  ["one was skipped", here, { skipped: 1 }, 1, "Failed: 1 skipped tests\n12 passed, 1 failed"],
  ["vitest was cut off", here, { done: false }, 1, "Failed: vitest did not finish\n12 passed, 1 failed"],
  ["none ran", here, { passed: 0 }, 1, "Failed: no test ran\n9 passed, 1 failed"],
  ["some lack a program, on a developer's machine", here, curl, 0, "12 passed, 0 failed"],
  [
    "some lack a program that CI must have",
    ci,
    curl,
    1,
    "Failed: 2 tests needs curl: apt-get install curl\n12 passed, 1 failed"
  ],
  ["some lack a program that CI may lack", ci, { left: { [reasonOf("go")]: 1 } }, 0, "12 passed, 0 failed"]
] as const)("npm test shows where %s", ([, env, over, code, end]) =>
  Effect.gen(function* () {
    const counts = { ...done, ...over }
    const { status, stdout } = spawnSync(process.execPath, [join(yield* project, "scripts/test.mjs")], {
      encoding: "utf8",
      env: { PATH, ...env, CHROMIUM_PATH: "/no/chromium", COUNTS: JSON.stringify(counts) }
    })
    expect(stdout.endsWith(`\n${end}\n`), stdout).toBe(true)
    expect(status).toBe(code)
    expect(stdout).toContain(
      "Loading suites took 1 s, running them 63 s; the slowest 2:\n    61.3 s  test/long.test.ts\n"
    )
    for (const [reason, count] of Object.entries(counts.left)) {
      expect(stdout).toContain(`Not run here: ${count} ${count === 1 ? "test" : "tests"} ${reason}\n`)
    }
  })
)
