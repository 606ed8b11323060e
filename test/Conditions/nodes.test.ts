import { expect } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Scope } from "effect"
import packageJson from "../../package.json" with { type: "json" }
import { makeNodes, readNodes } from "../../src/Conditions/nodes.ts"
import { keyOf } from "../../src/Conditions/standing.ts"
import type { StorePlace } from "../../src/Sql/postgres/Connection.ts"
import { serverStore } from "../../src/Sql/postgres/layer.ts"
import { acquireLease } from "../../src/Sql/postgres/lease.ts"
import { migrateServer, prepare } from "../../src/Sql/postgres/migrate.ts"
import { Reader } from "../../src/Sql.ts"
import { Metrics } from "../../src/Telemetry/Metrics.ts"
import { Workers } from "../../src/Telemetry/Workers.ts"
import { administer, freeLease, login, postgresServer } from "../lib/postgres.ts"
import { databaseServer, standbyOf } from "../lib/postgresCluster.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { testSettings } from "../lib/settings.ts"
import { tcpLine } from "../lib/tcpLine.ts"

const services = Layer.mergeAll(Metrics.layer, Workers.layer)
const { version } = packageJson

/** A node that takes the lease or waits for it, until it ends. */
const startNode = (place: StorePlace, node: string, itsVersion = version) =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    yield* Effect.addFinalizer((exit) => Scope.close(scope, exit))
    yield* Effect.forkIn(
      Scope.extend(
        acquireLease(place, { node, version: itsVersion }, () => Effect.void),
        scope
      ),
      scope
    )
    return { end: Scope.close(scope, Exit.void) }
  })

liveTest("the node that works sees who waits, with which version, and how often the lease was taken", function* () {
  const port = yield* postgresServer()
  yield* administer(port, "postgres", "CREATE DATABASE nodes")
  const place: StorePlace = { client: { ...login, port, database: "nodes" }, schema: "tilld" }
  yield* prepare(place)
  yield* migrateServer(place)
  const store = yield* Layer.build(Layer.provide(serverStore(place, yield* freeLease(place)), services)).pipe(
    Effect.provide(services)
  )
  const reader = Context.get(store, Reader)
  const settings = testSettings("/nowhere/tilld.db", {
    node: { name: "one", folder: "/nowhere" },
    postgres: { url: "", passwordFile: "", rootCertificate: "", schema: "tilld", pool: 1 }
  })
  const nodes = readNodes(settings, reader)
  const keys = Effect.map(makeNodes(settings, reader), (all) => all.map(keyOf))
  const until = (names: ReadonlyArray<string>) =>
    Effect.repeat(nodes, {
      until: (found) => JSON.stringify(found?.standbys.map(({ node }) => node)) === JSON.stringify(names)
    })

  const one = yield* startNode(place, "one")
  yield* Effect.repeat(nodes, { until: (found) => found?.takeovers === 1 })
  expect(yield* keys).toEqual(["no_standby"])
  const two = yield* startNode(place, "two")
  const twin = yield* startNode(place, "one")
  yield* until(["two"])
  expect(yield* keys).toEqual([])
  const three = yield* startNode(place, "three", "0.0.9")
  expect((yield* until(["three", "two"]))?.standbys).toEqual([
    { node: "three", version: "0.0.9" },
    { node: "two", version }
  ])
  expect(yield* keys).toEqual(["versions_differ three"])
  yield* three.end
  yield* two.end
  yield* twin.end
  yield* until([])
  yield* one.end
  for (let taken = 2; taken <= 4; taken++) {
    const next = yield* startNode(place, "one")
    yield* Effect.repeat(nodes, { until: (found) => found?.takeovers === taken })
    expect(yield* keys).toEqual(taken < 4 ? ["no_standby"] : ["no_standby", "lease_moves"])
    yield* next.end
  }
})

liveTest(
  "a standby of PostgreSQL that lacks a file of the log, or is gone, is told of until it has caught up",
  function* () {
    const primary = yield* databaseServer
    const line = yield* tcpLine(primary.port)
    const standby = yield* standbyOf(primary, line.port)
    yield* primary.ask("postgres", "CREATE DATABASE nodes")
    const place: StorePlace = { client: { ...login, port: primary.port, database: "nodes" }, schema: "tilld" }
    yield* prepare(place)
    yield* migrateServer(place)
    const lease = yield* freeLease(place)
    const store = yield* Layer.build(Layer.provide(serverStore(place, lease), services)).pipe(Effect.provide(services))
    const settings = testSettings("/nowhere/tilld.db", {
      node: { name: "one", folder: "/nowhere" },
      postgres: { url: "", passwordFile: "", rootCertificate: "", schema: "tilld", pool: 1 }
    })
    const judged = makeNodes(settings, Context.get(store, Reader))
    const untilTold = (what: RegExp | undefined) =>
      Effect.repeat(
        Effect.map(judged, (all) => all.find(({ kind }) => kind === "replica_behind")?.summary ?? ""),
        { until: (summary) => (what === undefined ? summary === "" : what.test(summary)) }
      )
    yield* untilTold(undefined)
    line.silence()
    yield* primary.ask(
      "nodes",
      "SELECT pg_logical_emit_message(false, '', repeat('x', 1000000)) FROM generate_series(1, 40)"
    )
    yield* untilTold(/^the standby walreceiver of PostgreSQL lacks \d\d MB$/)
    line.mend()
    yield* untilTold(undefined)
    yield* standby.stop("fast")
    yield* untilTold(/is not connected any more$/)
  }
)
