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
