// The npm package for BTCPay Server's Greenfield API as a shop's client: the built daemon, a real chain, a real HTTPS receiver.
// A customer's page is asked for as a browser asks.
// @effect-diagnostics globalFetchInEffect:off
import { expect } from "@effect/vitest"
import {
  ApiError,
  ApiKeysService,
  InvoicesService,
  OpenAPI,
  PullPaymentsManagementService,
  ServerInfoService,
  StoresService,
  WebhooksService
} from "btcpay-greenfield-node-client"
import { Context, Effect, Layer } from "effect"
import { getAddress, parseUnits } from "viem"
import type { LocalChain } from "../../src/Sandbox/LocalChain.ts"
import { someone } from "../Collect/collecting.ts"
import { onceDeep } from "../Collect/shop.ts"
import { confirmations, type Daemon, localChain, makeHome, mineAt, pay, serve } from "../lib/daemon.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { tilldJson } from "../lib/tilld.ts"
import { type Hook, isSignedWith, startHook } from "./hook.ts"
import { wooPermissions } from "./shopSystem.ts"

const storeId = "default-test"

interface Key {
  readonly key: string
  readonly storeId: string
}

class Shop extends Context.Tag("test/SdkShop")<
  Shop,
  { readonly base: LocalChain; readonly config: ReadonlyArray<string>; readonly daemon: Daemon; readonly hook: Hook }
>() {
  static readonly layer = Layer.scoped(
    Shop,
    Effect.gen(function* () {
      const base = yield* localChain("base")
      const hook = yield* startHook
      const home = yield* makeHome({ chains: new Map([["base", base]]), caFile: hook.caFile, prices: { EUR: "1.25" } })
      const daemon = yield* serve(home)
      const config = ["--config", home.config]
      yield* tilldJson(["accounts", "shop", "--plugins", "on", ...config])
      const made = [
        "keys",
        "create",
        "--mode",
        "test",
        "--name",
        "Shop",
        "--plugin-permissions",
        wooPermissions.join(",")
      ]
      const { key, storeId: named } = yield* tilldJson<Key>([...made, ...config])
      expect(named).toBe(storeId)
      Object.assign(OpenAPI, { BASE: daemon.url, TOKEN: key })
      // The chain is read often while a payment is open.
      yield* daemon.create({ chain: "base", currency: "USDC", amount: "1" })
      return { base, config, daemon, hook }
    })
  )
}

/** The answer to a call of the package. */
const asked = <A>(call: () => Promise<A>) => Effect.promise(call)

/** Why a call of the package failed. */
const refused = (call: () => Promise<unknown>) =>
  Effect.promise(() =>
    call().then(
      () => expect.unreachable("it was answered"),
      (error: unknown) => (error instanceof ApiError ? error : Promise.reject(error))
    )
  )

const registered = Effect.fnUntraced(function* (path: string, over: object = {}) {
  const { hook } = yield* Shop
  const url = hook.url + path
  // The package's types are behind what the API takes.
  const requestBody = { url, authorizedEvents: { everything: true, specificEvents: [] }, ...over } as object
  const made = yield* asked(() => WebhooksService.postWebhooksService({ storeId, requestBody }))
  return { id: made.id ?? "", secret: made.secret ?? "", url, made }
})

let orders = 1_000

/** An order of 25 EUR, which is 31.25 USDC on base. */
const order = Effect.fnUntraced(function* (over: object = {}) {
  const { base } = yield* Shop
  const orderId = `${++orders}`
  const checkout = { paymentMethods: ["USDC-BASE"], ...over }
  const requestBody = { amount: "25.00", currency: "EUR", metadata: { orderId }, checkout }
  const invoice = yield* asked(() => InvoicesService.invoicesCreateInvoice({ storeId, requestBody }))
  const invoiceId = invoice.id ?? ""
  const methods = asked(() => InvoicesService.invoicesGetInvoicePaymentMethods({ storeId, invoiceId }))
  const [method] = yield* methods
  const address = getAddress(method?.destination ?? "")
  const state = Effect.map(
    asked(() => InvoicesService.invoicesGetInvoice({ storeId, invoiceId })),
    ({ additionalStatus, status }) => [status, additionalStatus]
  )
  const send = (amount: string) => pay(base, { address, currency: "USDC", amount: `${parseUnits(amount, 6)}` })
  return { invoice, invoiceId, methods, orderId, send, state }
})

const kindsOf = (all: ReadonlyArray<{ readonly body: { readonly type: string } }>) => all.map(({ body }) => body.type)

const paid = ["InvoiceReceivedPayment", "InvoiceProcessing", "InvoicePaymentSettled", "InvoiceSettled"]

liveSuite(Shop.layer, "the npm package of the Greenfield API", (test) => {
  test("sets up: key, server, store, and a webhook that is read, changed, listed and deleted", function* () {
    const current = yield* asked(() => ApiKeysService.getApiKeysService())
    expect({ ...current, permissions: current.permissions?.toSorted() }).toEqual({
      apiKey: OpenAPI.TOKEN,
      label: "Shop",
      permissions: wooPermissions.map((permission) => `${permission}:${storeId}`).toSorted()
    })
    const info = yield* asked(() => ServerInfoService.serverInfoGetServerInfo())
    expect(info).toMatchObject({ version: "2.4.1", fullySynched: true })
    expect(info.supportedPaymentMethods).toContain("USDC-BASE")
    const stores = yield* asked(() => StoresService.storesGetStores())
    expect(stores).toMatchObject([{ id: storeId, defaultCurrency: "USD" }])
    expect(yield* asked(() => StoresService.storesGetStore({ storeId }))).toEqual((stores as Array<object>)[0])

    const { id: webhookId, made, secret, url } = yield* registered("/set-up")
    expect(made).toMatchObject({ url, enabled: true, automaticRedelivery: true })
    expect(secret.length).toBeGreaterThan(15)
    const read = yield* asked(() => WebhooksService.webhokksGetWebhook({ storeId, webhookId }))
    const { secret: _, ...shown } = made
    expect(read).toEqual(shown)
    const requestBody = { url: `${url}/other`, enabled: false } as object
    const changed = yield* asked(() => WebhooksService.putWebhooksService({ storeId, webhookId, requestBody }))
    expect(changed).toMatchObject({ id: webhookId, url: `${url}/other`, enabled: false })
    expect(yield* asked(() => WebhooksService.webhokksGetWebhooks({ storeId }))).toContainEqual(changed)
    yield* asked(() => WebhooksService.deleteWebhooksService({ storeId, webhookId, requestBody: {} }))
    const gone = yield* refused(() => WebhooksService.webhokksGetWebhook({ storeId, webhookId }))
    expect([gone.status, gone.body.code]).toEqual([404, "webhook-not-found"])
  })

  test("an invoice is made, paid, told and listed, and its price goes back", function* () {
    const { base, config, daemon, hook } = yield* Shop
    const { id: webhookId, secret } = yield* registered("/paid")
    const { invoice, invoiceId, methods, orderId, send, state } = yield* order()
    expect(invoice).toMatchObject({ status: "New", additionalStatus: "None", amount: "25", currency: "EUR" })
    const hash = yield* send("31.25")
    yield* base.mine()
    const received = yield* hook.take("/paid", invoiceId, 3)
    expect(yield* state).toEqual(["Processing", "None"])
    yield* base.mine(confirmations)
    const all = [...received, ...(yield* hook.take("/paid", invoiceId, 2))]
    expect(kindsOf(all)).toEqual(["InvoiceCreated", ...paid])
    for (const { body, request } of all) {
      expect([isSignedWith(secret, request), isSignedWith(`${secret}.`, request)]).toEqual([true, false])
      expect(body).toMatchObject({ webhookId, storeId, invoiceId, isRedelivery: false, metadata: { orderId } })
      expect(body.originalDeliveryId).toBe(body.deliveryId)
    }
    expect(new Set(all.map(({ body }) => body.deliveryId)).size).toBe(all.length)
    expect(yield* state).toEqual(["Settled", "None"])
    expect(yield* methods).toMatchObject([
      { paymentMethod: "USDC-BASE", rate: "0.8", due: "0", totalPaid: "31.25", payments: [{ id: `${hash}-0` }] }
    ])
    const listed = yield* asked(() => InvoicesService.invoicesGetInvoices({ storeId }))
    expect((listed as ReadonlyArray<{ id: string }>).map(({ id }) => id)).toContain(invoiceId)

    const refund = { name: `Refund of order ${orderId}; too small`, amount: "10", currency: "EUR" }
    const ask = () => PullPaymentsManagementService.pullPaymentsCreatePullPayment({ storeId, requestBody: refund })
    const pull = yield* asked(ask)
    expect(pull).toMatchObject({ ...refund, archived: false, period: null })
    const link = daemon.url + new URL(pull.viewLink ?? "").pathname
    const to = someone()
    const claim = (address: string) =>
      Effect.promise(() => fetch(link, { method: "POST", body: new URLSearchParams({ address }) }))
    expect((yield* claim(to.slice(1))).status).toBe(400)
    expect((yield* claim(to)).status).toBe(200)
    // Another address changes nothing: the page says where it goes.
    const again = yield* Effect.promise(() => fetch(link).then((page) => page.text()))
    yield* claim(someone())
    expect(again).toContain(to)
    const refunds = yield* tilldJson<ReadonlyArray<Record<string, string>>>([
      "refunds",
      "list",
      "--mode",
      "test",
      ...config
    ])
    const refunded = { to: to.toLowerCase(), amount: `${12_500_000n}`, currency: "USDC", chain: "base" }
    expect(
      refunds.map(({ amount, chain, currency, to }) => ({ to: to?.toLowerCase(), amount, currency, chain }))
    ).toEqual([refunded])
    // Of 25 EUR, 15 are left.
    const more = yield* refused(() =>
      PullPaymentsManagementService.pullPaymentsCreatePullPayment({
        storeId,
        requestBody: { ...refund, amount: "15.01" }
      })
    )
    expect([more.status, more.body[0].path]).toEqual([422, "amount"])

    const file = `${daemon.home.folder}/refund.plan`
    const plan = [
      "sweep",
      "plan",
      "--chain",
      "base",
      "--mode",
      "test",
      "--refund",
      refunds[0]?.["id"] ?? "",
      "-o",
      file
    ]
    const planned = yield* onceDeep([...plan, ...config, "--json"])
    expect(planned).toMatchObject({ code: 0 })
    expect(planned.stdout).toContain('"moves":1')
  })

  test("the rest too late: it is told, never as settled, until a person takes it", function* () {
    const { base, hook } = yield* Shop
    yield* registered("/late")
    const { invoice, invoiceId, send, state } = yield* order({ expirationMinutes: 1 })
    yield* send("15.625")
    yield* base.mine()
    yield* hook.take("/late", invoiceId, 2)
    expect(yield* state).toEqual(["New", "PaidPartial"])
    yield* mineAt(base, (invoice.expirationTime ?? 0) + 1, confirmations)
    const expired = yield* hook.take("/late", invoiceId, 2)
    expect(yield* state).toEqual(["Expired", "PaidPartial"])
    yield* send("15.625")
    yield* base.mine(1 + confirmations)
    const requestBody = { status: "Settled" } as object
    const mark = () => InvoicesService.invoicesMarkInvoiceStatus({ storeId, invoiceId, requestBody })
    const late = yield* hook.take("/late", invoiceId, 2)
    expect(yield* state).toEqual(["Expired", "PaidLate"])
    const marked = yield* asked(mark)
    expect([marked.status, marked.additionalStatus]).toEqual(["Settled", "Marked"])
    const last = yield* hook.next("/late", invoiceId)
    expect([...expired, ...late, last].map(({ body }) => body)).toMatchObject([
      { type: "InvoicePaymentSettled", payment: { value: "15.625", status: "Settled" } },
      { type: "InvoiceExpired", partiallyPaid: true },
      { type: "InvoiceReceivedPayment", afterExpiration: true },
      { type: "InvoicePaymentSettled", afterExpiration: true },
      { type: "InvoiceSettled", manuallyMarked: true, overPaid: false }
    ])
  })
})
