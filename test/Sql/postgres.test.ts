import { connect, createServer, type Socket } from "node:net"
import { expect } from "@effect/vitest"
import { Context, Deferred, Effect, Either, Exit, Fiber, FiberId, Layer, Scope } from "effect"
import { StoreConnection, type StorePlace } from "../../src/Sql/postgres/Connection.ts"
import { ofDefinitions, ofStatement } from "../../src/Sql/postgres/dialect.ts"
import { serverStore } from "../../src/Sql/postgres/layer.ts"
import { acquireLease, type Lease, LeaseLost, type NodeStanding } from "../../src/Sql/postgres/lease.ts"
import { migrateServer, prepare } from "../../src/Sql/postgres/migrate.ts"
import { execute, oneValue, Reader, Tx, Writer } from "../../src/Sql.ts"
import { Metrics } from "../../src/Telemetry/Metrics.ts"
import { Workers } from "../../src/Telemetry/Workers.ts"
import { administer, freeLease, login, postgresServer } from "../lib/postgres.ts"
import { databaseServer } from "../lib/postgresCluster.ts"
import { liveSuite, liveTest } from "../lib/scopedTest.ts"

class Server extends Context.Tag("test/Server")<Server, number>() {
  static readonly layer = Layer.scoped(this, postgresServer())
}

let databases = 0

/** A place in a database of its own, behind a proxy that can be cut. */
const newPlace = Effect.gen(function* () {
  const port = yield* Server
  const database = `own_${++databases}`
  yield* administer(port, "postgres", `CREATE DATABASE ${database}`)
  const place = (at: number): StorePlace => ({ client: { ...login, port: at, database }, schema: "tilld" })
  return { place: place(port), through: (at: number) => place(at) }
})

type Cut = "before" | "after" | "silent"

/** Passes bytes on until it is told to cut at the next COMMIT, or to say nothing more. */
const proxy = (to: number) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.async<{ port: number; cut: (how: Cut) => void; close: () => void; swallowed: Effect.Effect<void> }>(
        (resume) => {
          let cut: Cut | undefined
          const swallowed = Deferred.unsafeMake<void>(FiberId.none)
          const sockets = new Set<Socket>()
          const server = createServer((client) => {
            const upstream = connect(to, "127.0.0.1")
            for (const socket of [client, upstream]) {
              sockets.add(socket)
              socket.on("error", () => {})
            }
            client.on("data", (bytes) => {
              if (cut === "silent") return Deferred.unsafeDone(swallowed, Exit.void)
              const commits = bytes.includes("COMMIT")
              if (cut === undefined || !commits || cut === "after") upstream.write(bytes)
              if (cut !== undefined && commits) {
                // What PostgreSQL was sent it carries out; nobody hears of it.
                upstream.pause()
                client.destroy()
                if (cut === "before") upstream.destroy()
                cut = undefined
              }
            })
            upstream.on("data", (bytes) => {
              if (cut !== "silent") client.write(bytes)
            })
            upstream.on("close", () => client.destroy())
            client.on("close", () => upstream.end())
          })
          server.listen(0, "127.0.0.1", () => {
            const address = server.address()
            const port = typeof address === "object" && address !== null ? address.port : 0
            const close = () => {
              server.close()
              for (const socket of sockets) socket.destroy()
            }
            resume(
              Effect.succeed({
                port,
                close,
                swallowed: Deferred.await(swallowed),
                cut: (how) => {
                  cut = how
                }
              })
            )
          })
        }
      ),
      ({ close }) => Effect.sync(close)
    ),
    ({ cut, port, swallowed }) => ({ cut, port, swallowed })
  )

const services = Layer.mergeAll(Metrics.layer, Workers.layer)
const opened = (place: StorePlace, given?: Lease) =>
  Effect.gen(function* () {
    const lease = given ?? (yield* freeLease({ ...place, client: { ...place.client, port: yield* Server } }))
    return yield* Layer.build(Layer.provide(serverStore(place, lease), services)).pipe(Effect.provide(services))
  })
const put = (key: string) => execute("INSERT INTO meta (key, value) VALUES (?, 'x')", [key])

const node = (name: string) => ({ node: name, version: "1" })
/** A node that has the lease until its scope is closed. */
const active = (
  place: StorePlace,
  name: string,
  stand: (standing: NodeStanding) => Effect.Effect<void> = () => Effect.void
) =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    yield* Effect.addFinalizer(() => Scope.close(scope, Exit.void))
    const lease = yield* Scope.extend(acquireLease(place, node(name), stand), scope)
    return { ...lease, end: Scope.close(scope, Exit.void) }
  })

liveSuite(Server.layer, "a store in PostgreSQL", (test) => {
  const migrated = Effect.tap(newPlace, ({ place }) => Effect.zipRight(prepare(place), migrateServer(place)))

  test("a commit whose answer is lost is told of as it was, and never done twice", function* () {
    const { through } = yield* migrated
    const line = yield* proxy(yield* Server)
    const store = yield* opened(through(line.port))
    const { write } = Context.get(store, Writer)
    yield* write(put("first"))
    line.cut("after")
    yield* write(put("kept"))
    line.cut("before")
    expect(yield* Effect.flip(write(put("lost")))).toMatchObject({ _tag: "StoreUnavailable", code: "08007" })
    yield* write(put("next"))
    const rows = yield* Context.get(store, Reader).all("SELECT key FROM meta WHERE value = 'x' ORDER BY key")
    expect(rows).toEqual([{ key: "first" }, { key: "kept" }, { key: "next" }])
  })

  test("commands of a group that fail leave the others, and what they wrote is undone", function* () {
    const { place } = yield* migrated
    const { write } = Context.get(yield* opened(place), Writer)
    const fails = Effect.zipRight(put("b"), Effect.fail("no" as const))
    const refused = Effect.flatMap(Tx, (tx) => tx.run("SELECT 1 / 0"))
    const outcomes = yield* Effect.all(
      [write(put("a")), write(fails), write(refused), write(put("c"))].map(Effect.exit),
      {
        concurrency: "unbounded"
      }
    )
    expect(outcomes.map(Exit.isSuccess)).toEqual([true, false, false, true])
    const store = yield* opened(place)
    expect(yield* Context.get(store, Reader).all("SELECT key FROM meta WHERE value = 'x' ORDER BY key")).toEqual([
      { key: "a" },
      { key: "c" }
    ])
  })

  test("a command that ignores a failed statement is not told that it was stored", function* () {
    const { place } = yield* migrated
    const { write } = Context.get(yield* opened(place), Writer)
    const ignoring = Effect.zipRight(
      put("a"),
      Effect.catchAllCause(
        Effect.flatMap(Tx, (tx) => tx.run("SELECT 1 / 0")),
        () => Effect.void
      )
    )
    expect(yield* Effect.flip(write(ignoring))).toMatchObject({ _tag: "StoreUnavailable", code: "08007" })
  })

  test("texts with U+0000 are stored and found, and integers are exact or refused", function* () {
    const { place } = yield* migrated
    const store = yield* opened(place)
    const reader = Context.get(store, Reader)
    yield* Context.get(store, Writer).write(put("a\0b"))
    expect(yield* oneValue(reader, "SELECT value FROM meta WHERE key = ?", ["a\0b"])).toBe("x")
    expect(yield* oneValue(reader, "SELECT value FROM meta WHERE key = ?", ["a"])).toBeUndefined()
    const most = Number.MAX_SAFE_INTEGER
    expect(yield* oneValue(reader, "SELECT CAST(? AS BIGINT)", [most])).toBe(most)
    expect(Exit.isFailure(yield* Effect.exit(oneValue(reader, "SELECT CAST(9007199254740993 AS BIGINT)")))).toBe(true)
    // Whether a parameter is an integer may be seen late.
    const sum = (value: number | null) => oneValue<number>(reader, "SELECT coalesce(?, 0) + 1", [value])
    expect([yield* sum(null), yield* sum(5e12)]).toEqual([1, 5e12 + 1])
  })

  test("one node works; where it ends the next one does at once, and knows who worked", function* () {
    const { place } = yield* newPlace
    const first = yield* active(place, "one")
    const seen = yield* Deferred.make<NodeStanding>()
    const second = yield* Effect.forkScoped(
      active(place, "two", (standing) => Effect.asVoid(Deferred.succeed(seen, standing)))
    )
    expect(yield* Deferred.await(seen)).toEqual({ holder: node("one"), problem: undefined })
    yield* first.end
    const { epoch } = yield* Fiber.join(second)
    expect(epoch).toBe(first.epoch + 1)
  })

  test("a node that is cut off gives itself up before another one works, and writes nothing any more", function* () {
    const { place, through } = yield* migrated
    const line = yield* proxy(yield* Server)
    const first = yield* active(through(line.port), "one")
    // Its writer is on another line, as that of a process which was stopped for a while is.
    const store = yield* opened(place, { ...first, lost: Effect.never })
    yield* Context.get(store, Writer).write(put("before"))
    line.cut("silent")
    const second = yield* Effect.forkScoped(active(place, "two"))
    expect(Either.isLeft(yield* Effect.either(first.lost))).toBe(true)
    expect(yield* Fiber.poll(second)).toMatchObject({ _tag: "None" })
    yield* Fiber.join(second)
    const late = yield* Effect.flip(Context.get(store, Writer).write(put("after")))
    expect(late).toMatchObject({ _tag: "StoreUnavailable", code: "FENCED" })
    const reader = Context.get(store, Reader)
    expect(yield* oneValue(reader, "SELECT count(*) FROM meta WHERE value = 'x'")).toBe(1)
  })

  test("an epoch that was taken in another history is not one's own", function* () {
    const { place } = yield* migrated
    const first = yield* active(place, "one")
    // As where a standby without the last epochs was promoted, and another node got the number again.
    const store = yield* opened(place, { ...first, history: "00000000/1" })
    const late = yield* Effect.flip(Context.get(store, Writer).write(put("after")))
    expect(late).toMatchObject({ _tag: "StoreUnavailable", code: "FENCED" })
  })

  test("what waits for PostgreSQL fails at once where the lease is lost", function* () {
    const { place, through } = yield* migrated
    const line = yield* proxy(yield* Server)
    const lost = yield* Deferred.make<never, LeaseLost>()
    const lease = yield* freeLease(place)
    const store = yield* opened(through(line.port), { ...lease, lost: Deferred.await(lost) })
    const { write } = Context.get(store, Writer)
    yield* write(put("before"))
    line.cut("silent")
    const waiting = yield* Effect.fork(write(put("waits")))
    yield* line.swallowed
    yield* Effect.fork(Deferred.fail(lost, new LeaseLost({ message: "" })))
    const since = performance.now()
    expect(yield* Effect.flip(Fiber.join(waiting))).toMatchObject({ _tag: "StoreUnavailable" })
    expect(yield* Effect.flip(write(put("late")))).toMatchObject({ code: "FENCED" })
    expect(performance.now() - since).toBeLessThan(5_000)
  })

  test("a version that does not know the schema never takes the lease", function* () {
    const { place } = yield* migrated
    const connection = yield* StoreConnection.open(place)
    yield* connection.script("INSERT INTO migrations (migration_id, name) VALUES (9999, 'later')")
    connection.close()
    expect(yield* Effect.flip(active(place, "old"))).toMatchObject({ _tag: "StoreUnusable" })
  })
})

liveTest("a server that crashed gives the number of a transaction again, and its outcome is still known", function* () {
  const server = yield* databaseServer
  const place: StorePlace = { client: { ...login, port: server.port, database: "postgres" }, schema: "tilld" }
  yield* Effect.zipRight(prepare(place), migrateServer(place))
  const lease = yield* freeLease(place)
  const store = yield* Layer.build(Layer.provide(serverStore(place, lease), services)).pipe(Effect.provide(services))
  const crash = Effect.zipRight(server.stop("immediate"), server.start)
  const another = server.ask("postgres", "CREATE TABLE another (a INT)")
  const crashing = Effect.zipRight(put("lost"), Effect.zipRight(crash, another))
  const { write } = Context.get(store, Writer)
  expect(yield* Effect.flip(write(crashing))).toMatchObject({ _tag: "StoreUnavailable", code: "08007" })
  expect(yield* oneValue(Context.get(store, Reader), "SELECT count(*) FROM meta WHERE key = 'lost'")).toBe(0)
})

liveSuite(Layer.empty, "what SQLite and PostgreSQL say differently", (test) => {
  const said = (sql: string) => ofStatement(sql, new Set())

  test("has a rule each", function* () {
    yield* Effect.void
    expect(said("a = ? AND b = ?")).toBe("a = $1 AND b = $2")
    expect(ofStatement("? + 1", new Set([1]))).toBe("$1::bigint + 1")
    expect(said("a GLOB 'log:*' OR a NOT GLOB '*[^0-9]*'")).toBe("a ~ '^log:' OR a !~ '[^0-9]'")
    expect(said("FROM p INDEXED BY x WHERE (+a = 1) AND +p.b = 2")).toBe("FROM p  WHERE (a = 1) AND p.b = 2")
    expect(said("l CROSS JOIN r AS x ON a = b")).toBe("l JOIN r AS x ON a = b")
    expect(said("iif(a = 'x, (y', f(1, 2), iif(b, 3, 4)) + 5")).toBe(
      "(CASE WHEN a = 'x, (y' THEN  f(1, 2) ELSE  (CASE WHEN b THEN  3 ELSE  4 END) END) + 5"
    )
    expect(said("json_object('a', json_array(1))")).toBe("json_build_object('a', json_build_array(1))")
    expect(said("LIMIT -1 OFFSET 3")).toBe("LIMIT ALL OFFSET 3")
  })

  test("of definitions, too", function* () {
    yield* Effect.void
    const table =
      "CREATE TABLE a (\n id INTEGER PRIMARY KEY,\n b TEXT REFERENCES c (id),\n d BLOB\n) STRICT, WITHOUT ROWID"
    expect(ofDefinitions([table])).toEqual([
      'CREATE TABLE a (\n id BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,\n b TEXT COLLATE "C",\n d BYTEA\n)',
      "ALTER TABLE a ADD FOREIGN KEY (b) REFERENCES c (id)"
    ])
    const trigger = "CREATE TRIGGER t AFTER UPDATE OF b ON a WHEN NEW.b IS NOT OLD.b BEGIN DELETE FROM c; END"
    const [, made] = ofDefinitions([trigger])
    expect(made).toBe("CREATE TRIGGER t AFTER UPDATE OF b ON a FOR EACH ROW EXECUTE FUNCTION t()")
  })
})
