/**
 * Settlement: applies the status machine to what the watchers have read, in the transaction that stores it, and ends
 * payments whose time is over.
 *
 * `settle` is called by every commit of a watcher, of a repair and of a reorg: it settles the payments whose receipts
 * changed, those that may have got their confirmations, and confirmed ones that a reorg took money from. The worker
 * `expire` ends payments in commits of their own, a chunk each. Each payment is read in the commit that changes it.
 */
import { Clock, Duration, Effect, Layer, Queue, Schedule } from "effect"
import * as Searches from "../Chains/corroboration/SearchesRepo.ts"
import * as LedgerRepo from "../Chains/ledger/LedgerRepo.ts"
import { type ScanResult, Settlement } from "../Chains/ledger/SettlementTag.ts"
import { aheadOf } from "../Chains/providers/HeadClock.ts"
import { type Mode, type Network, networkKey } from "../Domain/Chain.ts"
import { nativeToken } from "../Domain/Currency.ts"
import { deadline, isEnded, longestWaitElsewhere, type Payment } from "../Domain/Payment.ts"
import { finalBlock, requirementOf, type Scan } from "../Domain/Receipt.ts"
import { Outbox } from "../Events/Outbox.ts"
import { pricesOf } from "../Quotes/frozenRates.ts"
import { Settings } from "../Settings.ts"
import { type Db, Reader, Tx, Writer } from "../Sql.ts"
import { Workers } from "../Telemetry/Workers.ts"
import * as Repo from "./PaymentsRepo.ts"
import * as Receipts from "./ReceiptsRepo.ts"
import { freezeReceipts } from "./ReceiptsRepo.ts"
import { advance, finalWhenCompared, type Horizon, overBefore, undone } from "./statusMachine.ts"
import { type Change, standingOf, storeTransitions, syncLost } from "./storeTransitions.ts"

/** Payments that one commit may end: a chain that is read again after a day must not block all other writes. */
const expiryChunk = 100
/** A chain whose scan lags by more than this counts as unreachable. */
const longestLag = Duration.toMillis("2 minutes")

/** An error for the operator, logged after the commit. */
interface Alarm {
  readonly message: string
  readonly about: Readonly<Record<string, string | number>>
}

const reorgedAlarm = ({ chain, id, mode, txHash = "" }: Payment): Alarm => ({
  message: "a confirmed payment was undone by a reorg: what was delivered for it is not paid",
  about: { payment: id, chain, mode, txHash }
})

/**
 * Whether a payment still waits for the balance reconciliation of another chain: that chain is reachable, its last
 * reconciliation is not after the payment's deadline, and the longest wait is not over.
 */
const isAwaited = (scan: Scan | undefined, deadline: number, now: number): boolean =>
  scan !== undefined &&
  now - scan.head.time * 1000 <= longestLag &&
  now - deadline <= longestWaitElsewhere &&
  !(scan.checked !== undefined && scan.checked.time * 1000 > deadline)

export const settlementLayer = Layer.effect(
  Settlement,
  Effect.gen(function* () {
    const settings = yield* Settings
    const outbox = yield* Outbox
    const writer = yield* Writer
    const reader = yield* Reader
    const chains = new Map(settings.chains.map((chain) => [networkKey(chain), chain]))
    const clockTolerance = Duration.toMillis(settings.payments.clockTolerance)
    /** By network: the final block up to which reorgs are settled. Empty after a restart, so that all are looked at again. */
    const reorgsSettledTo = new Map<string, number>()
    /** Modes with a scan that the expiry worker has not processed yet. */
    const scanned = new Set<Mode>()
    const alarms: Array<Alarm> = []
    const prices = yield* pricesOf
    const alive = (yield* Workers).worker("expiry", "10 seconds")
    const bell = yield* Queue.sliding<void>(1)

    /** Whether there is a second provider to search before a payment ends. */
    const hasQuorum = (network: Network) => (chains.get(networkKey(network))?.rpcUrls.length ?? 0) > 1

    /** The horizon of a chain's stored scan, without the fields that depend on the payment. */
    const horizonOf = Effect.fnUntraced(function* (db: Db, network: Network) {
      const scan = yield* LedgerRepo.scan(db, network)
      if (scan === undefined) return undefined
      const { checked, finalized, head, safe } = scan
      const confirmations = chains.get(networkKey(network))?.confirmations ?? Number.POSITIVE_INFINITY
      const settled = yield* LedgerRepo.newestBlockAt(db, network, head.number - confirmations + 1)
      const horizon: Horizon = {
        head: head.number,
        headTime: head.time,
        confirmations,
        settled,
        checked,
        safe,
        finalized,
        requires: undefined,
        elsewhereChecked: false,
        searched: hasQuorum(network) ? undefined : Number.POSITIVE_INFINITY
      }
      return horizon
    })

    const raise = (alarm: Alarm) =>
      Effect.map(Tx, (tx) =>
        tx.afterCommit(() => {
          alarms.push(alarm)
          bell.unsafeOffer(undefined)
        })
      )

    /** Stores the payment's new states, and updates its exceptions where its receipts or its status changed. */
    const store = Effect.fnUntraced(function* (change: Change, now: number) {
      const { after, opened } = yield* storeTransitions(outbox, change, now)
      for (const { amount, currency, kind, txHash = "" } of opened) {
        if (kind !== "found_late") continue
        yield* raise({
          message: "money that was on time was found after its payment had ended: tilld payments accept, or refunded",
          about: { payment: after.id, chain: after.chain, amount: amount.toString(), currency, txHash }
        })
      }
      return after
    })

    /** Brings the payment's status, and its exceptions, in line with its receipts. */
    const settlePayment = Effect.fnUntraced(function* (
      payment: Payment,
      horizon: Horizon,
      now: number,
      receiptsChanged: boolean
    ) {
      const { apart, receipts } = yield* standingOf(payment)
      const policies = chains.get(networkKey(payment))?.policies ?? []
      const searched = horizon.searched ?? (yield* Searches.searchedTo(yield* Tx, payment.id))
      const own: Horizon = { ...horizon, searched, requires: requirementOf(policies, payment.usdValue) }
      const failed = undone(payment, receipts, own, now, apart)
      const steps = failed === undefined ? advance(payment, receipts, own, now) : [failed]
      const after = yield* store({ payment, steps, receiptsChanged }, now)
      if (failed !== undefined) yield* raise(reorgedAlarm(after))
    })

    const updateUnknownMoney = Effect.fnUntraced(function* (network: Network, address: string, now: number) {
      for (const { amount, currency, txHash = "" } of yield* syncLost(network, address, now)) {
        yield* raise({
          message: "money came to an address that a lost copy of the database handed out: tilld payments exceptions",
          about: { ...network, address, amount: amount.toString(), currency, txHash }
        })
      }
    })

    const settle = Effect.fnUntraced(function* ({ network }: ScanResult, touched: Iterable<LedgerRepo.Touched>) {
      const tx = yield* Tx
      const now = yield* Clock.currentTimeMillis
      const key = networkKey(network)
      const stored = yield* horizonOf(tx, network)
      if (stored === undefined) return
      // Without `settled` nothing ends here: the expiry worker, which this commit wakes, ends payments in chunks.
      const horizon: Horizon = { ...stored, settled: undefined }
      const changed = new Set(touched)
      for (const id of changed) {
        if (LedgerRepo.isLost(id)) yield* updateUnknownMoney(network, id, now)
        const payment = id && (yield* Repo.byId(tx, id))
        if (payment === undefined) continue
        // A scan of another chain than the payment's says nothing about the head and time of the payment's chain.
        if (payment.chain === network.chain) yield* settlePayment(payment, horizon, now, true)
        else yield* store({ payment, steps: [], receiptsChanged: true }, now)
      }
      const final = finalBlock(horizon)
      const above = reorgsSettledTo.get(key) ?? -1
      const reorged = yield* Repo.confirmedWithOrphans(tx, network, above, final)
      const due = [...(yield* Repo.detectingDownTo(tx, network, horizon.head - horizon.confirmations + 1)), ...reorged]
      for (const payment of due) if (!changed.has(payment.id)) yield* settlePayment(payment, horizon, now, false)
      // Native payments are checked again until a balance reconciliation has covered the reorg.
      const awaitsReconciliation = reorged.some(({ currency }) => currency === nativeToken(network.chain))
      const reconciled = awaitsReconciliation ? Math.max(above, Math.min(final, finalWhenCompared(horizon))) : final
      // So are payments that have a receipt which may still be corroborated.
      const ids = reorged.map(({ id }) => id)
      const isOpen = yield* Receipts.anyAwaited(tx, network, ids, final)
      const through = isOpen ? above : reconciled
      // Last: small transfers that complete a payment are listed by now.
      yield* freezeReceipts({ now, prices })
      tx.afterCommit(() => {
        reorgsSettledTo.set(key, through)
        scanned.add(network.mode)
        bell.unsafeOffer(undefined)
      })
    })

    const refundsChanged = Effect.fnUntraced(function* (payment: Payment) {
      const tx = yield* Tx
      const now = yield* Clock.currentTimeMillis
      const horizon = isEnded(payment.status) ? undefined : yield* horizonOf(tx, payment)
      if (horizon === undefined) yield* store({ payment, steps: [], receiptsChanged: true }, now)
      else yield* settlePayment(payment, { ...horizon, settled: undefined }, now, true)
      const forget = () => void reorgsSettledTo.delete(networkKey(payment))
      // At once for a scan that follows in this commit; after the commit for one that preceded it here.
      forget()
      tx.afterCommit(forget)
    })

    /** Whether all other chains of the mode, on which a payment may have been paid by mistake, have been reconciled. */
    const elsewhere = Effect.fnUntraced(function* (db: Db, network: Network, now: number) {
      const others = settings.chains.filter((chain) => chain.mode === network.mode && chain.chain !== network.chain)
      const scans = yield* Effect.forEach(others, (chain) => LedgerRepo.scan(db, chain), { concurrency: 1 })
      return (payment: Payment) => !scans.some((scan) => isAwaited(scan, deadline(payment), now))
    })

    /** Ends a chunk of the payments that are over on one chain, from behind the cursor on. */
    const expireChunk = (network: Network, after: { readonly deadline: number; readonly sequence: number }) =>
      Effect.gen(function* () {
        const tx = yield* Tx
        const now = yield* Clock.currentTimeMillis
        const horizon = yield* horizonOf(tx, network)
        const before = horizon && overBefore(horizon)
        if (horizon === undefined || before === undefined) return []
        // This machine's clock is behind the chain's, so that the due times cannot be trusted.
        if (aheadOf(horizon.headTime, now, clockTolerance) !== undefined) return []
        const payments = yield* Repo.openExpiredBefore(tx, network, before, after, expiryChunk, hasQuorum(network))
        const isChecked = yield* elsewhere(tx, network, now)
        for (const payment of payments) {
          yield* settlePayment(payment, { ...horizon, elsewhereChecked: isChecked(payment) }, now, false)
        }
        return payments
      })

    const start = { deadline: 0, sequence: 0 }

    const anyOver = Effect.fnUntraced(function* (network: Network) {
      const horizon = yield* horizonOf(reader, network)
      const before = horizon && overBefore(horizon)
      return (
        before !== undefined &&
        (yield* Repo.openExpiredBefore(reader, network, before, start, 1, hasQuorum(network))).length > 0
      )
    })

    /** Ends the payments that are over on one chain, a chunk a commit. */
    const expireChain = Effect.fn("Settlement.expireChain")(function* (network: Network) {
      // Checked with the reader first: mostly nothing is due, and the writer is not blocked.
      if (!(yield* anyOver(network))) return
      let cursor = start
      while (true) {
        const chunk = yield* writer.write(expireChunk(network, cursor))
        const last = chunk.at(-1)
        if (last === undefined || chunk.length < expiryChunk) return
        cursor = { deadline: deadline(last), sequence: last.sequence }
      }
    })

    const expire = Effect.gen(function* () {
      yield* Queue.take(bell)
      for (const { about, message } of alarms.splice(0)) {
        yield* Effect.logError(message).pipe(Effect.annotateLogs(about))
      }
      // All chains of the mode: a payment may have waited for another chain's reconciliation.
      const waiting = settings.chains.filter((chain) => scanned.has(chain.mode))
      scanned.clear()
      for (const { chain, mode } of waiting) {
        yield* alive(expireChain({ chain, mode })).pipe(
          Effect.tapError((error) =>
            Effect.logWarning("expired payments cannot be stored: trying again").pipe(
              Effect.annotateLogs({ reason: error.message })
            )
          ),
          Effect.retry(Schedule.spaced("1 second")),
          Effect.orDie
        )
      }
    }).pipe(Effect.forever, Effect.annotateLogs({ service: "settlement" }))

    return { settle, refundsChanged, expire }
  })
)
