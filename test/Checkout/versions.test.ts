import { expect } from "@effect/vitest"
import { Effect, Fiber, Layer, Queue, Stream, TestClock } from "effect"
import { Chains } from "../../src/Chains.ts"
import { makeReadPayment } from "../../src/Checkout/readPayment.ts"
import { versionsOf } from "../../src/Checkout.ts"
import type { Mode } from "../../src/Domain/Chain.ts"
import { newCheckoutToken, newPaymentId } from "../../src/Domain/Ids.ts"
import { Outbox } from "../../src/Events/Outbox.ts"
import { OpenStreams } from "../../src/Pages/OpenStreams.ts"
import * as Payments from "../../src/Payments/PaymentsRepo.ts"
import { Tx } from "../../src/Sql.ts"
import { someNewPayment } from "../lib/payments.ts"
import { scopedTest } from "../lib/scopedTest.ts"
import { execute, inTransaction, storeAccount } from "../lib/store.ts"
import { withChains } from "../Payments/settling.ts"

const ready = { chain: "base", mode: "test", ready: true, providers: [] } as const
const unread = { ...ready, mode: "live", ready: false } as const

/** Of the chains of which a payment's page was looked at, the mode of each, in order. */
const viewed: Array<Mode> = []

/** Chains that no one reads. The one of the payments says that it is read, and the live one with its name that it is not. */
const chains = Layer.mock(Chains, {
  health: Effect.succeed([unread, ready]),
  exclusively: () => () => Effect.dieMessage("nothing is repaired here"),
  wake: () => {},
  viewed: ({ mode }) => void viewed.push(mode),
  behind: () => 0
})

const test = scopedTest(Layer.merge(withChains({ mode: "live", confirmations: 7 }, {}), chains))

let made = 0

/** A payment, and the stream of its page's versions. Payments are made at second 100 and due at second 3,700. */
const follow = Effect.gen(function* () {
  yield* storeAccount
  const outbox = yield* Outbox
  const n = ++made
  const token = newCheckoutToken(n)
  const payment = yield* inTransaction(
    Effect.gen(function* () {
      const tx = yield* Tx
      yield* tx.run("INSERT INTO wallets (fingerprint, next_index) VALUES ('w', 100) ON CONFLICT DO NOTHING")
      const payment = { id: newPaymentId(n), checkoutToken: token, merchantRef: `order ${n}`, address: `0x${n}` }
      return yield* Payments.insert(someNewPayment(payment), { wallet: "w", index: n })
    })
  )
  if (payment === undefined) return expect.fail("no payment")
  const open = new OpenStreams()
  const read = yield* makeReadPayment
  const versions = versionsOf(token, payment, "client", read, outbox, open)
  const pieces = yield* Queue.unbounded<string>()
  const fiber = yield* Effect.forkScoped(Stream.runForEach(versions, (piece) => Queue.offer(pieces, piece)))
  const change = (columns: string) => execute(`UPDATE payments SET ${columns} WHERE id = ?`, [payment.id])
  const publish = inTransaction(outbox.publish(payment, 1))
  return {
    payment,
    shown: Effect.flatMap(read.find(token), (now) =>
      now?.payment === undefined ? expect.fail("no payment") : read.view(now)
    ),
    open,
    change,
    publish,
    next: Queue.take(pieces),
    waiting: Queue.size(pieces),
    ended: Fiber.join(fiber)
  }
})

const version = expect.stringMatching(/^data: [\w-]{16}\n\n$/)
const keepAlive = ":\n\n"

test("an event of the payment shows at once, and the end closes the stream and what it holds", function* () {
  const { change, ended, next, open, publish } = yield* follow
  const first = yield* next
  expect(first).toEqual(version)
  expect(open.size).toBe(3)
  yield* change("status = 'expired', ended_at = 1")
  yield* publish
  const last = yield* next
  expect(last).toEqual(version)
  expect(last).not.toBe(first)
  yield* ended
  expect(open.size).toBe(0)
})

test("an open page says so to its chain every fifteen seconds, and one of an ended payment does not", function* () {
  const { change, ended, next, publish } = yield* follow
  yield* next
  viewed.length = 0
  yield* TestClock.adjust("30 seconds")
  expect([yield* next, yield* next]).toEqual([keepAlive, keepAlive])
  expect(viewed).toEqual(["test", "test"])
  yield* change("status = 'expired', ended_at = 1")
  yield* publish
  yield* ended
  expect(viewed.length).toBe(2)
})

test("an event of another payment wakes no reader, and a keep-alive comes every fifteen seconds", function* () {
  const { next, waiting } = yield* follow
  yield* next
  yield* (yield* follow).publish
  yield* TestClock.adjust("14999 millis")
  expect(yield* waiting).toBe(0)
  yield* TestClock.adjust("1 millis")
  expect(yield* next).toBe(keepAlive)
})

test("time that is over shows with the next look, without an event", function* () {
  yield* TestClock.setTime(3_690_000)
  const { next } = yield* follow
  yield* next
  yield* TestClock.adjust("15 seconds")
  expect([yield* next, yield* next]).toEqual([keepAlive, version])
})

test("a confirmation shows within three seconds", function* () {
  const { change, next, payment, shown } = yield* follow
  yield* next
  yield* execute(
    `INSERT INTO scans (chain, mode, start_number, head_number, head_hash, head_time, verified_number)
     VALUES ('base', 'test', 0, 5, '0x5', 5, 0)`
  )
  yield* execute(
    `INSERT INTO receipts (chain, mode, block_hash, address, position, block_number, block_time, tx_hash, currency, amount,
       payment_id, canonical, corroborated, seen_at)
     VALUES ('base', 'test', '0x5', '0x1', 'tx:0', 5, 5, '0xt', 'ETH', '1000', ?, 1, 1, 5)`,
    [payment.id]
  )
  yield* change("status = 'detecting', amount_received = '1000', created_head = 1")
  yield* TestClock.adjust("15 seconds")
  expect(yield* next).toBe(keepAlive)
  const one = yield* next
  expect(yield* shown).toMatchObject({ lags: false, state: { confirmations: { count: 1, needed: 3 } } })
  yield* execute("UPDATE scans SET head_number = 6")
  yield* TestClock.adjust("3 seconds")
  expect(yield* next).toBe(keepAlive)
  const two = yield* next
  expect([one, two]).toEqual([version, version])
  expect(two).not.toBe(one)
})
