import { createServer } from "node:http"
import { expect } from "@effect/vitest"
import Database from "better-sqlite3"
import { Effect } from "effect"
import { readStatus, testAlert } from "../../src/Conditions/operations.ts"
import { ask } from "../../src/commands/askDaemon.ts"
import { carryOut } from "../../src/Operations/auditLog.ts"
import { jumpAddresses } from "../../src/Payments/addresses/addressOperations.ts"
import { listPayments } from "../../src/Payments/paymentOperations.ts"
import { Reader } from "../../src/Sql.ts"
import { Workers } from "../../src/Telemetry/Workers.ts"
import { sendTestDelivery } from "../../src/Webhooks/deliveryOperations.ts"
import { DeliveryClient } from "../../src/Webhooks/transport/DeliveryClient.ts"
import { listenHere } from "../lib/loopback.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { testSettings } from "../lib/settings.ts"
import { execute, temporaryDatabase } from "../lib/store.ts"
import { besideDaemon, logged } from "./world.ts"

liveTest("the daemon names each worker that is not ready, or has something to say", function* () {
  const settings = testSettings(yield* temporaryDatabase)
  yield* besideDaemon(settings, function* () {
    const workers = yield* Workers
    workers.condition("webhooks", () => "it hangs")
    workers.condition("settlement", () => undefined)
    workers.remark("log", () => "2 lines are missing")
    const { conditions } = yield* ask(settings, readStatus, {})
    const found = conditions.map(({ key, severity, subject }) => [key, subject, severity])
    expect(found).toContainEqual(["worker_hangs", "webhooks", "page"])
    expect(found).toContainEqual(["worker_warns", "log", "ticket"])
    expect(JSON.stringify(found)).not.toContain("settlement")
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
    const found = yield* ask(settings, listPayments, { search: " exc_1 " })
    expect(found.map(({ id }) => id.at(-1))).toEqual(["1"])
  })
})

liveTest("of each wallet whose addresses are skipped its own users are named", function* () {
  const settings = testSettings(yield* temporaryDatabase)
  yield* besideDaemon(settings, function* () {
    yield* execute("INSERT INTO wallets (fingerprint, next_index) VALUES ('unused', 3)")
    yield* execute(
      "INSERT INTO account_wallets (account_id, mode, fingerprint, xpub) VALUES ('default', 'live', 'w', randomblob(1))"
    )
    const jumped = yield* ask(settings, jumpAddresses, { by: 5 })
    expect(jumped).toContainEqual({ wallet: "w", from: 10, next: 15, usedBy: ["account default (live)"] })
    expect(jumped).toContainEqual({ wallet: "unused", from: 3, next: 8, usedBy: [] })
  })
})

liveTest("a test alert has its row before it is sent", function* () {
  const path = yield* temporaryDatabase
  const before: Array<unknown> = []
  const server = createServer((_, response) => {
    const store = new Database(path, { readonly: true })
    before.push(...store.prepare("SELECT act, who FROM audit").all())
    store.close()
    response.writeHead(204).end()
  })
  const { url } = yield* listenHere(server)
  const settings = testSettings(path, { alerts: { url: `${url}/` } })
  yield* besideDaemon(settings, function* () {
    expect(yield* ask(settings, testAlert, {})).toMatchObject({ status: 204 })
    expect(before).toEqual([{ act: "alerts test", who: "alice as root" }])
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
