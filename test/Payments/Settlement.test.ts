import { expect, it } from "@effect/vitest"
import { Clock, Effect, Layer, TestClock } from "effect"
import type { DatedTransfer } from "../../src/Chains/LedgerRepo.ts"
import * as LedgerRepo from "../../src/Chains/LedgerRepo.ts"
import type { Network } from "../../src/Domain/Chain.ts"
import { AccountId, newPaymentId } from "../../src/Domain/Ids.ts"
import type { Payment } from "../../src/Domain/Payment.ts"
import { iso } from "../../src/Domain/Timestamp.ts"
import { Outbox } from "../../src/Events/Outbox.ts"
import * as Repo from "../../src/Payments/PaymentsRepo.ts"
import { Settlement } from "../../src/Payments/Settlement.ts"
import * as Sql from "../../src/Sql.ts"
import { Reader, Tx, Writer } from "../../src/Sql.ts"
import { testSettingsLayer } from "../lib/settings.ts"
import { temporaryDatabase } from "../lib/store.ts"

const network: Network = { chain: "base", mode: "test" }
const confirmations = 3
const address = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
const wallet = "w"

const layer = Layer.unwrapScoped(
  Effect.map(temporaryDatabase, (path) =>
    Settlement.layer.pipe(
      Layer.provideMerge(Outbox.layer),
      Layer.provideMerge(Sql.layer(path)),
      Layer.provide(testSettingsLayer(path))
    )
  )
)

/** A chain with a block a second whose block `n` has the time `n`; a payment is made at block 100. */
const createdAt = 100_000
const expiresAt = createdAt + 3_600_000
const lastOnTime = expiresAt / 1000 + 60

const block = (number: number) => ({ number, hash: `0x${number}`, time: number })

const start = Effect.gen(function* () {
  yield* TestClock.setTime(createdAt)
  const writer = yield* Writer
  const payment = yield* writer.write(
    Effect.gen(function* () {
      const tx = yield* Tx
      yield* tx.run("INSERT INTO accounts VALUES ('default', 'default', 0)")
      yield* tx.run("INSERT INTO wallets VALUES (?, 1)", [wallet])
      yield* LedgerRepo.startScan(network, block(100))
      const stored = yield* Repo.insert(newPayment, { wallet, index: 0 })
      return stored ?? (yield* Effect.dieMessage("not inserted"))
    })
  )
  const settlement = yield* Settlement
  yield* Effect.forkScoped(settlement.expire)
  return payment
})

const newPayment: Omit<Payment, "sequence" | "createdHead"> = {
  id: newPaymentId(),
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

/** What the watcher does at the end of a tick. The clock stands at the head's time. */
const scanTo = (head: number, transfers: ReadonlyArray<DatedTransfer> = []) =>
  Effect.gen(function* () {
    yield* TestClock.setTime(head * 1000)
    const writer = yield* Writer
    const settlement = yield* Settlement
    yield* writer.write(
      Effect.gen(function* () {
        const touched = yield* LedgerRepo.keepReceipts(network, transfers)
        yield* LedgerRepo.moveScan(network, block(head))
        yield* settlement.settle({ network, head: block(head), settled: block(head - confirmations + 1) }, touched)
      })
    )
    // Expiry follows in commits of its own: these give it all the turns it may want.
    yield* Effect.repeatN(writer.write(Effect.void), 5)
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
    const writer = yield* Writer
    const settlement = yield* Settlement
    yield* writer.write(
      Effect.gen(function* () {
        const touched = yield* LedgerRepo.orphanAbove(network, 119)
        yield* settlement.settle({ network, head: block(120), settled: block(118) }, touched)
      })
    )
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
          Repo.insert(
            { ...newPayment, id: newPaymentId(), merchantRef: `crowd-${i}`, address: `0xcrowd${i}` },
            { wallet, index: i + 1 }
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
