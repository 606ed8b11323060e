import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { getAddress } from "viem"
import { FailureReason, type PaymentObject } from "../../../src/Domain/Payment.ts"
import { problemsIn } from "../../lib/api.ts"
import { type Daemon, story } from "../../lib/daemon.ts"
import { withoutUri } from "../../lib/payments.ts"
import type { Case } from "../Case.ts"
import { create, type Outcome, order, Shop, shopCase } from "../Shop.ts"

export const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

const post = (json: unknown) => Effect.flatMap(Shop, ({ ask }) => ask("POST", "/v1/payments", { json }))

const isRefused = function* (field: string, ...values: ReadonlyArray<unknown>) {
  for (const value of values) {
    const answer = yield* post(order({ [field]: value }))
    expect([answer.status, answer.body.error.code], JSON.stringify(value)).toEqual([400, "VALIDATION_ERROR"])
    expect(Object.keys(problemsIn(answer)), JSON.stringify(value)).toEqual([field])
  }
}

const isRequired = function* (field: string) {
  const answer = yield* post(order({ [field]: undefined }))
  expect([answer.status, problemsIn(answer)]).toEqual([400, { [field]: "is required" }])
}

const fields: ReadonlyArray<Case<Shop>> = [
  shopCase(["2.1 id"], "a string of the form pay_<id>, another one for each payment", function* ({ ask }) {
    const one = yield* create(ask)
    const other = yield* create(ask)
    for (const { id } of [one, other]) expect(id).toMatch(/^pay_[A-Za-z0-9_-]{22,}$/)
    expect(one.id).not.toBe(other.id)
  }),
  shopCase(["2.1 merchantRef", "4.2 merchantRef"], "required, given back, and taken once", function* () {
    yield* isRequired("merchantRef")
    yield* isRefused("merchantRef", "", "x".repeat(129), 5, null)
    const json = order({ merchantRef: "Bestellung 5/ü – 注文" })
    const first = yield* post(json)
    expect([first.status, first.body.merchantRef]).toEqual([201, json.merchantRef])
    const second = yield* post(json)
    expect([second.status, second.body.error.code, second.body.error.details]).toEqual([
      409,
      "DUPLICATE_MERCHANT_REF",
      { paymentId: first.body.id }
    ])
  }),
  shopCase(
    ["2.1 amount", "4.2 amount"],
    "required; a string of digits in the smallest unit, given back as it is",
    function* ({ ask }) {
      yield* isRequired("amount")
      yield* isRefused("amount", 1_000_000, "1.5", "0", "-1", "1e6", "0x10", "", null, String(2n ** 256n))
      for (const amount of ["1", "10000000000000000001", String(2n ** 256n - 1n)]) {
        expect((yield* create(ask, { amount, currency: "ETH" })).amount).toBe(amount)
      }
    }
  ),
  shopCase(
    ["2.1 currency", "4.2 currency", '2.3 "Payment creation accepts the"'],
    "required; ETH, USDC, USDT, DAI or WBTC, and nothing else",
    function* ({ ask }) {
      yield* isRequired("currency")
      yield* isRefused("currency", "MATIC", "USD", "EUR", "usdc", "BTC", "", null, 5)
      for (const currency of ["ETH", "USDC", "USDT", "DAI", "WBTC"]) {
        expect((yield* create(ask, { currency, chain: "ethereum" })).currency).toBe(currency)
      }
    }
  ),
  shopCase(
    ["2.1 chain", "4.2 chain"],
    "required; ethereum, polygon, arbitrum, optimism or base, and nothing else",
    function* ({ ask }) {
      yield* isRequired("chain")
      yield* isRefused("chain", "solana", "Base", "", null, 1)
      for (const chain of ["ethereum", "polygon", "arbitrum", "optimism", "base"]) {
        expect((yield* create(ask, { chain })).chain).toBe(chain)
      }
    }
  ),
  shopCase(
    ["2.1 status", "3 pending", '3 "A newly created payment"', '4.2 "Response: a Payment object"'],
    "a new payment has every field of the interface and is pending; decided: and what a wallet needs to pay it",
    function* ({ chain }) {
      const { chainId, tokens } = chain("base")
      const tokenContract = getAddress(tokens.USDC?.address ?? expect.fail("no USDC"))
      const json = order({ metadata: { a: 1 } })
      const { body, status } = yield* post(json)
      expect(status).toBe(201)
      expect(body).toEqual({
        ...json,
        id: expect.any(String),
        address: expect.stringMatching(/^0x[0-9a-fA-F]{40}$/),
        status: "pending",
        checkoutUrl: expect.stringMatching(/^http:\/\/127\.0\.0\.1\/pay\/[A-Za-z0-9_-]{30}$/),
        createdAt: expect.any(String),
        expiresAt: expect.any(String),
        ...{ received: "0", refunded: "0", kept: "0" },
        tokenContract,
        chainId,
        decimals: 6,
        paymentUri: `ethereum:${tokenContract}@${chainId}/transfer?address=${body.address}&uint256=1000000`
      })
    }
  ),
  shopCase(
    ["2.1 createdAt", "2.1 expiresAt", "4.2 expiresIn", "8 Payment expiry default (expiresIn)"],
    "ISO 8601 in UTC; expiresIn seconds later, 3600 unless given",
    function* ({ ask }) {
      for (const [expiresIn, seconds] of [
        [undefined, 3600],
        [60, 60],
        [4_000, 4_000],
        [86_400, 86_400]
      ] as const) {
        const { body, headers } = yield* ask("POST", "/v1/payments", { json: order({ expiresIn }) })
        expect(body.createdAt).toMatch(isoTime)
        expect(body.expiresAt).toMatch(isoTime)
        expect(Date.parse(body.expiresAt) - Date.parse(body.createdAt)).toBe(seconds * 1000)
        // The answer's own date is in whole seconds.
        expect(Math.abs(Date.parse(body.createdAt) - Date.parse(String(headers.date)))).toBeLessThan(2_000)
      }
    }
  ),
  shopCase(
    ['8 "The response when a"'],
    "decided: expiresIn is an integer from 60 to 86400 (rate limits: another case)",
    () => isRefused("expiresIn", 59, 86_401, 60.5, "60", null, -1)
  ),
  shopCase(
    ["2.1 metadata", "4.2 metadata"],
    "an object, returned as given by every way that shows the payment, {} when there is none",
    function* ({ ask, paid }) {
      yield* isRefused("metadata", [], "x", 5, null)
      const { created, events, read } = yield* paid
      const metadata = { cart: ["ünïcödé 💶", 1.5, null, { nested: true }], "": "" }
      for (const payment of [created, ...read, ...events.map(({ event }) => event.data)]) {
        expect(JSON.stringify(payment.metadata)).toBe(JSON.stringify(metadata))
      }
      expect((yield* create(ask)).metadata).toEqual({})
    }
  )
]

const creation: ReadonlyArray<Case<Shop>> = [
  shopCase(
    ['4.2 "POST /v1/payments"', '4.2 "Request body"'],
    "accepts only the listed fields, and reports all problems at once",
    function* () {
      const empty = yield* post({})
      expect([empty.status, problemsIn(empty)]).toEqual([
        400,
        Object.fromEntries(["merchantRef", "amount", "currency", "chain"].map((field) => [field, "is required"]))
      ])
      const other = yield* post({ ...order(), description: "x", amount: 5 })
      expect(Object.keys(problemsIn(other)).sort()).toEqual(["amount", "description"])
    }
  ),
  shopCase(
    ['2.1 "The fields webhookUrl and"', "4.2 webhookUrl", "4.2 redirectUrl"],
    "optional and accepted; the create response and events show neither; webhookUrl gets the payment's events; decided: reading the payment shows redirectUrl",
    function* ({ paid }) {
      const { created, events, read } = yield* paid
      for (const payment of [created, ...events.map(({ event }) => event.data)]) {
        expect(payment).not.toHaveProperty("webhookUrl")
        expect(payment).not.toHaveProperty("redirectUrl")
      }
      for (const payment of read) {
        expect(payment).not.toHaveProperty("webhookUrl")
        expect(payment).toHaveProperty("redirectUrl", "https://shop.example/thanks")
      }
      expect(events.map(({ request }) => request.path)).toEqual(["/own", "/own", "/own"])
      yield* isRefused("webhookUrl", "http://shop.example", "shop.example", 5, null)
      yield* isRefused("redirectUrl", "http://shop.example", "/thanks", "javascript:alert(1)", null)
    }
  )
]

const reading: ReadonlyArray<Case<Shop>> = [
  shopCase(
    ['4.3 "GET /v1/payments/:id where :id"', '4.3 "Response: a Payment object"'],
    "the payment as it is now; 404 for any other id",
    function* ({ ask }) {
      const payment = yield* create(ask)
      const found = yield* ask("GET", `/v1/payments/${payment.id}`)
      expect([found.status, found.body]).toEqual([200, payment])
      for (const id of [`${payment.id}x`, "nonsense", "%ff"]) {
        const { body, status } = yield* ask("GET", `/v1/payments/${id}`)
        expect([status, body.error.code]).toEqual([404, "NOT_FOUND"])
      }
    }
  )
]

const life: ReadonlyArray<Case<Shop>> = [
  shopCase(
    ["3 detecting", "3 confirmed", "2.1 txHash", "2.1 confirmedAt"],
    "a transfer that pays it is detected, and confirmed with its hash and the time when it is deep enough",
    function* ({ paid }) {
      const { created, read, txHash } = yield* paid
      const [pending, detecting, confirmed] = read
      const redirectUrl = "https://shop.example/thanks"
      expect(pending).toEqual({ ...created, redirectUrl })
      const { amount, chain, currency } = created
      const receipt = { txHash, chain, currency, amount, kind: "credited" }
      const received = {
        ...{ ...withoutUri(created), redirectUrl, amountReceived: amount, received: amount, kept: amount, txHash },
        receipts: [expect.objectContaining(receipt)]
      }
      expect(detecting).toEqual({ ...received, status: "detecting" })
      const confirmedAt = expect.stringMatching(isoTime)
      expect(confirmed).toEqual({ ...received, status: "confirmed", confirmedAt })
      expect(txHash).toMatch(/^0x[0-9a-f]{64}$/)
    }
  ),
  shopCase(["3 expired"], "its window ended and nothing came, also the default one of an hour", function* ({ over }) {
    const { unpaid, unpaidDefault } = (yield* over).outcomes
    const expired = (payment: PaymentObject) => ({ ...withoutUri(payment), status: "expired" })
    expect(unpaid.read).toEqual([expired(unpaid.created)])
    expect(unpaidDefault.read).toEqual([unpaidDefault.created, expired(unpaidDefault.created)])
  }),
  shopCase(
    ["3 failed", '2.1 "A field failureReason is"', '2.1 "Its type, allowed values"'],
    "decided: failureReason is a string and there when the payment has failed, or was cancelled, and only then",
    function* ({ ask, over, paid }) {
      const { chain, short, token, unpaid } = (yield* over).outcomes
      const last = (read: ReadonlyArray<object>) => read.at(-1)
      expect(last(short.read)).toMatchObject({ status: "failed", failureReason: "insufficient_amount" })
      expect(last(token.read)).toMatchObject({ status: "failed", failureReason: "wrong_token" })
      expect(last(chain.read)).toMatchObject({ status: "failed", failureReason: "wrong_chain" })
      for (const payment of [...unpaid.read, ...(yield* paid).read]) expect(payment).not.toHaveProperty("failureReason")
      const cancelled = yield* ask("POST", `/v1/payments/${(yield* create(ask)).id}/cancel`)
      expect(cancelled.body).toMatchObject({ status: "expired", failureReason: "cancelled" })
      const allowed = ["insufficient_amount", "wrong_token", "wrong_chain", "reorged", "abandoned", "cancelled"]
      expect(FailureReason.literals).toEqual(allowed)
    }
  ),
  shopCase(
    ['3 "Payment status values"', '3 "Transitions: not shown"'],
    "decided: pending to detecting to confirmed or failed, pending to expired or failed",
    function* ({ daemon, over, paid }) {
      const ended = yield* over
      const { short, token, unpaid } = ended.outcomes
      const statuses = (where: Daemon, { created }: Outcome) =>
        Effect.map(story(where.home, created), (shown) => shown.statuses)
      expect(yield* statuses(daemon, yield* paid)).toEqual(["detecting", "confirmed"])
      expect(yield* statuses(ended.daemon, unpaid)).toEqual(["expired"])
      expect(yield* statuses(ended.daemon, short)).toEqual(["detecting", "failed"])
      expect(yield* statuses(ended.daemon, token)).toEqual(["failed"])
    }
  )
]

export const payment: ReadonlyArray<Case<Shop>> = [...fields, ...creation, ...reading, ...life]
