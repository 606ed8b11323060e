import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import type { PaymentObject } from "../../src/Domain/Payment.ts"
import { confirmations, mineAt, type Order, pay, story } from "../lib/daemon.ts"
import { withoutUri } from "../lib/payments.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { hookPath, hookShopHere } from "./hookShop.ts"

const shop = hookShopHere("base")

const ether = { currency: "ETH", amount: "10000000000000000" }
const usdc = { currency: "USDC", amount: "25000000" }

/** A payment whose transfer is in the last block but one. */
const detectedPayment = Effect.fn("detectedPayment")(function* (order: Omit<Order, "chain">) {
  const { chain, create, daemon, inbox } = yield* shop
  const payment = yield* create(order)
  const hash = yield* pay(chain, payment)
  const raw = yield* chain.rawTransaction(hash)
  yield* chain.mine(2)
  yield* inbox.take(hookPath, payment, "payment.created", "payment.detecting")
  return { chain, create, daemon, inbox, payment, hash, raw }
})

describe("a two-block reorg", () => {
  for (const order of [ether, usdc]) {
    liveTest(`drops a payment in ${order.currency}, which is confirmed once when it is mined again`, function* () {
      const { chain, create, daemon, hash, inbox, payment, raw } = yield* detectedPayment(order)
      yield* chain.reorg(2)
      yield* daemon.hasRead(chain)
      expect(yield* daemon.payment(payment)).toEqual(payment)

      yield* chain.sendRaw(raw)
      yield* chain.mine(confirmations)
      const [, confirmed] = yield* inbox.take(hookPath, payment, "payment.detecting", "payment.confirmed")
      expect(confirmed?.event.data).toMatchObject({ status: "confirmed", txHash: hash, amountReceived: order.amount })
      expect(yield* daemon.payment(payment)).toEqual(confirmed?.event.data)

      // Another open payment keeps the daemon reading.
      yield* create(order)
      yield* chain.mine(confirmations)
      yield* daemon.hasRead(chain)
      expect(yield* story(daemon.home, payment)).toEqual({
        statuses: ["detecting", "pending", "detecting", "confirmed"],
        events: ["payment.created", "payment.detecting", "payment.detecting", "payment.confirmed"]
      })
    })
  }

  liveTest("drops a payment for good: it is pending again, and expires in the end", function* () {
    const { chain, daemon, inbox, payment } = yield* detectedPayment({ ...usdc, expiresIn: 60 })
    yield* chain.reorg(2)
    yield* daemon.hasRead(chain)
    expect(yield* daemon.payment(payment)).toEqual(payment)
    const { body } = yield* daemon.call<{ data: ReadonlyArray<PaymentObject> }>("GET", "/v1/payments?status=pending")
    expect(body.data).toEqual([payment])

    yield* mineAt(chain, Math.floor(Date.parse(payment.expiresAt) / 1000) + 1, confirmations - 1)
    const [expired] = yield* inbox.take(hookPath, payment, "payment.expired")
    expect(expired?.event.data).toEqual({ ...withoutUri(payment), status: "expired" })
  })
})
