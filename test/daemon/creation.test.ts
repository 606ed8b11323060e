import { expect } from "@effect/vitest"
import { Array as Arr, Effect } from "effect"
import type { PaymentObject } from "../../src/Domain/Payment.ts"
import { localChain, makeHome, serve } from "../lib/daemon.ts"
import { liveTest } from "../lib/scopedTest.ts"

const order = { chain: "base", currency: "USDC", amount: "25000000" } as const

const shop = Effect.gen(function* () {
  const chain = yield* localChain("base")
  return yield* serve(yield* makeHome({ chains: new Map([["base", chain]]) }))
})

const byText = (a: string, b: string) => (a < b ? -1 : 1)

liveTest("200 concurrent payments get 200 addresses: the wallet's first 200, and none twice", function* () {
  const daemon = yield* shop
  const payments = yield* Effect.replicateEffect(daemon.create(order), 200, { concurrency: "unbounded" })
  const wallet = Arr.makeBy(200, daemon.home.address)
  expect(payments.map(({ address }) => address).sort(byText)).toEqual(wallet.toSorted(byText))
  expect(new Set(payments.map(({ id }) => id)).size).toBe(200)
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
