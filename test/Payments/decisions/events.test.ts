import { expect } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { WebhookEvent } from "../../../src/Domain/Event.ts"
import { iso } from "../../../src/lib/moment.ts"
import { accept } from "../../../src/Payments/decisions/accept.ts"
import { noteRefund } from "../../../src/Payments/decisions/refund.ts"
import { Tx } from "../../../src/Sql.ts"
import { execute, rows } from "../../lib/store.ts"
import { end, exceptionOf, expiredWith, hash, paidBy, test } from "../deciding.ts"
import { address, confirmedOnce, scanTo, startWith, tick, transfer } from "../settling.ts"

const payer = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"

/** An endpoint of the account that gets these kinds. */
const endpoint = (id: string, ...kinds: ReadonlyArray<string>) =>
  execute(
    `INSERT INTO endpoints (id, account_id, mode, url, events, secret, created_at)
     VALUES (?, 'default', 'test', ?, ?, randomblob(1), 0)`,
    [`wh_${id.repeat(22)}`, `https://${id}.example/`, JSON.stringify(kinds)]
  )

const decode = Schema.decodeUnknownSync(Schema.parseJson(WebhookEvent))

/** The bodies of a payment's events of a kind, in their order. */
const bodiesOf = (kind: string) =>
  Effect.map(rows<{ body: string }>("SELECT body FROM events WHERE kind = ? ORDER BY sequence", [kind]), (all) =>
    all.map(({ body }) => decode(body))
  )
const updates = bodiesOf("payment.exception")

/** `<kind> <amount> <resolution>` of each. */
const inWords = Effect.map(updates, (events) =>
  events.map(({ exception }) => `${exception?.kind} ${exception?.amount} ${exception?.resolution ?? "open"}`)
)

/** What each receiver gets: `<host> <kind>`. */
const sent = Effect.map(
  rows<{ url: string; kind: string }>(
    "SELECT url, kind FROM deliveries AS d JOIN events AS e ON e.id = d.event_id ORDER BY d.sequence"
  ),
  (all) => all.map(({ kind, url }) => `${new URL(url).hostname} ${kind}`)
)

test("an exception's event shows the sender, the money, and its payment with all exceptions", function* () {
  const { id } = yield* expiredWith(transfer(end + 5, 700n, { sender: payer, txHash: hash("1") }))
  const [event] = yield* updates
  const exception = {
    id: (yield* exceptionOf(id)).id,
    payment: id,
    merchantRef: event?.data.merchantRef,
    kind: "late",
    chain: "base",
    currency: "ETH",
    amount: "700",
    from: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
    txHash: hash("1"),
    address,
    derivationIndex: 0,
    path: "m/44'/60'/3'/0/0",
    detectedAt: iso((end + 9) * 1000)
  }
  expect(event).toMatchObject({ event: "payment.exception", data: { id, status: "expired" } })
  expect(event?.exception).toEqual(exception)
  expect(event?.data.exceptions).toEqual([exception])
})

test("only endpoints that name payment.exception get it, and never a payment's own webhookUrl", function* () {
  yield* startWith({ webhookUrl: "https://own.example/" })
  yield* endpoint("a", "payment.confirmed", "payment.failed")
  yield* endpoint("b", "payment.exception")
  yield* scanTo(end, transfer(120, 700n))
  expect(yield* sent).toEqual([
    "own.example payment.detecting",
    "a.example payment.failed",
    "own.example payment.failed",
    "b.example payment.exception"
  ])
})

test("the event of a failed payment reports the exceptions that its end opens", function* () {
  yield* paidBy(end, transfer(120, 700n))
  const [failed] = yield* bodiesOf("payment.failed")
  expect(failed?.data).toMatchObject({ status: "failed", exceptions: [{ kind: "underpaid", amount: "700" }] })
})

test("each change is one event: opened, sent back in part, decided; a repetition is none", function* () {
  const { id } = yield* paidBy(end, transfer(120, 700n))
  const one = yield* exceptionOf(id)
  const part = noteRefund(one.id, undefined, { amount: 200n, txHash: hash("a") })
  yield* part
  yield* part
  yield* accept(one.id, undefined, { note: "enough" })
  yield* accept(one.id, undefined, {})
  yield* scanTo(end + 9)
  expect(yield* inWords).toEqual(["underpaid 700 open", "underpaid 500 open", "underpaid 500 accepted"])
  const events = yield* updates
  expect(new Set(events.map((event) => event.id)).size).toBe(3)
  expect(events[1]?.exception).toMatchObject({ amountRefunded: "200", resolutionTxHash: hash("a") })
  expect(events[2]?.exception).toMatchObject({ note: "enough", resolvedAt: expect.any(String) })
})

test("money that a reorg removes and restores is an event each time, with a new id", function* () {
  yield* confirmedOnce
  const further = transfer(135, 40n)
  yield* tick({ head: 140, transfers: [further] })
  yield* tick({ head: 141, ancestor: 134 })
  yield* tick({ head: 142, transfers: [transfer(141, 40n, { txHash: further.txHash })] })
  expect(yield* inWords).toEqual(["overpaid 40 open", "overpaid 40 gone", "overpaid 40 open"])
  expect(new Set((yield* updates).map(({ id }) => id)).size).toBe(3)
})

test("accepting a payment as a whole reports each exception that it closes, as it is afterwards", function* () {
  const { id } = yield* paidBy(end, transfer(120, 400n), transfer(121, 300n))
  yield* accept(id, undefined, {})
  expect((yield* inWords).slice(2).toSorted()).toEqual(["underpaid 300 accepted", "underpaid 400 accepted"])
  const [confirmed] = yield* bodiesOf("payment.confirmed")
  const exceptions = confirmed?.data.exceptions ?? []
  expect(exceptions.map(({ resolution }) => resolution)).toEqual(["accepted", "accepted"])
})

test("an event shows ten exceptions at most, and says that there are more", function* () {
  yield* paidBy(130, transfer(101, 1000n), ...Array.from({ length: 12 }, (_, i) => transfer(110 + i, 40n)))
  const events = yield* updates
  expect(events).toHaveLength(12)
  for (const { data } of events) {
    expect(data.exceptions).toHaveLength(10)
    expect(data.moreExceptions).toBe(true)
  }
})

test("the event of a refund shows the ten newest refunds", function* () {
  const { id } = yield* paidBy(130, transfer(120, 1000n))
  for (let amount = 1n; amount <= 11n; amount += 1n) yield* noteRefund(id, undefined, { amount })
  const { refunds = [] } = (yield* bodiesOf("payment.updated")).at(-1)?.data ?? {}
  expect(refunds.map(({ amount }) => amount)).toEqual(Array.from({ length: 10 }, (_, i) => `${i + 2}`))
})

test("an update by a refund has the id of what was sent back: a restored copy may send back something else", function* () {
  const { id } = yield* paidBy(130, transfer(120, 1000n))
  const ids = Effect.flatMap(Tx, (tx) => tx.all("SELECT id FROM events WHERE kind = 'payment.updated'", []))
  const idOf = (amount: bigint) =>
    Effect.flip(noteRefund(id, undefined, { amount }, () => Effect.flatMap(ids, Effect.fail)))
  expect(yield* idOf(1n)).toEqual(yield* idOf(1n))
  expect(yield* idOf(1n)).not.toEqual(yield* idOf(2n))
})
