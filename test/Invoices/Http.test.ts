import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { getAddress } from "viem"
import type { DatedTransfer } from "../../src/Chains/ledger/LedgerRepo.ts"
import { problemsIn, TestApi, testApp } from "../lib/api.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { testChain, testRates } from "../lib/settings.ts"
import { execute, rows } from "../lib/store.ts"
import { startScans, tick } from "../Payments/settling.ts"

const contract = getAddress(`0x${"a".repeat(40)}`)
const usdc = { symbol: "USDC", address: contract, decimals: 6 } as const
const usdt = { symbol: "USDT", address: getAddress(`0x${"b".repeat(40)}`), decimals: 6 } as const

const app = testApp({
  chains: [
    testChain({ tokens: [usdc] }),
    testChain({ chain: "polygon", tokens: [usdc, usdt] }),
    testChain({ chain: "arbitrum" })
  ],
  // WBTC and GBP have none.
  rates: testRates({ USDC: "1", ETH: "2500", EUR: "1.10" })
})

let orders = 0

const shop = Effect.gen(function* () {
  const { call, newKey } = yield* TestApi
  const key = yield* newKey()
  orders += 1
  const merchantRef = `order ${orders}`
  const price = { amount: "25.00", currency: "EUR" }
  const make = (over: object = {}) => call("POST", "/v1/invoices", { key, json: { price, merchantRef, ...over } })
  const on = (id: string, act: string, json?: object) =>
    call("POST", `/v1/invoices/${id}/${act}`, { key, ...(json === undefined ? {} : { json }) })
  const choose = (id: string, currency: string, chain: string) => on(id, "choose", { currency, chain })
  const get = (id: string) => Effect.map(call("GET", `/v1/invoices/${id}`, { key }), ({ body }) => body)
  return { call, key, newKey, merchantRef, price, make, on, choose, get }
})

/** Kinds of the events of an invoice and its payments, in order. */
const eventsOf = (invoice: { readonly id: string; readonly payments: ReadonlyArray<{ readonly id: string }> }) =>
  Effect.map(
    rows<{ kind: string }>(
      "SELECT kind FROM events WHERE payment_id IN (SELECT value FROM json_each(?)) ORDER BY sequence",
      [JSON.stringify([invoice.id, ...invoice.payments.map(({ id }) => id)])]
    ),
    (all) => all.map(({ kind }) => kind)
  )

const base = { chain: "base", mode: "test" } as const

/** Pays so much ETH in a block, and reads the chain up to so many behind it. */
const pay = (address: string, amount: string, head: number, behind = 5) =>
  tick({
    head,
    transfers: [
      {
        ...{ address: address.toLowerCase(), amount: BigInt(amount), blockHash: `0x${head - behind}` },
        ...{ blockNumber: head - behind, blockTime: head - behind, currency: "ETH", position: "tx:0" },
        txHash: `0x${"7".repeat(56)}${head}`
      } satisfies DatedTransfer
    ]
  })

let head = 1000
const nextHead = () => (head += 100)

liveSuite(app, "invoices", (test, it) => {
  test("a price is enough: the customer chooses, and an ordinary payment is made at a locked rate", function* () {
    const { choose, get, make, merchantRef, price } = yield* shop
    const made = yield* make({ metadata: { cart: 7 }, redirectUrl: "https://shop.example/8", language: "de" })
    expect([made.status, made.headers.location]).toEqual([201, `/v1/invoices/${made.body.id}`])
    expect(made.body).toMatchObject({ merchantRef, price, status: "open", metadata: { cart: 7 }, payments: [] })
    expect(made.body.currencies).toEqual(["ETH-base", "USDC-base", "USDC-polygon", "USDT-polygon", "ETH-arbitrum"])
    expect(made.body.checkoutUrl).toMatch(/^http:\/\/127\.0\.0\.1:8080\/pay\/[A-Za-z0-9_-]{30}$/)

    const { body, status } = yield* choose(made.body.id, "USDC", "base")
    const [payment] = body.payments
    expect([status, body.payment, body.status]).toEqual([200, payment.id, "open"])
    expect(payment).toMatchObject({
      ...{ merchantRef, currency: "USDC", chain: "base", amount: "27500000", status: "pending", metadata: { cart: 7 } },
      checkoutUrl: made.body.checkoutUrl,
      expiresAt: made.body.expiresAt,
      invoice: { id: made.body.id, merchantRef, price }
    })
    const [quote] = yield* rows<{ body: string }>(
      "SELECT body FROM quotes WHERE id = (SELECT quote_id FROM payments WHERE id = ?)",
      [payment.id]
    )
    expect(JSON.parse(quote?.body ?? "")).toMatchObject({ rate: "1.1", chargeAmount: "27.5", fromAmount: "25.00" })
    expect(yield* get(made.body.id)).toEqual(body)
    expect(yield* eventsOf(body)).toEqual(["invoice.created", "payment.created"])
  })

  test("another choice cancels the payment before; the same one changes nothing", function* () {
    const { call, choose, key, make, merchantRef } = yield* shop
    const { checkoutUrl, id } = (yield* make()).body
    const first = (yield* choose(id, "USDC", "base")).body
    expect((yield* choose(id, "USDC", "base")).body).toEqual(first)
    const { payment, payments } = (yield* choose(id, "ETH", "arbitrum")).body
    expect(payments).toMatchObject([
      { status: "expired", failureReason: "cancelled", merchantRef },
      { id: payment, status: "pending", amount: "11000000000000000", merchantRef: `${merchantRef}#2` }
    ])
    expect(yield* eventsOf({ id, payments })).toEqual([
      ...["invoice.created", "payment.created", "payment.expired", "payment.created"]
    ])
    for (const text of [id, checkoutUrl]) {
      const { body } = yield* call("GET", `/v1/payments?search=${encodeURIComponent(text)}`, { key })
      expect(body.data.map((found: { id: string }) => found.id)).toEqual([payment])
    }
  })

  test("money decides: seen, it can no longer be chosen again; confirmed, it is paid", function* () {
    const { choose, get, make, on } = yield* shop
    yield* startScans(nextHead(), base)
    const { id } = (yield* make()).body
    const { payments } = (yield* choose(id, "ETH", "base")).body
    const [payment] = payments
    yield* pay(payment.address, payment.amount, nextHead(), 0)
    expect(yield* get(id)).toMatchObject({ status: "processing", payments: [{ status: "detecting" }] })
    const late = yield* choose(id, "USDC", "base")
    expect([late.status, late.body.error.code, late.body.error.details]).toEqual([
      ...[409, "INVOICE_NOT_OPEN", { status: "processing" }]
    ])
    yield* tick({ head: nextHead() })
    expect(yield* get(id)).toMatchObject({ status: "paid", payments: [{ status: "confirmed" }] })
    const undone = yield* on(id, "cancel")
    expect([undone.status, undone.body.error.details]).toEqual([409, { status: "paid" }])
    expect(yield* eventsOf({ id, payments })).toEqual([
      ...["invoice.created", "payment.created", "payment.detecting", "invoice.processing"],
      ...["payment.confirmed", "invoice.paid"]
    ])
  })

  test("cancelling ends the invoice and its payment, and may be repeated", function* () {
    const { choose, make, on } = yield* shop
    const { id } = (yield* make()).body
    yield* choose(id, "USDC", "base")
    const cancelled = yield* on(id, "cancel")
    expect(cancelled.body).toMatchObject({ status: "cancelled", payments: [{ failureReason: "cancelled" }] })
    expect((yield* on(id, "cancel", {})).body).toEqual(cancelled.body)
    expect((yield* choose(id, "ETH", "base")).body.error.message).toBe("This invoice was cancelled: create another.")
    expect(yield* eventsOf(cancelled.body)).toEqual([
      ...["invoice.created", "payment.created", "payment.expired", "invoice.cancelled"]
    ])
  })

  test("one token and network is chosen at once, in the same answer to the same key", function* () {
    const { call, key, merchantRef, price } = yield* shop
    const sent = {
      key,
      json: { price, merchantRef, currencies: ["ETH-base"] },
      headers: { "idempotency-key": merchantRef }
    }
    const first = yield* call("POST", "/v1/invoices", sent)
    expect(first.body.payments).toMatchObject([{ currency: "ETH", chain: "base", amount: "11000000000000000" }])
    const again = yield* call("POST", "/v1/invoices", sent)
    expect([again.text, again.headers["idempotent-replayed"]]).toEqual([first.text, "true"])
  })

  test("a reference is used once, unless the account lets invoices repeat it, and a price is what it takes", function* () {
    const { make } = yield* shop
    const { id } = (yield* make()).body
    const second = yield* make()
    expect([second.status, second.body.error.code, second.body.error.details]).toEqual([
      ...[409, "DUPLICATE_INVOICE_REF", { invoiceId: id }]
    ])
    yield* execute(
      "INSERT INTO shops (account_id, invoice_refs, minimum_usd, frame_origins) VALUES ('default', 'repeat', '27.50', '')"
    )
    expect((yield* make()).status).toBe(201)
    expect(Object.keys(problemsIn(yield* make({ price: { amount: "24.99", currency: "EUR" } })))).toEqual([
      "price.amount"
    ])
    yield* execute("DELETE FROM shops", [])
  })

  test("a payment's reference stays unique: a further one has a number behind it", function* () {
    const { call, choose, key, make, merchantRef } = yield* shop
    yield* call("POST", "/v1/payments", { key, json: { merchantRef, amount: "1", currency: "ETH", chain: "base" } })
    const { id } = (yield* make()).body
    expect((yield* choose(id, "USDC", "base")).body.payments[0].merchantRef).toBe(`${merchantRef}#2`)
    const nameless = (yield* make({ merchantRef: undefined })).body
    expect((yield* choose(nameless.id, "USDC", "base")).body.payments[0].merchantRef).toBe(nameless.id)
  })

  test("a customer may choose twenty times", function* () {
    const { choose, make } = yield* shop
    const { id } = (yield* make()).body
    for (let i = 0; i < 20; i++) {
      expect((yield* choose(id, i % 2 === 0 ? "USDC" : "ETH", "base")).status).toBe(200)
    }
    const { body, status } = yield* choose(id, "USDC", "base")
    expect([status, body.error.message]).toEqual([
      ...[409, "A customer may choose 20 times: cancel this invoice, and create another."]
    ])
  })

  it.effect.each([
    [
      { price: { amount: "25.001", currency: "EUR" } },
      { "price.amount": expect.stringContaining("at most 2 decimals") }
    ],
    [{ price: { amount: "5", currency: "CHF" } }, { "price.currency": expect.stringContaining("CHF is off here") }],
    [{ price: { amount: "0.00", currency: "EUR" } }, { "price.amount": expect.stringContaining("above 0") }],
    [{ price: { amount: "1", currency: "BTC" } }, { "price.currency": expect.stringContaining("USD, EUR, GBP") }],
    [{ currencies: ["DAI-base"] }, { "currencies[0]": expect.stringContaining("choose of ETH-base") }],
    [{ currencies: [] }, { currencies: expect.stringContaining("at least one") }],
    [{ expiresIn: 59 }, { expiresIn: expect.stringContaining("60 to 86400") }],
    [{ amount: "25" }, { amount: expect.any(String) }]
  ])("refuses %j", ([over, problems]) =>
    Effect.gen(function* () {
      const { make } = yield* shop
      const refused = yield* make(over)
      expect([refused.status, problemsIn(refused)]).toEqual([400, problems])
    })
  )

  test("the list has filters and pages, and only the key's own", function* () {
    const { call, key, make, merchantRef, newKey } = yield* shop
    const { body } = yield* make()
    const list = (query: string, of = key) =>
      Effect.map(call("GET", `/v1/invoices?${query}`, { key: of }), (one) => one.body)
    const reference = `merchantRef=${encodeURIComponent(merchantRef)}`
    expect(yield* list(reference)).toEqual({ data: [body], cursor: null })
    expect((yield* list(`${reference}&status=paid`)).data).toEqual([])
    const stranger = yield* newKey("test", undefined, yield* (yield* TestApi).newAccount("Stranger"))
    for (const of of [yield* newKey("live"), stranger]) {
      expect((yield* list(reference, of)).data).toEqual([])
      expect((yield* call("GET", `/v1/invoices/${body.id}`, { key: of })).status).toBe(404)
    }
    const { cursor, data } = yield* list("limit=1")
    expect(data).toEqual([body])
    expect((yield* list(`limit=1&cursor=${cursor}`)).data[0].id).not.toBe(body.id)
  })

  test("its events go to endpoints that name them, and payment.* events carry the invoice", function* () {
    const { call, choose, key, make, price } = yield* shop
    const secret = `whsec_${"s".repeat(32)}`
    const json = { url: "https://example.com/invoices", events: ["invoice.created", "payment.created"], secret }
    const endpoint = (yield* call("POST", "/v1/webhooks", { key, json })).body
    const { id, merchantRef } = (yield* make({ webhookUrl: "https://example.com/own" })).body
    yield* choose(id, "USDC", "base")
    const { data } = (yield* call("GET", "/v1/deliveries?status=pending", { key })).body
    const sent = data.map((one: Record<string, string>) => [one.kind, one.endpoint ?? one.url, one.invoice === id])
    expect(sent).toEqual([
      ["payment.created", "https://example.com/own", false],
      ["payment.created", endpoint.id, false],
      ["invoice.created", endpoint.id, true]
    ])
    const [event] = yield* rows<{ body: string }>("SELECT body FROM events WHERE id = ?", [data[0].event])
    expect(JSON.parse(event?.body ?? "").data.invoice).toEqual({ id, merchantRef, price })
  })
})
