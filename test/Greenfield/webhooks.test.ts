import { createHmac } from "node:crypto"
import { join } from "node:path"
import { NodeFileSystem } from "@effect/platform-node"
import { expect } from "@effect/vitest"
import { Context, Deferred, Effect, Layer, Redacted } from "effect"
import { Keys } from "../../src/Auth.ts"
import { permissions } from "../../src/Domain/ApiKey.ts"
import type { Mode } from "../../src/Domain/Chain.ts"
import { EventKind, type PluginEventKind } from "../../src/Domain/Event.ts"
import { type AccountId, type EventId, eventId, newInvoiceId } from "../../src/Domain/Ids.ts"
import { Outbox } from "../../src/Events/Outbox.ts"
import { eventLoopTurn } from "../../src/lib/waiting.ts"
import { carryOut } from "../../src/Operations/auditLog.ts"
import { type Received, type ReceiverReply, startReceiver } from "../../src/Sandbox/Receiver.ts"
import { Dispatcher } from "../../src/Webhooks/Dispatcher.ts"
import {
  listDeliveries,
  redeliverOne,
  redeliverRange,
  sendTestDelivery
} from "../../src/Webhooks/deliveryOperations.ts"
import { changeEndpoint, deleteEndpoint, listEndpoints } from "../../src/Webhooks/endpointOperations.ts"
import { DeliveryBell } from "../../src/Webhooks/queue/DeliveryBell.ts"
import { type Answered, TestApi, testApp } from "../lib/api.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { testWebhooks } from "../lib/settings.ts"
import { execute, inTransaction, rows, temporaryFolder } from "../lib/store.ts"

/** A shop's receiver, over HTTPS. */
class Shop extends Context.Tag("test/Shop")<
  Shop,
  {
    readonly url: (path: string) => string
    /** What is answered at a path, in turn; then 200. */
    readonly answer: (path: string, ...replies: ReadonlyArray<ReceiverReply | Effect.Effect<ReceiverReply>>) => void
    /** All requests to a path, once there are so many. */
    readonly at: (path: string, count?: number) => Effect.Effect<ReadonlyArray<Received>>
  }
>() {}

const shop = Effect.gen(function* () {
  const caFile = join(yield* temporaryFolder, "ca.pem")
  const receiver = yield* Effect.provide(startReceiver({ caFile }), NodeFileSystem.layer)
  const replies = new Map<string, Array<ReceiverReply | Effect.Effect<ReceiverReply>>>()
  yield* receiver.behave(({ path }) => replies.get(path)?.shift() ?? 200)
  const at = (path: string, count = 0) =>
    Effect.gen(function* () {
      while (true) {
        const all = (yield* receiver.all).filter((one) => one.path === path)
        if (all.length >= count) return all
        yield* receiver.take
      }
    })
  const service: Context.Tag.Service<Shop> = {
    url: (path) => `${receiver.url}${path}`,
    answer: (path, ...given) => void replies.set(path, [...given]),
    at
  }
  return { caFile, service }
})

const world = Layer.unwrapScoped(
  Effect.map(Effect.orDie(shop), ({ caFile, service }) =>
    Layer.merge(
      Layer.scopedDiscard(Effect.flatMap(Dispatcher, ({ run }) => Effect.forkScoped(run))),
      Layer.succeed(Shop, service)
    ).pipe(
      Layer.provideMerge(
        testApp({
          webhooks: testWebhooks({ allowTargets: ["127.0.0.1/32", "192.0.2.0/24"], extraCaFile: caFile })
        })
      )
    )
  )
)

/** A plugin at a store: its calls with a key that may all that plugins ask for. */
const pluginOf = (mode: Mode = "test", of?: AccountId) =>
  Effect.gen(function* () {
    const { call, newAccount } = yield* TestApi
    const account = of ?? (yield* newAccount("Shop"))
    const owner = { account, mode }
    yield* execute(
      "INSERT INTO shops (account_id, plugins, frame_origins) VALUES (?, 'on', '[]') ON CONFLICT DO NOTHING",
      [account]
    )
    const { key } = yield* Effect.flatMap(Keys, (keys) =>
      keys.create({
        ...owner,
        ...{ name: "shop", permissions: [], pluginPermissions: ["btcpay.store.canmodifystoresettings"] as const },
        expiresIn: undefined
      })
    )
    const headers = { authorization: `token ${Redacted.value(key)}` }
    const ask = (method: string, path: string, json?: unknown) =>
      call(method, `/api/v1/${path}`, json === undefined ? { headers } : { headers, json })
    const webhooks = `stores/${account}-${mode}/webhooks`
    const register = (json: Record<string, unknown>) => ask("POST", webhooks, json)
    const tell = (kind: PluginEventKind, invoice = newInvoiceId(1), body: object = {}) => {
      const id = eventId(invoice, kind, 0)
      const event = { ...owner, id, invoice, kind, body: { type: kind, invoiceId: invoice, ...body } }
      return Effect.as(
        Effect.flatMap(Outbox, (outbox) => inTransaction(outbox.publishPlugin(event, 1_000))),
        { id, invoice }
      )
    }
    return { ask, webhooks, register, tell, owner }
  })

/** A registered endpoint of a shop at a path of its own, with a secret. */
const registered = Effect.fnUntraced(function* (path: string, over: object = {}, mode?: Mode, of?: AccountId) {
  const plugin = yield* pluginOf(mode, of)
  const { url } = yield* Shop
  const { body } = yield* plugin.register({ url: url(path), secret: "s3cret-ünïcode", ...over })
  return { ...plugin, id: body.id as string, place: `${plugin.webhooks}/${body.id}`, url: url(path) }
})

const signatureBy = (secret: string, { body }: Received) =>
  `sha256=${createHmac("sha256", Buffer.from(secret, "utf8")).update(body).digest("hex")}`

const row = (event: EventId) =>
  Effect.map(
    rows<{ status: string; attempts: number; id: string; next_attempt_at: number | null }>(
      "SELECT status, attempts, id, next_attempt_at FROM deliveries WHERE event_id = ?",
      [event]
    ),
    ([found]) => found
  )

/** Waits until an event's delivery is as a test wants it: the dispatcher writes it after the answer. */
const untilRow = (event: EventId, status: string, attempts: number) =>
  Effect.repeat(Effect.zipRight(eventLoopTurn, row(event)), {
    until: (found) => found?.status === status && found.attempts === attempts
  })

/** Makes due what waits for its next attempt, as time does. */
const later = Effect.gen(function* () {
  yield* execute("UPDATE deliveries SET next_attempt_at = 0 WHERE next_attempt_at IS NOT NULL")
  yield* inTransaction((yield* DeliveryBell).ring)
})

const operator = { actor: { via: "socket", who: "root" }, isOperator: true } as const

const problems = ({ body, status }: Answered) => [status, body.map(({ path }: { path: string }) => path)]

liveSuite(world, "webhooks of shop plugins", (test, it) => {
  test("a URL alone registers all events; only the answer to POST has the secret", function* () {
    const plugin = yield* pluginOf()
    const url = "https://192.0.2.1:8443/wc-api/hook?a=%2f&B=ü"
    const made = yield* plugin.register({ url, enabled: null, secret: null, authorizedEvents: null })
    const { secret, ...shown } = made.body
    expect([made.status, shown]).toEqual([
      200,
      {
        id: expect.stringMatching(/^wh_[A-Za-z0-9_-]{22}$/),
        ...{ enabled: true, automaticRedelivery: true, url },
        authorizedEvents: { everything: true, specificEvents: [] }
      }
    ])
    expect(secret).toMatch(/^[A-Za-z0-9_-]{22}$/)
    for (const path of [`${plugin.webhooks}/${shown.id}`, `webhooks/${shown.id}`]) {
      expect((yield* plugin.ask("GET", path)).body).toEqual(shown)
    }
    expect((yield* plugin.ask("GET", plugin.webhooks)).body).toContainEqual(shown)
    const deleted = yield* plugin.ask("DELETE", `${plugin.webhooks}/${shown.id}`)
    expect([deleted.status, deleted.text]).toEqual([200, "{}"])
    for (const method of ["GET", "DELETE"]) {
      const gone = yield* plugin.ask(method, `${plugin.webhooks}/${shown.id}`)
      expect([gone.status, gone.body.code]).toEqual([404, "webhook-not-found"])
    }
    const acts = yield* rows<{ act: string; detail: string }>("SELECT act, detail FROM audit WHERE detail LIKE ?", [
      `%${shown.id}%`
    ])
    expect(acts.map(({ act }) => act)).toEqual(expect.arrayContaining(["webhooks register", "webhooks delete"]))
    expect(acts.map(({ detail }) => detail).join()).toContain("192.0.2.1:8443")
    expect(acts.map(({ detail }) => detail).join()).not.toContain("hook?")
  })

  test("PUT replaces all, but for a secret that is not given; unknown fields and kinds do no harm", function* () {
    const { ask, place, url } = yield* registered("/put", {
      ...{ automaticRedelivery: false, later: { is: "unknown" } },
      authorizedEvents: { everything: false, specificEvents: ["InvoiceSettled", "PayoutCreated"], other: 1 }
    })
    const kept = (yield* ask("GET", place)).body
    expect(kept).toMatchObject({
      automaticRedelivery: false,
      authorizedEvents: { everything: false, specificEvents: ["InvoiceSettled", "PayoutCreated"] }
    })
    const put = yield* ask("PUT", place, { url: `${url}/2`, secret: null })
    expect([put.status, put.body]).toEqual([
      200,
      {
        ...{ id: kept.id, enabled: true, automaticRedelivery: true, url: `${url}/2` },
        authorizedEvents: { everything: true, specificEvents: [] }
      }
    ])
    const missing = yield* ask("PUT", `${place}x`, { url })
    expect([missing.status, missing.body.code]).toEqual([404, "webhook-not-found"])
  })

  it.effect.each<readonly [Record<string, unknown>, string]>([
    [{}, "url"],
    [{ url: "http://192.0.2.1/" }, "url"],
    [{ url: "https://10.0.0.1/" }, "url"],
    [{ url: "https://192.0.2.1/", secret: "" }, "secret"],
    [{ url: "https://192.0.2.1/", secret: "with space" }, "secret"],
    [{ url: "https://192.0.2.1/", secret: "x".repeat(257) }, "secret"],
    [{ url: "https://192.0.2.1/", enabled: "yes" }, "enabled"],
    [{ url: "https://192.0.2.1/", authorizedEvents: { everything: 1 } }, "authorizedEvents.everything"],
    [
      { url: "https://192.0.2.1/", authorizedEvents: { specificEvents: ["x".repeat(101)] } },
      "authorizedEvents.specificEvents"
    ]
  ])("%j is refused on %s", ([json, path]) =>
    Effect.gen(function* () {
      const plugin = yield* pluginOf()
      expect(problems(yield* plugin.register(json))).toEqual([422, [path]])
      expect(problems(yield* plugin.ask("PUT", `${plugin.webhooks}/wh_1`, json))).toEqual([422, [path]])
    })
  )

  test("what is delivered is signed as plugins verify it, and a retry sends the same bytes", function* () {
    const { id: webhook, tell } = yield* registered("/retried")
    const { answer, at } = yield* Shop
    answer("/retried", 409, 503, 200)
    const { id, invoice } = yield* tell("InvoiceSettled", newInvoiceId(1), { timestamp: 1, metadata: { é: "💶" } })
    yield* untilRow(id, "pending", 1)
    yield* later
    yield* untilRow(id, "pending", 2)
    yield* later
    const { id: delivery = "" } = (yield* untilRow(id, "delivered", 3)) ?? {}
    const [first, ...others] = yield* at("/retried", 3)
    const body =
      `{"deliveryId":"${delivery}","webhookId":"${webhook}","originalDeliveryId":"${delivery}","isRedelivery":false,` +
      `"type":"InvoiceSettled","invoiceId":"${invoice}","timestamp":1,"metadata":{"é":"💶"}}`
    expect(first?.body.toString("utf8")).toBe(body)
    expect(delivery.length).toBeLessThan(256)
    for (const one of [first, ...others]) {
      expect(one?.body.equals(Buffer.from(body, "utf8"))).toBe(true)
      expect(one?.headers).toMatchObject({
        "content-type": "application/json",
        "btcpay-sig": one && signatureBy("s3cret-ünïcode", one)
      })
      expect(Object.keys(one?.headers ?? {}).filter((name) => /^(x-|webhook-)/.test(name))).toEqual([])
      expect(one?.rawHeaders).toContain("BTCPay-Sig")
    }
  })

  test("another secret signs what is tried again, at once", function* () {
    const { ask, place, tell, url } = yield* registered("/secret")
    const { answer, at } = yield* Shop
    answer("/secret", 500, 500)
    const { id } = yield* tell("InvoiceCreated")
    yield* untilRow(id, "pending", 1)
    yield* ask("PUT", place, { url, secret: "another" })
    yield* later
    yield* untilRow(id, "pending", 2)
    yield* ask("PUT", place, { url })
    yield* later
    yield* untilRow(id, "delivered", 3)
    const sent = yield* at("/secret", 3)
    expect(sent.map(({ headers }) => headers["btcpay-sig"])).toEqual(
      ["s3cret-ünïcode", "another", "another"].map((secret, n) => sent[n] && signatureBy(secret, sent[n]))
    )
  })

  test("a disabled endpoint gets nothing, of what waits either, until it is enabled again", function* () {
    const { ask, place, tell, url } = yield* registered("/disabled")
    const { answer, at } = yield* Shop
    answer("/disabled", 500)
    const { id, invoice } = yield* tell("InvoiceCreated")
    yield* untilRow(id, "pending", 1)
    expect((yield* ask("PUT", place, { url, enabled: false })).body.enabled).toBe(false)
    expect(yield* row(id)).toMatchObject({ status: "cancelled", next_attempt_at: null })
    const unheard = yield* tell("InvoiceProcessing", invoice)
    expect(yield* row(unheard.id)).toBeUndefined()
    const { id: delivery = "" } = (yield* row(id)) ?? {}
    const again = carryOut(redeliverOne, { id: delivery }, operator)
    expect(yield* Effect.flip(again)).toMatchObject({ message: expect.stringContaining("disabled") })
    yield* ask("PUT", place, { url })
    const settled = yield* tell("InvoiceSettled", invoice)
    yield* untilRow(settled.id, "delivered", 1)
    expect((yield* again).result).toBe("ordered")
    const sent = yield* at("/disabled", 3)
    expect(sent.map(({ body }) => JSON.parse(body.toString("utf8")).type)).toEqual([
      ...["InvoiceCreated", "InvoiceSettled", "InvoiceCreated"]
    ])
    expect(sent[2]?.body.equals(sent[0]?.body ?? Buffer.from(""))).toBe(true)
  })

  test("without automatic redelivery there is one attempt, and those that a person orders", function* () {
    const { tell } = yield* registered("/once", { automaticRedelivery: false })
    const { answer, at } = yield* Shop
    answer("/once", 500)
    const { id } = yield* tell("InvoiceCreated")
    const { id: delivery = "", next_attempt_at } = (yield* untilRow(id, "failed", 1)) ?? {}
    expect(next_attempt_at).toBeNull()
    yield* carryOut(redeliverOne, { id: delivery }, operator)
    yield* untilRow(id, "delivered", 1)
    expect(yield* at("/once", 2)).toHaveLength(2)
  })

  test("an invoice's events go in their order: none before the first attempt of the one before has ended", function* () {
    const { tell } = yield* registered("/order")
    const { answer, at } = yield* Shop
    const held = yield* Deferred.make<ReceiverReply>()
    answer("/order", Deferred.await(held))
    const invoice = newInvoiceId(1)
    const kinds = ["InvoiceReceivedPayment", "InvoiceProcessing", "InvoicePaymentSettled", "InvoiceSettled"] as const
    for (const kind of kinds) yield* tell(kind, invoice)
    expect(yield* at("/order", 1)).toHaveLength(1)
    const waiting = yield* rows("SELECT 1 FROM deliveries WHERE payment_id = ? AND next_attempt_at IS NULL", [invoice])
    expect(waiting).toHaveLength(3)
    yield* Deferred.succeed(held, 500)
    const sent = yield* at("/order", 4)
    expect(sent.map(({ body }) => JSON.parse(body.toString("utf8")).type)).toEqual(kinds)
  })

  test("each store has its own endpoints, and each endpoint the kinds that it names", function* () {
    const mine = yield* registered("/mine", {
      authorizedEvents: { everything: false, specificEvents: ["InvoiceSettled", "NoSuchKind"] }
    })
    const live = yield* registered("/live", {}, "live", mine.owner.account)
    const other = yield* registered("/other")
    const { at, url } = yield* Shop
    for (const place of [live.place, other.place]) {
      for (const method of ["GET", "PUT", "DELETE"]) {
        expect((yield* mine.ask(method, place, method === "PUT" ? { url: url("/mine") } : undefined)).status).toBe(403)
      }
    }
    for (const id of [live.id, other.id]) {
      for (const path of [`webhooks/${id}`, `${mine.webhooks}/${id}`]) {
        expect((yield* mine.ask("GET", path)).status).toBe(404)
      }
      expect((yield* mine.ask("DELETE", `${mine.webhooks}/${id}`)).status).toBe(404)
    }
    yield* mine.tell("InvoiceCreated")
    const settled = yield* mine.tell("InvoiceSettled")
    yield* untilRow(settled.id, "delivered", 1)
    const [only, ...more] = yield* at("/mine", 1)
    expect([JSON.parse(String(only?.body)).type, more]).toEqual(["InvoiceSettled", []])
    expect([yield* at("/live"), yield* at("/other")]).toEqual([[], []])
    const theirs = yield* other.tell("InvoiceCreated")
    yield* untilRow(theirs.id, "delivered", 1)
    expect(yield* at("/other", 1)).toHaveLength(1)
    for (const { ask, place } of [mine, live, other]) {
      expect((yield* ask("DELETE", place)).status).toBe(200)
    }
  })

  test("the own API knows nothing of plugins' endpoints, nor plugins of its", function* () {
    const plugin = yield* registered("/apart")
    const api = yield* TestApi
    const key = yield* api.newKey("test", permissions, plugin.owner.account)
    const { answer, at, url } = yield* Shop
    const own = { url: url("/own"), events: EventKind.literals, secret: "whsec_0123456789abcdef" }
    const made = yield* api.call("POST", "/v1/webhooks", { key, json: own })
    expect((yield* plugin.ask("GET", `webhooks/${made.body.id}`)).status).toBe(404)
    expect((yield* plugin.ask("DELETE", `${plugin.webhooks}/${made.body.id}`)).status).toBe(404)
    expect((yield* plugin.ask("GET", plugin.webhooks)).text).not.toContain(made.body.id)
    answer("/apart", 500)
    const { id } = yield* plugin.tell("InvoiceSettled")
    const { id: delivery = "" } = (yield* untilRow(id, "pending", 1)) ?? {}

    const call = (method: string, path: string, json?: unknown) =>
      api.call(method, `/v1/${path}`, json === undefined ? { key } : { key, json })
    expect((yield* call("GET", "webhooks")).body.data).toEqual([made.body])
    for (const [method, path, json] of [
      ["GET", `webhooks/${plugin.id}`],
      ["PATCH", `webhooks/${plugin.id}`, { url: url("/own") }],
      ["DELETE", `webhooks/${plugin.id}`],
      ["GET", `deliveries?endpoint=${plugin.id}`],
      ["GET", `deliveries/${delivery}`],
      ["POST", `deliveries/${delivery}/redeliver`, {}],
      ["POST", "deliveries/redeliver", { endpoint: plugin.id }]
    ] as const) {
      expect([path, (yield* call(method, path, json)).status]).toEqual([path, 404])
    }
    expect((yield* call("GET", "deliveries")).body.data).toEqual([])
    const range = yield* call("POST", "deliveries/redeliver", {})
    expect(range.body).toMatchObject({ ordered: 0, due: 0, refused: 0 })
    const to = yield* call("POST", "deliveries/redeliver", { to: plugin.id })
    expect(to.status).toBe(400)

    // The operator sees both, may send the plugin's again, to a plugin's only, and delete it.
    const listed = yield* carryOut(listEndpoints, { account: plugin.owner.account, mode: "test" }, operator)
    expect(listed.map(({ id }) => id)).toEqual(expect.arrayContaining([plugin.id, made.body.id]))
    const all = yield* carryOut(listDeliveries, { account: plugin.owner.account, limit: 100 }, operator)
    expect(all.map(({ id, kind }) => [id, kind])).toContainEqual([delivery, "InvoiceSettled"])
    const refused = yield* Effect.flip(carryOut(redeliverOne, { id: delivery, to: made.body.id }, operator))
    expect(refused._tag).toBe("RedeliveryRefused")
    expect((yield* Effect.flip(carryOut(changeEndpoint, { id: plugin.id, url: url("/own") }, operator)))._tag).toBe(
      "ChangeRefused"
    )
    expect((yield* Effect.flip(carryOut(sendTestDelivery, { endpoint: plugin.id }, operator)))._tag).toBe("NotFound")
    const since = { at: 0 }
    const { ordered } = yield* carryOut(
      redeliverRange,
      { account: plugin.owner.account, status: "failing", since, mode: "test" },
      operator
    )
    expect(ordered).toBe(1)
    yield* untilRow(id, "delivered", 1)
    expect(yield* at("/apart", 2)).toHaveLength(2)
    expect(yield* at("/own")).toEqual([])
    expect(yield* carryOut(deleteEndpoint, { id: plugin.id }, operator)).toEqual({ id: plugin.id, cancelled: 0 })
    expect((yield* plugin.ask("GET", plugin.place)).status).toBe(404)
  })

  test("an account has 50 endpoints of both kinds in a mode", function* () {
    const plugin = yield* pluginOf("live")
    const url = "https://192.0.2.1/"
    const answers = yield* Effect.replicateEffect(plugin.register({ url }), 51)
    expect(answers.map(({ status }) => status)).toEqual([...Array(50).fill(200), 409])
    expect(answers.at(-1)?.body.code).toBe("too-many-endpoints")
    const api = yield* TestApi
    const key = yield* api.newKey("live", permissions, plugin.owner.account)
    const json = { url, events: ["payment.created"], secret: "whsec_0123456789abcdef" }
    expect((yield* api.call("POST", "/v1/webhooks", { key, json })).status).toBe(409)
  })
})
