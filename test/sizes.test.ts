import { execFileSync, spawnSync } from "node:child_process"
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterEach, beforeEach, expect, it } from "vitest"

let root = ""
const write = (path: string, lines: number) => {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), "// a line\n".repeat(lines))
}
const sizes = (...args: ReadonlyArray<string>) =>
  spawnSync(process.execPath, ["scripts/sizes.mjs", ...args], { cwd: root, encoding: "utf8" })
const budgets = () => JSON.parse(readFileSync(join(root, "config/tools/sizes.json"), "utf8"))
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "tilld-sizes-"))
  write("src/Chains.ts", 5)
  write("src/Chains/watcher/tick.ts", 50)
  write("src/client/types.ts", 500)
  write("src/main.ts", 7)
  write("src/Pages/look.css", 30)
  write("test/Chains/tick.test.ts", 60)
  for (const folder of ["scripts", "config/tools"]) mkdirSync(join(root, folder), { recursive: true })
  copyFileSync("scripts/sizes.mjs", join(root, "scripts/sizes.mjs"))
  writeFileSync(join(root, "package.json"), JSON.stringify({ dependencies: { effect: "3" } }))
  writeFileSync(join(root, "config/tools/sizes.json"), "{}")
  const git = (...args: ReadonlyArray<string>) => execFileSync("git", args, { cwd: root })
  git("init", "--quiet")
  git("add", ".")
  git("-c", "user.name=a", "-c", "user.email=a@b.example", "commit", "--quiet", "--message=start")
})
afterEach(() => rmSync(root, { recursive: true }))

it("counts each room with the file of its name, and no generated file", () => {
  sizes("--lower")
  expect(budgets()).toEqual({
    "files of src": 4,
    "files of src below 40 lines": 2,
    "runtime dependencies": 1,
    src: 62,
    "src/*.ts": 7,
    "src/Chains": 55,
    "src/Chains/watcher": 50,
    test: 60
  })
  expect(sizes().status).toBe(0)
})

it("fails above a budget, and shows the change since the last commit", () => {
  sizes("--lower")
  write("src/Chains/watcher/tick.ts", 53)
  write("src/Chains/watcher/more.ts", 2)
  const { status, stdout } = sizes()
  expect(status).toBe(1)
  expect(stdout).toContain("     55 of     50  src/Chains/watcher  +5 ABOVE ITS BUDGET\n")
  expect(stdout).toMatch(/^Above its budget: .*src\/Chains, src\/Chains\/watcher\./m)
})

it("lowers budgets, and raises none", () => {
  sizes("--lower")
  write("src/Chains/watcher/tick.ts", 41)
  write("src/main.ts", 9)
  sizes("--lower")
  expect(budgets()).toMatchObject({ src: 55, "src/*.ts": 7, "src/Chains/watcher": 41 })
  expect(sizes().status).toBe(1)
})
