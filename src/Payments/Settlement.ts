import { Clock, Context, Duration, Effect, Layer, Queue, Schedule } from "effect"
import * as LedgerRepo from "../Chains/LedgerRepo.ts"
import { type Network, networkKey } from "../Domain/Chain.ts"
import type { PaymentId } from "../Domain/Ids.ts"
import type { Payment } from "../Domain/Payment.ts"
import type { BlockRef } from "../Domain/Receipt.ts"
import { Outbox } from "../Events/Outbox.ts"
import { Settings } from "../Settings.ts"
import { type StoreUnavailable, Tx, Writer } from "../Sql.ts"
import * as Repo from "./PaymentsRepo.ts"
import { advance, type Horizon } from "./statusMachine.ts"

/** A chain's new scan, as the watcher has just stored it. */
export interface ScanResult {
  readonly network: Network
  readonly head: BlockRef
  /** The newest block that has the chain's confirmations. */
  readonly settled: BlockRef | undefined
}

/** Payments that one commit may end: a chain that comes back after a day must not hold up everybody's writes. */
const expiryChunk = 100
/** Pause before expiry tries again when the store is unavailable. */
const storeRetry = Duration.seconds(1)

/**
 * Turns the ledger into transitions. Each is stored with its event and its deliveries in one transaction, and is always
 * recomputed there from the rows.
 */
export class Settlement extends Context.Tag("tilld/Payments/Settlement")<
  Settlement,
  {
    /**
     * Runs inside the transaction that stores a scan: settles the payments whose receipts that scan changed, and those
     * whose receipts it made deep enough.
     */
    readonly settle: (scan: ScanResult, touched: Iterable<PaymentId>) => Effect.Effect<void, StoreUnavailable, Tx>
    /** The worker that ends payments whose time is over, behind each chain's scan. */
    readonly expire: Effect.Effect<never>
  }
>() {
  static readonly layer = Layer.effect(
    Settlement,
    Effect.gen(function* () {
      const settings = yield* Settings
      const outbox = yield* Outbox
      const writer = yield* Writer
      const confirmations = new Map(settings.chains.map((chain) => [networkKey(chain), chain.confirmations]))
      const rules = {
        settleGrace: Duration.toMillis(settings.payments.settleGrace),
        toleranceBps: settings.payments.toleranceBps
      }
      /** By network, the newest scan that expiry has not worked through. */
      const scans = new Map<string, ScanResult>()
      const bell = yield* Queue.sliding<void>(1)

      const horizonOf = ({ head, network, settled }: ScanResult): Horizon => ({
        head: head.number,
        settled,
        confirmations: confirmations.get(networkKey(network)) ?? Number.POSITIVE_INFINITY
      })

      const settlePayment = Effect.fnUntraced(function* (payment: Payment, horizon: Horizon, now: number) {
        const tx = yield* Tx
        const receipts = yield* Repo.receiptsOf(tx, payment.id)
        let before = payment
        for (const step of advance(payment, receipts, horizon, rules, now)) {
          yield* Repo.update(before, step.payment, now)
          if (step.announced) yield* outbox.publish(step.payment, now)
          before = step.payment
        }
      })

      const settle = Effect.fnUntraced(function* (scan: ScanResult, touched: Iterable<PaymentId>) {
        const tx = yield* Tx
        const now = yield* Clock.currentTimeMillis
        const horizon = horizonOf(scan)
        const due = new Map<string, Payment>()
        for (const payment of yield* Repo.detectingDownTo(tx, scan.network, horizon.head - horizon.confirmations + 1)) {
          due.set(payment.id, payment)
        }
        for (const id of touched) {
          const payment = due.has(id) ? undefined : yield* Repo.byId(tx, id)
          // Money on another chain than the payment's is that chain's to judge: it knows neither its head nor its time.
          if (payment !== undefined && payment.chain === scan.network.chain) due.set(id, payment)
        }
        for (const payment of due.values()) {
          yield* settlePayment(payment, { ...horizon, settled: undefined }, now)
        }
        yield* tx.afterCommit(() => {
          scans.set(networkKey(scan.network), scan)
          bell.unsafeOffer(undefined)
        })
      })

      /** Ends what is over on one chain, a chunk a commit; each payment is read again in the commit that ends it. */
      const expireChain = Effect.fn("Settlement.expireChain")(function* (scan: ScanResult) {
        const { settled } = scan
        if (settled === undefined) return
        const horizon = horizonOf(scan)
        let behind = { expiresAt: 0, sequence: 0 }
        while (true) {
          const chunk = yield* writer.write(
            Effect.gen(function* () {
              const tx = yield* Tx
              const now = yield* Clock.currentTimeMillis
              const before = settled.time * 1000 - rules.settleGrace
              const payments = yield* Repo.openExpiredBefore(tx, scan.network, before, behind, expiryChunk)
              // A reorg may have lowered the head since: nothing is deeper than the rows say.
              const stored = yield* LedgerRepo.scan(tx, scan.network)
              const head = Math.min(horizon.head, stored?.head.number ?? 0)
              for (const payment of payments) yield* settlePayment(payment, { ...horizon, head }, now)
              return payments
            })
          )
          const last = chunk.at(-1)
          if (last === undefined || chunk.length < expiryChunk) return
          behind = last
        }
      })

      const expire = Effect.gen(function* () {
        yield* Queue.take(bell)
        const waiting = [...scans.values()]
        scans.clear()
        for (const scan of waiting) {
          yield* expireChain(scan).pipe(
            Effect.tapError((error) =>
              Effect.logWarning("payments that are over wait for the store").pipe(
                Effect.annotateLogs({ reason: error.message })
              )
            ),
            Effect.retry(Schedule.spaced(storeRetry)),
            Effect.orDie
          )
        }
      }).pipe(Effect.forever, Effect.annotateLogs({ service: "expiry" }))

      return { settle, expire }
    })
  )
}
