import { randomBytes } from "node:crypto"
import { expect, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import * as UsageRepo from "../../src/Auth/UsageRepo.ts"
import { QuotaExceeded } from "../../src/Domain/AccountErrors.ts"
import { newPaymentId } from "../../src/Domain/Ids.ts"
import type { Payment, PaymentStatus } from "../../src/Domain/Payment.ts"
import { Outbox } from "../../src/Events/Outbox.ts"
import * as Idempotency from "../../src/Http/IdempotencyRepo.ts"
import * as Payments from "../../src/Payments/PaymentsRepo.ts"
import { Reader, Tx } from "../../src/Sql.ts"
import { recordAttempts } from "../../src/Webhooks/queue/DeliveriesRepo.ts"
import * as RetentionRepo from "../../src/Webhooks/queue/DeliveryRetentionRepo.ts"
import { someNewPayment } from "../lib/payments.ts"
import { inTransaction, rows } from "../lib/store.ts"
import { merchant } from "../lib/webhooks.ts"
import { onStore, register } from "../Webhooks/endpoints.ts"

/** Used bytes of the file. */
const fileBytes = Effect.map(
  rows<{ bytes: number }>(
    "SELECT (page_count - freelist_count) * 4096 AS bytes FROM pragma_page_count, pragma_freelist_count"
  ),
  ([row]) => row?.bytes ?? 0
)

const usage = Effect.flatMap(Reader, (reader) =>
  Effect.map(UsageRepo.all(reader), ([first]) => first ?? { account: "", stored: 0, reserved: 0 })
)

let made = 0

/** Stores a payment like a request with an Idempotency-Key. */
const add = (metadata: number, webhookUrl?: string) =>
  Effect.map(Outbox, (outbox) => {
    const n = ++made
    const payment = someNewPayment({
      ...merchant,
      id: newPaymentId(n),
      merchantRef: `order ${n}`,
      address: `0x${randomBytes(20).toString("hex")}`,
      createdAt: n,
      expiresAt: n + 3_600_000,
      metadata: JSON.stringify({ note: "x".repeat(metadata) }),
      webhookUrl
    })
    return Effect.gen(function* () {
      const tx = yield* Tx
      const stored = yield* Payments.insert(tx, payment, { wallet: "w", index: n })
      if (stored === undefined) return yield* Effect.dieMessage("the payment is there already")
      yield* outbox.publish(tx, stored, n)
      const body = JSON.stringify({ ...stored, amount: "1" })
      const answer = { status: 201, headers: { location: `/v1/payments/${payment.id}` }, body, hash: randomBytes(32) }
      yield* Idempotency.keep({ ...merchant, route: "/v1/payments", key: payment.id }, answer, n)
      return stored
    })
  })

const move = (payment: Payment, status: PaymentStatus, at: number) =>
  Effect.gen(function* () {
    const outbox = yield* Outbox
    const after = {
      ...payment,
      status,
      txHash: `0x${randomBytes(32).toString("hex")}`,
      amountReceived: 1_000n,
      endedAt: status === "expired" ? at : undefined
    }
    yield* inTransaction(
      Effect.gen(function* () {
        yield* Payments.update(payment, after, at)
        yield* outbox.publish(yield* Tx, after, at)
      })
    )
    return after
  })

/** Makes all attempts of a payment's deliveries, each with a different response of 1 KB. */
const attempt = (payment: Payment, status: number) =>
  Effect.gen(function* () {
    const due = rows<{ sequence: number; attempts: number }>(
      "SELECT sequence, attempts FROM deliveries WHERE payment_id = ? AND next_attempt_at IS NOT NULL",
      [payment.id]
    )
    for (let found = yield* due; found.length > 0; found = yield* due) {
      const ended = found.map(({ attempts, sequence }) => ({
        sequence,
        attempts: attempts + 1,
        isRedelivery: false,
        startedAt: 1_700_000_000_000,
        endedAt: 1_700_000_000_100,
        status,
        address: "93.184.216.34",
        bodyStart: randomBytes(512).toString("hex")
      }))
      yield* inTransaction(recordAttempts(ended, 1_700_000_000_100))
    }
  })

it.scoped("the storage use of an account is known within 5 %, and decreases with deletions", () =>
  onStore(function* () {
    for (const path of ["orders", "books"]) yield* register(`https://shop.example/${path}`)
    const before = yield* fileBytes
    const payments: Array<Payment> = []
    for (let i = 0; i < 400; i++) {
      const pending = yield* inTransaction(yield* add((i * 37) % 900))
      const detecting = yield* move(pending, "detecting", i)
      payments.push(yield* move(detecting, "expired", i))
      yield* attempt(pending, 200)
    }
    const taken = (yield* fileBytes) - before
    const { reserved, stored } = yield* usage
    expect(reserved).toBe(0)
    expect(stored / taken).toBeGreaterThan(0.95)
    expect(stored / taken).toBeLessThan(1.05)

    const until = Number.MAX_SAFE_INTEGER
    yield* Effect.repeat(inTransaction(RetentionRepo.forgetDeliveries(until, 500)), { while: (more) => more })
    let place: RetentionRepo.RetentionCursor | undefined
    do place = yield* inTransaction(RetentionRepo.forgetEvents(until, place, 500))
    while (place !== undefined)
    yield* Effect.repeat(inTransaction(Idempotency.forget(until, 500)), { while: (more) => more })
    // Payments and endpoints stay, and the newest event.
    const left = (yield* fileBytes) - before
    const now = yield* usage
    expect(now.stored / left).toBeGreaterThan(0.9)
    expect(now.stored / left).toBeLessThan(1.15)
  })
)

/** Large enough for a few payments of maximum size. */
const quota = 40_000_000
const longUrl = (n: number) => `https://hole${n}.example/${"h".repeat(2_000)}`

/** Creates payments of maximum size until one is refused, and returns those that were created. */
const fill = Effect.gen(function* () {
  const payments: Array<Payment> = []
  while (true) {
    const one = yield* add(16_000, longUrl(99))
    const exit = yield* Effect.exit(inTransaction(Effect.zipLeft(one, UsageRepo.keepWithin(merchant.account, quota))))
    if (Exit.isFailure(exit)) return payments
    payments.push(exit.value)
  }
})

/** Each payment gets the maximum of later data: two more events, and six attempts of each delivery. */
const goOn = (payments: ReadonlyArray<Payment>) =>
  Effect.gen(function* () {
    for (const payment of payments) {
      const detecting = yield* move(payment, "detecting", 5)
      yield* move(detecting, "expired", 6)
      yield* attempt(payment, 500)
    }
  })

it.scoped("the worst that one key can store takes no more than its account's quota, later events included", () =>
  onStore(function* () {
    const before = yield* fileBytes
    for (let i = 0; i < 50; i++) yield* register(longUrl(i))
    const payments = yield* fill
    expect(payments.length).toBeGreaterThan(10)
    yield* goOn(payments)
    const taken = (yield* fileBytes) - before
    expect(taken).toBeLessThan(quota)
    // Not far below it either: the reservation is close to the maximum.
    expect(taken).toBeGreaterThan(0.5 * quota)
    expect((yield* usage).reserved).toBe(0)
  })
)

it.scoped("endpoints registered after the payments are refused at the quota", () =>
  onStore(function* () {
    const before = yield* fileBytes
    const payments = yield* fill
    const added = yield* Effect.exit(
      inTransaction(
        Effect.gen(function* () {
          const tx = yield* Tx
          yield* tx.run(
            `INSERT INTO endpoints (id, account_id, mode, url, events, secret, created_at)
               VALUES ('wh_1', ?, ?, 'https://a.example/', '["payment.expired"]', x'00', 0)`,
            [merchant.account, merchant.mode]
          )
          yield* UsageRepo.keepWithin(merchant.account, quota)
        })
      )
    )
    expect(added).toEqual(Exit.fail(new QuotaExceeded({ quota })))
    yield* goOn(payments)
    expect((yield* fileBytes) - before).toBeLessThan(quota)
  })
)
