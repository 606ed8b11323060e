import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import ts from "typescript"
import { expect, it } from "vitest"
import { root } from "./lib/processes.ts"

const src = join(root, "src")

/** The names that a file declares and exports. */
const exportsOf = (file: string): ReadonlyArray<string> => {
  const { statements } = ts.createSourceFile(file, readFileSync(join(src, file), "utf8"), ts.ScriptTarget.Latest)
  return statements.flatMap((statement) => {
    const isExported =
      ts.canHaveModifiers(statement) &&
      ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)
    if (isExported !== true) return []
    if (ts.isVariableStatement(statement)) {
      return statement.declarationList.declarations.flatMap(({ name }) => (ts.isIdentifier(name) ? [name.text] : []))
    }
    const { name } = statement as ts.Statement & { readonly name?: ts.Identifier }
    return name === undefined ? [] : [name.text]
  })
}

// A repository's functions are used under its namespace, and the client is a package of its own.
it("one name means one thing: exported names are unique", () => {
  const files = readdirSync(src, { recursive: true, encoding: "utf8" }).filter(
    (file) => file.endsWith(".ts") && !file.endsWith("Repo.ts") && !file.startsWith("client")
  )
  const places = new Map<string, ReadonlyArray<string>>()
  for (const file of files) {
    for (const name of new Set(exportsOf(file))) places.set(name, [...(places.get(name) ?? []), file])
  }
  expect(places.size).toBeGreaterThan(500)
  expect(Array.from(places).filter(([, declared]) => declared.length > 1)).toEqual([])
})
