import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer } from "effect"
import pg from "pg"
import type { StorePlace } from "../../src/Sql/postgres/Connection.ts"
import { acquireLease, type NodeStanding } from "../../src/Sql/postgres/lease.ts"
import { migrateServer, prepare } from "../../src/Sql/postgres/migrate.ts"
import * as Sql from "../../src/Sql.ts"
import { administer, login, postgresServer, urlOf } from "../lib/postgres.ts"
import { rowsOf, schemaOf } from "../lib/schemas.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { testXpub } from "../lib/settings.ts"
import { temporaryFolder } from "../lib/store.ts"
import { startTilld, tilld } from "../lib/tilld.ts"
import { change, paid, query, wallet } from "./backing.ts"

class Server extends Context.Tag("test/CopyServer")<Server, number>() {
  static readonly layer = Layer.scoped(this, postgresServer())
}

let databases = 0

/** Values that one of the engines, JavaScript or a text between them could change. */
const odd = [
  "INSERT INTO meta VALUES ('nul', 'a' || char(0) || 'b'), ('empty', ''), ('number', '007'), ('quoted', 'NULL'), ('list', '{\"a\\b\",}')",
  "INSERT INTO meta VALUES ('', 'no key'), ('Z', 'before a'), ('é', char(0x1F600)), ('\uffff', 'before it by UTF-16'), ('😀', 'after')",
  "INSERT INTO accounts VALUES ('default', 'Shop', 0, 9223372036854775807, NULL, 9007199254740993), ('other', '', -1, 0, 1, NULL)",
  // The one that is named has the later key.
  `INSERT INTO api_keys (id, account_id, mode, name, hash, last_four, permissions, created_at, rolled_to) VALUES
     ('key_b', 'default', 'live', 'b', x'00ff00', '1234', '[]', 1, NULL), ('key_a', 'default', 'live', 'a', x'', '1234', '[]', 1, 'key_b')`,
  `INSERT INTO idempotent_responses VALUES ('default', 'live', 'POST /', 'k', NULL, 200, '{}', 'x', 1), ('default', 'live', 'POST /', 'K', x'0a', 200, '{}', '', 2)`,
  // In the order of their making, and with a number that is free again.
  `INSERT INTO endpoints (rowid, id, account_id, mode, url, events, secret, created_at) VALUES
     (2, 'we_z', 'default', 'live', 'https://a', '[]', x'01', 5), (7, 'we_a', 'default', 'live', 'https://b', '[]', zeroblob(70), 5)`,
  `INSERT INTO wallets (fingerprint, next_index) VALUES ('${wallet}', 0)`,
  ...[0, 1, 2].flatMap((index) => paid(index)),
  // Each names the other.
  `INSERT INTO invoices (id, checkout_token, account_id, mode, amount, currency, choices, status, created_at, expires_at, metadata, payment_id)
     VALUES ('inv_1', 'i', 'default', 'test', '1.00', 'EUR', '', 'open', 1, 2, '{}', 'pay_1')`,
  "UPDATE payments SET invoice_id = 'inv_1' WHERE id = 'pay_1'",
  `INSERT INTO events (sequence, id, account_id, mode, payment_id, kind, body, created_at)
     VALUES (9007199254740993, 'evt_1', 'default', 'test', 'pay_1', 'payment.created', '{}', 1)`,
  `INSERT INTO deliveries (id, event_id, payment_id, account_id, mode, endpoint_id, own_url, target, url, status, attempts, next_attempt_at, created_at)
     VALUES ('d', 'evt_1', 'pay_1', 'default', 'test', 'we_a', 0, 'we_a', 'https://b', 'pending', 0, 5, 1)`,
  `INSERT INTO exceptions (id, payment_id, kind, key, chain, mode, address, currency, amount, opened_at, closed_at, outcome)
     SELECT 'exc_' || value, 'pay_1', 'found_late', value, 'base', 'test', '0x1', 'USDC', '5', 1, iif(value = 2, 9, NULL), iif(value = 2, 'accepted', NULL) FROM json_each('[1, 2]')`,
  "INSERT INTO audit (at, via, who, act, detail) VALUES (1, 'direct', 'me', 'x', '{}')",
  "UPDATE lanes SET next_at = 17, slow = 1",
  "UPDATE usage SET bytes = bytes + 100"
]

const askedOf = (port: number, database: string, sql: string) =>
  Effect.acquireUseRelease(
    Effect.promise(async () => {
      const client = new pg.Client({ ...login, port, database, options: "-c search_path=tilld" })
      await client.connect()
      return client
    }),
    (client) => Effect.promise(async () => (await client.query<Record<string, unknown>>(sql)).rows),
    (client) => Effect.promise(() => client.end())
  )

/** A folder with a store of these rows, and a configuration with an empty database in PostgreSQL. */
const place = Effect.gen(function* () {
  const port = yield* Server
  const database = `copy_${++databases}`
  yield* administer(port, "postgres", `CREATE DATABASE ${database}`)
  const folder = yield* temporaryFolder
  const [file, node, marks] = [join(folder, "data/tilld.db"), join(folder, "node"), join(folder, "marks")]
  for (const made of [join(folder, "data"), node, marks]) mkdirSync(made)
  const config = join(folder, "tilld.toml")
  writeFileSync(join(folder, "password"), login.password)
  writeFileSync(
    config,
    `[server]
public_url = "https://pay.example.com"
[database]
engine = "postgres"
url = "${urlOf(port, database)}"
password_file = "${folder}/password"
mark_folder = "${marks}"
[node]
folder = "${node}"
[wallets]
test = "${testXpub}"
[chains.base.test]
rpc_urls = ["http://127.0.0.1:1"]`
  )
  yield* Effect.scoped(Effect.provide(Effect.void, Sql.layer(file)))
  yield* change(file, ...odd)
  const copy = (...words: ReadonlyArray<string>) => tilld(["store", "copy", ...words, "--config", config])
  const asked = (sql: string) => askedOf(port, database, sql)
  /** Does this in the midst of each copy. */
  const spoil = (statement: string) =>
    Effect.zipRight(
      asked(`CREATE FUNCTION public.spoil() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN ${statement}; END $$`),
      asked(
        "CREATE EVENT TRIGGER spoil ON ddl_command_end WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION public.spoil()"
      )
    )
  const server: StorePlace = { client: { ...login, port, database }, schema: "tilld" }
  return { folder, file, config, copy, asked, port, spoil, server, back: join(folder, "data/back.db") }
})

const tables = "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'tilld' ORDER BY 1"

/** The rows of a file without what a copy changes itself. */
const kept = (path: string) => {
  const { audit = [], meta = [], migrations: _, numbering: _token, ...rows } = rowsOf(path)
  return { ...rows, meta, audit: audit.filter(({ act }) => act !== "store copy") }
}

const tokenOf = (path: string) =>
  Effect.map(query<{ token: string }>(path, "SELECT token FROM numbering"), ([row]) => row?.token)

/** Everything that PostgreSQL has of a schema besides rows. */
const definitions = `SELECT conrelid::regclass || ' ' || pg_get_constraintdef(oid) AS made FROM pg_constraint WHERE connamespace = 'tilld'::regnamespace
  UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'tilld'
  UNION ALL SELECT pg_get_triggerdef(oid) || tgenabled::text FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1`

liveSuite(Server.layer, "tilld store copy", (test) => {
  test("brings every row to PostgreSQL and back, with the schema that a new store has", function* () {
    const { asked, back, copy, file, port } = yield* place
    const before = kept(file)
    const there = yield* copy("--from", file, "--json")
    expect(there).toMatchObject({ code: 0, stderr: "" })
    expect(JSON.parse(there.stdout)).toMatchObject({ from: file, jump: expect.stringContaining("mark is missing") })
    expect(kept(file)).toEqual(before)
    expect(yield* asked("SELECT value FROM meta WHERE key = 'nul'")).toEqual([{ value: "a\ufdd0b" }])
    expect(yield* asked("SELECT nextval(pg_get_serial_sequence('payments', 'sequence'))::int AS next")).toEqual([
      { next: 4 }
    ])

    yield* administer(port, "postgres", "CREATE DATABASE new")
    const fresh = { client: { ...login, port, database: "new" }, schema: "tilld" }
    yield* Effect.zipRight(prepare(fresh), migrateServer(fresh))
    const made = yield* asked(definitions)
    expect(made.length).toBeGreaterThan(150)
    expect(made).toEqual(yield* askedOf(port, "new", definitions))

    const home = yield* copy("--to", back)
    expect(home).toMatchObject({ code: 0 })
    expect(kept(back)).toEqual({
      ...before,
      meta: before.meta.map((row) => (row.key === "nul" ? { ...row, value: "a\ufdd0b" } : row))
    })
    expect(schemaOf(back)).toEqual(schemaOf(file))
    const big =
      "SELECT CAST(sequence AS TEXT) AS sequence, (SELECT CAST(max(quota_bytes) AS TEXT) FROM accounts) AS quota FROM events"
    expect(yield* query(back, big)).toEqual([{ sequence: "9007199254740993", quota: "9223372036854775807" }])
    expect(yield* query(back, "SELECT rowid, id FROM endpoints ORDER BY rowid")).toEqual([
      { rowid: 2, id: "we_z" },
      { rowid: 7, id: "we_a" }
    ])
    expect(yield* query(back, "SELECT act, via FROM audit WHERE act = 'store copy'")).toHaveLength(2)
  })

  test("that is not the same in PostgreSQL is named and not kept, and can be made again", function* () {
    const { asked, copy, file, spoil } = yield* place
    yield* spoil("UPDATE tilld.meta SET value = '7' WHERE key = 'number'")
    const before = kept(file)
    expect(yield* copy("--from", file)).toMatchObject({
      code: 1,
      stdout: "",
      stderr:
        "tilld: The copy of table meta is not the same at key number: it was not kept, and the source is unchanged\n"
    })
    expect(kept(file)).toEqual(before)
    expect(yield* tokenOf(file)).toBe("")
    expect(yield* asked(tables)).toEqual([{ name: "last_commit" }, { name: "lease" }, { name: "migrations" }])
    yield* asked("DROP EVENT TRIGGER spoil")
    expect(yield* copy("--from", file)).toMatchObject({ code: 0 })
    expect(yield* tokenOf(file)).toContain("moved to postgres://")
  })

  test("is killed, leaves nothing, keeps nodes waiting until then, and is made again", function* () {
    const { asked, config, copy, file, server, spoil } = yield* place
    yield* spoil("PERFORM pg_sleep(600)")
    const running = yield* startTilld(["store", "copy", "--from", file, "--config", config])
    const sleeping = asked("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
    yield* Effect.repeat(sleeping, { until: (rows) => rows.length > 0 })
    expect(yield* copy("--from", file)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("store copy, process")
    })
    const seen = yield* Deferred.make<NodeStanding>()
    const waits = acquireLease(server, { node: "two", version: "1" }, (standing) => Deferred.succeed(seen, standing))
    const node = yield* Effect.forkScoped(Effect.scoped(waits))
    expect(yield* Deferred.await(seen)).toMatchObject({ holder: { node: "tilld store copy" } })
    yield* running.end("SIGKILL")
    // The node has the lease when the copy is gone.
    yield* Fiber.join(node)
    expect(yield* asked(tables)).toEqual([{ name: "last_commit" }, { name: "lease" }, { name: "migrations" }])
    expect(yield* tokenOf(file)).toBe("")
    yield* asked("DROP EVENT TRIGGER spoil")
    expect(yield* copy("--from", file)).toMatchObject({ code: 0 })
  })

  test("that SQLite refuses leaves no file, and the store in PostgreSQL as it was", function* () {
    const { asked, back, copy, file, folder } = yield* place
    yield* copy("--from", file)
    yield* asked("UPDATE numbering SET token = 'again'")
    yield* asked("ALTER TABLE meta ALTER value DROP NOT NULL")
    yield* asked("UPDATE meta SET value = NULL WHERE key = 'number'")
    // Of a run that was killed.
    writeFileSync(`${back}.99999999.partial`, "")
    const failed = yield* copy("--to", back)
    expect(failed).toMatchObject({ code: 1, stdout: "" })
    expect(failed.stderr).toContain(
      "Nothing was copied (SQLITE_CONSTRAINT_NOTNULL): NOT NULL constraint failed: meta.value"
    )
    expect(readdirSync(join(folder, "data")).filter((name) => /back.*(db|partial)/.test(name))).toEqual([
      "back.db.lock"
    ])
    expect(yield* asked("SELECT token FROM numbering")).toEqual([{ token: "again" }])
    yield* asked("UPDATE meta SET value = '007' WHERE key = 'number'")
    expect(yield* copy("--to", back)).toMatchObject({ code: 0 })
    expect(readdirSync(join(folder, "data")).filter((name) => name.startsWith("back"))).toEqual([
      "back.db",
      "back.db.lock"
    ])
    expect(statSync(back).mode & 0o777).toBe(0o640)
    expect(yield* query(back, "SELECT value FROM meta WHERE key = 'number'")).toEqual([{ value: "007" }])
  })

  test("is refused for a target that is not new, a source in use, and one that was moved", function* () {
    const { asked, back, config, copy, file, folder, server } = yield* place
    const refused = (why: string) => ({ code: 2, stdout: "", stderr: expect.stringContaining(why) })
    expect(yield* copy()).toEqual(expect.objectContaining(refused("Name one file")))
    expect(yield* copy("--from", file, "--to", back)).toMatchObject(refused("Name one file"))
    expect(yield* copy("--from", back)).toMatchObject(refused(`There is no database ${back}`))
    expect(yield* copy("--to", back)).toMatchObject(refused("The schema tilld of PostgreSQL has no store"))
    writeFileSync(join(folder, "data/text.db"), "text")
    expect(yield* copy("--from", join(folder, "data/text.db"))).toMatchObject(refused("damaged, or no SQLite database"))
    yield* change(join(folder, "data/empty.db"), "CREATE TABLE a (b)")
    expect(yield* copy("--from", join(folder, "data/empty.db"))).toMatchObject(refused("is not a database of tilld"))
    yield* change(file, "UPDATE migrations SET migration_id = 99")
    expect(yield* copy("--from", file)).toMatchObject(refused("has schema 99, and this version knows 1"))
    yield* change(file, "UPDATE migrations SET migration_id = 1")
    yield* Effect.scoped(
      Effect.zipRight(
        acquireLease(server, { node: "one", version: "1" }, () => Effect.void),
        Effect.map(copy("--from", file), (ended) =>
          expect(ended).toMatchObject(refused("one works on the store in PostgreSQL: stop tilld on every node"))
        )
      )
    )
    yield* asked("CREATE TABLE tilld.mine (a int)")
    expect(yield* copy("--from", file)).toMatchObject(refused("has tables already"))
    yield* asked("DROP TABLE tilld.mine")

    expect(yield* copy("--from", file)).toMatchObject({ code: 0 })
    expect(yield* copy("--from", file)).toMatchObject(refused("This store was moved to postgres://"))
    yield* change(file, "UPDATE numbering SET token = 'again'")
    expect(yield* copy("--from", file)).toMatchObject(refused("has tables already"))
    expect(yield* copy("--to", file)).toMatchObject(refused("exists already"))
    expect(yield* copy("--to", join(folder, "none/back.db"))).toMatchObject(refused("none"))
    expect(yield* copy("--to", back)).toMatchObject({ code: 0 })
    expect(yield* copy("--to", join(folder, "data/again.db"))).toMatchObject(refused(`This store was moved to ${back}`))

    const plain = join(folder, "plain.toml")
    writeFileSync(
      plain,
      readFileSync(config, "utf8").replace(/\[database\][^[]*\[node\][^[]*/, `[database]\npath = "${back}"\n`)
    )
    expect(yield* tilld(["store", "copy", "--from", back, "--config", plain])).toMatchObject(
      refused("must name the PostgreSQL")
    )
  })

  test("whose source cannot be marked says that it is complete", function* () {
    const { asked, back, copy, file } = yield* place
    yield* copy("--from", file)
    yield* asked("UPDATE numbering SET token = 'again'")
    yield* asked("CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not this'; END $$")
    yield* asked("CREATE TRIGGER no BEFORE UPDATE ON numbering EXECUTE FUNCTION no()")
    const ended = yield* copy("--to", back)
    expect(ended).toMatchObject({ code: 1, stdout: "" })
    expect(ended.stderr).toMatch(new RegExp(`${back} is complete, and postgres://.* could not be marked .*not this`))
    expect(rowsOf(back).payments).toHaveLength(3)
  })
})
