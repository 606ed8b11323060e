import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import packageJson from "../package.json" with { type: "json" }
import { root } from "./lib/tilld.ts"

const rows = readFileSync(join(root, "docs/promises.md"), "utf8").match(/^\| (?!Promised|-).*$/gm) ?? []

/** Whether the evidence of a promise exists: a test by its title, a script, or another document. */
const isThere = (shown: string): boolean => {
  const [, file, title = ""] = /^`(\S+\.ts)` "(.+)"$/.exec(shown) ?? []
  if (file !== undefined) return readFileSync(join(root, "test", file), "utf8").includes(title)
  const [, script] = /^`npm run (\S+)`$/.exec(shown) ?? []
  if (script !== undefined) return script in packageJson.scripts
  const [, document = "nowhere"] = /\]\(\.\.\/([\w.]+)#/.exec(shown) ?? []
  return existsSync(join(root, document))
}

it("every promise names an existing test", () => {
  expect(rows.length).toBeGreaterThan(10)
  expect(rows.filter((row) => !isThere(row.split("|")[2]?.trim() ?? ""))).toEqual([])
})
