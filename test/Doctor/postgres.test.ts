import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { examinePostgres } from "../../src/Doctor/postgres.ts"
import { migrateServer, prepare } from "../../src/Sql/postgres/migrate.ts"
import { administer, login, postgresServer, urlOf } from "../lib/postgres.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { temporaryFolder } from "../lib/store.ts"

liveTest("what is wrong with a PostgreSQL is a finding, and what it would need too", function* () {
  const port = yield* postgresServer()
  const passwordFile = join(yield* temporaryFolder, "password")
  writeFileSync(passwordFile, login.password)
  yield* administer(
    port,
    "postgres",
    "CREATE DATABASE shop",
    "CREATE DATABASE careless",
    "ALTER DATABASE careless SET synchronous_commit = off",
    "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'",
    `CREATE USER poor PASSWORD '${login.password}'`
  )
  const look = (url: string) =>
    Effect.map(examinePostgres({ url, passwordFile, rootCertificate: "", schema: "tilld", pool: 1 }, {}), (findings) =>
      findings.map(({ finding, name, status }) => `${status} ${name}: ${finding}`)
    )
  expect(yield* look(urlOf(port, "shop"))).toEqual([
    "ok database: PostgreSQL 18",
    "ok replication: no standby of PostgreSQL is seen; a provider may have one of its own",
    "ok schema: 0: the next start brings it to 1",
    "warn nodes: none works"
  ])
  const place = { client: { ...login, port, database: "shop" }, schema: "tilld" }
  yield* prepare(place)
  yield* migrateServer(place)
  expect(yield* look(urlOf(port, "shop"))).toContain("ok schema: 1, the newest")
  expect(yield* look(urlOf(port, "shop").replace("postgres@", "poor@"))).toContain(
    "fail database: this user may make no tables in the schema tilld"
  )
  expect(yield* look(urlOf(port, "careless"))).toContainEqual(
    expect.stringMatching(/^fail database: synchronous_commit is off/)
  )
  expect(yield* look(urlOf(port, "latin"))).toContainEqual(
    expect.stringMatching(/^fail database: its encoding is LATIN1/)
  )
  expect(yield* look(urlOf(1, "shop"))).toEqual([expect.stringMatching(/^fail database: .*cannot be reached/)])
})
