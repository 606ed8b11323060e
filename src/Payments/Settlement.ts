import { BigDecimal, Clock, Duration, Effect, Layer, Queue, Schedule } from "effect"
import * as Searches from "../Chains/corroboration/SearchesRepo.ts"
import * as LedgerRepo from "../Chains/ledger/LedgerRepo.ts"
import { type ScanResult, Settlement } from "../Chains/ledger/Settlement.ts"
import { aheadOf } from "../Chains/providers/HeadClock.ts"
import { type Mode, type Network, networkKey } from "../Domain/Chain.ts"
import { nativeToken } from "../Domain/Currency.ts"
import { deadline, dueTime } from "../Domain/deadline.ts"
import { finalBlock, requirementOf } from "../Domain/Finality.ts"
import type { Payment } from "../Domain/Payment.ts"
import type { Scan } from "../Domain/Receipt.ts"
import { Outbox } from "../Events/Outbox.ts"
import { Settings } from "../Settings.ts"
import { type Db, Reader, Tx, Writer } from "../Sql.ts"
import { Workers } from "../Telemetry/Workers.ts"
import { applySteps, receiptsLeft, syncExceptions, syncUnknown } from "./applySteps.ts"
import type { DustRules } from "./dust.ts"
import * as Repo from "./PaymentsRepo.ts"
import * as Receipts from "./ReceiptsRepo.ts"
import { advance, dueBefore, type Horizon, type Rules, undone } from "./statusMachine.ts"
import { sumUp } from "./sumUp.ts"

/** Payments that one commit may end: a chain that comes back after a day must not hold up everybody's writes. */
const expiryChunk = 100
/** A chain whose scan is this far behind does not answer, and nobody waits for it for longer than this. */
const silence = Duration.toMillis("2 minutes")

/** Something that a person has to hear of. */
interface Alarm {
  readonly message: string
  readonly about: Readonly<Record<string, string | number>>
}

const reorgedAlarm = ({ chain, id, mode, txHash = "" }: Payment): Alarm => ({
  message: "a confirmed payment was undone by a reorg: what was delivered for it is not paid",
  about: { payment: id, chain, mode, txHash }
})

/**
 * Whether a payment still waits to hear of money on another chain: that one answers, and has not compared the balance of
 * the address after the deadline.
 */
const isAwaited = (scan: Scan | undefined, deadline: number, now: number): boolean =>
  scan !== undefined &&
  now - scan.head.time * 1000 <= silence &&
  now - deadline <= silence &&
  !(scan.checked !== undefined && scan.checked.time * 1000 > deadline)

/** The settlement of what the watchers read, and the worker that ends payments. */
export const settlementLayer = Layer.effect(
  Settlement,
  Effect.gen(function* () {
    const settings = yield* Settings
    const outbox = yield* Outbox
    const writer = yield* Writer
    const reader = yield* Reader
    const chains = new Map(settings.chains.map((chain) => [networkKey(chain), chain]))
    const rules: Rules = {
      settleGrace: Duration.toMillis(settings.payments.settleGrace),
      toleranceBps: settings.payments.toleranceBps
    }
    const clockTolerance = Duration.toMillis(settings.payments.clockTolerance)
    const dustRules: DustRules = {
      settleGrace: rules.settleGrace,
      floorUsd: BigDecimal.unsafeFromString(settings.payments.dustFloorUsd)
    }
    /** By network, up to where the blocks are final that reorgs have been looked at in. Lost at a restart: from the start. */
    const looked = new Map<string, number>()
    /** Modes with a new scan that expiry has not worked through. */
    const moved = new Set<Mode>()
    const alarms: Array<Alarm> = []
    const alive = (yield* Workers).worker("expiry", "10 seconds")
    const bell = yield* Queue.sliding<void>(1)

    /** Whether there is a second provider to ask before a payment ends. */
    const hasQuorum = (network: Network) => (chains.get(networkKey(network))?.rpcUrls.length ?? 0) > 1

    /** What the stored scan of a chain can vouch for; a payment's own part is still to be added. */
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

    const keepExceptions = Effect.fnUntraced(function* (payment: Payment, now: number) {
      const receipts = yield* Receipts.ofPayment(yield* Tx, payment.id)
      for (const { amount, currency, kind, txHash = "" } of yield* syncExceptions(payment, receipts, rules, now)) {
        if (kind !== "found_late") continue
        yield* raise({
          message: "money that was on time was found after its payment had ended: tilld payments accept, or refunded",
          about: { payment: payment.id, chain: payment.chain, amount: amount.toString(), currency, txHash }
        })
      }
    })

    /** Stores what becomes of a payment. Its exceptions follow from its receipts and its status. */
    const settlePayment = Effect.fnUntraced(function* (
      payment: Payment,
      horizon: Horizon,
      now: number,
      receiptsChanged: boolean
    ) {
      yield* sumUp(payment, dustRules)
      const receipts = yield* receiptsLeft(payment)
      const policies = chains.get(networkKey(payment))?.policies ?? []
      const searched = horizon.searched ?? (yield* Searches.searchedTo(yield* Tx, payment.id))
      const own: Horizon = { ...horizon, searched, requires: requirementOf(policies, payment.usdValue) }
      const back = undone(payment, receipts, own, rules, now)
      const steps = back === undefined ? advance(payment, receipts, own, rules, now) : [back]
      const after = yield* applySteps(outbox, payment, steps, now)
      if (back !== undefined) yield* raise(reorgedAlarm(after))
      if (receiptsChanged || after.status !== payment.status) yield* keepExceptions(after, now)
    })

    const tellOfUnknown = Effect.fnUntraced(function* (network: Network, now: number) {
      for (const { address, amount, currency, txHash = "" } of yield* syncUnknown(network, now)) {
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
      // The end of a payment's time is the worker's to judge, so many a commit: it is woken by this one.
      const horizon: Horizon = { ...stored, settled: undefined }
      const changed = new Set(touched)
      for (const id of changed) {
        const payment = id && (yield* Repo.byId(tx, id))
        if (payment === undefined) continue
        // Money on another chain than the payment's says nothing about that one's head and time.
        if (payment.chain === network.chain) yield* settlePayment(payment, horizon, now, true)
        else yield* Effect.zipRight(sumUp(payment, dustRules), keepExceptions(payment, now))
      }
      const final = finalBlock(horizon)
      const above = looked.get(key) ?? -1
      const reorged = yield* Repo.confirmedWithOrphans(tx, network, above, final)
      const due = [...(yield* Repo.detectingDownTo(tx, network, horizon.head - horizon.confirmations + 1)), ...reorged]
      for (const payment of due) if (!changed.has(payment.id)) yield* settlePayment(payment, horizon, now, false)
      if (changed.has(undefined)) yield* tellOfUnknown(network, now)
      // Coins are not given up before their balances have been compared: until then they are looked at again.
      const awaitsBalances = reorged.some(({ currency }) => currency === nativeToken(network.chain))
      const compared = awaitsBalances ? Math.max(above, Math.min(final, horizon.checked?.number ?? -1)) : final
      // Nor is a payment while what came in place of its money may still be corroborated.
      const ids = reorged.map(({ id }) => id)
      const through = (yield* Receipts.anyAwaited(tx, network, ids, final)) ? above : compared
      tx.afterCommit(() => {
        looked.set(key, through)
        moved.add(network.mode)
        bell.unsafeOffer(undefined)
      })
    })

    const lookAgain = (network: Network) =>
      Effect.map(Tx, (tx) => {
        const forget = () => void looked.delete(networkKey(network))
        // At once for a scan that follows in the same commit, and then for one that went before it there.
        forget()
        tx.afterCommit(forget)
      })

    /** Whether the chains that a payment may have been paid on by mistake have all been looked at. */
    const elsewhere = Effect.fnUntraced(function* (db: Db, network: Network, now: number) {
      const others = settings.chains.filter((chain) => chain.mode === network.mode && chain.chain !== network.chain)
      const scans = yield* Effect.forEach(others, (chain) => LedgerRepo.scan(db, chain), { concurrency: 1 })
      return (payment: Payment) => !scans.some((scan) => isAwaited(scan, deadline(payment, rules.settleGrace), now))
    })

    /** Ends a chunk of what is over on one chain, behind the given one; each is read in the commit that ends it. */
    const expireChunk = (network: Network, behind: { readonly dueAt: number; readonly sequence: number }) =>
      Effect.gen(function* () {
        const tx = yield* Tx
        const now = yield* Clock.currentTimeMillis
        const horizon = yield* horizonOf(tx, network)
        const before = horizon && dueBefore(horizon, rules)
        if (horizon === undefined || before === undefined) return []
        // This machine's clock is behind the chain's: nobody knows when the payments' time is over.
        if (aheadOf(horizon.headTime, now, clockTolerance) !== undefined) return []
        const payments = yield* Repo.openExpiredBefore(tx, network, before, behind, expiryChunk, hasQuorum(network))
        const isChecked = yield* elsewhere(tx, network, now)
        for (const payment of payments) {
          yield* settlePayment(payment, { ...horizon, elsewhereChecked: isChecked(payment) }, now, false)
        }
        return payments
      })

    const start = { dueAt: 0, sequence: 0 }

    const anyOver = Effect.fnUntraced(function* (network: Network) {
      const horizon = yield* horizonOf(reader, network)
      const before = horizon && dueBefore(horizon, rules)
      return (
        before !== undefined &&
        (yield* Repo.openExpiredBefore(reader, network, before, start, 1, hasQuorum(network))).length > 0
      )
    })

    /** Ends what is over on one chain, a chunk a commit. */
    const expireChain = Effect.fn("Settlement.expireChain")(function* (network: Network) {
      // A look costs the writer nothing, and mostly there is nothing.
      if (!(yield* anyOver(network))) return
      let behind = start
      while (true) {
        const chunk = yield* writer.write(expireChunk(network, behind))
        const last = chunk.at(-1)
        if (last === undefined || chunk.length < expiryChunk) return
        behind = { dueAt: dueTime(last), sequence: last.sequence }
      }
    })

    const expire = Effect.gen(function* () {
      yield* Queue.take(bell)
      for (const { about, message } of alarms.splice(0)) {
        yield* Effect.logError(message).pipe(Effect.annotateLogs(about))
      }
      // Of all chains of the mode: a payment may have waited for what another one says.
      const waiting = settings.chains.filter((chain) => moved.has(chain.mode))
      moved.clear()
      for (const { chain, mode } of waiting) {
        yield* alive(expireChain({ chain, mode })).pipe(
          Effect.tapError((error) =>
            Effect.logWarning("payments that are over wait for the store").pipe(
              Effect.annotateLogs({ reason: error.message })
            )
          ),
          Effect.retry(Schedule.spaced("1 second")),
          Effect.orDie
        )
      }
    }).pipe(Effect.forever, Effect.annotateLogs({ service: "settlement" }))

    return { settle, lookAgain, expire }
  })
)
