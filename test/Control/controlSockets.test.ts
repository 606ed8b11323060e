import { existsSync, linkSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { connect, createServer } from "node:net"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { Cause, Deferred, Effect, Either, Exit, Fiber, Layer, Option, Schedule, TestClock } from "effect"
import { createAccount, listAccounts } from "../../src/Auth/accountOperations.ts"
import { createKey, listKeys } from "../../src/Auth/keyOperations.ts"
import { defaultAccount } from "../../src/Auth.ts"
import { rescanBlocks } from "../../src/Chains/repairOperations.ts"
import { Chains } from "../../src/Chains.ts"
import * as Control from "../../src/Control/controlSockets.ts"
import { checkLength } from "../../src/Control/socketProtocol.ts"
import { ask } from "../../src/commands/askDaemon.ts"
import { untilRead } from "../../src/commands/sweepInputs.ts"
import { permissions } from "../../src/Domain/ApiKey.ts"
import type { SettingsShape } from "../../src/Settings.ts"
import { acquire } from "../../src/Sql/InstanceLock.ts"
import { StoreUnavailable } from "../../src/Sql.ts"
import { clockTest, liveTest } from "../lib/scopedTest.ts"
import { testSettings, testXpub } from "../lib/settings.ts"
import { execute, temporaryDatabase, type Yielded } from "../lib/store.ts"
import { exchange, invocation, requestOf, services, withDaemon } from "./world.ts"

const newKey = { mode: "test", name: "shop" } as const

/** A daemon on a new store. */
const onDaemon = <Eff extends Yielded, A>(
  test: (settings: SettingsShape, worker: Fiber.Fiber<void>) => Generator<Eff, A, never>
) =>
  Effect.flatMap(temporaryDatabase, (path) => {
    const settings = testSettings(path, { alerts: { url: "http://127.0.0.1:1/" } })
    return withDaemon(settings, (worker) => Effect.gen(() => test(settings, worker)))
  }).pipe(Effect.scoped)

/** The services of a daemon whose socket the test starts itself. */
const stopped = Effect.provide(
  Layer.unwrapScoped(Effect.map(temporaryDatabase, (path) => services(testSettings(path))))
)

it.live("a refusal arrives as its typed error", () =>
  onDaemon(function* (settings) {
    const refused = yield* Effect.flip(ask(settings, createAccount, { name: "Shop", liveXpub: testXpub }))
    expect(refused).toMatchObject({ _tag: "WalletInOtherMode" })
  })
)

it.live("concurrent requests get their own responses", () =>
  onDaemon(function* (settings) {
    const names = Array.from({ length: 40 }, (_, i) => `shop ${i}`)
    const made = yield* Effect.forEach(names, (name) => ask(settings, createKey, { ...newKey, name }), {
      concurrency: 20
    })
    expect(new Set(made.map(({ id }) => id)).size).toBe(40)
    const listed = yield* ask(settings, listKeys, {})
    expect(listed.map(({ name }) => name).toSorted()).toEqual(names.toSorted())
  })
)

it.live("a command waits for a daemon that is starting", () =>
  Effect.gen(function* () {
    const database = yield* temporaryDatabase
    const held = yield* Deferred.make<void>()
    const daemon = Effect.gen(function* () {
      yield* acquire(database, "serve")
      yield* Deferred.succeed(held, undefined)
      yield* Effect.sleep("300 millis")
      yield* yield* Control.startSockets(testSettings(database))
    }).pipe(Effect.scoped, Effect.provide(services(testSettings(database))))
    yield* Effect.fork(daemon)
    yield* Deferred.await(held)
    expect(yield* ask(testSettings(database), listKeys, {})).toEqual([])
  }).pipe(Effect.scoped, Effect.provide(invocation))
)

it.live("a holder of the lock that never listens is named in the error", () =>
  Effect.gen(function* () {
    const database = yield* temporaryDatabase
    yield* acquire(database, "restore")
    const refused = yield* Effect.flip(ask(testSettings(database), listKeys, {}))
    expect(refused).toMatchObject({ _tag: "InstanceLocked", pid: process.pid })
    expect(refused.message).toContain("tilld restore")
  }).pipe(Effect.scoped, Effect.provide(invocation))
)

/** A socket without a listener, as a killed daemon leaves it: closing a socket removes only its first name. */
const leaveSocket = (path: string) =>
  Effect.async<void>((resume) => {
    const server = createServer().listen(`${path}.first`, () => {
      linkSync(`${path}.first`, path)
      server.close(() => resume(Effect.void))
    })
  })

it.live("only the owner and the group can use the socket, which replaces that of a dead daemon", () =>
  Effect.gen(function* () {
    const database = yield* temporaryDatabase
    yield* leaveSocket(`${database}.sock`)
    yield* Effect.gen(function* () {
      yield* Effect.asVoid(Control.startSockets(testSettings(database)))
      expect(statSync(`${database}.sock`).mode & 0o777).toBe(0o660)
      expect(yield* exchange(`${database}.sock`, "nonsense\n")).toMatch(/^HTTP\/1.1 400 /)
    }).pipe(Effect.scoped)
    expect(existsSync(`${database}.sock`)).toBe(false)
  }).pipe(Effect.scoped, stopped)
)

it.live("a file that is not a socket is not removed", () =>
  Effect.gen(function* () {
    const database = yield* temporaryDatabase
    writeFileSync(`${database}.sock`, "a merchant's book")
    const refused = yield* Effect.flip(Effect.scoped(Effect.asVoid(Control.startSockets(testSettings(database)))))
    expect(refused.message).toContain("something else is there")
    expect(readFileSync(`${database}.sock`, "utf8")).toBe("a merchant's book")
  }).pipe(Effect.scoped, stopped)
)

it.live("malformed requests, and those that no command sends, are refused, without effect on others", () =>
  onDaemon(function* (settings) {
    const send = (bytes: string | Buffer) => exchange(`${settings.database.path}.sock`, bytes)
    const owner = { account: defaultAccount, mode: "test" }
    const answered = (name: string, input: unknown, method?: string) =>
      Effect.map(send(requestOf(name, input, method)), (answer): [string, { error: { code: string } }] => [
        answer.slice(9, 12),
        JSON.parse(answer.slice(answer.indexOf("\r\n\r\n")))
      ])
    for (const [name, input] of [
      ["addresses jump", { by: -5 }],
      ["addresses jump", { by: 1.5 }],
      [createAccount.name, { name: "x".repeat(10_000), sharedWallet: true }],
      [createKey.name, { ...owner, name: "shop", permissions: Array.from({ length: 99 }, () => permissions[0]) }],
      ["webhooks list", { ...owner, since: 1e300 }],
      ["keys revoke", "null"],
      ["keys revoke", "[]"],
      ["keys revoke?id=key_1&id=key_2&more=1", {}],
      ["keys revoke?id=key_1", { id: "key_2" }],
      ["keys list?limit=1", "5"]
    ] as const) {
      const [status, { error }] = yield* answered(name, input)
      expect([status, error.code], JSON.stringify([name, input]).slice(0, 80)).toEqual(["400", "VALIDATION_ERROR"])
    }
    for (const [name, input, method, ...expected] of [
      ["keys revoke", "{", "POST", "400", "INVALID_JSON"],
      ["keys revoke?id=key_1", "", "GET", "405", "METHOD_NOT_ALLOWED"],
      ["keys list", "", "DELETE", "405", "METHOD_NOT_ALLOWED"],
      ["keys", {}, "POST", "404", "UNKNOWN_OPERATION"],
      ["constructor", {}, "POST", "404", "UNKNOWN_OPERATION"],
      ["keys revoke", { id: "key_none" }, "POST", "404", "NOT_FOUND"],
      ["webhooks redeliver range", { since: "1d", to: "wh_none" }, "POST", "404", "NOT_FOUND"],
      ["keys create", " ".repeat(70_000), "POST", "413", "PAYLOAD_TOO_LARGE"]
    ] as const) {
      const [status, { error }] = yield* answered(name, input, method)
      expect([status, error.code], name).toEqual(expected)
    }
    for (const bytes of [
      "nonsense\n",
      '{"user":"alice","request":{"_tag":"keys list"}}\n',
      Buffer.from([0xff, 0xfe, 0x0a])
    ]) {
      expect(yield* send(bytes)).toMatch(/^HTTP\/1.1 400 /)
    }
    // At once, not at the time limit of a request.
    expect(yield* Effect.timeout(send(Buffer.alloc(70_000, 0x61)), "4 seconds")).toMatch(/^HTTP\/1.1 4/)
    expect(yield* ask(settings, listKeys, {})).toEqual([])
  })
)

it.live("an account that exists is not made again", () =>
  onDaemon(function* (settings) {
    const { id } = yield* ask(settings, createAccount, { name: "Shop", sharedWallet: true })
    const again = yield* Effect.flip(ask(settings, createAccount, { id, name: "Shop", testXpub }))
    expect(again).toMatchObject({ _tag: "AccountExists", message: expect.stringContaining(id) })
    expect(yield* Effect.flip(ask(settings, createAccount, { id: "default", name: "x", testXpub }))).toMatchObject({
      _tag: "NotUnderstood"
    })
    expect(yield* ask(settings, listAccounts, {})).toMatchObject([
      { id: "default" },
      { id, name: "Shop", wallets: "shared" }
    ])
  })
)

it.live("a daemon that does not speak HTTP is of another version", () =>
  Effect.gen(function* () {
    const settings = testSettings(yield* temporaryDatabase)
    yield* Effect.acquireRelease(
      Effect.async<ReturnType<typeof createServer>>((resume) => {
        const server = createServer((socket) => void socket.on("error", () => undefined).end('{"refused":"old"}\n'))
        server.listen(`${settings.database.path}.sock`, () => resume(Effect.succeed(server)))
      }),
      (server) => Effect.sync(() => server.close())
    )
    const refused = yield* Effect.flip(ask(settings, listKeys, {}))
    expect(refused).toMatchObject({ _tag: "NotUnderstood", message: expect.stringContaining("another version") })
  }).pipe(Effect.scoped, Effect.provide(invocation))
)

it.live("a client that goes before its request is there, or before its answer, ends nothing", () =>
  onDaemon(function* (settings, worker) {
    const whole = requestOf(createKey.name, newKey)
    const goAfter = (bytes: string) =>
      Effect.async<void>((resume) => {
        const socket = connect(`${settings.database.path}.sock`)
        socket.on("error", () => undefined).on("close", () => resume(Effect.void))
        socket.write(bytes, () => socket.destroy())
      })
    for (const bytes of [whole.slice(0, 20), whole.slice(0, -5), whole]) yield* goAfter(bytes)
    // The whole request was carried out, although nobody heard of it.
    const listed = Effect.filterOrFail(ask(settings, listKeys, {}), (keys) => keys.length > 0)
    expect(yield* Effect.retry(listed, Schedule.spaced("20 millis"))).toHaveLength(1)
    expect(yield* Fiber.poll(worker)).toEqual(Option.none())
  })
)

it.live("a defect is reported to the command, and ends the worker", () =>
  onDaemon(function* (settings, worker) {
    yield* execute("DROP TABLE api_keys")
    const asked = yield* Effect.exit(ask(settings, listKeys, {}))
    expect(Exit.isFailure(asked) && Cause.isDie(asked.cause)).toBe(true)
    const ended = yield* Fiber.await(worker)
    expect(Exit.isFailure(ended) && Cause.pretty(ended.cause)).toContain("no such table: api_keys")
  })
)

it.live("a path that is too long for the system is a clear error, unless its relative path is short enough", () =>
  Effect.gen(function* () {
    const database = yield* temporaryDatabase
    const folder = join(database, "..", "f".repeat(100))
    mkdirSync(folder)
    const refused = yield* Effect.flip(
      Effect.scoped(Effect.asVoid(Control.startSockets(testSettings(join(folder, "tilld.db")))))
    )
    expect(refused.message).toMatch(/control socket.*tilld\.db\.sock.*bytes.*database\.path/)
    const home = process.cwd()
    yield* Effect.acquireRelease(
      Effect.sync(() => process.chdir(folder)),
      () => Effect.sync(() => process.chdir(home))
    )
    yield* Effect.asVoid(Control.startSockets(testSettings(join(folder, "tilld.db"))))
    expect(existsSync(join(folder, "tilld.db.sock"))).toBe(true)
    // One that fits is named in full, wherever the daemon was started.
    expect(checkLength(database, "")).toEqual(Either.right(database))
  }).pipe(Effect.scoped, stopped)
)

/** The same rescan of a daemon whose repairs end like this. */
const rescanWhere = (repair: Effect.Effect<never, StoreUnavailable>) =>
  Effect.gen(function* () {
    const settings = testSettings(yield* temporaryDatabase)
    yield* acquire(settings.database.path, "serve")
    return yield* Effect.gen(function* () {
      const chains = { ...(yield* Chains), exclusively: () => () => repair as never }
      yield* Effect.asVoid(Effect.provideService(Control.startSockets(settings), Chains, chains))
      return yield* Effect.flip(ask(settings, rescanBlocks, { chain: "base", mode: "test", from: 1 }))
    }).pipe(Effect.scoped, Effect.provide(services(settings)))
  }).pipe(Effect.scoped, Effect.provide(invocation))

clockTest(
  "a request that takes longer than the daemon waits may have been carried out, and the error says so",
  function* () {
    const begun = yield* Deferred.make<void>()
    const repair = Effect.zipRight(Deferred.succeed(begun, undefined), Effect.never)
    const asked = yield* Effect.fork(rescanWhere(repair))
    yield* Deferred.await(begun)
    yield* TestClock.adjust("40 seconds")
    const silent = yield* Fiber.join(asked)
    expect(silent).toMatchObject({ _tag: "DaemonSilent", message: expect.stringContaining("within 40 seconds") })
  }
)

it.effect("a daemon that never answers is waited for 50 seconds", () =>
  Effect.gen(function* () {
    const settings = testSettings(yield* temporaryDatabase)
    const asked = yield* Deferred.make<void>()
    const server = createServer((socket) => void socket.once("data", () => Deferred.unsafeDone(asked, Effect.void)))
    yield* Effect.acquireRelease(
      Effect.async<void>((resume) => void server.listen(`${settings.database.path}.sock`, () => resume(Effect.void))),
      () => Effect.sync(() => server.close())
    )
    const answer = yield* Effect.fork(Effect.flip(ask(settings, listKeys, {})))
    yield* Deferred.await(asked)
    yield* TestClock.adjust("49 seconds")
    expect(yield* Fiber.poll(answer)).toEqual(Option.none())
    yield* TestClock.adjust("1 second")
    const silent = { _tag: "DaemonSilent", message: expect.stringContaining("within 50 seconds") }
    expect(yield* Fiber.join(answer)).toMatchObject(silent)
  }).pipe(Effect.scoped, Effect.provide(invocation))
)

liveTest("a repair that the store refuses is not refused for good", function* () {
  const full = new StoreUnavailable({ code: "SQLITE_FULL", message: "the disk is full" })
  expect(yield* rescanWhere(Effect.fail(full))).toEqual(full)
})

it.live("a chain has been read only once the daemon has read the very block that is waited for", () =>
  Effect.flatMap(temporaryDatabase, (path) => {
    const settings = testSettings(path)
    let head = 8
    const moving = Layer.mock(Chains, {
      health: Effect.sync(() => [{ chain: "base", mode: "test", ready: true, providers: [], head } as const]),
      // Each look finds one more block.
      look: () => Effect.sync(() => void head++),
      exclusively: () => () => Effect.never,
      wake: () => undefined,
      viewed: () => undefined,
      behind: () => undefined
    })
    return Effect.gen(function* () {
      yield* acquire(path, "serve")
      yield* Effect.fork(yield* Effect.provide(Control.startSockets(settings), moving))
      yield* untilRead(settings, { chain: "base", mode: "test" }, 10)
      expect(head).toBe(10)
    }).pipe(Effect.scoped, Effect.provide(Layer.merge(services(settings), invocation)))
  }).pipe(Effect.scoped)
)
