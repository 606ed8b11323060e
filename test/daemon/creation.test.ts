import { expect } from "@effect/vitest"
import { Array as Arr, Effect } from "effect"
import type { PaymentObject } from "../../src/Domain/Payment.ts"
import { localChain, makeHome, serveHere } from "../lib/daemon.ts"
import { liveTest } from "../lib/scopedTest.ts"

const order = { chain: "base", currency: "USDC", amount: "25000000" } as const

const shop = Effect.gen(function* () {
  const chain = yield* localChain("base")
  return yield* serveHere(yield* makeHome({ chains: new Map([["base", chain]]) }))
})

liveTest("of concurrent requests with one merchantRef one creates a payment, and the rest get its ID", function* () {
  const daemon = yield* shop
  const request = { ...order, merchantRef: "order-4711" }
  const answers = yield* Effect.replicateEffect(
    daemon.call<PaymentObject & { readonly error: unknown }>("POST", "/v1/payments", request),
    50,
    { concurrency: "unbounded" }
  )
  const [made, refused] = Arr.partition(answers, ({ status }) => status !== 201)
  expect(made).toHaveLength(1)
  expect(refused.map(({ status }) => status)).toEqual(Arr.replicate(409, 49))
  for (const { body } of refused) {
    expect(body.error).toMatchObject({ code: "DUPLICATE_MERCHANT_REF", details: { paymentId: made[0]?.body.id } })
  }
  // What was refused took no address.
  const next = yield* daemon.create(order)
  expect([made[0]?.body.address, next.address]).toEqual([daemon.home.address(0), daemon.home.address(1)])
})

interface Quote {
  readonly id: string
  readonly toAmount: string
}

interface Refusal {
  readonly error: { readonly code: string; readonly details?: unknown }
}

/** Base units of an amount of USDC, as a client counts them. */
const units = (amount: string): string => {
  const [whole = "", fraction = ""] = amount.split(".")
  return BigInt(whole + fraction.padEnd(6, "0")).toString()
}

liveTest("a quote locks its rate in for one payment, however many ask for it at once", function* () {
  const daemon = yield* shop
  const request = { fromCurrency: "USD", toCurrency: "USDC", amount: "49.90", chain: "base" }
  // Its gas price comes with the first look at the chain.
  const quote = yield* daemon
    .call<Quote>("POST", "/v1/quotes", request)
    .pipe(Effect.delay("20 millis"), Effect.repeat({ until: ({ status }) => status !== 503 }))
  expect(quote.status).toBe(201)

  const order = (merchantRef: string) => ({
    merchantRef,
    amount: units(quote.body.toAmount),
    currency: "USDC",
    chain: "base",
    quoteId: quote.body.id
  })
  const pay = (merchantRef: string) =>
    daemon.call<Refusal & { readonly id: string }>("POST", "/v1/payments", order(merchantRef))
  const refs = Array.from({ length: 10 }, (_, i) => `order ${i}`)
  const answers = yield* Effect.forEach(refs, pay, { concurrency: "unbounded" })
  const winner = answers.findIndex(({ status }) => status === 201)
  const others = answers.filter((_, i) => i !== winner)
  expect(others.map(({ body, status }) => [status, body.error.code])).toEqual(
    others.map(() => [409, "QUOTE_ALREADY_USED"])
  )

  // A repeated request for the same payment gets the payment's error, and not the quote's.
  const again = yield* pay(`order ${winner}`)
  expect([again.status, again.body.error]).toMatchObject([
    409,
    { code: "DUPLICATE_MERCHANT_REF", details: { paymentId: answers[winner]?.body.id } }
  ])
})
