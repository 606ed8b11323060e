import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Runtime } from "effect"
import { readHealth } from "../../src/Admin/healthOperation.ts"
import { testAlert } from "../../src/Alerts/alertOperations.ts"
import { revokeKey } from "../../src/Auth/keyOperations.ts"
import { ask } from "../../src/commands/askDaemon.ts"
import { carryOut } from "../../src/Operations/auditLog.ts"
import { jumpAddresses } from "../../src/Payments/addresses/jumpOperation.ts"
import { listPayments } from "../../src/Payments/paymentOperations.ts"
import { Reader } from "../../src/Sql.ts"
import { Workers } from "../../src/Telemetry/Workers.ts"
import { sendTestDelivery } from "../../src/Webhooks/deliveryOperations.ts"
import { DeliveryClient } from "../../src/Webhooks/transport/DeliveryClient.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { testSettings, testXpub } from "../lib/settings.ts"
import { execute, temporaryDatabase } from "../lib/store.ts"
import { accesses, askSample, besideDaemon, logged, nameOf, samples } from "./world.ts"

const patternOf = (value: unknown) => (value instanceof RegExp ? expect.stringMatching(value) : value)

it("every kind of request has a sample, with its audit row if it administers", () => {
  expect(samples.map(nameOf).toSorted()).toEqual(Array.from(accesses.keys()).toSorted())
  for (const sample of samples) {
    expect("act" in sample ? "administer" : "read", nameOf(sample)).toBe(accesses.get(nameOf(sample)))
  }
})

liveTest("every act through the socket leaves a row; refused acts and requests that read leave none", function* () {
  const settings = testSettings(yield* temporaryDatabase, { alerts: { url: "http://127.0.0.1:1/" } })
  yield* besideDaemon(settings, function* () {
    const refused = yield* Effect.flip(ask(settings, revokeKey, { id: "key_none" }))
    expect(refused).toMatchObject({ _tag: "NotFound", message: expect.stringContaining("key_none") })
    expect(yield* logged).toEqual([])
    for (const sample of samples) {
      const name = nameOf(sample)
      const before = yield* logged
      yield* askSample(settings, sample)
      const added = (yield* logged).slice(0, -before.length || undefined)
      if (!("act" in sample)) expect(added, name).toEqual([])
      else {
        const [row, ...others] = added
        expect(others, name).toEqual([])
        expect(row, name).toMatchObject({ via: "socket", who: "alice as root", act: sample.act })
        const detail = Object.entries(sample.detail ?? {}).map(([field, value]) => [field, patternOf(value)])
        expect(JSON.parse(row?.detail ?? ""), name).toEqual(Object.fromEntries(detail))
      }
    }
    const all = JSON.stringify(yield* logged)
    expect(all).not.toMatch(/whsec_|svc_|xpub/)
    expect(all).not.toContain(testXpub.slice(0, 20))
  })
})

liveTest("the daemon names each chain and worker that is not ready", function* () {
  const settings = testSettings(yield* temporaryDatabase)
  yield* besideDaemon(settings, function* () {
    const workers = yield* Workers
    workers.condition("webhooks", () => "it hangs")
    workers.condition("settlement", () => undefined)
    workers.remark("log", () => "2 lines are missing")
    const { troubled, unready } = yield* ask(settings, readHealth, {})
    expect(troubled).toEqual([{ name: "log", reason: "2 lines are missing" }])
    expect(unready).toContainEqual({ name: "webhooks", reason: "it hangs" })
    expect(unready.map(({ name }) => name)).not.toContain("settlement")
  })
})

liveTest("a request of an account that does not exist is refused, and leaves no row", function* () {
  const settings = testSettings(yield* temporaryDatabase)
  yield* besideDaemon(settings, function* () {
    const account = `acct_${"x".repeat(22)}`
    const ofAccount = samples.filter(({ operation }) => "account" in operation.fields)
    expect(ofAccount.length).toBeGreaterThan(5)
    for (const sample of ofAccount) {
      const refused = yield* Effect.either(askSample(settings, { ...sample, input: { ...sample.input, account } }))
      const left = { _tag: "UnknownAccount", message: expect.stringContaining(account) }
      expect(refused, nameOf(sample)).toMatchObject({ _tag: "Left", left })
    }
    expect(yield* logged).toEqual([])
  })
})

liveTest("payments of both modes that were made at the same time are each on one page", function* () {
  const settings = testSettings(yield* temporaryDatabase)
  yield* besideDaemon(settings, function* () {
    for (const [n, mode] of [
      [5, "live"],
      [6, "test"],
      [7, "live"]
    ] as const) {
      yield* execute(
        `INSERT INTO payments (id, checkout_token, account_id, mode, merchant_ref, amount, currency, chain, address, wallet,
           wallet_index, status, created_at, expires_at, created_head, metadata)
         SELECT ?, ?, account_id, ?, ?, amount, currency, chain, ?, wallet, ?, status, created_at, expires_at,
           created_head, metadata FROM payments WHERE merchant_ref = 'order 4'`,
        [`pay_${String(n).repeat(22)}`, String(n), mode, `order ${n}`, `0x${String(n).padStart(40, "0")}`, n]
      )
    }
    const seen: Array<string> = []
    for (const _ of [1, 2, 3, 4]) {
      const after = seen.at(-1)
      const page = yield* ask(settings, listPayments, { limit: 2, ...(after === undefined ? {} : { after }) })
      seen.push(...page.map(({ id }) => id))
    }
    expect(seen.map((id) => id.at(-1))).toEqual(["7", "6", "5", "4", "3", "2", "1"])
  })
})

liveTest("of each wallet whose addresses are skipped its own users are named", function* () {
  const settings = testSettings(yield* temporaryDatabase)
  yield* besideDaemon(settings, function* () {
    yield* execute("INSERT INTO wallets (fingerprint, next_index) VALUES ('unused', 3)")
    yield* execute(
      "INSERT INTO account_wallets (account_id, mode, fingerprint, xpub) VALUES ('default', 'live', 'w', x'00')"
    )
    const jumped = yield* ask(settings, jumpAddresses, { by: 5 })
    expect(jumped).toContainEqual({ wallet: "w", from: 10, next: 15, usedBy: ["account default (live)"] })
    expect(jumped).toContainEqual({ wallet: "unused", from: 3, next: 8, usedBy: [] })
  })
})

liveTest("a test alert has its row before it is sent", function* () {
  const arrived = yield* Deferred.make<void>()
  const answered = yield* Deferred.make<void>()
  const run = Runtime.runFork(yield* Effect.runtime<never>())
  const server = createServer((_, response) => {
    run(
      Deferred.succeed(arrived, undefined).pipe(
        Effect.zipRight(Deferred.await(answered)),
        Effect.zipRight(Effect.sync(() => response.writeHead(204).end()))
      )
    )
  })
  yield* Effect.acquireRelease(
    Effect.async<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
    () => Effect.sync(() => server.close())
  )
  const { port } = server.address() as AddressInfo
  const settings = testSettings(yield* temporaryDatabase, { alerts: { url: `http://127.0.0.1:${port}/` } })
  yield* besideDaemon(settings, function* () {
    const sent = yield* Effect.fork(ask(settings, testAlert, {}))
    yield* Deferred.await(arrived)
    expect(yield* logged).toMatchObject([{ act: "alerts test", who: "alice as root" }])
    yield* Deferred.succeed(answered, undefined)
    expect(yield* Fiber.join(sent)).toMatchObject({ status: 204 })
    expect(yield* logged).toHaveLength(1)
  })
})

liveTest("a test of an endpoint has its row before it is sent", function* () {
  const settings = testSettings(yield* temporaryDatabase)
  yield* besideDaemon(settings, function* () {
    const { post } = yield* DeliveryClient
    const reader = yield* Reader
    const before: Array<string> = []
    const noting = (...given: Parameters<typeof post>) =>
      Effect.provideService(logged, Reader, reader).pipe(
        Effect.orDie,
        Effect.map((all) => before.push(...all.map(({ act }) => act))),
        Effect.zipRight(post(...given))
      )
    const caller = { actor: { via: "socket", who: "alice" }, isOperator: true } as const
    const sent = carryOut(sendTestDelivery, { endpoint: `wh_${"e".repeat(22)}` }, caller)
    expect(yield* Effect.provideService(sent, DeliveryClient, { post: noting })).toMatchObject({ status: 204 })
    expect(before).toEqual(["webhooks test"])
    expect(yield* logged).toHaveLength(1)
  })
})
