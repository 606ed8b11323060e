import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { FiveChains, makeHome, serve } from "../lib/daemon.ts"
import { liveSuite } from "../lib/scopedTest.ts"

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

liveSuite(FiveChains.layer, "a quote", (test) => {
  test("locks its rate in for one payment, however many ask for it at once", function* () {
    const daemon = yield* serve(yield* makeHome({ chains: yield* FiveChains }))
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
})
