import { randomBytes } from "node:crypto"
import { expect, it } from "@effect/vitest"
import { Effect, Either } from "effect"
import * as UsageRepo from "../../src/Auth/UsageRepo.ts"
import { QuotaExceeded } from "../../src/Domain/Account.ts"
import type { Mode } from "../../src/Domain/Chain.ts"
import { newPaymentId } from "../../src/Domain/Ids.ts"
import type { Payment, PaymentStatus } from "../../src/Domain/Payment.ts"
import { Outbox } from "../../src/Events/Outbox.ts"
import * as Idempotency from "../../src/Http/IdempotencyRepo.ts"
import * as Payments from "../../src/Payments/PaymentsRepo.ts"
import { Reader, Tx, type Writer } from "../../src/Sql.ts"
import * as RetentionRepo from "../../src/Webhooks/queue/DeliveriesRepo.ts"
import { recordAttempts } from "../../src/Webhooks/queue/DeliveriesRepo.ts"
import { someNewPayment } from "../lib/payments.ts"
import { execute, inTransaction, rows } from "../lib/store.ts"
import { merchant } from "../lib/webhooks.ts"
import { onStore, register, storeTest } from "../Webhooks/endpoints.ts"

/** Used bytes of the file. */
const fileBytes = Effect.map(
  rows<{ bytes: number }>(
    "SELECT (page_count - freelist_count) * 4096 AS bytes FROM pragma_page_count, pragma_freelist_count"
  ),
  ([row]) => row?.bytes ?? 0
)

const usage = Effect.flatMap(Reader, (reader) => UsageRepo.of(reader, merchant.account, 1e9))

let made = 0

/** Stores a payment like a request with an Idempotency-Key. */
const add = (metadata: number, webhookUrl?: string, owner = merchant) =>
  Effect.map(Outbox, (outbox) => {
    const n = ++made
    const payment = someNewPayment({
      ...owner,
      id: newPaymentId(n),
      merchantRef: `order ${n}`,
      address: `0x${randomBytes(20).toString("hex")}`,
      createdAt: n,
      expiresAt: n + 3_600_000,
      metadata: JSON.stringify({ note: "x".repeat(metadata) }),
      webhookUrl
    })
    return Effect.gen(function* () {
      const stored = yield* Payments.insert(payment, { wallet: "w", index: n })
      if (stored === undefined) return yield* Effect.dieMessage("the payment is there already")
      yield* outbox.publish(stored, n)
      const body = JSON.stringify({ ...stored, amount: "1", floor: "1", received: "0", refunded: "0" })
      const answer = { status: 201, headers: { location: `/v1/payments/${payment.id}` }, body, hash: randomBytes(32) }
      yield* Idempotency.keep({ ...owner, route: "/v1/payments", key: payment.id }, answer, n)
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
        yield* outbox.publish(after, at)
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
        isRetried: true,
        startedAt: 1_700_000_000_000,
        endedAt: 1_700_000_000_100,
        status,
        address: "93.184.216.34",
        bodyStart: randomBytes(512).toString("hex")
      }))
      yield* inTransaction(recordAttempts(ended, 1_700_000_000_100, 1e9))
    }
  })

const [orders, books] = ["https://shop.example/orders", "https://shop.example/books"]

const endpointsAt = (urls: ReadonlyArray<string>) =>
  Effect.forEach(urls, (url) => register(url), { concurrency: 1, discard: true })

/** A payment goes through all statuses; `status` is the response of its receivers. */
const wholeLife = (payment: Payment, at: number, status = 200) =>
  Effect.gen(function* () {
    yield* move(yield* move(payment, "detecting", at), "expired", at)
    yield* attempt(payment, status)
  })

const nothingMore = () => Effect.void

it.scoped.each<
  readonly [
    name: string,
    shop: {
      readonly endpoints?: ReadonlyArray<string>
      readonly metadata?: (n: number) => number
      readonly ownUrl?: (n: number) => string
      readonly afterwards?: (payment: Payment, n: number) => ReturnType<typeof wholeLife>
    }
  ]
>([
  ["open payments without endpoints", {}],
  [
    "open payments with metadata and a webhookUrl",
    { metadata: (n) => (n * 37) % 900, ownUrl: () => "https://shop.example/hook" }
  ],
  ["open payments each with a webhookUrl at an origin of its own", { ownUrl: (n) => `https://shop${n}.example/hook` }],
  ["open payments with metadata of all lengths", { metadata: (n) => (n * 613) % 16_000 }],
  ["ended payments without endpoints", { afterwards: (payment, n) => wholeLife(payment, n) }],
  [
    "ended payments with two endpoints",
    {
      endpoints: [orders, books],
      metadata: (n) => (n * 37) % 900,
      afterwards: (payment, n) => wholeLife(payment, n)
    }
  ],
  [
    "ended payments with a receiver that fails",
    { endpoints: [orders], afterwards: (payment, n) => wholeLife(payment, n, 500) }
  ],
  [
    "a mix of all of them",
    {
      endpoints: [orders],
      metadata: (n) => (n % 10 === 0 ? 8_000 : (n * 37) % 500),
      ownUrl: () => "https://shop.example/hook",
      afterwards: (payment, n) => (n % 3 === 0 ? nothingMore() : wholeLife(payment, n, n % 3 === 1 ? 200 : 500))
    }
  ]
])("what is counted is within a tenth of what the file grows by: %s", ([, shop]) =>
  onStore(function* () {
    yield* endpointsAt(shop.endpoints ?? [])
    const before = yield* fileBytes
    const counted = (yield* usage).stored
    for (let n = 0; n < 120; n++) {
      const payment = yield* inTransaction(yield* add(shop.metadata?.(n) ?? 20, shop.ownUrl?.(n)))
      yield* shop.afterwards?.(payment, n) ?? nothingMore()
    }
    const share = ((yield* usage).stored - counted) / ((yield* fileBytes) - before)
    expect(share).toBeGreaterThan(0.9)
    expect(share).toBeLessThan(1.1)
  })
)

storeTest("what is counted decreases with deletions", function* () {
  yield* endpointsAt([orders, books])
  const before = yield* fileBytes
  for (let n = 0; n < 200; n++) yield* wholeLife(yield* inTransaction(yield* add((n * 37) % 900)), n)
  const until = Number.MAX_SAFE_INTEGER
  yield* Effect.repeat(inTransaction(RetentionRepo.forgetDeliveries(until, 500)), { while: (more) => more })
  let place: number | undefined
  do place = yield* inTransaction(RetentionRepo.forgetEvents(until, place, 500))
  while (place !== undefined)
  yield* Effect.repeat(inTransaction(Idempotency.forget(until, 500)), { while: (more) => more })
  // Payments and endpoints stay, and the newest event. Pages that are half empty now are not counted.
  const share = (yield* usage).stored / ((yield* fileBytes) - before)
  expect(share).toBeGreaterThan(0.8)
  expect(share).toBeLessThan(1.15)
})

storeTest(
  "keys, people, passkeys and their audit log are counted too, although they belong to no payment",
  function* () {
    const before = yield* fileBytes
    const inserted = Effect.gen(function* () {
      const tx = yield* Tx
      for (let n = 0; n < 2_000; n++) {
        const random = randomBytes(32)
        const person = `per_${random.toString("base64url").slice(0, 22)}`
        const name = `${n} ${"n".repeat((n * 7) % 90)}`
        yield* tx.run(
          `INSERT INTO api_keys (id, account_id, mode, name, hash, last_four, permissions, created_at, revoked_at)
         VALUES (?, 'default', 'test', ?, ?, 'abcd', 'payments:read,payments:write', ?, ?)`,
          [`key_${person.slice(4)}`, name, random, n, n]
        )
        yield* tx.run(
          "INSERT INTO people (id, name, role, account_id, created_at) VALUES (?, ?, 'viewer', 'default', ?)",
          [...[person, name], n]
        )
        yield* tx.run(
          `INSERT INTO passkeys (id, person_id, name, public_key, counter, created_at) VALUES (?, ?, ?, ?, 0, ?)`,
          [randomBytes(32).toString("base64url"), person, name, randomBytes(n % 10 === 0 ? 2_048 : 77), n]
        )
        yield* tx.run(
          `INSERT INTO audit (at, via, who, account_id, act, detail)
         VALUES (?, 'portal', ?, 'default', 'people invite', json_object('name', ?))`,
          [n, `${person} Ann`, name]
        )
      }
    })
    yield* inTransaction(inserted)
    const share = (yield* usage).stored / ((yield* fileBytes) - before)
    expect(share).toBeGreaterThan(0.9)
    expect(share).toBeLessThan(1.1)
    yield* execute("DELETE FROM passkeys")
    yield* execute("DELETE FROM people")
    yield* execute("DELETE FROM api_keys")
    const left = (yield* usage).stored
    expect(left).toBeGreaterThan(200_000)
    expect(left).toBeLessThan(600_000)
  }
)

const quota = 2_000_000
const longUrl = (n: number) => `https://hole${n}.example/${"h".repeat(2_000)}`
const withQuota = execute("UPDATE accounts SET quota_bytes = ?", [quota])

const isRefused = (error: unknown) => error instanceof QuotaExceeded

/** Repeats until the quota refuses it, and returns what was made. */
const untilRefused = <A, E, R>(make: (n: number) => Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const made: Array<A> = []
    while (true) {
      const result = yield* Effect.either(make(made.length))
      if (Either.isRight(result)) made.push(result.right)
      else if (isRefused(result.left)) return made
      else return yield* Effect.fail(result.left)
    }
  })

const create = Effect.flatMap(add(0), (one) =>
  inTransaction(Effect.zipRight(UsageRepo.keepWithin(merchant, quota), one))
)

storeTest("test mode is refused at half of the quota, and live mode goes on until all of it is used", function* () {
  yield* withQuota
  const store = (mode: Mode) =>
    Effect.flatMap(add(1_000, undefined, { ...merchant, mode }), (one) =>
      inTransaction(Effect.zipRight(UsageRepo.keepWithin({ ...merchant, mode }, quota), one))
    )
  yield* store("live")
  const trials = yield* untilRefused(() => store("test"))
  const refused = yield* Effect.flip(store("test"))
  expect(refused).toMatchObject({ by: "test", message: expect.stringContaining("live mode goes on") })
  const sales = yield* untilRefused(() => store("live"))
  expect(sales.length / trials.length).toBeCloseTo(1, 1)
  expect(yield* Effect.flip(store("live"))).toMatchObject({ by: expect.not.stringContaining("test") })
})

storeTest("an account without anything live uses all of its quota in test mode", function* () {
  yield* withQuota
  yield* untilRefused(() => create)
  expect(UsageRepo.shareOf({ ...(yield* usage), quota })).toBeGreaterThan(0.99)
})

/** Each receiver sends a different response to every attempt. */
const failAll = (payments: ReadonlyArray<Payment>) =>
  Effect.forEach(payments, (payment) => wholeLife(payment, 6, 500), { concurrency: 1, discard: true })

type Attack = Effect.Effect<
  void,
  unknown,
  Effect.Effect.Context<ReturnType<typeof register>> | Outbox | Reader | Writer
>

it.scoped.each<readonly [name: string, attack: Attack]>([
  [
    "as many endpoints with as long URLs as there may be, then payments",
    Effect.gen(function* () {
      yield* endpointsAt(Array.from({ length: 50 }, (_, n) => longUrl(n)))
      const payments = yield* untilRefused(() => create)
      expect(payments.length).toBeGreaterThan(5)
      yield* failAll(payments)
    })
  ],
  [
    "payments, then endpoints for them",
    Effect.gen(function* () {
      const made: Array<Payment> = []
      while ((yield* usage).stored < quota / 20) made.push(yield* create)
      yield* untilRefused((n) => register(longUrl(n)))
      made.push(...(yield* untilRefused(() => create)))
      yield* failAll(made)
    })
  ],
  [
    "deliveries that wait, then all of their attempts",
    Effect.gen(function* () {
      yield* endpointsAt(Array.from({ length: 50 }, (_, n) => `https://h${n}.example/`))
      const payments = yield* untilRefused(() =>
        Effect.tap(create, (payment) =>
          Effect.flatMap(move(payment, "detecting", 5), (seen) => move(seen, "expired", 6))
        )
      )
      yield* Effect.forEach(payments, (payment) => attempt(payment, 500), { concurrency: 1 })
    })
  ]
])("the worst that an account can store takes no more than seven times its quota: %s", ([, attack]) =>
  onStore(function* () {
    const before = yield* fileBytes
    yield* withQuota
    yield* Effect.orDie(attack)
    const taken = (yield* fileBytes) - before
    expect(taken).toBeGreaterThan(quota)
    expect(taken).toBeLessThan(7 * quota)
  })
)

storeTest("beyond its quota responses of receivers are not stored, and payments go on", function* () {
  yield* endpointsAt([orders])
  const payment = yield* inTransaction(yield* add(0))
  yield* execute("UPDATE accounts SET quota_bytes = 1")
  yield* wholeLife(payment, 6, 500)
  const kept = yield* rows("SELECT DISTINCT status, body_start, body_of FROM attempts")
  expect(kept).toEqual([{ status: 500, body_start: null, body_of: null }])
  expect(yield* rows("SELECT status FROM payments")).toEqual([{ status: "expired" }])
})
