import { expect } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { StatusEventKind } from "../../src/Domain/Event.ts"
import { verifySignature } from "../../src/Sandbox/Receiver.ts"
import { confirmations, type Daemon, FiveChains, makeHome, type Order, pay, rows, serve } from "../lib/daemon.ts"
import { type Delivered, type Inbox, makeInbox } from "../lib/inbox.ts"
import { withoutUri } from "../lib/payments.ts"
import { liveSuite } from "../lib/scopedTest.ts"
import { tilldJson } from "../lib/tilld.ts"

const endpointSecret = "whsec_a-secret-of-the-merchant"

/** One shop for the whole suite: a daemon on five chains, and an endpoint that takes every event. */
class Shop extends Context.Tag("test/Shop")<
  Shop,
  { readonly daemon: Daemon; readonly inbox: Inbox; readonly ownSecret: string }
>() {
  static readonly layer = Layer.scoped(
    Shop,
    Effect.gen(function* () {
      const inbox = yield* makeInbox()
      const daemon = yield* serve(yield* makeHome({ chains: yield* FiveChains, caFile: inbox.caFile }))
      const { status } = yield* daemon.call("POST", "/v1/webhooks", {
        url: `${inbox.url}/endpoint`,
        events: StatusEventKind.literals,
        secret: endpointSecret
      })
      expect(status).toBe(201)
      const asked = ["webhooks", "secret", "--mode", "test", "--config", daemon.home.config]
      const { secret } = yield* tilldJson<{ secret: string }>(asked)
      return { daemon, inbox, ownSecret: secret }
    })
  )
}

const chainOf = (order: Pick<Order, "chain">) =>
  Effect.map(FiveChains, (chains) => chains.get(order.chain) ?? expect.fail(`no chain ${order.chain}`))

/** Every event as it must be: signed, and byte for byte what the store holds. */
const checkDeliveries = (daemon: Daemon, deliveries: ReadonlyArray<Delivered>, secret: string) =>
  Effect.gen(function* () {
    for (const { event, request } of deliveries) {
      expect(verifySignature(request, secret), request.body.toString("utf8")).toBe(true)
      expect(request.headers["webhook-id"]).toBe(event.id)
      const [stored] = yield* rows<{ body: string }>(daemon.home, "SELECT body FROM events WHERE id = ?", event.id)
      expect(request.body.toString("utf8")).toBe(stored?.body)
    }
  })

const orders: ReadonlyArray<Order> = [
  { chain: "ethereum", currency: "ETH", amount: "10000000000000000" },
  { chain: "ethereum", currency: "WBTC", amount: "150000" },
  { chain: "polygon", currency: "USDC", amount: "25000000" },
  { chain: "polygon", currency: "USDT", amount: "1" },
  { chain: "arbitrum", currency: "USDT", amount: "25000000" },
  { chain: "arbitrum", currency: "ETH", amount: "1" },
  { chain: "optimism", currency: "DAI", amount: "25000000000000000000" },
  { chain: "base", currency: "USDC", amount: "999999999999" },
  { chain: "base", currency: "ETH", amount: "2000000000000000001" }
]

liveSuite(Layer.provideMerge(Shop.layer, FiveChains.layer), "a payment", (test) => {
  for (const order of orders) {
    test(`in ${order.currency} on ${order.chain} is confirmed by the transaction that paid it`, function* () {
      const { daemon, inbox, ownSecret } = yield* Shop
      const chain = yield* chainOf(order)
      const metadata = { cart: ["ünïcödé 💶", 1.5, null] }
      const payment = yield* daemon.create({ ...order, metadata, webhookUrl: `${inbox.url}/own` })
      expect(payment).toMatchObject({ ...order, metadata, status: "pending" })

      const hash = yield* pay(chain, payment)
      yield* chain.mine()
      const paths = ["/endpoint", "/own"] as const
      const seen = yield* Effect.all(
        paths.map((path) => inbox.take(path, payment, "payment.created", "payment.detecting")),
        { concurrency: "unbounded" }
      )
      yield* chain.mine(confirmations - 2)
      yield* daemon.hasRead(chain)
      expect((yield* daemon.payment(payment)).status).toBe("detecting")
      yield* chain.mine()
      const confirmed = yield* Effect.all(
        paths.map((path) => inbox.take(path, payment, "payment.confirmed")),
        { concurrency: "unbounded" }
      )
      yield* checkDeliveries(daemon, [seen[0] ?? [], confirmed[0] ?? []].flat(), endpointSecret)
      yield* checkDeliveries(daemon, [seen[1] ?? [], confirmed[1] ?? []].flat(), ownSecret)

      const [created, detecting] = seen[0] ?? []
      const last = confirmed[0]?.[0]
      expect(created?.event.data).toEqual(payment)
      const { amount, chain: on, currency } = order
      const paid = {
        ...{ ...withoutUri(payment), txHash: hash, amountReceived: amount, received: amount, kept: amount },
        receipts: [expect.objectContaining({ txHash: hash, chain: on, currency, amount, kind: "credited" })]
      }
      expect(detecting?.event.data).toEqual({ ...paid, status: "detecting" })
      expect(last?.event.data).toEqual({ ...paid, status: "confirmed", confirmedAt: last?.event.createdAt })
      expect(yield* daemon.payment(payment)).toEqual(last?.event.data)
    })
  }
})
