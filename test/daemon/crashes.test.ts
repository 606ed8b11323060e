import { describe, expect } from "@effect/vitest"
import { Array as Arr, Effect } from "effect"
import type { PaymentObject } from "../../src/Domain/Payment.ts"
import { confirmations, type Daemon, type Home, pay, rows, serve, story } from "../lib/daemon.ts"
import type { Delivered } from "../lib/inbox.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { hookPath, hookShop } from "./hookShop.ts"

const shop = hookShop("base")

const kill = (daemon: Daemon) => Effect.map(daemon.end("SIGKILL"), ({ signal }) => expect(signal).toBe("SIGKILL"))

const confirmedOnce = {
  statuses: ["detecting", "confirmed"],
  events: ["payment.created", "payment.detecting", "payment.confirmed"]
}

const bytes = ({ request }: Delivered) => request.body.toString("utf8")

/** The bytes of a payment's events, as they were committed. */
const committed = (home: Home, { id }: PaymentObject) =>
  Effect.map(
    rows<{ body: string }>(home, "SELECT body FROM events WHERE payment_id = ? ORDER BY created_at, sequence", id),
    (events) => events.map(({ body }) => body)
  )

describe("a daemon that is killed", () => {
  liveTest("between payment and confirmation confirms the payment once when it is back", function* () {
    const { chain, create, daemon, home, inbox } = yield* shop
    const payment = yield* create()
    const hash = yield* pay(chain, payment)
    yield* chain.mine()
    yield* inbox.take(hookPath, payment, "payment.created", "payment.detecting")
    yield* kill(daemon)
    yield* chain.mine(confirmations - 1)

    const back = yield* serve(home, daemon.key)
    const [confirmed] = yield* inbox.take(hookPath, payment, "payment.confirmed")
    expect(confirmed?.event.data).toMatchObject({ status: "confirmed", txHash: hash })
    expect(yield* back.payment(payment)).toEqual(confirmed?.event.data)
    expect(yield* story(home, payment)).toEqual(confirmedOnce)
  })

  liveTest("while a receiver holds its answer delivers the event again, with the same id and bytes", function* () {
    const { create, daemon, home, inbox } = yield* shop
    yield* inbox.behave(() => Effect.never)
    const payment = yield* create()
    const [before] = yield* inbox.take(hookPath, payment, "payment.created")
    yield* kill(daemon)

    yield* inbox.behave(() => 204)
    yield* serve(home, daemon.key)
    const after = yield* inbox.next(hookPath, payment)
    expect(after.request.headers["webhook-id"]).toBe(before?.request.headers["webhook-id"])
    expect([before, after].map((delivery) => delivery && bytes(delivery))).toEqual(
      Arr.replicate((yield* committed(home, payment))[0], 2)
    )
  })

  liveTest("while payments are created keeps every acknowledged one, and assigns no address twice", function* () {
    const { create, daemon, home } = yield* shop
    const acknowledged: Array<PaymentObject> = []
    const burst = Effect.tap(create({ webhookUrl: "https://127.0.0.1:1/" }), (payment) =>
      Effect.suspend(() => (acknowledged.push(payment) === 40 ? daemon.signal("SIGKILL") : Effect.void))
    )
    yield* Effect.exit(Effect.replicateEffect(burst, 400, { concurrency: 16 }))
    yield* daemon.ended

    const back = yield* serve(home, daemon.key)
    for (const payment of acknowledged) expect(yield* back.payment(payment)).toEqual(payment)
    const next = yield* Effect.replicateEffect(back.create({ chain: "base", currency: "ETH", amount: "1" }), 20, {
      concurrency: "unbounded"
    })
    const given = [...acknowledged, ...next].map(({ address }) => address)
    expect(new Set(given).size).toBe(given.length)
    const stored = yield* rows<{ address: string }>(home, "SELECT address FROM payments ORDER BY wallet_index")
    expect(stored.map(({ address }) => address)).toEqual(Arr.makeBy(stored.length, home.address))
  })
})

describe("while the daemon is down", () => {
  liveTest("a payment is paid: it is confirmed at the next start, detected first", function* () {
    const { chain, create, daemon, home, inbox } = yield* shop
    const payment = yield* create()
    yield* inbox.take(hookPath, payment, "payment.created")
    yield* daemon.end("SIGTERM")
    const hash = yield* pay(chain, payment)
    yield* chain.mine(30)

    yield* serve(home, daemon.key)
    const [detecting, confirmed] = yield* inbox.take(hookPath, payment, "payment.detecting", "payment.confirmed")
    expect(detecting?.event.data).toMatchObject({ status: "detecting", txHash: hash })
    expect(confirmed?.event.data).toMatchObject({ status: "confirmed", txHash: hash })
    expect(yield* story(home, payment)).toEqual(confirmedOnce)
  })
})
