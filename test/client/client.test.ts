import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { createClient, type ListPayments, type TilldClient, TilldError, toBaseUnits } from "../../src/client/index.ts"
import { TestApi, testApp } from "../lib/api.ts"
import { storeLateMoney, storeMoneyFor } from "../lib/exceptions.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { testChain, testRates } from "../lib/settings.ts"
import { startFront } from "./front.ts"

const app = testApp({
  chains: [testChain({ chain: "base" }), testChain({ chain: "optimism" })],
  rates: testRates({ EUR: "1.10", USDC: "1" })
})

const order = { merchantRef: "order-1", amount: "25000000", currency: "ETH", chain: "base" } as const
const secret = `whsec_${"s".repeat(32)}`

/** A client of the test's server, with a key of its own. */
const connect = Effect.gen(function* () {
  const { host, newKey, port } = yield* TestApi
  const apiKey = yield* newKey()
  return { apiKey, baseUrl: `http://${host}:${port}` }
})

const client = Effect.map(connect, createClient)

const refusalOf = (work: Promise<unknown>) =>
  Effect.promise(() =>
    work.then(
      () => expect.fail("it was not refused"),
      (error: unknown) => (error instanceof TilldError ? error : expect.fail(String(error)))
    )
  )

const all = async (payments: ReturnType<TilldClient["payments"]["listAll"]>) => {
  const found = []
  for await (const payment of payments) found.push(payment.merchantRef)
  return found
}

liveSuite(app, "a client of a server", (test, it) => {
  test("creates a payment, finds it and lists it", function* () {
    const tilld = yield* client
    const payment = yield* Effect.promise(() =>
      tilld.payments.create({ ...order, metadata: { cart: 7 }, expiresIn: undefined })
    )
    expect(payment).toMatchObject({ ...order, status: "pending", metadata: { cart: 7 } })
    expect(payment.createdAt).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
    expect(yield* Effect.promise(() => tilld.payments.get(payment.id))).toEqual(payment)
    const page = yield* Effect.promise(() => tilld.payments.list({ status: "pending", chain: "base", limit: 100 }))
    expect(page.data).toContainEqual(payment)
    const none = yield* Effect.promise(() => tilld.payments.list({ status: "confirmed", chain: undefined }))
    expect(none).toEqual({ data: [], cursor: null })
  })

  test("finds a payment by what a customer may name, and cancels it", function* () {
    const tilld = yield* client
    const merchantRef = "Bestellung 7/ü"
    const payment = yield* Effect.promise(() => tilld.payments.create({ ...order, merchantRef }))
    const found = (query: ListPayments) =>
      Effect.map(
        Effect.promise(() => tilld.payments.list(query)),
        ({ data }) => data.map(({ id }) => id)
      )
    for (const query of [{ merchantRef }, { address: payment.address.toLowerCase() }]) {
      expect(yield* found(query)).toEqual([payment.id])
    }
    expect(yield* found({ txHash: `0x${"1".repeat(64)}` })).toEqual([])
    expect(yield* found({ merchantRef, createdBefore: payment.createdAt })).toEqual([])
    expect(yield* found({ merchantRef, createdAfter: payment.createdAt })).toEqual([payment.id])
    const metadata = { "e mail": "Ada+1@example.com", vip: true }
    const changed = yield* Effect.promise(() => tilld.payments.change(payment.id, { metadata }))
    expect(changed.metadata).toEqual({ ...payment.metadata, ...metadata })
    expect(yield* found({ metadata: { "e mail": "ada+1@example.com", vip: "true" } })).toEqual([payment.id])
    const cancelled = yield* Effect.promise(() => tilld.payments.cancel(payment.id))
    expect(cancelled).toMatchObject({ id: payment.id, status: "expired", failureReason: "cancelled" })
    expect(yield* Effect.promise(() => tilld.payments.cancel(payment.id))).toEqual(cancelled)
    expect(yield* found({ merchantRef, status: "expired" })).toEqual([payment.id])
  })

  test("pages automatically, and requests no more pages than needed", function* () {
    const api = yield* TestApi
    const front = yield* startFront(api)
    const tilld = createClient({ baseUrl: front.url, apiKey: yield* api.newKey() })
    const refs = ["a", "b", "c", "d", "e"]
    for (const merchantRef of refs) {
      yield* Effect.promise(() => tilld.payments.create({ ...order, merchantRef, chain: "optimism" }))
    }
    const before = front.seen.length
    const found = yield* Effect.promise(() => all(tilld.payments.listAll({ chain: "optimism", limit: 2 })))
    expect(found).toEqual([...refs].reverse())
    expect(front.seen.length - before).toBe(3)
    const first = yield* Effect.promise(async () => {
      for await (const payment of tilld.payments.listAll({ chain: "optimism", limit: 2 })) return payment.merchantRef
      return undefined
    })
    expect(first).toBe("e")
    expect(front.seen.length - before).toBe(4)

    const { cursor } = yield* Effect.promise(() => tilld.payments.list({ chain: "optimism", limit: 3 }))
    const rest = tilld.payments.listAll({ chain: "optimism", cursor: cursor ?? undefined })
    expect(yield* Effect.promise(() => all(rest))).toEqual(["b", "a"])
    expect(front.seen.at(-1)?.path).toContain("limit=100")
  })

  test("asks for prices, whose amounts become a payment's", function* () {
    const tilld = yield* client
    const quote = yield* Effect.promise(() =>
      tilld.quotes.create({ fromCurrency: "EUR", toCurrency: "USD", amount: "100.00" })
    )
    expect(quote).toMatchObject({
      toAmount: "109.45",
      chargeAmount: "110",
      rate: "1.1",
      fees: { network: "0", service: "0.55" }
    })
    expect(yield* Effect.promise(() => tilld.quotes.get(quote.id))).toEqual(quote)
    const { data } = yield* Effect.promise(() => tilld.currencies.list())
    expect(data[0]).toMatchObject({ currency: "ETH", native: true })
    expect(toBaseUnits(quote.chargeAmount, "USDC")).toBe("110000000")
  })

  test("registers, lists and deletes webhook endpoints", function* () {
    const tilld = yield* client
    const url = "https://shop.example.com/tilld"
    const endpoint = yield* Effect.promise(() => tilld.webhooks.create({ url, events: ["payment.confirmed"], secret }))
    expect(endpoint).toMatchObject({ url, events: ["payment.confirmed"] })
    expect((yield* Effect.promise(() => tilld.webhooks.list())).data).toEqual([endpoint])
    expect(yield* Effect.promise(() => tilld.webhooks.get(endpoint.id))).toEqual(endpoint)
    expect(yield* Effect.promise(() => tilld.webhooks.delete(endpoint.id))).toEqual({
      id: endpoint.id,
      deleted: true,
      cancelled: 0
    })
    const again = yield* refusalOf(tilld.webhooks.delete(endpoint.id))
    expect(again).toMatchObject({ status: 404, code: "NOT_FOUND" })
  })

  test("changes an endpoint, and follows, shows and repeats deliveries", function* () {
    const tilld = yield* client
    const url = "https://shop.example.com/deliveries"
    const { id } = yield* Effect.promise(() => tilld.webhooks.create({ url, events: ["payment.created"], secret }))
    const moved = yield* Effect.promise(() => tilld.webhooks.change(id, { url: `${url}/moved` }))
    expect(moved).toMatchObject({ id, url: `${url}/moved` })
    for (const merchantRef of ["delivered 1", "delivered 2"]) {
      yield* Effect.promise(() => tilld.payments.create({ ...order, merchantRef }))
    }
    const all = yield* Effect.promise(async () => {
      const refs: Array<string> = []
      for await (const delivery of tilld.deliveries.listAll({ endpoint: id, limit: 1 })) refs.push(delivery.merchantRef)
      return refs
    })
    expect(all).toEqual(["delivered 2", "delivered 1"])
    const [delivery] = (yield* Effect.promise(() => tilld.deliveries.list({ endpoint: id, status: "pending" }))).data
    const deliveryId = delivery?.id ?? ""
    expect(yield* Effect.promise(() => tilld.deliveries.get(deliveryId))).toMatchObject({
      id: deliveryId,
      attempts: []
    })
    expect(yield* Effect.promise(() => tilld.deliveries.redeliver(deliveryId))).toEqual({
      id: deliveryId,
      result: "due"
    })
    const nothing = { ordered: 0, due: 0, refused: 0, cursor: null }
    expect(yield* Effect.promise(() => tilld.deliveries.redeliverSome({ endpoint: id }))).toEqual(nothing)
    expect(yield* Effect.promise(() => tilld.webhooks.delete(id))).toEqual({ id, deleted: true, cancelled: 2 })
    expect(yield* refusalOf(tilld.deliveries.redeliver(deliveryId))).toMatchObject({ code: "ENDPOINT_DELETED" })
  })

  test("follows exceptions, and decides on them", function* () {
    const tilld = yield* client
    const { id } = yield* Effect.promise(() => tilld.payments.create({ ...order, merchantRef: "late" }))
    const [first, second] = [yield* storeLateMoney(id, 1), yield* storeLateMoney(id, 2)]
    const found = yield* Effect.promise(async () => {
      const ids: Array<string> = []
      for await (const exception of tilld.exceptions.listAll({ payment: id, limit: 1 })) ids.push(exception.id)
      return ids
    })
    expect(found).toEqual([second, first])
    const decision = { action: "refund", txHash: `0x${"a".repeat(64)}`, note: "sent back" } as const
    const refunded = yield* Effect.promise(() => tilld.exceptions.resolve(first, decision))
    expect(refunded).toMatchObject({ id: first, resolution: "refunded", resolutionTxHash: decision.txHash })
    expect(refunded).toMatchObject({ payment: id, merchantRef: "late" })
    expect(yield* Effect.promise(() => tilld.exceptions.get(first))).toEqual(refunded)
    const { data } = yield* Effect.promise(() => tilld.exceptions.list({ status: "resolved", payment: id }))
    expect(data).toEqual([refunded])
    const other = yield* refusalOf(tilld.exceptions.resolve(first, { action: "accept" }))
    expect(other).toMatchObject({ status: 409, code: "EXCEPTION_RESOLVED" })
  })

  test("notes what was sent back of an open payment's money", function* () {
    const tilld = yield* client
    const { amount, id } = yield* Effect.promise(() => tilld.payments.create({ ...order, merchantRef: "sent back" }))
    yield* storeMoneyFor(id, amount)
    const refund = { amount, txHash: `0x${"b".repeat(64)}` }
    const refunded = yield* Effect.promise(() => tilld.payments.refund(id, refund))
    expect(refunded).toMatchObject({ payment: id, status: "noted", ...refund })
    expect(yield* Effect.promise(() => tilld.payments.get(id))).not.toHaveProperty("amountReceived")
    expect(yield* Effect.promise(() => tilld.payments.refund(id, refund))).toEqual(refunded)
    const { data } = yield* Effect.promise(() => tilld.refunds.list({ payment: id }))
    expect(data).toEqual([refunded])
    expect(yield* Effect.promise(() => tilld.refunds.get(refunded.id))).toEqual(refunded)
    const txHash = `0x${"c".repeat(64)}`
    expect(yield* Effect.promise(() => tilld.refunds.name(refunded.id, { txHash }))).toMatchObject({ txHash })
    expect(yield* Effect.promise(() => tilld.refunds.drop(refunded.id))).toMatchObject({ status: "failed" })
  })

  test("gets the same response with the same idempotency key, and uses a random key each time otherwise", function* () {
    const tilld = yield* client
    const input = { ...order, merchantRef: "once" }
    const first = yield* Effect.promise(() => tilld.payments.create(input, { idempotencyKey: "order once" }))
    const again = yield* Effect.promise(() => tilld.payments.create(input, { idempotencyKey: "order once" }))
    expect(again).toEqual(first)
    const refused = yield* refusalOf(tilld.payments.create(input))
    expect(refused).toMatchObject({
      name: "TilldError",
      status: 409,
      code: "DUPLICATE_MERCHANT_REF",
      details: { paymentId: first.id },
      requestId: expect.stringMatching(/^req_/),
      retryAfter: undefined
    })
    const other = yield* refusalOf(tilld.payments.create({ ...input, amount: "1" }, { idempotencyKey: "order once" }))
    expect(other).toMatchObject({ status: 422, code: "IDEMPOTENCY_KEY_REUSED" })
  })

  test("reports the server's message for an invalid request", function* () {
    const tilld = yield* client
    const refused = yield* refusalOf(tilld.payments.create({ ...order, merchantRef: "bad", amount: "1.5" }))
    expect(refused).toMatchObject({ status: 400, code: "VALIDATION_ERROR" })
    expect(refused.message).toMatch(/^The request is not valid: details lists every problem\. amount must be .*unit/)
    expect(refused.details).toEqual([{ path: "amount", message: expect.stringContaining("smallest unit") }])
    const unknown = yield* refusalOf(tilld.payments.get("a/../b?c=d#e"))
    expect(unknown).toMatchObject({
      status: 404,
      message:
        "There is no such payment in this account and mode: its id begins with pay_, and GET /v1/payments?merchantRef= finds one by your reference."
    })
  })

  test("never reveals its key", function* () {
    const { apiKey, baseUrl } = yield* connect
    const wrong = `${apiKey.slice(0, -1)}${apiKey.endsWith("0") ? "1" : "0"}`
    const refused = yield* refusalOf(createClient({ baseUrl, apiKey: wrong }).payments.list())
    expect(refused).toMatchObject({ status: 401, code: "UNAUTHORIZED", requestId: expect.stringMatching(/^req_/) })

    const front = yield* startFront()
    const tilld = createClient({ baseUrl: front.url, apiKey })
    const echo = { code: "BAD_REQUEST", message: `X-API-Key: ${apiKey}`, details: { headers: [apiKey] } }
    front.expect({ status: 400, body: { error: echo } })
    const echoed = yield* refusalOf(tilld.payments.list())
    expect(echoed.message).toBe("X-API-Key: [API key]")
    expect(echoed.details).toEqual({ headers: ["[API key]"] })
    front.expect({ status: 302, headers: { location: `https://elsewhere.example/?key=${apiKey}` } })
    const moved = yield* refusalOf(tilld.payments.list())
    for (const shown of [refused, echoed, moved, tilld]) {
      expect(JSON.stringify(Object.entries(shown))).not.toContain(apiKey)
      expect(String(shown)).not.toContain(apiKey)
    }
    expect(front.seen.length).toBe(2)
    expect(moved.message).toContain("redirect (status 302 to https://elsewhere.example/?key=[API key])")
  })

  it.scoped.each(["", "/", "/shop/pay", "/shop/pay/"])("joins a base URL that ends with %j", (end) =>
    Effect.gen(function* () {
      const front = yield* startFront()
      front.expect({ status: 200, body: { data: [] } })
      const { apiKey } = yield* connect
      yield* Effect.promise(() => createClient({ baseUrl: front.url + end, apiKey }).webhooks.list())
      expect(front.seen.map(({ path }) => path)).toEqual([`${end.replace(/\/$/, "")}/v1/webhooks`])
    })
  )
})
