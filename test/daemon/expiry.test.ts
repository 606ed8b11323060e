import { readFileSync, writeFileSync } from "node:fs"
import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import type { PaymentObject } from "../../src/Domain/Payment.ts"
import { confirmations, localChain, makeHome, mineAt, type Order, pay, serve, story } from "../lib/daemon.ts"
import { makeInbox } from "../lib/inbox.ts"
import { withoutUri } from "../lib/payments.ts"
import { liveTest } from "../lib/scopedTest.ts"

const path = "/hook"
/** The first account of a local chain, which pays. */
const payer = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"

const shop = Effect.gen(function* () {
  const chain = yield* localChain("ethereum")
  const inbox = yield* makeInbox()
  const home = yield* makeHome({ chains: new Map([["ethereum", chain]]), caFile: inbox.caFile })
  const daemon = yield* serve(home)
  const create = (order: Partial<Order> = {}) => {
    const webhookUrl = inbox.url + path
    return daemon.create({ chain: "ethereum", currency: "USDC", amount: "1000", expiresIn: 60, webhookUrl, ...order })
  }
  return { chain, inbox, home, daemon, create }
})

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
    const [, expired] = yield* inbox.take(path, first, "payment.created", "payment.expired")
    expect(expired?.event.data).toEqual({ ...withoutUri(first), status: "expired" })
    expect(yield* daemon.payment(first)).toEqual(expired?.event.data)
    expect(yield* daemon.payment(second)).toEqual(second)

    yield* chain.mine()
    yield* inbox.take(path, second, "payment.created", "payment.expired")
    expect(yield* story(home, first)).toEqual({
      statuses: ["expired"],
      events: ["payment.created", "payment.expired"]
    })
  })

  liveTest("does not expire while blocks are in time, whatever their number", function* () {
    const { chain, create, daemon, inbox } = yield* shop
    const payment = yield* create()
    yield* mineAt(chain, over(payment) - 30, 10 * confirmations)
    yield* mineAt(chain, over(payment) - 1, confirmations - 1)
    yield* daemon.hasRead(chain)
    expect(yield* daemon.payment(payment)).toEqual(payment)
    yield* mineAt(chain, over(payment) + 30, confirmations - 1)
    yield* inbox.take(path, payment, "payment.created", "payment.expired")
  })
})

describe("a payment that is paid", () => {
  const wrongs = [
    { what: "too little", sent: { currency: "USDC", amount: "999" }, failureReason: "insufficient_amount" },
    { what: "another token", sent: { currency: "USDT", amount: "1000" }, failureReason: "wrong_token" },
    { what: "coins instead of a token", sent: { currency: "ETH", amount: "1000" }, failureReason: "wrong_token" }
  ]
  for (const { failureReason, sent, what } of wrongs) {
    liveTest(`${what} fails as ${failureReason} when its time is over, and not before`, function* () {
      const { chain, create, daemon, inbox } = yield* shop
      const payment = yield* create()
      const hash = yield* pay(chain, { ...payment, ...sent })
      yield* mineAt(chain, over(payment) - 1, confirmations - 1)
      yield* daemon.hasRead(chain)
      const isPart = sent.currency === payment.currency
      const received = isPart ? { amountReceived: sent.amount, txHash: hash } : {}
      const ended = { ...withoutUri(payment), ...received, status: "failed", failureReason }
      const left = { amountRemaining: "1", paymentUri: payment.paymentUri?.replace(/uint256=.*/, "uint256=1") }
      const open = { ...payment, ...received, ...(isPart ? { status: "detecting", ...left } : { status: "pending" }) }
      const { amount, currency } = sent
      const exceptionOf = (kind: string) => ({
        exceptions: [expect.objectContaining({ kind, chain: "ethereum", currency, amount, txHash: hash, from: payer })]
      })
      expect(yield* daemon.payment(payment)).toEqual({ ...open, ...(isPart ? {} : exceptionOf("wrong_token")) })

      yield* mineAt(chain, over(payment) + 30, confirmations - 1)
      const detecting = isPart ? (["payment.detecting"] as const) : []
      const events = yield* inbox.take(path, payment, "payment.created", ...detecting, "payment.failed")
      const exception = exceptionOf(isPart ? "underpaid" : "wrong_token")
      expect(events.at(-1)?.event.data).toEqual({ ...ended, ...exception })
      expect(yield* daemon.payment(payment)).toEqual(events.at(-1)?.event.data)
    })
  }

  liveTest("in its last second is confirmed, and one second later expires", function* () {
    const { chain, create, inbox } = yield* shop
    const inTime = yield* create({ expiresIn: 3600 })
    const late = yield* create()
    yield* pay(chain, late)
    yield* mineAt(chain, over(late), confirmations - 1)
    const [, expired] = yield* inbox.take(path, late, "payment.created", "payment.expired")
    const exceptions = [expect.objectContaining({ kind: "late", amount: late.amount, from: payer })]
    expect(expired?.event.data).toEqual({ ...withoutUri(late), status: "expired", exceptions })

    const hash = yield* pay(chain, inTime)
    yield* mineAt(chain, over(inTime) - 1)
    yield* mineAt(chain, over(inTime) + 30, 10 * confirmations)
    const [, , confirmed] = yield* inbox.take(path, inTime, "payment.created", "payment.detecting", "payment.confirmed")
    expect(confirmed?.event.data).toMatchObject({ status: "confirmed", txHash: hash })
  })
})

liveTest(
  "a payment keeps the grace and the tolerance that it was created with, whatever the next start configures",
  function* () {
    const chain = yield* localChain("ethereum")
    const inbox = yield* makeInbox()
    const home = yield* makeHome({ chains: new Map([["ethereum", chain]]), caFile: inbox.caFile })
    const strict = readFileSync(home.config, "utf8")
    const lenient = 'settle_grace = "2 minutes"\ntolerance_bps = 500'
    writeFileSync(home.config, strict.replace('settle_grace = "0 seconds"', lenient))
    const webhookUrl = inbox.url + path
    const order: Order = { chain: "ethereum", currency: "USDC", amount: "1000", expiresIn: 60, webhookUrl }
    const first = yield* serve(home)
    const lenientPayment = yield* first.create(order)
    yield* first.end("SIGTERM")

    writeFileSync(home.config, strict)
    const daemon = yield* serve(home)
    const strictPayment = yield* daemon.create(order)
    for (const payment of [lenientPayment, strictPayment]) yield* pay(chain, { ...payment, amount: "950" })
    yield* mineAt(chain, over(strictPayment), confirmations)
    yield* inbox.take(path, lenientPayment, "payment.created", "payment.detecting", "payment.confirmed")
    const kinds = ["payment.created", "payment.expired"] as const
    const [, expired] = yield* inbox.take(path, strictPayment, ...kinds)
    expect(expired?.event.data.exceptions).toMatchObject([{ kind: "late", amount: "950" }])
  }
)

liveTest("an address that had money before is not assigned, and the log says so", function* () {
  const chain = yield* localChain("ethereum")
  const home = yield* makeHome({ chains: new Map([["ethereum", chain]]) })
  yield* pay(chain, { address: home.address(0), amount: "1", currency: "ETH" })
  yield* pay(chain, { address: home.address(2), amount: "1", currency: "DAI" })
  yield* chain.mine()

  const daemon = yield* serve(home)
  const { logLevel } = yield* daemon.logged("addresses with a history are skipped", { indexes: "0, 2" })
  expect(logLevel).toBe("WARN")
  const order = { chain: "ethereum", currency: "ETH", amount: "1" } as const
  const payments = yield* Effect.replicateEffect(daemon.create(order), 3, { concurrency: 1 })
  expect(payments.map(({ address }) => address)).toEqual([1, 3, 4].map(home.address))
})
