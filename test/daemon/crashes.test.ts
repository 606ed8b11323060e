import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect } from "@effect/vitest"
import { Array as Arr, Deferred, Effect } from "effect"
import type { PaymentObject } from "../../src/Domain/Payment.ts"
import { makeAuthority } from "../../src/Sandbox/Authority.ts"
import {
  confirmations,
  type Daemon,
  type Home,
  localChain,
  makeHome,
  mineAt,
  type Order,
  pay,
  rows,
  serve,
  story
} from "../lib/daemon.ts"
import { type Delivered, makeInbox } from "../lib/inbox.ts"
import { liveTest } from "../lib/scopedTest.ts"
import { silentListener } from "../lib/silentListener.ts"
import { temporaryFolder } from "../lib/store.ts"

const path = "/hook"

const shop = Effect.gen(function* () {
  const chain = yield* localChain("base")
  const inbox = yield* makeInbox()
  const home = yield* makeHome({ chains: new Map([["base", chain]]), caFile: inbox.caFile })
  const daemon = yield* serve(home)
  const create = (order: Partial<Order> = {}) =>
    daemon.create({ chain: "base", currency: "USDC", amount: "25000000", webhookUrl: inbox.url + path, ...order })
  return { chain, inbox, home, daemon, create }
})

const kill = (daemon: Daemon) => Effect.map(daemon.end("SIGKILL"), ({ signal }) => expect(signal).toBe("SIGKILL"))

const confirmedOnce = {
  statuses: ["detecting", "confirmed"],
  events: ["payment.created", "payment.detecting", "payment.confirmed"]
}

/** The last second in which the payment can be paid. */
const deadline = ({ expiresAt }: PaymentObject) => Math.floor(Date.parse(expiresAt) / 1000)

const bytes = ({ request }: Delivered) => request.body.toString("utf8")

/** The bytes of a payment's events, as they were committed. */
const committed = (home: Home, { id }: PaymentObject) =>
  Effect.map(
    rows<{ body: string }>(home, "SELECT body FROM events WHERE payment_id = ? ORDER BY created_at, rowid", id),
    (events) => events.map(({ body }) => body)
  )

describe("a daemon that is killed", () => {
  liveTest("between payment and confirmation confirms the payment once when it is back", function* () {
    const { chain, create, daemon, home, inbox } = yield* shop
    const payment = yield* create()
    const hash = yield* pay(chain, payment)
    yield* chain.mine()
    yield* inbox.take(path, payment, "payment.created", "payment.detecting")
    yield* kill(daemon)
    yield* chain.mine(confirmations - 1)

    const back = yield* serve(home, daemon.key)
    const [confirmed] = yield* inbox.take(path, payment, "payment.confirmed")
    expect(confirmed?.event.data).toMatchObject({ status: "confirmed", txHash: hash })
    expect(yield* back.payment(payment)).toEqual(confirmed?.event.data)
    expect(yield* story(home, payment)).toEqual(confirmedOnce)
  })

  liveTest("while a receiver holds its answer delivers the event again, with the same id and bytes", function* () {
    const { create, daemon, home, inbox } = yield* shop
    yield* inbox.behave(() => Effect.never)
    const payment = yield* create()
    const [before] = yield* inbox.take(path, payment, "payment.created")
    yield* kill(daemon)

    yield* inbox.behave(() => 204)
    yield* serve(home, daemon.key)
    const after = yield* inbox.next(path, payment)
    expect(after.request.headers["webhook-id"]).toBe(before?.request.headers["webhook-id"])
    expect([before, after].map((delivery) => delivery && bytes(delivery))).toEqual(
      Arr.replicate((yield* committed(home, payment))[0], 2)
    )
  })

  liveTest("before it reached the receiver delivers what it had committed", function* () {
    const listener = yield* silentListener()
    const authority = yield* makeAuthority
    const caFile = join(yield* temporaryFolder, "ca.pem")
    writeFileSync(caFile, authority.certificate)
    const home = yield* makeHome({ chains: new Map([["base", yield* localChain("base")]]), caFile })
    const daemon = yield* serve(home)
    const webhookUrl = `https://127.0.0.1:${listener.port}${path}`
    const payment = yield* daemon.create({ chain: "base", currency: "ETH", amount: "1", webhookUrl })
    yield* listener.hears(1)
    yield* kill(daemon)
    yield* listener.close

    const inbox = yield* makeInbox({ authority, port: listener.port })
    yield* serve(home, daemon.key)
    const arrived = yield* inbox.take(path, payment, "payment.created")
    expect(arrived.map(bytes)).toEqual(yield* committed(home, payment))
  })

  liveTest("among many deliveries delivers each event at least once, and always the same bytes", function* () {
    const { create, daemon, home, inbox } = yield* shop
    const answered = new Set<unknown>()
    const held = yield* Deferred.make<void>()
    yield* inbox.behave(({ headers }, n) => {
      if (n > 5) return Effect.zipRight(Deferred.succeed(held, undefined), Effect.never)
      answered.add(headers["webhook-id"])
      return 204
    })
    const payments = yield* Effect.replicateEffect(create(), 30, { concurrency: "unbounded" })
    yield* Deferred.await(held)
    yield* kill(daemon)

    const all = yield* Deferred.make<void>()
    yield* inbox.behave(({ headers }) => {
      answered.add(headers["webhook-id"])
      if (answered.size === payments.length) Deferred.unsafeDone(all, Effect.void)
      return 204
    })
    yield* serve(home, daemon.key)
    yield* Deferred.await(all)
    const stored = yield* rows<{ id: string; body: string }>(home, "SELECT id, body FROM events")
    const bodies = new Map(stored.map(({ body, id }) => [id, body]))
    expect(bodies.size).toBe(payments.length)
    const received = yield* inbox.all
    expect(received.length).toBeGreaterThan(payments.length)
    for (const { body, headers } of received) {
      expect(body.toString("utf8")).toBe(bodies.get(String(headers["webhook-id"])))
    }
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
    yield* inbox.take(path, payment, "payment.created")
    yield* daemon.end("SIGTERM")
    const hash = yield* pay(chain, payment)
    yield* chain.mine(30)

    yield* serve(home, daemon.key)
    const [detecting, confirmed] = yield* inbox.take(path, payment, "payment.detecting", "payment.confirmed")
    expect(detecting?.event.data).toMatchObject({ status: "detecting", txHash: hash })
    expect(confirmed?.event.data).toMatchObject({ status: "confirmed", txHash: hash })
    expect(yield* story(home, payment)).toEqual(confirmedOnce)
  })

  liveTest(
    "the time of a payment ends that was paid before: it is confirmed, and one that was not expires",
    function* () {
      const { chain, create, daemon, home, inbox } = yield* shop
      const paid = yield* create({ expiresIn: 60 })
      const unpaid = yield* create({ expiresIn: 60 })
      yield* inbox.take(path, paid, "payment.created")
      yield* inbox.take(path, unpaid, "payment.created")
      yield* kill(daemon)
      const hash = yield* pay(chain, paid)
      yield* mineAt(chain, deadline(paid))
      yield* mineAt(chain, deadline(unpaid) + 1, 2 * confirmations)

      yield* serve(home, daemon.key)
      const [, confirmed] = yield* inbox.take(path, paid, "payment.detecting", "payment.confirmed")
      expect(confirmed?.event.data).toMatchObject({ txHash: hash })
      yield* inbox.take(path, unpaid, "payment.expired")
      expect(yield* story(home, paid)).toEqual(confirmedOnce)
      expect((yield* story(home, unpaid)).statuses).toEqual(["expired"])
    }
  )
})
