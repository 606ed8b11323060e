import { readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { root } from "./lib/tilld.ts"

const rows = readFileSync(join(root, "SECURITY.md"), "utf8")
  .split("\n")
  .filter((line) => line.startsWith("| ") && !/^\| -{3}|\| What holds +\|/.test(line))

it("every measure against an actor names an existing test", () => {
  expect(rows.length).toBeGreaterThan(30)
  const unshown = rows.flatMap((row) => {
    const [, , , shown = ""] = row.split("|").map((cell) => cell.trim())
    const [, file = "", title = ""] = /^`(.+\.test\.ts)` "(.+)"$/.exec(shown) ?? []
    if (shown === "") return []
    const text = file === "" ? "" : readFileSync(join(root, "test", file), "utf8")
    return title !== "" && text.includes(title) ? [] : [row]
  })
  expect(unshown).toEqual([])
  expect(rows.filter((row) => /\| +\|$/.test(row)).length).toBe(2)
})
