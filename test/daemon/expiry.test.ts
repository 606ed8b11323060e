import { readFileSync, writeFileSync } from "node:fs"
import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import type { PaymentObject } from "../../src/Domain/Payment.ts"
import { confirmations, homeOn, mineAt, type Order, pay, serveHere, story } from "../lib/daemon.ts"
import { makeInbox } from "../lib/inbox.ts"
import { withoutUri } from "../lib/payments.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { hookPath, hookShopHere } from "./hookShop.ts"

const shop = hookShopHere("ethereum", { amount: "1000", expiresIn: 60 })

/** The first second in which the payment is over. */
const over = ({ expiresAt }: PaymentObject) => Math.floor(Date.parse(expiresAt) / 1000) + 1

describe("a payment that no one pays", () => {
  liveTest("expires with the block that confirms the first one past its time, by the chain's clock", function* () {
    const { chain, create, daemon, home, inbox } = yield* shop
    const first = yield* create()
    const second = yield* create({ expiresIn: 120 })
    // A block past the time of the first, one past that of the second, and one more: the former has its confirmations.
    yield* mineAt(chain, over(first))
    yield* mineAt(chain, over(second), confirmations - 2)
    const [, expired] = yield* inbox.take(hookPath, first, "payment.created", "payment.expired")
    expect(expired?.event.data).toEqual({ ...withoutUri(first), status: "expired" })
    expect(yield* daemon.payment(first)).toEqual(expired?.event.data)
    expect(yield* daemon.payment(second)).toEqual(second)

    yield* chain.mine()
    yield* inbox.take(hookPath, second, "payment.created", "payment.expired")
    expect(yield* story(home, first)).toEqual({
      statuses: ["expired"],
      events: ["payment.created", "payment.expired"]
    })
  })
})

liveTest(
  "a payment keeps the grace and the tolerance that it was created with, whatever the next start configures",
  function* () {
    const inbox = yield* makeInbox()
    const { chain, home } = yield* homeOn("ethereum", { caFile: inbox.caFile })
    const strict = readFileSync(home.config, "utf8")
    const lenient = 'settle_grace = "2 minutes"\ntolerance_bps = 500'
    writeFileSync(home.config, strict.replace('settle_grace = "0 seconds"', lenient))
    const webhookUrl = inbox.url + hookPath
    const order: Order = { chain: "ethereum", currency: "USDC", amount: "1000", expiresIn: 60, webhookUrl }
    const first = yield* serveHere(home)
    const lenientPayment = yield* first.create(order)
    yield* first.end("SIGTERM")

    writeFileSync(home.config, strict)
    const daemon = yield* serveHere(home)
    const strictPayment = yield* daemon.create(order)
    for (const payment of [lenientPayment, strictPayment]) yield* pay(chain, { ...payment, amount: "950" })
    yield* mineAt(chain, over(strictPayment), confirmations)
    yield* inbox.take(hookPath, lenientPayment, "payment.created", "payment.detecting", "payment.confirmed")
    const kinds = ["payment.created", "payment.expired"] as const
    const [, expired] = yield* inbox.take(hookPath, strictPayment, ...kinds)
    expect(expired?.event.data.exceptions).toMatchObject([{ kind: "late", amount: "950" }])
  }
)

liveTest("an address that had money before is not assigned, and the log says so", function* () {
  const { chain, home } = yield* homeOn("ethereum")
  yield* pay(chain, { address: home.address(0), amount: "1", currency: "ETH" })
  yield* pay(chain, { address: home.address(2), amount: "1", currency: "DAI" })
  yield* chain.mine()

  const daemon = yield* serveHere(home)
  const { logLevel } = yield* daemon.logged("addresses with a history are skipped", { indexes: "0, 2" })
  expect(logLevel).toBe("WARN")
  const order = { chain: "ethereum", currency: "ETH", amount: "1" } as const
  const payments = yield* Effect.replicateEffect(daemon.create(order), 3, { concurrency: 1 })
  expect(payments.map(({ address }) => address)).toEqual([1, 3, 4].map(home.address))
})
