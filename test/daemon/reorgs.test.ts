import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import type { PaymentObject } from "../../src/Domain/Payment.ts"
import { confirmations, localChain, makeHome, mineAt, type Order, pay, serve, story } from "../lib/daemon.ts"
import { makeInbox } from "../lib/inbox.ts"
import { withoutUri } from "../lib/payments.ts"
import { liveTest } from "../lib/scopedTest.ts"

const path = "/hook"

/** A shop on a chain of its own. */
const shop = Effect.gen(function* () {
  const chain = yield* localChain("base")
  const inbox = yield* makeInbox()
  const daemon = yield* serve(yield* makeHome({ chains: new Map([["base", chain]]), caFile: inbox.caFile }))
  const create = (order: Omit<Order, "chain">) =>
    daemon.create({ ...order, chain: "base", webhookUrl: inbox.url + path })
  return { chain, inbox, daemon, create }
})

const ether = { currency: "ETH", amount: "10000000000000000" }
const usdc = { currency: "USDC", amount: "25000000" }

/** A payment whose transfer is in the last block but one. */
const detectedPayment = Effect.fn("detectedPayment")(function* (order: Omit<Order, "chain">) {
  const { chain, create, daemon, inbox } = yield* shop
  const payment = yield* create(order)
  const hash = yield* pay(chain, payment)
  const raw = yield* chain.rawTransaction(hash)
  yield* chain.mine(2)
  yield* inbox.take(path, payment, "payment.created", "payment.detecting")
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
      const [, confirmed] = yield* inbox.take(path, payment, "payment.detecting", "payment.confirmed")
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

  liveTest("that moves a payment to a later block is not news to the merchant", function* () {
    const { chain, daemon, hash, inbox, payment, raw } = yield* detectedPayment(usdc)
    yield* daemon.signal("SIGSTOP")
    yield* chain.reorg(2)
    yield* chain.sendRaw(raw)
    yield* chain.mine()
    yield* daemon.signal("SIGCONT")
    yield* daemon.hasRead(chain)
    expect((yield* daemon.payment(payment)).status).toBe("detecting")

    yield* chain.mine(confirmations - 1)
    const [confirmed] = yield* inbox.take(path, payment, "payment.confirmed")
    expect(confirmed?.event.data).toMatchObject({ txHash: hash })
    expect(yield* story(daemon.home, payment)).toEqual({
      statuses: ["detecting", "confirmed"],
      events: ["payment.created", "payment.detecting", "payment.confirmed"]
    })
  })

  liveTest("drops a payment for good: it is pending again, and expires in the end", function* () {
    const { chain, daemon, inbox, payment } = yield* detectedPayment({ ...usdc, expiresIn: 60 })
    yield* chain.reorg(2)
    yield* daemon.hasRead(chain)
    expect(yield* daemon.payment(payment)).toEqual(payment)
    const { body } = yield* daemon.call<{ data: ReadonlyArray<PaymentObject> }>("GET", "/v1/payments?status=pending")
    expect(body.data).toEqual([payment])

    yield* mineAt(chain, Math.floor(Date.parse(payment.expiresAt) / 1000) + 1, confirmations - 1)
    const [expired] = yield* inbox.take(path, payment, "payment.expired")
    expect(expired?.event.data).toEqual({ ...withoutUri(payment), status: "expired" })
  })

  liveTest(
    "under a payment that was not paid yet lets it be paid in a block of a number that is read already",
    function* () {
      const { chain, create, daemon, inbox } = yield* shop
      const before = yield* chain.snapshot
      const first = yield* create(ether)
      yield* chain.mine(2)
      yield* daemon.hasRead(chain)
      const payment = yield* create(usdc)

      yield* daemon.signal("SIGSTOP")
      yield* chain.revert(before)
      const hash = yield* pay(chain, payment)
      yield* chain.mine(confirmations)
      yield* daemon.signal("SIGCONT")
      const paid = yield* inbox.take(path, payment, "payment.created", "payment.detecting", "payment.confirmed")
      expect(paid[2]?.event.data).toMatchObject({ txHash: hash })
      expect((yield* daemon.payment(first)).status).toBe("pending")
    }
  )
})

liveTest(
  "a confirmed payment that a deeper reorg drops and mines again stays confirmed, and is not announced again",
  function* () {
    const { chain, create, daemon, inbox, payment, raw } = yield* detectedPayment(ether)
    yield* chain.mine(confirmations - 2)
    const [confirmed] = yield* inbox.take(path, payment, "payment.confirmed")
    yield* daemon.signal("SIGSTOP")
    yield* chain.reorg(confirmations)
    yield* chain.sendRaw(raw)
    yield* chain.mine(confirmations)
    yield* daemon.signal("SIGCONT")
    yield* create(ether)
    yield* daemon.hasRead(chain)
    expect(yield* daemon.payment(payment)).toEqual(confirmed?.event.data)
    expect(yield* story(daemon.home, payment)).toEqual({
      statuses: ["detecting", "confirmed"],
      events: ["payment.created", "payment.detecting", "payment.confirmed"]
    })
  }
)
