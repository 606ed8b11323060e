import Database from "better-sqlite3"
import { Context, Effect, Fiber, Layer, Queue, Redacted, TestClock } from "effect"
import type { Owner } from "../../src/Domain/Account.ts"
import type { PaymentEventKind } from "../../src/Domain/Event.ts"
import { AccountId } from "../../src/Domain/Ids.ts"
import type { Payment, PaymentStatus } from "../../src/Domain/Payment.ts"
import { Outbox } from "../../src/Events/Outbox.ts"
import * as Payments from "../../src/Payments/PaymentsRepo.ts"
import { Secrets } from "../../src/Secrets.ts"
import { MasterKey, type SettingsShape } from "../../src/Settings.ts"
import * as Sql from "../../src/Sql.ts"
import { type Db, type Param, type Reader, StoreUnavailable, Tx, Writer } from "../../src/Sql.ts"
import { Dispatcher } from "../../src/Webhooks/Dispatcher.ts"
import { DeliveryBell } from "../../src/Webhooks/queue/DeliveryBell.ts"
import { SigningKeys } from "../../src/Webhooks/SigningKeys.ts"
import {
  type AttemptOutcome,
  DeliveryClient,
  type DeliveryRequest
} from "../../src/Webhooks/transport/DeliveryClient.ts"
import { NameNotResolved, Resolver, TargetGuard } from "../../src/Webhooks/transport/TargetGuard.ts"
import { Webhooks } from "../../src/Webhooks.ts"
import { someNewPayment } from "./payments.ts"
import { testSettingsLayer, testWebhooks } from "./settings.ts"
import { execute, migratedDatabase, rows, temporaryDatabase, type Yielded } from "./store.ts"

export const merchant: Owner = { account: AccountId.make("default"), mode: "test" }

/** Another account of the same daemon. */
export const neighbour: Owner = { account: AccountId.make("neighbour"), mode: "test" }

/** A client that answers as the test says, in no time unless the answer takes some. */
export const stubClient = (answer: (request: DeliveryRequest) => Effect.Effect<AttemptOutcome>) =>
  Layer.succeed(DeliveryClient, { post: answer })

/** A client that answers as the test says, and remembers what it sent. */
export const rememberingClient = (answer: (request: DeliveryRequest) => Effect.Effect<AttemptOutcome>) => {
  const sent: Array<DeliveryRequest> = []
  const post = (request: DeliveryRequest) =>
    Effect.suspend(() => {
      sent.push(request)
      return answer(request)
    })
  return { sent, layer: stubClient(post) }
}

/** A resolver that knows these names. */
export const stubResolver = (names: Readonly<Record<string, ReadonlyArray<string>>>) =>
  Layer.succeed(Resolver, {
    resolve: (name) => {
      const found = names[name]
      return found === undefined ? new NameNotResolved({ reason: "ENOTFOUND" }) : Effect.succeed(found)
    }
  })

/** Reports every command that was acknowledged: what a test waits for, since no clock drives the store. */
class Acknowledged extends Context.Tag("test/Acknowledged")<Acknowledged, Queue.Queue<void>>() {
  static readonly layer = Layer.effect(Acknowledged, Queue.unbounded<void>())
}

/** Whether commands are refused as a full disk refuses them, and how many have been. */
export class FullStore extends Context.Reference<FullStore>()("test/FullStore", {
  defaultValue: () => ({ isFull: false, refused: 0 })
}) {}

/** Milliseconds that a command takes by the test's clock, as on a slow disk. */
export class SlowStore extends Context.Reference<SlowStore>()("test/SlowStore", {
  defaultValue: () => ({ takes: 0 })
}) {}

const heardWriter = Layer.effect(
  Writer,
  Effect.gen(function* () {
    const writer = yield* Writer
    const acknowledged = yield* Acknowledged
    const store = yield* FullStore
    const slow = yield* SlowStore
    return {
      write: (command) =>
        Effect.suspend(() => {
          if (!store.isFull) {
            const written = slow.takes === 0 ? writer.write(command) : Effect.delay(writer.write(command), slow.takes)
            return Effect.tap(written, () => Queue.offer(acknowledged, undefined))
          }
          store.refused += 1
          return new StoreUnavailable({ code: "SQLITE_FULL", message: "full" })
        })
    }
  })
)

const account = Layer.effectDiscard(
  Effect.gen(function* () {
    for (const { account } of [merchant, neighbour]) {
      yield* execute("INSERT INTO accounts (id, name, created_at) VALUES (?, 'Shop', 0) ON CONFLICT DO NOTHING", [
        account
      ])
    }
    yield* execute("INSERT INTO wallets (fingerprint, next_index) VALUES ('w', 0) ON CONFLICT DO NOTHING")
  })
)

const storeAt = (path: string) =>
  account.pipe(Layer.provideMerge(heardWriter), Layer.provideMerge(Layer.merge(Sql.layer(path), Acknowledged.layer)))

/** The webhooks of a daemon on the database at `path`, on this client and resolver. */
export const webhooksOn = <E, R>(
  path: string,
  client: Layer.Layer<DeliveryClient, E, R>,
  webhooks: Partial<SettingsShape["webhooks"]> = {}
) =>
  Layer.merge(Webhooks.layer, Dispatcher.layer).pipe(
    Layer.provideMerge(client),
    Layer.provideMerge(SigningKeys.layer),
    Layer.provideMerge(TargetGuard.layer),
    Layer.provideMerge(Layer.provideMerge(Outbox.layer, DeliveryBell.layer)),
    Layer.provideMerge(Secrets.layer),
    Layer.provideMerge(stubResolver({})),
    Layer.provideMerge(testSettingsLayer(path, { webhooks: testWebhooks(webhooks) })),
    Layer.provideMerge(storeAt(path)),
    Layer.provide(Layer.succeed(MasterKey, Redacted.make(new Uint8Array(32).fill(7))))
  )

let made = 0

/** A payment of the merchant's or another account's, in the store, without an event yet. */
export const newPayment = (webhookUrl?: string, owner = merchant) =>
  Effect.gen(function* () {
    const writer = yield* Writer
    const n = ++made
    const payment = someNewPayment({
      ...owner,
      merchantRef: `order ${n}`,
      amount: 1_000_000n,
      currency: "USDC",
      address: `0x${n.toString(16).padStart(40, "0")}`,
      createdAt: 0,
      expiresAt: 3_600_000,
      metadata: JSON.stringify({ note: "ünïcödé 💶" }),
      webhookUrl
    })
    const stored = yield* writer.write(Payments.insert(payment, { wallet: "w", index: n }))
    return stored ?? (yield* Effect.dieMessage("the payment is there already"))
  })

/** Announces that the payment has reached `status`. */
export const publish = (payment: Payment, status: PaymentStatus, at = 0, kind?: PaymentEventKind) =>
  Effect.gen(function* () {
    const outbox = yield* Outbox
    const writer = yield* Writer
    const transition = Effect.flatMap(Tx, (tx) =>
      tx.run(
        `INSERT INTO transitions (payment_id, ordinal, from_status, to_status, at)
         SELECT ?, count(*), '', ?, ? FROM transitions WHERE payment_id = ?`,
        [payment.id, status, at, payment.id]
      )
    )
    yield* writer.write(Effect.zipRight(transition, outbox.publish({ ...payment, status }, at, kind)))
  })

export interface DeliveryRow {
  readonly id: string
  readonly sequence: number
  readonly event_id: string
  readonly endpoint_id: string | null
  readonly own_url: 0 | 1
  readonly target: string
  readonly url: string
  readonly status: string
  readonly attempts: number
  readonly next_attempt_at: number | null
  readonly after_sequence: number | null
  readonly redeliveries: number
  readonly redelivery: 0 | 1
  readonly resume_at: number | null
  readonly done_at: number | null
}

export const deliveries = rows<DeliveryRow>("SELECT * FROM deliveries ORDER BY sequence")

export interface AttemptRow {
  readonly delivery: number
  readonly number: number
  readonly redelivery: 0 | 1
  readonly address: string | null
  readonly started_at: number
  readonly ended_at: number
  readonly status: number | null
  readonly error: string | null
  readonly body_start: string | null
}

export const attempts = rows<AttemptRow>("SELECT * FROM attempts ORDER BY started_at, delivery, number")

/** Waits until the store is as the test wants it, looking again whenever a command was acknowledged. */
export const untilStored = <R>(isSo: Effect.Effect<boolean, Sql.StoreUnavailable, R>) =>
  Effect.gen(function* () {
    const acknowledged = yield* Acknowledged
    while (!(yield* isSo)) yield* Queue.take(acknowledged)
  })

/** Waits until so many attempts are stored. */
export const untilRecorded = (count: number): Effect.Effect<void, Sql.StoreUnavailable, Reader | Acknowledged> =>
  untilStored(Effect.map(attempts, ({ length }) => length >= count))

/** How SQLite goes about a query in an empty file, where the stores of tests are in PostgreSQL. */
const planElsewhere = (sql: string, params: ReadonlyArray<Param>) =>
  Effect.scoped(
    Effect.map(migratedDatabase, (path) => {
      const database = new Database(path)
      const plan = database.prepare<Array<unknown>, { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).all(...params)
      database.close()
      return plan
    })
  )

const { TEST_POSTGRES } = process.env

/** Notes how SQLite goes about every query of `db`, step by step; the plans are made by `reader`. */
export const explained = (db: Db, reader: Db, steps: Array<string>): Db => {
  const planOf =
    TEST_POSTGRES === undefined
      ? (sql: string, params: ReadonlyArray<Param>) =>
          reader.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, params)
      : planElsewhere
  const explain = (sql: string, params: ReadonlyArray<Param> = []) =>
    Effect.map(planOf(sql, params), (plan) => {
      steps.push(...plan.map(({ detail }) => detail))
    })
  return {
    ...db,
    all: <Row extends object>(sql: string, params?: ReadonlyArray<Param>) =>
      Effect.zipRight(explain(sql, params), db.all<Row>(sql, params)),
    get: <Row extends object>(sql: string, params?: ReadonlyArray<Param>) =>
      Effect.zipRight(explain(sql, params), db.get<Row>(sql, params)),
    run: (sql, params) => Effect.zipRight(explain(sql, params), db.run(sql, params))
  }
}

/** Stops a dispatcher, whose grace passes on the test's clock. */
export const stopped = <E>(worker: Fiber.Fiber<never, E>) =>
  Effect.gen(function* () {
    const stop = yield* Effect.fork(Fiber.interrupt(worker))
    yield* TestClock.adjust("5 seconds")
    yield* Fiber.join(stop)
  })

/** Runs a test beside the dispatcher; a defect of the one ends the other. */
export const besideDispatcher = <A, E, R>(test: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const { run } = yield* Dispatcher
    const worker = yield* Effect.forkDaemon(run)
    return yield* Effect.ensuring(Effect.raceFirst(test, Fiber.join(worker)), stopped(worker))
  })

interface SendingWith {
  readonly layer: Layer.Layer<DeliveryClient>
  readonly webhooks?: Partial<SettingsShape["webhooks"]>
}

/** A test beside a dispatcher on a new store. */
export const dispatching = <Eff extends Yielded, A>(
  { layer, webhooks }: SendingWith,
  test: () => Generator<Eff, A, never>
) =>
  Effect.flatMap(temporaryDatabase, (path) =>
    besideDispatcher(Effect.gen(test)).pipe(Effect.provide(webhooksOn(path, layer, webhooks)))
  )
