/**
 * Looks up on the chain what refunds name: whether their transaction is there, two providers agreeing, and has a transfer of that
 * money which is nothing else: no income of ours, no collection, no other refund. The worker asks while a refund has a
 * transaction that is not final, and at once when one is named. `main` runs it.
 */
import { Clock, Duration, Effect } from "effect"
import type { Settlement } from "../../Chains/ledger/SettlementTag.ts"
import { currencyFor, ownersOf } from "../../Chains/ledger/WatchedAddressesRepo.ts"
import { type MinedTransfer, type MinedTransfers, minedTransfers } from "../../Chains/providers/minedTransaction.ts"
import { Networks } from "../../Chains/providers/Networks.ts"
import { contractsOf } from "../../Chains/scan/transfers.ts"
import { networkKey } from "../../Domain/Chain.ts"
import { nativeToken } from "../../Domain/Currency.ts"
import type { Refund } from "../../Domain/Refund.ts"
import { Outbox } from "../../Events/Outbox.ts"
import { type ChainSettings, Settings } from "../../Settings.ts"
import { type Db, Reader, Tx, Writer } from "../../Sql.ts"
import { Workers } from "../../Telemetry/Workers.ts"
import * as CollectedRepo from "../addresses/CollectedRepo.ts"
import * as Repo from "../PaymentsRepo.ts"
import * as Refunds from "../RefundsRepo.ts"
import { publishState } from "../storeTransitions.ts"
import { RefundBell } from "./RefundBell.ts"
import { changed } from "./refund.ts"

const interval = "15 seconds"
/** How often it asks about one that has a problem, and for how long. */
const rareInterval = Duration.toMillis("10 minutes")
const longest = Duration.toMillis("30 days")
/** How long the chain may lack a transaction that was named. */
const patience = Duration.toMillis("1 hour")
/** Refunds of a chain that it asks about in one go. */
const mostAtOnce = 50

/** What the chain and the ledger say of a refund's transaction. */
export interface Findings {
  /** Undefined where the chain has no such transaction. */
  readonly mined: MinedTransfers | undefined
  /** Those that the chain asks for. */
  readonly confirmations: number
  readonly currencyOf: (transfer: MinedTransfer) => string
  /** Whether it is something else: income of ours, a collection, or another refund. */
  readonly isUsed: (transfer: MinedTransfer) => boolean
  /** Which transfer the refund is already. */
  readonly position: string | undefined
  readonly now: number
}

const wanted = ({ amount, currency, to }: Refund): string =>
  `transfer of exactly ${amount} base units of ${currency}${to === undefined ? "" : ` to ${to}`}`

const judged = (
  refund: Refund,
  { confirmations, currencyOf, isUsed, mined, now }: Findings
): Refunds.RefundChange | undefined => {
  const { address, amount, chain, changedAt, currency, plan, status, to, txHash } = refund
  if (mined === undefined) {
    if (status === "seen") return { status: "noted" }
    const problem = `${chain} has had no transaction ${txHash} for an hour: name the right one, or drop the refund`
    return now - changedAt < patience || status === "not_found" ? undefined : { status: "not_found", problem }
  }
  const isDeep = mined.confirmations >= confirmations
  const fitting = mined.transfers.filter(
    (one) => mined.succeeded && one.amount === amount && (to ?? one.to) === one.to && currencyOf(one) === currency
  )
  const free = fitting.filter((one) => !isUsed(one))
  const found = free.find(({ from }) => from === address) ?? free[0]
  if (found !== undefined) {
    const { from, position } = found
    return { status: isDeep ? "final" : "seen", from, to: found.to, position, blockTime: mined.blockTime }
  }
  // A reorg may still change what it did: its money is not open again before.
  if (!isDeep) return status === "not_found" ? { status: "noted" } : undefined
  if (mined.succeeded && fitting.length === 0 && currency === nativeToken(chain) && mined.isCall) {
    const problem = `${txHash} calls a contract, and no log shows coin that moves inside contracts: it cannot be checked`
    return { status: plan === undefined ? "noted" : "seen", problem }
  }
  const none = fitting.length === 0 ? "has no" : "has only what is another refund, or money of yours, as"
  const problem = mined.succeeded
    ? `${txHash} ${none} ${wanted(refund)}`
    : `${txHash} failed in block ${mined.blockNumber}`
  // What a broadcast has accounted for was sent, by a token with a fee of its own perhaps: it is not paid again.
  return { status: plan === undefined ? "failed" : "seen", problem }
}

/** What becomes of a refund; undefined where it stays as it is. */
export const judgeRefund = (refund: Refund, findings: Findings): Refunds.RefundChange | undefined => {
  const change = judged(refund, findings)
  const isSame =
    change?.status === refund.status && change.problem === refund.problem && change.position === findings.position
  return isSame ? undefined : change
}

/** What the ledger says, beside what the chain does. */
const findings = Effect.fnUntraced(function* (
  db: Db,
  settings: ChainSettings,
  refund: Refund,
  mined: MinedTransfers | undefined
) {
  const { address, amount, chain, currency, mode, txHash = "" } = refund
  const owner = (yield* ownersOf(db, mode, [address])).get(address) ?? { asks: undefined }
  const contracts = contractsOf(settings, [])
  const currencyOf = ({ contract }: MinedTransfer) =>
    contract === undefined
      ? nativeToken(chain)
      : currencyFor({ chain, mode }, owner, { contract, currency: contracts.get(contract) ?? contract })
  const same = mined?.transfers.filter((one) => one.amount === amount && currencyOf(one) === currency) ?? []
  const ours = yield* ownersOf(
    db,
    mode,
    same.flatMap(({ from, to }) => [from, to])
  )
  const all = yield* Refunds.ofTransaction(db, refund, txHash)
  const others = all.filter(({ id }) => id !== refund.id)
  const collected = yield* CollectedRepo.collectionsIn(db, refund, txHash)
  // One that says who gets it comes before one that does not.
  const isOthers = ({ position, to }: MinedTransfer) =>
    others.some(
      (one) =>
        one.position === position || (refund.to === undefined && one.receiver === to && one.amount === `${amount}`)
    )
  return {
    ...{ mined, confirmations: settings.confirmations, now: yield* Clock.currentTimeMillis },
    position: all.find(({ id }) => id === refund.id)?.position ?? undefined,
    currencyOf,
    // What another payment's address sends is that payment's.
    isUsed: (one) =>
      ours.has(one.to) ||
      (one.from !== address && ours.has(one.from)) ||
      isOthers(one) ||
      collected.some((its) => its.address === one.from && its.receiver === one.to && its.amount === `${amount}`)
  } satisfies Findings
})

/** The lookup: one round of it, which tells whether anything is awaited, and the worker. */
export const refundLookup = Effect.gen(function* () {
  const { chains } = yield* Settings
  const networks = yield* Networks
  const reader = yield* Reader
  const writer = yield* Writer
  const bell = yield* RefundBell
  const outbox = yield* Outbox
  const services = yield* Effect.context<Settlement>()
  const heartbeat = (yield* Workers).worker("refunds", "1 minute")
  /** When the chain was asked about a transaction of a refund, Unix milliseconds. */
  const asked = new Map<string, number>()
  const keyOf = ({ id, txHash }: Refunds.Awaited) => `${id} ${txHash}`
  const askedAt = (refund: Refunds.Awaited) => asked.get(keyOf(refund)) ?? Number.NEGATIVE_INFINITY

  const judge = Effect.fnUntraced(function* (
    db: Db,
    settings: ChainSettings,
    { id, txHash }: Refunds.Awaited,
    mined: MinedTransfers | undefined
  ) {
    const refund = yield* Refunds.byId(db, id)
    const isAwaited = refund?.txHash === txHash && ["noted", "seen", "not_found"].includes(`${refund?.status}`)
    if (refund === undefined || !isAwaited) return undefined
    const change = judgeRefund(refund, yield* findings(db, settings, refund, mined))
    return change && { refund, change }
  })

  const ask = Effect.fnUntraced(function* (settings: ChainSettings, refund: Refunds.Awaited) {
    asked.set(keyOf(refund), yield* Clock.currentTimeMillis)
    const mined = yield* minedTransfers(networks.providersOf(settings), refund.txHash)
    if ((yield* judge(reader, settings, refund, mined)) === undefined) return
    const store = Effect.gen(function* () {
      const found = yield* judge(yield* Tx, settings, refund, mined)
      if (found === undefined) return
      const after = yield* changed(found.refund, found.change)
      const payment =
        after.status === "final" ? after.payment && (yield* Repo.byId(yield* Tx, after.payment)) : undefined
      if (payment === undefined) return
      yield* publishState(outbox, payment, yield* Clock.currentTimeMillis, "refund.final", { refund: after })
    })
    yield* writer.write(Effect.provide(store, services))
  })

  /** Those that were not asked about for the longest time first. What fails waits for the next round, and keeps up no other. */
  const askAll = Effect.fnUntraced(function* (settings: ChainSettings, awaited: ReadonlyArray<Refunds.Awaited>) {
    const now = yield* Clock.currentTimeMillis
    const isDue = (one: Refunds.Awaited) => one.problem === null || now - askedAt(one) >= rareInterval
    const due = awaited.filter(isDue).sort((a, b) => Math.sign(askedAt(a) - askedAt(b)) || a.sequence - b.sequence)
    for (const refund of due.slice(0, mostAtOnce)) {
      yield* Effect.catchAll(ask(settings, refund), (error) =>
        Effect.annotateLogs(Effect.logDebug("a refund could not be looked up"), {
          ...{ chain: networkKey(settings), refund: refund.id, reason: error.message }
        })
      )
    }
  })

  const look = Effect.gen(function* () {
    const since = (yield* Clock.currentTimeMillis) - longest
    const all = yield* Effect.forEach(chains, (chain) =>
      Effect.map(Refunds.awaited(reader, chain, since), (awaited) => [chain, awaited] as const)
    )
    const keys = new Set(all.flatMap(([, awaited]) => awaited.map(keyOf)))
    for (const key of asked.keys()) if (!keys.has(key)) asked.delete(key)
    yield* Effect.forEach(all, (one) => askAll(...one), { concurrency: "unbounded", discard: true })
    return keys.size > 0
  })

  const run = heartbeat(look).pipe(
    Effect.catchTag("StoreUnavailable", ({ message }) => Effect.as(Effect.logWarning(message), true)),
    Effect.flatMap((isAwaited) => (isAwaited ? Effect.timeoutOption(bell.rung, interval) : bell.rung)),
    Effect.forever,
    Effect.annotateLogs({ service: "refunds" })
  )
  return { look, run }
})
