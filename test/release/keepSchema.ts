// Keeps the schema of the version that is to be released, with rows as payments leave them, for the tests of later ones.
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { isDeepStrictEqual } from "node:util"
import { Effect } from "effect"
import { migrateFile } from "../../src/Sql/migrate.ts"
import { dump, keptSchemas, restoreDump, schemaOf, schemasFolder } from "../lib/schemas.ts"
import { Stage, seedsSteps } from "../sim/simulate.ts"

const [version = ""] = process.argv.slice(2)
const folder = mkdtempSync(join(tmpdir(), "tilld-schema-"))
process.once("exit", () => rmSync(folder, { recursive: true, force: true }))
const fresh = join(folder, "fresh.db")
await Effect.runPromise(migrateFile(fresh))

const kept = keptSchemas().find(([name]) => name === version)
if (kept === undefined) {
  const used = join(folder, "used.db")
  const stage = await Stage.make()
  const failure = await stage.run("1", seedsSteps("1"), true, (path) => {
    for (const end of ["", "-wal"]) if (existsSync(`${path}${end}`)) copyFileSync(`${path}${end}`, `${used}${end}`)
  })
  stage.close()
  if (failure !== undefined) throw new Error(`The simulation that makes the rows failed: ${failure}`)
  mkdirSync(schemasFolder, { recursive: true })
  writeFileSync(join(schemasFolder, `${version}.sql`), dump(used))
} else {
  const path = join(folder, "kept.db")
  restoreDump(path, kept[1])
  if (!isDeepStrictEqual(schemaOf(path), schemaOf(fresh))) {
    process.stderr.write(
      `${version} has another schema than test/vectors/schemas/${version}.sql: raise the version in package.json and add a migration. If ${version} was never released, remove the file.\n`
    )
    process.exitCode = 1
  }
}
