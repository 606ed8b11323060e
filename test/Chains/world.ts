import {
  Clock,
  Context,
  Deferred,
  Duration,
  Effect,
  Exit,
  HashMap,
  Layer,
  Logger,
  Option,
  Queue,
  Redacted,
  TestClock
} from "effect"
import type { Touched } from "../../src/Chains/ledger/LedgerRepo.ts"
import { type ScanResult, Settlement } from "../../src/Chains/ledger/SettlementTag.ts"
import { Tokens } from "../../src/Chains/ledger/Tokens.ts"
import { WatchedAddresses } from "../../src/Chains/ledger/WatchedAddresses.ts"
import { Networks } from "../../src/Chains/providers/Networks.ts"
import type { Rpc } from "../../src/Chains/rpc/Rpc.ts"
import { defectMessage } from "../../src/Chains/watcher/Watcher.ts"
import { Chains } from "../../src/Chains.ts"
import { newPaymentId, type PaymentId } from "../../src/Domain/Ids.ts"
import type { NewPayment, PaymentStatus } from "../../src/Domain/Payment.ts"
import { Outbox } from "../../src/Events/Outbox.ts"
import { paymentObject } from "../../src/Events/paymentObject.ts"
import { eventLoopTurn } from "../../src/lib/waiting.ts"
import * as Payments from "../../src/Payments/PaymentsRepo.ts"
import { settlementLayer } from "../../src/Payments/Settlement.ts"
import { type ChainSettings, Settings, type SettingsShape } from "../../src/Settings.ts"
import * as Sql from "../../src/Sql.ts"
import { Reader, Tx, Writer } from "../../src/Sql.ts"
import { someNewPayment } from "../lib/payments.ts"
import { quickClock } from "../lib/quickClock.ts"
import { change } from "../lib/rows.ts"
import { testChain, testSettings } from "../lib/settings.ts"

/** A chain with three confirmations, polled every second. */
export const chainSettings = (over: Partial<ChainSettings> = {}): ChainSettings =>
  testChain({ chain: "ethereum", rpcUrls: [Redacted.make("model:ethereum")], chainId: 77, ...over })

/** Money counts as late for three days. */
export const settings = (
  chains: ReadonlyArray<ChainSettings>,
  payments: Partial<SettingsShape["payments"]> = {}
): SettingsShape =>
  testSettings("", {
    payments: {
      settleGrace: Duration.seconds(60),
      lateWindow: Duration.days(3),
      toleranceBps: 0,
      soleProviderPatience: Duration.minutes(10),
      // Model chains may be mined hours ahead of a test clock.
      clockTolerance: Duration.days(3650),
      lookAhead: 200,
      dustFloorUsd: "0.10",
      ...payments
    },
    chains
  })

/** What a commit passed to the settlement. */
export interface Settled extends ScanResult {
  readonly touched: ReadonlyArray<Touched>
}

/** What has been committed, in order; waiting for the next needs no clock. */
export class Commits extends Context.Tag("test/Chains/Commits")<Commits, Queue.Queue<Settled>>() {}

/** The end of the watchers, which is always a defect. */
class Stopped extends Context.Tag("test/Chains/Stopped")<Stopped, Deferred.Deferred<never>>() {}

/** When each of the watchers' sleeps will end, Unix milliseconds, and how many of them sleep when there is nothing to do. */
class Sleeps extends Context.Tag("test/Chains/Sleeps")<
  Sleeps,
  { readonly ends: Set<{ readonly at: number }>; all: number }
>() {}

const commits = Layer.mergeAll(
  Layer.effect(Commits, Queue.unbounded<Settled>()),
  Layer.effect(Stopped, Deferred.make<never>()),
  Layer.sync(Sleeps, () => ({ ends: new Set<{ readonly at: number }>(), all: 0 }))
)

/** A settlement that only records what is passed to it, once that is committed. */
export const notingSettlement = Layer.effect(
  Settlement,
  Effect.map(Commits, (queue) => ({
    settle: (scan, touched) =>
      Effect.map(Tx, (tx) => tx.afterCommit(() => void queue.unsafeOffer({ ...scan, touched: [...touched] }))),
    refundsChanged: () => Effect.void,
    expire: Effect.never
  }))
)

/** The statuses that payments were announced in, in order. */
export class Announced extends Context.Tag("test/Chains/Announced")<Announced, Array<PaymentStatus>>() {}

/** The real settlement, with a recording outbox; commits are reported after it. */
export const realSettlement = Layer.effect(
  Settlement,
  Effect.gen(function* () {
    const queue = yield* Commits
    const settlement = yield* Settlement
    return {
      ...settlement,
      settle: (scan, touched) =>
        Effect.gen(function* () {
          const tx = yield* Tx
          yield* settlement.settle(scan, touched)
          tx.afterCommit(() => void queue.unsafeOffer({ ...scan, touched: [...touched] }))
        })
    }
  })
).pipe(
  Layer.provide(settlementLayer),
  Layer.provide(
    Layer.effect(
      Outbox,
      Effect.map(Announced, (announced) => ({
        publish: (payment) =>
          Effect.sync(() => {
            announced.push(payment.status)
            return paymentObject(payment, testSettings(""))
          }),
        publishInvoice: () => Effect.dieMessage("there are no invoices"),
        publishPlugin: () => Effect.dieMessage("there are no plugins"),
        tellPlugins: () => Effect.void,
        listen: () => Effect.succeed(Effect.never)
      }))
    )
  ),
  Layer.provideMerge(Layer.sync(Announced, () => []))
)

/** Logs nothing, and treats errors that the watchers would attribute to a provider as their end. */
const noDefects = Layer.unwrapEffect(
  Effect.map(Stopped, (stopped) =>
    Logger.replace(
      Logger.defaultLogger,
      Logger.make(({ annotations, message }) => {
        if (String(message) !== defectMessage) return
        Deferred.unsafeDone(
          stopped,
          Exit.die(new Error(String(Option.getOrUndefined(HashMap.get(annotations, "cause")))))
        )
      })
    )
  )
)

/** Everything that watches, on the database file at `path`. */
export const world = <S, E, R>(
  path: string,
  chains: ReadonlyArray<ChainSettings>,
  rpc: Layer.Layer<Rpc>,
  settlement: Layer.Layer<Settlement | S, E, R>,
  payments: Partial<SettingsShape["payments"]> = {}
) =>
  Chains.layer.pipe(
    Layer.provideMerge(Layer.mergeAll(WatchedAddresses.layer, Tokens.layer, Networks.layer)),
    Layer.provideMerge(settlement),
    Layer.provideMerge(noDefects),
    Layer.provideMerge(commits),
    Layer.provideMerge(quickClock),
    Layer.provideMerge(Layer.mergeAll(Sql.layer(path), Layer.succeed(Settings, settings(chains, payments)), rpc))
  )

/** Runs the watchers until the scope closes. */
export const watch = Effect.gen(function* () {
  const chains = yield* Chains
  const stopped = yield* Stopped
  const { chains: configured } = yield* Settings
  const sleeps = yield* Sleeps
  // Also those who look at standbys, and the worker that removes the addresses of payments that ended long ago.
  sleeps.all = 2 * configured.length + 1
  yield* chains.run.pipe(
    Effect.withClock(noting(yield* Effect.clock, sleeps.ends)),
    Effect.onError((cause) => Deferred.failCause(stopped, cause)),
    Effect.forkScoped
  )
})

/** The same clock, which records the sleeping watchers. */
const noting = (clock: Clock.Clock, ends: Set<{ readonly at: number }>): Clock.Clock => ({
  [Clock.ClockTypeId]: Clock.ClockTypeId,
  unsafeCurrentTimeMillis: () => clock.unsafeCurrentTimeMillis(),
  currentTimeMillis: clock.currentTimeMillis,
  unsafeCurrentTimeNanos: () => clock.unsafeCurrentTimeNanos(),
  currentTimeNanos: clock.currentTimeNanos,
  sleep: (duration) =>
    Effect.acquireUseRelease(
      Effect.map(clock.currentTimeMillis, (now) => {
        const end = { at: now + Duration.toMillis(duration) }
        ends.add(end)
        return end
      }),
      () => clock.sleep(duration),
      (end) => Effect.sync(() => void ends.delete(end))
    )
})

const unlessStopped = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.flatMap(Stopped, (stopped) => Effect.raceFirst(effect, Deferred.await(stopped)))

/** The next commit. */
export const nextCommit = unlessStopped(Effect.flatMap(Commits, Queue.take))

/** Waits, without a clock, until something holds. */
export const until = <A, E, R>(what: Effect.Effect<A, E, R>, holds: (found: A) => boolean) => {
  const look: Effect.Effect<A, E, R> = Effect.flatMap(what, (found) =>
    holds(found) ? Effect.succeed(found) : Effect.zipRight(eventLoopTurn, look)
  )
  return unlessStopped(look)
}

/**
 * Lets time go on, no sooner than all watchers wait for it: what they do takes none, however long it takes this machine.
 * They have done what they do at the new time before it returns.
 */
export const pass = Effect.fnUntraced(function* (duration: Duration.DurationInput) {
  const { all, ends } = yield* Sleeps
  const asleep = until(
    Effect.map(Clock.currentTimeMillis, (now) => Array.from(ends, ({ at }) => at).filter((at) => at > now)),
    (later) => later.length >= all
  )
  const end = (yield* Clock.currentTimeMillis) + Duration.toMillis(duration)
  let now: number
  do {
    now = Math.min(end, ...(yield* asleep))
    yield* TestClock.setTime(now)
  } while (now < end)
  yield* asleep
})

/** Waits for the commit whose head is `number`, and returns it. */
export const committedTo = (number: number) =>
  Effect.repeat(nextCommit, { until: (commit) => commit.head.number === number })

/** Stores a payment with its account and its wallet, as creating one does. `behind`: milliseconds of this machine's clock. */
export const insertPayment = Effect.fnUntraced(function* (
  { createdAt = 0, ...over }: Partial<NewPayment> & Pick<NewPayment, "address">,
  behind?: number
) {
  const tx = yield* Tx
  const id = newPaymentId(createdAt)
  yield* tx.run("INSERT INTO accounts (id, name, created_at) VALUES ('default', 'Shop', 0) ON CONFLICT DO NOTHING")
  yield* tx.run("INSERT INTO wallets (fingerprint, next_index) VALUES ('w', 0) ON CONFLICT DO NOTHING")
  const index = yield* tx.get<{ n: number }>("SELECT count(*) AS n FROM payments")
  const made = someNewPayment({ id, merchantRef: id, createdAt, ...over })
  const payment = yield* Payments.insert(made, { wallet: "w", index: index?.n ?? 0 }, behind)
  return payment ?? (yield* Effect.dieMessage("the payment is there already"))
})

/** A payment as the API stores it: watched, and announced to the watchers with its commit. */
export const pay = Effect.fnUntraced(function* (
  address: string,
  {
    /** Milliseconds. */
    expiresIn = 3_600_000,
    ...over
  }: Partial<Pick<NewPayment, "amount" | "chain" | "currency" | "mode">> & { readonly expiresIn?: number } = {}
) {
  const writer = yield* Writer
  const matchSet = yield* WatchedAddresses
  const chains = yield* Chains
  const createdAt = yield* Clock.currentTimeMillis
  const made = { mode: "test", amount: 100n, currency: "ETH", chain: "ethereum", ...over } as const
  const { chain, currency, mode } = made
  const token = (yield* Tokens).offered({ chain, mode }, currency)
  return yield* writer.write(
    Effect.gen(function* () {
      const tx = yield* Tx
      const payment = yield* insertPayment(
        { ...made, token, address, createdAt, expiresAt: createdAt + expiresIn },
        chains.behind({ chain, mode })
      )
      tx.afterCommit(() => {
        matchSet.add(mode, address)
        chains.wake({ chain, mode })
      })
      return payment
    })
  )
})

/** Ends a payment, as a settlement does. */
export const end = (id: PaymentId, at: number) =>
  change("UPDATE payments SET status = 'expired', ended_at = ? WHERE id = ?", at, id)

interface ReceiptRow {
  readonly position: string
  readonly currency: string
  readonly amount: string
  readonly canonical: number
  readonly block_number: number
  readonly block_hash: string
  readonly tx_hash: string
}

/** The whole ledger, orphaned rows included, by block and position. */
export const ledger = Effect.flatMap(Reader, (reader) =>
  reader.all<ReceiptRow>(
    `SELECT position, currency, amount, canonical, block_number, block_hash, tx_hash FROM receipts
     ORDER BY block_number, canonical, position`
  )
)

/** The checkpoint. */
export const scanned = Effect.flatMap(Reader, (reader) =>
  reader.get<{ start_number: number; head_number: number; head_hash: string }>(
    "SELECT start_number, head_number, head_hash FROM scans"
  )
)

export const paymentById = (id: PaymentId) => Effect.flatMap(Reader, (reader) => Payments.byId(reader, id))
