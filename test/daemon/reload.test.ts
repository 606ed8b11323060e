// SIGHUP, which systemctl reload sends: the daemon as it is shipped takes a changed configuration while it is used.
import { readFileSync, writeFileSync } from "node:fs"
import { expect } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { request } from "undici"
import type { PaymentObject } from "../../src/Domain/Payment.ts"
import { confirmations, type Daemon, type Home, homeOn, pay, rows, serve } from "../lib/daemon.ts"
import { beginPayment, untilRefused } from "../lib/inFlight.ts"
import { liveTest } from "../lib/scopedTest.ts"

const edit = ({ config }: Home, ...changes: ReadonlyArray<readonly [from: string | RegExp, to: string]>) =>
  Effect.sync(() => {
    const before = readFileSync(config, "utf8")
    const after = changes.reduce((text, [from, to]) => text.replace(from, to), before)
    expect(after).not.toBe(before)
    writeFileSync(config, after)
  })

const auditOf = (home: Home, act: string) =>
  Effect.map(rows<{ detail: string }>(home, "SELECT detail FROM audit WHERE act = ? ORDER BY sequence", act), (all) =>
    all.map(({ detail }) => JSON.parse(detail))
  )

const order = { chain: "polygon", currency: "USDC", amount: "25000000" } as const
const tokenLine = /USDT = .*\n/

/** A stop after a reload is one: tilld listens no more, and a request in flight is told so. */
const stopsInOrder = (daemon: Daemon) =>
  Effect.gen(function* () {
    const inFlight = yield* beginPayment(daemon, { ...order, chain: "base", merchantRef: "at the stop" })
    yield* daemon.signal("SIGTERM")
    yield* Effect.timeout(untilRefused(daemon.url), "15 seconds")
    expect(yield* inFlight.finish).toMatchObject({ connection: "close" })
  })

liveTest("providers, limits, level and an added token are taken, and no request is lost meanwhile", function* () {
  const dead = "http://127.0.0.1:1"
  const { chain, home } = yield* homeOn("polygon", { rpcUrls: new Map([["polygon", [dead]]]) })
  const usdt = tokenLine.exec(readFileSync(home.config, "utf8"))?.[0] ?? expect.fail("the home has no USDT")
  yield* edit(home, [tokenLine, ""])
  const daemon = yield* serve(home)
  const waiting = yield* daemon.create(order)
  yield* pay(chain, waiting)
  const tokenless = yield* daemon.call("POST", "/v1/payments", { ...order, merchantRef: "x", currency: "USDT" })
  expect(tokenless.status).toBe(400)

  // Shops that ask one request after another, over connections that stay open, and one in the middle of a request.
  const made: Array<number> = []
  const shop = (name: number) =>
    Effect.forever(
      Effect.suspend(() => {
        const merchantRef = `shop ${name}, order ${made.length}`
        return Effect.map(daemon.call("POST", "/v1/payments", { ...order, merchantRef }), ({ status }) => {
          made.push(status)
        })
      })
    )
  const shops = yield* Effect.forkScoped(Effect.all([1, 2, 3, 4].map(shop), { concurrency: "unbounded" }))
  const inFlight = yield* beginPayment(daemon, { ...order, merchantRef: "in flight" })
  yield* edit(
    home,
    [dead, chain.url],
    ['level = "debug"', 'level = "info"'],
    ["per_minute = 1000000", "per_minute = 999"],
    ["[chains.polygon.test.tokens]\n", `[chains.polygon.test.tokens]\n${usdt}`],
    [/port = \d+/, "port = 9"]
  )
  yield* daemon.signal("SIGHUP")
  const { annotations } = yield* daemon.logged("the configuration was read again")
  expect(annotations.needRestart).toEqual(["server.port"])
  expect(annotations.changed).toEqual(
    expect.arrayContaining(["chains.polygon.test.rpc_urls", "limits.per_minute", "log.level"])
  )
  const reply = yield* inFlight.finish
  expect(reply).toMatchObject({ status: 201, connection: "keep-alive" })

  yield* daemon.logged("the configuration has changed")
  const before = made.length
  const added = yield* daemon.create({ ...order, currency: "USDT" })
  yield* chain.mine(confirmations + 1)
  const confirmed = (payment: PaymentObject) =>
    Effect.repeat(Effect.delay(daemon.payment(payment), "50 millis"), { until: ({ status }) => status === "confirmed" })
  yield* confirmed(waiting)
  yield* pay(chain, added)
  yield* chain.mine(confirmations + 1)
  yield* confirmed(added)
  while (made.length < before + 10) yield* Effect.sleep("10 millis")
  yield* Fiber.interrupt(shops)

  expect(new Set(made)).toEqual(new Set([201]))
  const { headers } = yield* daemon.call("GET", "/v1/currencies")
  expect(headers["x-ratelimit-limit"]).toBe("999")
  expect(daemon.lines().filter((line) => line.includes('"logLevel":"ERROR"'))).toEqual([])
  const after = daemon.lines().slice(daemon.lines().findLastIndex((line) => line.includes('"message":"listening"')))
  expect(after.filter((line) => line.includes('"logLevel":"DEBUG"'))).toEqual([])
  expect(yield* auditOf(home, "reload")).toEqual([{ changed: expect.any(Array), needRestart: ["server.port"] }])
  const named = (yield* auditOf(home, "configuration")).flatMap(Object.keys)
  expect(named).toContain("limits.per_minute")
  expect(named).not.toContain("server.port")
})

liveTest(
  "a file that cannot be used changes nothing and says why; so does one that a start would refuse",
  function* () {
    const { chain, home } = yield* homeOn("base")
    const daemon = yield* serve(home)
    const payment = yield* daemon.create({ ...order, chain: "base" })
    const whole = readFileSync(home.config, "utf8")
    const refused = (reason: RegExp) =>
      Effect.gen(function* () {
        const said = yield* Effect.fork(
          daemon.line((line) => line.includes("nothing was reloaded") && reason.test(line))
        )
        yield* daemon.signal("SIGHUP")
        yield* Fiber.join(said)
      })
    yield* edit(home, ["per_minute = 1000000", "per_minute = 0"])
    yield* refused(/limits\.per_minute: must be a whole number/)
    writeFileSync(home.config, whole.replaceAll("chains.base", "chains.polygon"))
    yield* refused(/chains\.base\.test: 1 open payment needs this chain/)
    const bad = `${home.folder}/bad.pem`
    writeFileSync(bad, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    writeFileSync(home.config, whole.replace('extra_ca_file = ""', `extra_ca_file = "${bad}"`))
    yield* refused(/webhooks\.extra_ca_file: names a file with a certificate that cannot be decoded/)
    expect((yield* auditOf(home, "reload")).map(Object.keys)).toEqual([["refused"], ["refused"], ["refused"]])
    expect(yield* daemon.payment(payment)).toMatchObject({ status: "pending" })
    yield* pay(chain, payment)
    yield* chain.mine(confirmations + 1)
    yield* Effect.repeat(Effect.delay(daemon.payment(payment), "50 millis"), {
      until: ({ status }) => status === "confirmed"
    })
    yield* stopsInOrder(daemon)
  }
)

liveTest(
  "a closed chain takes nothing new, and sees what is open to its end; event streams end at a reload",
  function* () {
    const { chain, home } = yield* homeOn("base")
    const daemon = yield* serve(home)
    const payment = yield* daemon.create({ ...order, chain: "base" })
    const stream = yield* Effect.promise(() =>
      request(`${daemon.url}/v1/events/stream`, { headers: { "x-api-key": daemon.key } })
    )
    yield* edit(home, ["confirmations = 3", "confirmations = 3\naccepting = false"])
    yield* daemon.signal("SIGHUP")
    // The stream does not hold it up, as a request under way would, for 20 seconds.
    yield* Effect.timeout(daemon.logged("the configuration has changed"), "15 seconds")
    expect(yield* Effect.promise(() => stream.body.text())).not.toContain("error")
    const refused = yield* daemon.call("POST", "/v1/payments", { ...order, chain: "base", merchantRef: "x" })
    expect(refused).toMatchObject({ status: 400, body: { error: { details: [{ path: "chain" }] } } })
    yield* pay(chain, payment)
    yield* chain.mine(confirmations + 1)
    yield* Effect.repeat(Effect.delay(daemon.payment(payment), "50 millis"), {
      until: ({ status }) => status === "confirmed"
    })
    yield* stopsInOrder(daemon)
  }
)
