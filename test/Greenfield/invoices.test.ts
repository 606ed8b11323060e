// Invoices as shop plugins make and read them, and what they are told: in process, against a real store.
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { getAddress } from "viem"
import { TestApi, testApp } from "../lib/api.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { testChain, testRates } from "../lib/settings.ts"
import { execute, rows } from "../lib/store.ts"
import { startScans } from "../Payments/settling.ts"
import { mine, nextHead, payEth, plugin, toldOf } from "./shopSystem.ts"

const usdc = { symbol: "USDC", address: getAddress(`0x${"a".repeat(40)}`), decimals: 6 } as const
const app = testApp({
  chains: [testChain({ tokens: [usdc] }), testChain({ chain: "polygon", tokens: [usdc] })],
  rates: testRates({ USDC: "1", ETH: "2500", EUR: "1.10" })
})

const base = { chain: "base", mode: "test" } as const

const order = { amount: "25.00", currency: "EUR", metadata: { orderId: "1001", posData: '{"a":1}', taxIncluded: 1.5 } }

/** An order that its customer pays with ETH on base: its invoice, its payment method, and its price in wei. */
const ethOrder = Effect.gen(function* () {
  const shop = yield* plugin()
  yield* startScans(nextHead(), base)
  yield* shop.ofStore("POST", "webhooks", { url: "https://shop.example/hook" })
  const { body } = yield* shop.ofStore("POST", "invoices", { ...order, checkout: { paymentMethods: ["ETH_BASE"] } })
  const [method] = (yield* shop.ofStore("GET", `invoices/${body.id}/payment-methods`)).body
  const get = Effect.map(shop.ofStore("GET", `invoices/${body.id}`), (answer) => answer.body)
  const state = Effect.map(get, ({ additionalStatus, status }) => [status, additionalStatus])
  const kinds = Effect.map(toldOf(body.id), (all) => all.map(({ type }) => type))
  return { ...shop, get, kinds, id: body.id as string, method, price: 11_000_000_000_000_000n, state }
})

liveSuite(app, "invoices of shop plugins", (test) => {
  test("an invoice comes back as it was asked for, with the fields that plugins read unasked", function* () {
    const { ofStore, store } = yield* plugin()
    const metadata = { ...order.metadata, orderId: "A&i=1/2" }
    const made = yield* ofStore("POST", "invoices", {
      ...{ ...order, metadata },
      unknown: { deep: true },
      checkout: {
        paymentMethods: ["USDC_BASE", "LN_BASE"],
        redirectURL: "https://shop.example/r?o={OrderId}&i=%7BinvoiceId%7D",
        defaultLanguage: "de-DE",
        expirationMinutes: 20,
        speedPolicy: "HighSpeed",
        language: null
      },
      receipt: { enabled: true }
    })
    expect([made.status, made.body]).toMatchObject([
      200,
      {
        ...{ storeId: store, amount: "25", currency: "EUR", type: "Standard", status: "New", additionalStatus: "None" },
        ...{ paidAmount: "0", metadata, archived: false, receipt: { enabled: true } },
        availableStatusesForManualMarking: ["Invalid"],
        checkout: { paymentMethods: ["USDC-BASE"], speedPolicy: "HighSpeed", defaultLanguage: "de-DE" }
      }
    ])
    expect(made.body.expirationTime - made.body.createdTime).toBe(1200)
    expect(made.body.checkoutLink).toBe(`http://127.0.0.1:8080/i/${made.body.id}`)
    expect(yield* rows("SELECT redirect_url AS url FROM invoices WHERE id = ?", [made.body.id])).toEqual([
      { url: `https://shop.example/r?o=A%26i%3D1%2F2&i=${made.body.id}` }
    ])
    const again = yield* ofStore("GET", `invoices/${made.body.id}`)
    expect(again.body).toEqual(made.body)
    const [method, ...others] = (yield* ofStore("GET", `invoices/${made.body.id}/payment-methods`)).body
    expect(others).toEqual([])
    expect(method).toMatchObject({
      ...{
        paymentMethodId: "USDC-BASE",
        paymentMethod: "USDC-BASE",
        currency: "USDC",
        activated: true,
        amount: "27.5"
      },
      ...{ due: "27.5", totalPaid: "0", paymentMethodPaid: "0", paymentMethodFee: "0", networkFee: "0", payments: [] }
    })
    expect(method.rate).toBe("0.90909090909090909")
    expect(method.paymentLink).toMatch(/^ethereum:0x/)
  })
  test("paid in full: each message once, in the order that plugins take", function* () {
    const { get, id, kinds, method, ofStore, price, state } = yield* ethOrder
    expect(yield* kinds).toEqual(["InvoiceCreated"])
    const tx = yield* payEth(method.destination, price)
    expect(yield* state).toEqual(["Processing", "None"])
    yield* mine
    expect(yield* state).toEqual(["Settled", "None"])
    expect((yield* get).paidAmount).toBe("25")
    expect(yield* kinds).toEqual([
      ...["InvoiceCreated", "InvoiceReceivedPayment", "InvoiceProcessing", "InvoicePaymentSettled", "InvoiceSettled"]
    ])
    const told = yield* toldOf(id)
    expect(told[1]).toMatchObject({
      ...{ invoiceId: id, storeId: "default-test", metadata: order.metadata, afterExpiration: false },
      ...{ paymentMethodId: "ETH-BASE", payment: { id: `${tx}-0`, value: "0.011", fee: "0", status: "Processing" } }
    })
    expect(told[4]).toMatchObject({ manuallyMarked: false, overPaid: false })
    expect((yield* ofStore("GET", `invoices/${id}/payment-methods`)).body).toMatchObject([
      { due: "0", totalPaid: "0.011", payments: [{ id: `${tx}-0`, status: "Settled" }] }
    ])
  })
  test("a part, then the rest and too much", function* () {
    const { get, kinds, method, price, state } = yield* ethOrder
    yield* payEth(method.destination, price / 2n - 1n)
    expect(yield* state).toEqual(["New", "PaidPartial"])
    // Never more than what came.
    expect((yield* get).paidAmount).toBe("12.49")
    yield* payEth(method.destination, price)
    expect(yield* state).toEqual(["Processing", "PaidOver"])
    yield* mine
    expect(yield* state).toEqual(["Settled", "PaidOver"])
    expect((yield* get).paidAmount).toBe("37.49")
    expect(yield* kinds).toEqual([
      ...["InvoiceCreated", "InvoiceReceivedPayment", "InvoiceReceivedPayment", "InvoiceProcessing"],
      ...["InvoicePaymentSettled", "InvoicePaymentSettled", "InvoiceSettled"]
    ])
  })
  test("marking: nothing came, cancelled, and a part that a person takes", function* () {
    const one = yield* ethOrder
    const early = yield* one.ofStore("POST", `invoices/${one.id}/status`, { status: "Settled" })
    expect([early.status, early.body[0].path]).toEqual([422, "status"])
    const cancelled = yield* one.ofStore("POST", `invoices/${one.id}/status`, { status: "Invalid" })
    expect([cancelled.status, cancelled.body.status, cancelled.body.additionalStatus]).toEqual([
      200,
      "Invalid",
      "Marked"
    ])
    expect(yield* one.kinds).toEqual(["InvoiceCreated", "InvoiceInvalid"])
    const two = yield* ethOrder
    yield* payEth(two.method.destination, two.price / 2n)
    yield* mine
    const marked = yield* two.ofStore("POST", `invoices/${two.id}/status`, { status: "Settled" })
    expect([marked.status, marked.body.status, marked.body.additionalStatus]).toEqual([200, "Settled", "Marked"])
    expect((yield* toldOf(two.id)).at(-1)).toMatchObject({ type: "InvoiceSettled", manuallyMarked: true })
  })
  test("a refund is of the order that its text names first, and of no other", function* () {
    const one = yield* ethOrder
    yield* one.ofStore("PUT", `invoices/${one.id}`, { metadata: { orderId: "571" } })
    yield* one.ofStore("POST", "invoices", { ...order, metadata: { orderId: "580" } })
    yield* payEth(one.method.destination, one.price)
    yield* mine
    const ask = (name: string, amount = "5") => one.ofStore("POST", "pull-payments", { name, amount, currency: "EUR" })
    const other = yield* ask("Refund of order 580; bought again as 571")
    expect([other.status, other.body[0].path]).toEqual([422, "name"])
    const made = yield* ask("Refund of order #571; 580 is next")
    expect([made.status, made.body.amount]).toEqual([200, "5"])
    expect((yield* ask("Refund of order 571", "25.01")).body[0].path).toBe("amount")
    // What has no address yet holds nothing.
    expect((yield* ask("Refund of order 571", "25")).status).toBe(200)
  })
  test("a price in a token, which the checkout and the own API show as well", function* () {
    const { call, ofStore } = yield* plugin()
    const made = (yield* ofStore("POST", "invoices", { amount: 19.9, currency: "usdc" })).body
    expect([made.amount, made.currency]).toEqual(["19.9", "USDC"])
    const methods: ReadonlyArray<{ readonly paymentMethodId: string; readonly amount: string; readonly rate: string }> =
      (yield* ofStore("GET", `invoices/${made.id}/payment-methods`)).body
    expect(methods.map(({ amount, paymentMethodId, rate }) => [paymentMethodId, amount, rate])).toEqual([
      ["ETH-BASE", "0.00796", "2500"],
      ["USDC-BASE", "19.9", "1"],
      ["USDC-POLYGON", "19.9", "1"]
    ])
    const { headers } = yield* call("GET", `/i/${made.id}`)
    expect(headers.location).toMatch(/\/pay\/[A-Za-z0-9_-]{30}$/)
    const page = yield* call("GET", new URL(String(headers.location)).pathname)
    expect(page.text).toContain("19.9\u00a0USDC")
    const key = yield* (yield* TestApi).newKey()
    expect((yield* call("GET", `/v1/invoices/${made.id}`, { key })).body.price).toEqual({
      ...{ amount: "19.9", currency: "USDC" }
    })
  })
  test("metadata that is changed counts towards the quota", function* () {
    const account = yield* (yield* TestApi).newAccount("Small")
    const { ofStore } = yield* plugin(undefined, "test", account)
    const ids = yield* Effect.replicateEffect(
      Effect.map(ofStore("POST", "invoices", order), ({ body }) => body.id),
      8
    )
    yield* execute("UPDATE accounts SET quota_bytes = 100000 WHERE id = ?", [account])
    const metadata = { text: "x".repeat(15_000) }
    const answers = yield* Effect.forEach(ids, (id) => ofStore("PUT", `invoices/${id}`, { metadata }))
    expect(answers.map(({ status }) => status)).toContain(507)
    expect(answers[0]?.status).toBe(200)
  })
  test("refusals are lists of fields, or one error with a code", function* () {
    const { api, call, ofStore } = yield* plugin()
    const bad = yield* ofStore("POST", "invoices", { amount: "25.001", currency: "EUR" })
    expect([bad.status, bad.body]).toMatchObject([422, [{ path: "amount" }]])
    const several = yield* ofStore("POST", "invoices", { currency: "XXX", checkout: { paymentMethods: ["BTC"] } })
    expect(several.body.map(({ path }: { path: string }) => path)).toEqual([
      "amount",
      "currency",
      "checkout.paymentMethods"
    ])
    expect((yield* ofStore("GET", "invoices/inv_none")).body.code).toBe("invoice-not-found")
    const other = yield* api("GET", "stores/other-test/invoices")
    expect([other.status, other.body.code]).toEqual([403, "missing-permission"])
    expect((yield* api("GET", "users/me")).body.code).toBe("not-found")
    const nobody = yield* call("GET", "/api/v1/server/info")
    expect([nobody.status, nobody.body.code]).toEqual([401, "unauthenticated"])
    expect((yield* ofStore("GET", "payment-methods/LightningNetwork")).status).toBe(410)
    const method = yield* ofStore("PATCH", "payment-methods")
    expect([method.status, method.body.code, method.headers.allow]).toEqual([405, "method-not-allowed", "GET, HEAD"])
    // Another account's switch counts for nothing.
    const account = yield* (yield* TestApi).newAccount("Off")
    const closed = yield* plugin(undefined, "test", account)
    yield* execute("UPDATE shops SET plugins = NULL WHERE account_id = ?", [account])
    const own = yield* closed.api("GET", "stores")
    expect([own.status, own.body.code]).toEqual([404, "not-found"])
    yield* execute("UPDATE shops SET plugins = NULL")
    const off = yield* api("GET", "server/info")
    expect([off.status, off.body.error.code]).toEqual([404, "NOT_FOUND"])
  })
})
