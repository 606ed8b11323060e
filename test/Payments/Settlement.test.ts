import { expect, it } from "@effect/vitest"
import { Clock, Effect, Layer, Logger, TestClock } from "effect"
import * as AgreementRepo from "../../src/Chains/AgreementRepo.ts"
import type { DatedTransfer } from "../../src/Chains/LedgerRepo.ts"
import * as LedgerRepo from "../../src/Chains/LedgerRepo.ts"
import type { Network } from "../../src/Domain/Chain.ts"
import { AccountId, newPaymentId } from "../../src/Domain/Ids.ts"
import type { NewPayment, Payment } from "../../src/Domain/Payment.ts"
import { iso } from "../../src/Domain/Timestamp.ts"
import { Outbox } from "../../src/Events/Outbox.ts"
import * as Exceptions from "../../src/Payments/ExceptionsRepo.ts"
import * as Repo from "../../src/Payments/PaymentsRepo.ts"
import * as Receipts from "../../src/Payments/ReceiptsRepo.ts"
import { Settlement } from "../../src/Payments/Settlement.ts"
import * as Sql from "../../src/Sql.ts"
import { type Db, type Param, Reader, Tx, Writer } from "../../src/Sql.ts"
import { testChain, testSettingsLayer } from "../lib/settings.ts"
import { temporaryDatabase } from "../lib/store.ts"

const network: Network = { chain: "base", mode: "test" }
const elsewhere: Network = { chain: "optimism", mode: "test" }
const confirmations = 3
const address = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
const wallet = "w"

/** Messages of the alarms, which are all that is logged. */
const alarms: Array<unknown> = []
const heard = Logger.replace(
  Logger.defaultLogger,
  Logger.make(({ message }) => void alarms.push(Array.isArray(message) ? message[0] : message))
)

const withChains = (...chains: ReadonlyArray<Parameters<typeof testChain>[0]>) =>
  Layer.unwrapScoped(
    Effect.map(temporaryDatabase, (path) =>
      Settlement.layer.pipe(
        Layer.provideMerge(Outbox.layer),
        Layer.provideMerge(Sql.layer(path)),
        Layer.provide(testSettingsLayer(path, { chains: chains.map(testChain) })),
        Layer.provideMerge(heard),
        Layer.provide(Layer.effectDiscard(Effect.sync(() => alarms.splice(0))))
      )
    )
  )
const layer = withChains({})
const twoChains = withChains({}, { chain: "optimism" })

/** A chain with a block a second whose block `n` has the time `n`; a payment is made at block 100. */
const createdAt = 100_000
const expiresAt = createdAt + 3_600_000
const lastOnTime = expiresAt / 1000 + 60

const block = (number: number) => ({ number, hash: `0x${number}`, time: number })

const startWith = Effect.fnUntraced(function* (over: Partial<NewPayment> = {}) {
  yield* TestClock.setTime(createdAt)
  const writer = yield* Writer
  const payment = yield* writer.write(
    Effect.gen(function* () {
      const tx = yield* Tx
      yield* tx.run("INSERT INTO accounts VALUES ('default', 'default', 0)")
      yield* tx.run("INSERT INTO wallets VALUES (?, 1)", [wallet])
      yield* LedgerRepo.startScan(network, block(100), undefined)
      const stored = yield* Repo.insert(tx, { ...newPayment, ...over }, { wallet, index: 0 })
      return stored ?? (yield* Effect.dieMessage("not inserted"))
    })
  )
  const settlement = yield* Settlement
  yield* Effect.forkScoped(settlement.expire)
  return payment
})
const start = Effect.suspend(() => startWith())

const newPayment: NewPayment = {
  id: newPaymentId(0),
  account: AccountId.make("default"),
  mode: "test",
  merchantRef: "order-1",
  amount: 1000n,
  currency: "ETH",
  chain: "base",
  address,
  status: "pending",
  createdAt,
  expiresAt,
  metadata: "{}",
  webhookUrl: undefined,
  redirectUrl: undefined,
  quoteId: undefined,
  amountReceived: undefined,
  txHash: undefined,
  confirmedAt: undefined,
  failureReason: undefined
}

const transfer = (blockNumber: number, amount: bigint): DatedTransfer => ({
  address: address.toLowerCase(),
  amount,
  blockHash: `0x${blockNumber}`,
  blockNumber,
  blockTime: blockNumber,
  currency: "ETH",
  position: "tx:0",
  txHash: `0xt${blockNumber}`
})

interface Tick {
  readonly head: number
  readonly on?: Network
  readonly transfers?: ReadonlyArray<DatedTransfer>
  /** The common ancestor, where there was a reorg. */
  readonly ancestor?: number
  readonly agreed?: boolean
  /** Where balances were compared; otherwise at the head. */
  readonly checked?: number
  readonly finalized?: number
}

/** Expiry follows in commits of its own: this gives it all the turns that it may want. */
const untilExpired = Effect.flatMap(Writer, (writer) => Effect.repeatN(writer.write(Effect.void), 5))

/** What the watcher does at the end of a tick. */
const tick = ({ ancestor, agreed = true, finalized, head, on = network, transfers = [], ...tick }: Tick) =>
  Effect.gen(function* () {
    const writer = yield* Writer
    const settlement = yield* Settlement
    yield* writer.write(
      Effect.gen(function* () {
        const tx = yield* Tx
        const touched = new Set<LedgerRepo.Touched>()
        if (ancestor !== undefined) {
          for (const id of yield* LedgerRepo.orphanAbove(on, block(ancestor))) touched.add(id)
        }
        for (const id of yield* LedgerRepo.keepReceipts(on, transfers, agreed)) touched.add(id)
        yield* LedgerRepo.keepBlocks(on, [head - confirmations + 1, head].map(block))
        yield* LedgerRepo.moveScan(on, block(head))
        const checked = tick.checked ?? head
        yield* tx.run("UPDATE scans SET checked_number = ?, checked_time = ? WHERE chain = ?", [
          checked,
          checked,
          on.chain
        ])
        yield* LedgerRepo.setTags(on, { safe: undefined, finalized })
        yield* settlement.settle({ network: on, head: block(head) }, touched)
      })
    )
    yield* untilExpired
  })

/** The same, with the clock at the head's time. */
const scanTo = (head: number, transfers: ReadonlyArray<DatedTransfer> = []) =>
  Effect.zipRight(TestClock.setTime(head * 1000), tick({ head, transfers }))

const exceptions = (payment: Payment) =>
  Effect.gen(function* () {
    const all = yield* Exceptions.ofPayment(yield* Reader, payment.id)
    return all.map(({ amount, kind, status, txHash }) => `${status} ${kind} ${amount} ${txHash}`)
  })

const look = (payment: Payment) =>
  Effect.gen(function* () {
    const reader = yield* Reader
    const stored = yield* Repo.byId(reader, payment.id)
    const events = yield* reader.all<{ kind: string; created_at: number; body: string }>(
      "SELECT kind, created_at, body FROM events WHERE payment_id = ? ORDER BY rowid",
      [payment.id]
    )
    const transitions = yield* reader.all<{ to_status: string; at: number }>(
      "SELECT to_status, at FROM transitions WHERE payment_id = ? ORDER BY ordinal",
      [payment.id]
    )
    return { payment: stored, events, transitions }
  })

it.scoped("nothing came: expired by the first scan in which a block past the deadline has the confirmations", () =>
  Effect.gen(function* () {
    const payment = yield* start
    const first = lastOnTime + 1
    yield* scanTo(first + confirmations - 2)
    expect((yield* look(payment)).payment?.status).toBe("pending")
    yield* scanTo(first + confirmations - 1)
    const after = yield* look(payment)
    expect(after.payment?.status).toBe("expired")
    expect(after.events.map((event) => event.kind)).toEqual(["payment.expired"])
    expect(after.transitions).toEqual([{ to_status: "expired", at: (first + confirmations - 1) * 1000 }])
  }).pipe(Effect.provide(layer))
)

it.scoped("too little came: failed by that scan, not before", () =>
  Effect.gen(function* () {
    const payment = yield* start
    yield* scanTo(150, [transfer(120, 999n)])
    expect((yield* look(payment)).payment).toMatchObject({ status: "detecting", amountReceived: 999n })
    yield* scanTo(lastOnTime + confirmations - 1)
    expect((yield* look(payment)).payment?.status).toBe("detecting")
    yield* scanTo(lastOnTime + confirmations)
    const after = yield* look(payment)
    expect(after.payment).toMatchObject({
      status: "failed",
      failureReason: "insufficient_amount",
      amountReceived: 999n
    })
    expect(after.events.map((event) => event.kind)).toEqual(["payment.detecting", "payment.failed"])
  }).pipe(Effect.provide(layer))
)

it.scoped("no scan, no decision, however long the clock runs", () =>
  Effect.gen(function* () {
    const payment = yield* start
    yield* scanTo(150)
    yield* TestClock.adjust("10 days")
    const writer = yield* Writer
    yield* Effect.repeatN(writer.write(Effect.void), 5)
    expect((yield* look(payment)).payment?.status).toBe("pending")
    // The chain is read again, and the money that came in time is found in time.
    yield* scanTo(lastOnTime + 500, [transfer(lastOnTime, 1000n)])
    expect((yield* look(payment)).payment).toMatchObject({ status: "confirmed", txHash: `0xt${lastOnTime}` })
  }).pipe(Effect.provide(layer))
)

it.scoped("one scan that finds deep money detects and confirms in one transaction, each event with its own state", () =>
  Effect.gen(function* () {
    const payment = yield* start
    yield* scanTo(130, [transfer(120, 1000n)])
    const { events } = yield* look(payment)
    const bodies = events.map((event) => JSON.parse(event.body))
    expect(bodies.map((body) => [body.event, body.data.status])).toEqual([
      ["payment.detecting", "detecting"],
      ["payment.confirmed", "confirmed"]
    ])
    expect(bodies[0].data.confirmedAt).toBeUndefined()
    expect(bodies[1].data).toMatchObject({ txHash: "0xt120", confirmedAt: iso(130_000) })
  }).pipe(Effect.provide(layer))
)

it.scoped("money that waits in its block confirms when the head has moved far enough", () =>
  Effect.gen(function* () {
    const payment = yield* start
    yield* scanTo(120, [transfer(120, 1000n)])
    expect((yield* look(payment)).payment?.status).toBe("detecting")
    yield* scanTo(121)
    expect((yield* look(payment)).payment?.status).toBe("detecting")
    yield* scanTo(122)
    expect((yield* look(payment)).payment).toMatchObject({ status: "confirmed", confirmedAt: 122_000 })
  }).pipe(Effect.provide(layer))
)

it.scoped("a reorg takes a detected payment back without an event, and the next detection is a new one", () =>
  Effect.gen(function* () {
    const payment = yield* start
    yield* scanTo(120, [transfer(120, 1000n)])
    yield* tick({ head: 120, ancestor: 119 })
    expect((yield* look(payment)).payment).toMatchObject({
      status: "pending",
      txHash: undefined,
      amountReceived: undefined
    })
    yield* scanTo(121, [transfer(121, 1000n)])
    const { events } = yield* look(payment)
    expect(events.map((event) => event.kind)).toEqual(["payment.detecting", "payment.detecting"])
    expect(new Set(events.map((event) => JSON.parse(event.body).id)).size).toBe(2)
  }).pipe(Effect.provide(layer))
)

it.scoped("a crowd that ends at once ends in several commits", () =>
  Effect.gen(function* () {
    yield* start
    const writer = yield* Writer
    const reader = yield* Reader
    yield* Effect.forEach(
      Array.from({ length: 250 }, (_, i) => i),
      (i) =>
        writer.write(
          Effect.flatMap(Tx, (tx) =>
            Repo.insert(
              tx,
              { ...newPayment, id: newPaymentId(0), merchantRef: `crowd-${i}`, address: `0xcrowd${i}` },
              { wallet, index: i + 1 }
            )
          )
        ),
      { concurrency: "unbounded" }
    )
    yield* scanTo(lastOnTime + confirmations)
    const [row] = yield* reader.all<{ n: number }>("SELECT count(*) AS n FROM payments WHERE status = 'expired'")
    expect(row?.n).toBe(251)
    expect(yield* Clock.currentTimeMillis).toBe((lastOnTime + confirmations) * 1000)
  }).pipe(Effect.provide(layer))
)

it.scoped("a transaction on both branches of a reorg is no transition", () =>
  Effect.gen(function* () {
    const payment = yield* start
    yield* scanTo(120, [transfer(120, 1000n)])
    yield* tick({
      head: 122,
      ancestor: 119,
      transfers: [{ ...transfer(121, 1000n), txHash: "0xt120", position: "tx:4" }]
    })
    const { events, transitions } = yield* look(payment)
    expect(events).toHaveLength(1)
    expect(transitions).toHaveLength(1)
  }).pipe(Effect.provide(layer))
)

it.scoped("nothing ends before its balances have been compared past the deadline", () =>
  Effect.gen(function* () {
    const payment = yield* start
    const head = lastOnTime + 50
    yield* TestClock.setTime(head * 1000)
    yield* tick({ head, checked: lastOnTime })
    expect((yield* look(payment)).payment?.status).toBe("pending")
    yield* tick({ head, checked: lastOnTime + 1 })
    expect((yield* look(payment)).payment?.status).toBe("expired")
  }).pipe(Effect.provide(layer))
)

const startScanElsewhere = Effect.flatMap(Writer, (writer) =>
  writer.write(LedgerRepo.startScan(elsewhere, block(7), undefined))
)

const usdcElsewhere = (number: number, amount: bigint): DatedTransfer => ({
  ...transfer(number, amount),
  currency: "USDC",
  position: "log:0"
})

it.scoped("only money on another chain is known: failed wrong_chain at the deadline, an exception before", () =>
  Effect.gen(function* () {
    const payment = yield* start
    yield* startScanElsewhere
    yield* tick({ head: 300, on: elsewhere, transfers: [usdcElsewhere(300, 5n)] })
    expect((yield* look(payment)).payment?.status).toBe("pending")
    expect(yield* exceptions(payment)).toEqual(["open wrong_chain 5 0xt300"])
    yield* scanTo(lastOnTime + confirmations)
    expect((yield* look(payment)).payment).toMatchObject({ status: "failed", failureReason: "wrong_chain" })
  }).pipe(Effect.provide(twoChains))
)

it.scoped("a chain that answers is waited for; what it finds decides", () =>
  Effect.gen(function* () {
    const payment = yield* start
    yield* startScanElsewhere
    const end = lastOnTime + confirmations
    yield* TestClock.setTime(end * 1000)
    yield* tick({ head: end, on: elsewhere, checked: lastOnTime })
    yield* tick({ head: end })
    expect((yield* look(payment)).payment?.status).toBe("pending")
    // Its balances are compared: this alone must wake the one that waits.
    yield* tick({ head: end, on: elsewhere, checked: end, transfers: [usdcElsewhere(end, 5n)] })
    expect((yield* look(payment)).payment).toMatchObject({ status: "failed", failureReason: "wrong_chain" })
  }).pipe(Effect.provide(twoChains))
)

it.scoped("a chain that does not answer is not waited for; its money is an exception later", () =>
  Effect.gen(function* () {
    const payment = yield* start
    yield* startScanElsewhere
    const end = lastOnTime + confirmations
    yield* tick({ head: end - 200, on: elsewhere })
    yield* scanTo(end)
    expect((yield* look(payment)).payment?.status).toBe("expired")
    yield* tick({ head: end, on: elsewhere, transfers: [usdcElsewhere(end - 100, 5n)] })
    expect((yield* look(payment)).payment?.status).toBe("expired")
    expect(yield* exceptions(payment)).toEqual([`open wrong_chain 5 0xt${end - 100}`])
  }).pipe(Effect.provide(twoChains))
)

it.scoped("a chain whose balances cannot be compared is waited for two minutes", () =>
  Effect.gen(function* () {
    const payment = yield* start
    yield* startScanElsewhere
    const twoMinutes = lastOnTime + 120
    yield* TestClock.setTime(twoMinutes * 1000)
    yield* tick({ head: twoMinutes, on: elsewhere, checked: 300 })
    yield* tick({ head: twoMinutes })
    expect((yield* look(payment)).payment?.status).toBe("pending")
    yield* tick({ head: twoMinutes + 1, on: elsewhere, checked: 300 })
    yield* scanTo(twoMinutes + 1)
    expect((yield* look(payment)).payment?.status).toBe("expired")
  }).pipe(Effect.provide(twoChains))
)

it.scoped(
  "enough only with money that nobody can attribute: stays detecting, with an exception, until attributed",
  () =>
    Effect.gen(function* () {
      const payment = yield* start
      const untold: DatedTransfer = { ...transfer(120, 1000n), position: "unattributed", txHash: undefined }
      yield* scanTo(lastOnTime + 500, [untold])
      expect((yield* look(payment)).payment).toMatchObject({ status: "detecting", amountReceived: 1000n })
      expect(yield* exceptions(payment)).toEqual(["open unattributed 1000 undefined"])
      // A node tells: the row is replaced in one transaction.
      const writer = yield* Writer
      yield* writer.write(Effect.flatMap(Tx, (tx) => tx.run("DELETE FROM receipts")))
      yield* tick({ head: lastOnTime + 501, transfers: [{ ...transfer(120, 1000n), position: "call:0xt120" }] })
      expect((yield* look(payment)).payment).toMatchObject({ status: "confirmed", txHash: "0xt120" })
      expect(yield* exceptions(payment)).toEqual(["gone unattributed 1000 undefined"])
    }).pipe(Effect.provide(layer))
)

it.scoped("money that a second provider has not confirmed neither confirms nor fails, and does once it has", () =>
  Effect.gen(function* () {
    const payment = yield* start
    yield* TestClock.setTime((lastOnTime + 500) * 1000)
    yield* tick({ head: lastOnTime + 500, transfers: [transfer(120, 1000n)], agreed: false })
    expect((yield* look(payment)).payment?.status).toBe("detecting")
    const writer = yield* Writer
    yield* writer.write(
      AgreementRepo.setAgreed(network, { address: address.toLowerCase(), blockHash: "0x120", position: "tx:0" })
    )
    yield* tick({ head: lastOnTime + 501 })
    expect((yield* look(payment)).payment?.status).toBe("confirmed")
  }).pipe(Effect.provide(layer))
)

const policy = withChains({ policies: [{ aboveUsd: "100", require: "finalized" }] })

it.scoped.each([
  ["above the policy", "100.5", "detecting"],
  ["of unknown worth", undefined, "detecting"],
  ["below it", "99", "confirmed"]
] as const)("a payment %s", ([, usdValue, status]) =>
  Effect.gen(function* () {
    const payment = yield* startWith({ usdValue })
    yield* tick({ head: 150, finalized: 119, transfers: [transfer(120, 1000n)] })
    expect((yield* look(payment)).payment?.status).toBe(status)
    yield* tick({ head: 151, finalized: 120 })
    expect((yield* look(payment)).payment?.status).toBe("confirmed")
  }).pipe(Effect.provide(policy))
)

const confirmedOnce = Effect.gen(function* () {
  const payment = yield* start
  yield* tick({ head: 130, transfers: [transfer(120, 1000n)] })
  return payment
})

it.scoped("a confirmed payment whose money is gone for good: failed reorged, with its event and an alarm", () =>
  Effect.gen(function* () {
    const payment = yield* confirmedOnce
    yield* tick({ head: 131, ancestor: 119, finalized: 118 })
    expect((yield* look(payment)).payment?.status).toBe("confirmed")
    yield* tick({ head: 132, finalized: 119 })
    expect((yield* look(payment)).payment?.status).toBe("confirmed")
    yield* tick({ head: 133, finalized: 120 })
    const after = yield* look(payment)
    expect(after.payment).toMatchObject({
      status: "failed",
      failureReason: "reorged",
      confirmedAt: createdAt,
      amountReceived: undefined
    })
    expect(after.events.map((event) => event.kind)).toEqual([
      "payment.detecting",
      "payment.confirmed",
      "payment.failed"
    ])
    expect(JSON.parse(after.events.at(-1)?.body ?? "").data).toMatchObject({
      failureReason: "reorged",
      txHash: "0xt120"
    })
    expect(alarms).toEqual([expect.stringContaining("undone by a reorg")])
    // It comes back all the same: money that was on time and was not there when the payment ended.
    yield* TestClock.setTime(140_000)
    yield* tick({ head: 140, ancestor: 119, transfers: [transfer(120, 1000n)] })
    expect((yield* look(payment)).payment?.status).toBe("failed")
    expect(yield* exceptions(payment)).toEqual(["gone reorged 1000 0xt120", "open found_late 1000 0xt120"])
    expect(alarms).toHaveLength(2)
  }).pipe(Effect.provide(layer))
)

it.scoped("without a finalized tag that takes four times the confirmations; money that comes back undoes nothing", () =>
  Effect.gen(function* () {
    const payment = yield* confirmedOnce
    yield* tick({ head: 121, ancestor: 119 })
    yield* tick({ head: 120 + 4 * confirmations - 1 })
    expect((yield* look(payment)).payment?.status).toBe("confirmed")
    yield* tick({ head: 140, ancestor: 119, transfers: [{ ...transfer(125, 1000n), txHash: "0xt120" }] })
    yield* tick({ head: 200 })
    const { events } = yield* look(payment)
    expect(events.map((event) => event.kind)).toEqual(["payment.detecting", "payment.confirmed"])
  }).pipe(Effect.provide(layer))
)

it.scoped("a payment that was undone while nobody looked is found after a restart", () =>
  Effect.gen(function* () {
    const payment = yield* confirmedOnce
    const writer = yield* Writer
    yield* writer.write(Effect.flatMap(Tx, (tx) => tx.run("UPDATE receipts SET canonical = 0")))
    const { settle } = yield* Effect.provide(Settlement, Layer.fresh(Settlement.layer)).pipe(
      Effect.provide(testSettingsLayer(""))
    )
    yield* writer.write(
      Effect.gen(function* () {
        yield* LedgerRepo.moveScan(network, block(200))
        yield* settle({ network, head: block(200) }, [])
      })
    )
    expect((yield* look(payment)).payment).toMatchObject({ status: "failed", failureReason: "reorged" })
  }).pipe(Effect.provide(layer))
)

it.scoped("overpaid, paid again and late: exceptions of a confirmed payment, which stays as it is", () =>
  Effect.gen(function* () {
    const payment = yield* start
    yield* tick({ head: 130, transfers: [transfer(120, 1100n)] })
    expect(yield* exceptions(payment)).toEqual(["open overpaid 100 0xt120"])
    yield* TestClock.adjust("1 second")
    yield* tick({ head: 140, transfers: [transfer(135, 30n)] })
    yield* TestClock.adjust("1 second")
    yield* tick({ head: lastOnTime + 9, transfers: [transfer(lastOnTime + 5, 40n)] })
    expect(yield* exceptions(payment)).toEqual([
      "open overpaid 100 0xt120",
      "open paid_again 30 0xt135",
      `open late 40 0xt${lastOnTime + 5}`
    ])
    const after = yield* look(payment)
    expect(after.payment).toMatchObject({ status: "confirmed", amountReceived: 1100n, txHash: "0xt120" })
    expect(after.events).toHaveLength(2)
    expect(alarms).toEqual([])
  }).pipe(Effect.provide(layer))
)

it.scoped("an overpayment is one once the payment is confirmed, also by a scan that brings nothing new", () =>
  Effect.gen(function* () {
    const payment = yield* start
    yield* tick({ head: 120, transfers: [transfer(120, 1100n)] })
    expect(yield* exceptions(payment)).toEqual([])
    yield* tick({ head: 122 })
    expect(yield* exceptions(payment)).toEqual(["open overpaid 100 0xt120"])
  }).pipe(Effect.provide(layer))
)

it.scoped("late for an expired payment is an exception; found late is that and an alarm; neither is an event", () =>
  Effect.gen(function* () {
    const payment = yield* start
    const end = lastOnTime + confirmations
    yield* scanTo(end)
    yield* scanTo(end + 9, [transfer(end + 5, 1000n)])
    expect(alarms).toEqual([])
    yield* scanTo(end + 19, [transfer(200, 1000n)])
    expect(yield* exceptions(payment)).toEqual([`open late 1000 0xt${end + 5}`, "open found_late 1000 0xt200"])
    expect(alarms).toEqual([expect.stringContaining("found after its payment had ended")])
    const after = yield* look(payment)
    expect(after.payment).toMatchObject({ status: "expired", amountReceived: undefined })
    expect(after.events.map((event) => event.kind)).toEqual(["payment.expired"])
  }).pipe(Effect.provide(layer))
)

it.scoped("a wrong token leaves the payment open, and is an exception at once", () =>
  Effect.gen(function* () {
    const payment = yield* start
    yield* scanTo(130, [usdcElsewhere(120, 5n)])
    expect((yield* look(payment)).payment?.status).toBe("pending")
    expect(yield* exceptions(payment)).toEqual(["open wrong_token 5 0xt120"])
    yield* scanTo(140, [transfer(131, 1000n)])
    expect((yield* look(payment)).payment?.status).toBe("confirmed")
  }).pipe(Effect.provide(layer))
)

it.scoped("gas that reaches the address of a token payment that has ended is nothing", () =>
  Effect.gen(function* () {
    const payment = yield* startWith({ currency: "USDC" })
    yield* scanTo(130, [usdcElsewhere(120, 1000n)])
    yield* scanTo(150, [transfer(140, 5n)])
    expect((yield* look(payment)).payment?.status).toBe("confirmed")
    expect(yield* exceptions(payment)).toEqual([])
  }).pipe(Effect.provide(layer))
)

it.scoped("an exception that a reorg took is gone, and open again with its money; a decision stays", () =>
  Effect.gen(function* () {
    const payment = yield* confirmedOnce
    const late = transfer(lastOnTime + 5, 40n)
    yield* tick({ head: lastOnTime + 5, transfers: [late] })
    yield* tick({ head: lastOnTime + 6, ancestor: lastOnTime + 4 })
    expect(yield* exceptions(payment)).toEqual([`gone late 40 ${late.txHash}`])
    yield* tick({ head: lastOnTime + 7, transfers: [{ ...transfer(lastOnTime + 7, 40n), txHash: late.txHash }] })
    expect(yield* exceptions(payment)).toEqual([`open late 40 ${late.txHash}`])

    const [exception] = yield* Exceptions.ofPayment(yield* Reader, payment.id)
    const writer = yield* Writer
    yield* writer.write(Exceptions.close(exception?.id ?? "", "refunded", 1))
    yield* tick({ head: lastOnTime + 8, ancestor: lastOnTime + 6 })
    yield* tick({ head: lastOnTime + 8, transfers: [{ ...transfer(lastOnTime + 8, 40n), txHash: late.txHash }] })
    expect(yield* exceptions(payment)).toEqual([`refunded late 40 ${late.txHash}`])
  }).pipe(Effect.provide(layer))
)

it.scoped("money at an address of a lost payment is an exception without one, and gone with a reorg", () =>
  Effect.gen(function* () {
    yield* start
    const writer = yield* Writer
    const lost = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
    yield* writer.write(
      Effect.flatMap(Tx, (tx) => tx.run("INSERT INTO gap_addresses VALUES (?, 'test', ?, 7, 0)", [lost, wallet]))
    )
    yield* tick({ head: 130, transfers: [{ ...transfer(120, 5n), address: lost.toLowerCase() }] })
    const unknown = Effect.flatMap(Reader, (reader) => Exceptions.unknownOn(reader, network))
    expect(yield* unknown).toMatchObject([
      { kind: "unknown_payment", status: "open", amount: 5n, txHash: "0xt120", payment: undefined }
    ])
    expect(alarms).toEqual([expect.stringContaining("lost copy")])
    // A commit that touches nothing of it does not read it.
    yield* writer.write(Effect.flatMap(Tx, (tx) => tx.run("UPDATE exceptions SET amount = '4'")))
    yield* tick({ head: 131 })
    expect(alarms).toHaveLength(1)
    expect(yield* unknown).toMatchObject([{ status: "open", amount: 4n }])
    yield* tick({ head: 132, ancestor: 119 })
    expect(yield* unknown).toMatchObject([{ status: "gone" }])
  }).pipe(Effect.provide(layer))
)

it.scoped("what belongs to lost payments is found by an index", () =>
  Effect.gen(function* () {
    const reader = yield* Reader
    const asked: Array<readonly [sql: string, params: ReadonlyArray<Param> | undefined]> = []
    const listening: Db = {
      ...reader,
      all: (sql, params) =>
        Effect.as(
          Effect.sync(() => asked.push([sql, params])),
          []
        )
    }
    yield* Receipts.ofNobody(listening, network)
    yield* Exceptions.unknownOn(listening, network)
    const plans = yield* Effect.forEach(
      asked,
      ([sql, params]) => reader.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, params),
      { concurrency: 1 }
    )
    expect(plans.map(([step]) => step?.detail)).toEqual([
      "SEARCH receipts USING INDEX receipts_payment (payment_id=? AND chain=? AND mode=?)",
      "SEARCH exceptions USING INDEX exceptions_unknown (chain=? AND mode=?)"
    ])
  }).pipe(Effect.provide(layer))
)
