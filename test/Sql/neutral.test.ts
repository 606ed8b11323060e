import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import ts from "typescript"
import { root } from "../lib/tilld.ts"

/** The rooms of the database's file alone, and of what translates. */
const ofOneEngine = /^(migrations\/|Sql[./]|Backup|Doctor\/storeFacts|commands\/(restore|store)\.ts|Sandbox\/)/

/** What SQLite alone understands, and `src/Sql/postgres` does not translate; `data_version` is one of its rules. */
const ofFileAlone = [
  /\bIS NOT$|\bIS(?: NOT)?\s+(?!NOT\b|NULL\b|DISTINCT\b|$)/,
  /\bGLOB (?!')/,
  /\b(?:INSERT OR|REPLACE INTO|BEGIN (?:IMMEDIATE|EXCLUSIVE)|AS BLOB|PRAGMA (?!data_version))/,
  /\b(?:last_insert_rowid|total_changes|changes|datetime|strftime|julianday|unixepoch|ifnull|total|typeof|zeroblob)\(/,
  /\bjson_(?:extract|type|patch|set|insert|remove|replace|tree|group_object)\(/
]

const places = join(root, "src")

/** The texts of a file: strings, and the parts of templates. */
const textsOf = (file: string): ReadonlyArray<string> => {
  const texts: Array<string> = []
  const visit = (node: ts.Node): void => {
    if (ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node)) {
      texts.push(node.text)
    }
    ts.forEachChild(node, visit)
  }
  visit(ts.createSourceFile(file, readFileSync(join(places, file), "utf8"), ts.ScriptTarget.Latest, true))
  return texts
}

const isForFileAlone = (text: string) => ofFileAlone.some((pattern) => pattern.test(text))

it("no statement outside the rooms of the file is in words that SQLite alone understands", () => {
  const found = readdirSync(places, { encoding: "utf8", recursive: true })
    .filter((file) => /\.tsx?$/.test(file) && !ofOneEngine.test(file))
    .flatMap((file) =>
      textsOf(file)
        .filter(isForFileAlone)
        .map((text) => `${file}: ${text}`)
    )
  expect(found).toEqual([])
})

it.each([
  "failure_reason IS 'x'",
  "failure_reason IS NOT",
  "a IS NOT b",
  "address GLOB ?",
  "INSERT OR IGNORE INTO t",
  "PRAGMA user_version",
  "json_extract(a, '$.b')"
])("it would find %s", (text) => {
  expect(isForFileAlone(text)).toBe(true)
})

it.each(["a IS NULL", "a IS NOT NULL", "a IS NOT DISTINCT FROM ?", "a GLOB 'tx:*'", "PRAGMA data_version"])(
  "both understand %s",
  (text) => {
    expect(isForFileAlone(text)).toBe(false)
  }
)
