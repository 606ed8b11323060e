import { readdirSync } from "node:fs"
import { describe, expect } from "@effect/vitest"
import Database from "better-sqlite3"
import { Effect } from "effect"
import { request } from "undici"
import { adminOf } from "../lib/admin.ts"
import { confirmations, homeOn, localChain, makeHome, pay, rows, serve } from "../lib/daemon.ts"
import { makeInbox } from "../lib/inbox.ts"
import { beginPayment, untilRefused } from "../lib/inFlight.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { start, startTilld } from "../lib/tilld.ts"
import { hookPath, hookShop } from "./hookShop.ts"

const order = { chain: "base", currency: "USDC", amount: "25000000" } as const

const shop = hookShop("base")

describe("SIGTERM", () => {
  liveTest("lets a request in flight finish, takes no other, leaves nothing behind, and is a success", function* () {
    const { daemon, home } = yield* shop
    const payment = yield* beginPayment(daemon, { ...order, merchantRef: "in flight" })
    yield* daemon.signal("SIGTERM")
    yield* untilRefused(daemon.url)
    const reply = yield* payment.finish
    expect(reply).toMatchObject({ status: 201, connection: "close", body: { merchantRef: "in flight" } })

    expect(yield* daemon.ended).toMatchObject({ code: 0, signal: null })
    const left = readdirSync(home.folder).sort()
    expect(left).toEqual(["master.key", "tilld.db", "tilld.db.lock", "tilld.toml"])
    const stored = yield* rows<{ id: string }>(home, "SELECT id FROM payments")
    expect(stored.map(({ id }) => id)).toEqual([reply.body.id])
  })
})

liveTest(
  "a reader of the log that ends ends no daemon: /readyz says what is missing, and SIGTERM stops it in order",
  function* () {
    const { home } = yield* homeOn("base")
    const script = `exec "$0" dist/tilld.js serve --config "$1" 2> >(sed -u '/"message":"listening"/q')`
    const daemon = yield* start("bash", ["-c", script, process.execPath, home.config], {
      env: { TILLD_ADMIN__PORT: "0" }
    })
    yield* daemon.line('"message":"listening"')
    const { annotations } = JSON.parse(yield* daemon.line("listening for the operator"))
    const readiness = Effect.promise(async () => {
      const { body } = await request(`http://127.0.0.1:${annotations.port}/readyz`)
      return (await body.json()) as { readonly workers: ReadonlyArray<{ name: string; reason?: string }> }
    })
    const ofLog = Effect.map(readiness, ({ workers }) => workers.find(({ name }) => name === "log"))
    const log = yield* Effect.repeat(ofLog, { until: (found) => found?.reason !== undefined })
    expect(log).toEqual({
      name: "log",
      ready: true,
      reason: expect.stringMatching(/\(EPIPE\): \d+ lines are missing/)
    })
    expect(yield* daemon.end("SIGTERM")).toMatchObject({ code: 0, signal: null })
  }
)

describe("a daemon that cannot start", () => {
  liveTest("because another works on its database names that process, and starts when it has ended", function* () {
    const { daemon, home } = yield* shop
    const second = yield* startTilld(["serve", "--config", home.config])
    const { annotations, message } = JSON.parse(yield* second.line("Another process works on"))
    expect(message).toContain(`works on ${home.database}: tilld serve, process ${daemon.pid}`)
    expect(annotations).toEqual({ waitsAtMost: "1m" })
    expect(yield* daemon.end("SIGTERM")).toMatchObject({ code: 0 })
    yield* second.line('"listening"')
    // Ctrl-C means the same.
    expect(yield* second.end("SIGINT")).toMatchObject({ code: 0, signal: null, stdout: "" })
  })

  liveTest(
    "since its host's name cannot be resolved names it, and waits, whether a name server answers or not",
    function* () {
      const { home } = yield* homeOn("base")
      const daemon = yield* startTilld(["serve", "--config", home.config], {
        env: { TILLD_SERVER__HOST: "no-host.invalid" }
      })
      const { message } = JSON.parse(yield* daemon.line("Cannot listen on"))
      expect(message).toMatch(
        /^Cannot listen on no-host\.invalid:0: the host's name cannot be resolved: give its address/
      )
      expect(yield* daemon.end("SIGTERM")).toMatchObject({ code: 0, stdout: "" })
    }
  )
})

liveTest("a defect ends the process with exit code 1, so that systemd starts it again", function* () {
  const { create, daemon, home } = yield* shop
  yield* Effect.acquireUseRelease(
    Effect.sync(() => new Database(home.database)),
    (database) => Effect.sync(() => database.exec("DROP TABLE attempts")),
    (database) => Effect.sync(() => database.close())
  )
  yield* create()
  const { code, stderr } = yield* daemon.ended
  expect(code).toBe(1)
  expect(stderr).toContain("no such table: attempts")
  expect(readdirSync(home.folder)).not.toContain("tilld.db.sock")
})

liveTest(
  "a chain that dies is named in /readyz, with the reason only for the operator, and delays no other",
  function* () {
    const dying = yield* localChain("polygon")
    const chain = yield* localChain("base")
    const inbox = yield* makeInbox()
    const chains = new Map([
      ["polygon", dying],
      ["base", chain]
    ] as const)
    const home = yield* makeHome({ chains, caFile: inbox.caFile })
    const daemon = yield* serve(home, undefined, { TILLD_ADMIN__PORT: "0" })
    const admin = yield* adminOf(daemon)
    const payment = yield* daemon.create({ ...order, webhookUrl: inbox.url + hookPath })
    // A chain on which someone may pay is looked at all the time.
    yield* daemon.create({ ...order, chain: "polygon", currency: "USDC", merchantRef: "on the dying chain" })
    process.kill(dying.pid, "SIGKILL")
    yield* daemon.logged("the chain cannot be read", { chain: "polygon" })
    yield* pay(chain, payment)
    yield* chain.mine(confirmations)
    yield* inbox.take(hookPath, payment, "payment.created", "payment.detecting", "payment.confirmed")
    const { body } = yield* admin("GET", "/readyz")
    expect(body.chains).toContainEqual(
      expect.objectContaining({ chain: "polygon", reason: expect.stringContaining("unreachable") })
    )
    expect(body.chains).toContainEqual(expect.objectContaining({ chain: "base", ready: true, lagBlocks: 0 }))
    const readyz = yield* daemon.call<{ readonly chains: ReadonlyArray<unknown> }>("GET", "/readyz")
    expect(readyz.body.chains).toContainEqual({ chain: "polygon", mode: "test", ready: expect.any(Boolean) })
    expect(readyz.body.chains).toContainEqual({ chain: "base", mode: "test", ready: true })
  }
)
