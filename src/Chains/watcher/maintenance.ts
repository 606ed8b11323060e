/**
 * The recurring work of a watcher in addition to reading new blocks, each task at an interval of its own: compare
 * balances, read finality tags and verify deep blocks, search for payments that are about to end, sweep the addresses
 * of ended payments and skipped addresses, audit all addresses, drop old blocks. A task that fails is reported on /readyz and retried, and
 * does not stop the others. The watcher runs what is due after each tick that reached the head.
 */
import { Clock, Duration, Effect, Either, Schedule } from "effect"
import type { BlockRef } from "../../Domain/Receipt.ts"
import type { SettingsShape } from "../../Settings.ts"
import { type StoreUnavailable, Tx } from "../../Sql.ts"
import { makeAudit } from "../balances/audit.ts"
import * as Balances from "../balances/BalancesRepo.ts"
import { type CheckedBalances, commitBalances } from "../balances/commitBalances.ts"
import type { BalanceQuery } from "../balances/discrepancy.ts"
import { type FailedAddress, reconcileBalances } from "../balances/reconcile.ts"
import { takeBackDenied, withoutDenied } from "../corroboration/corroborateBalances.ts"
import { makeEndingSearch } from "../corroboration/endingSearch.ts"
import { finalBlockOf, startPass, verificationPass } from "../corroboration/verificationPass.ts"
import * as Ledger from "../ledger/LedgerRepo.ts"
import * as Watched from "../ledger/WatchedAddressesRepo.ts"
import type { Provider } from "../providers/Providers.ts"
import * as Repair from "../repair/RepairRepo.ts"
import { findSkippedTokens } from "../repair/skippedTokens.ts"
import { getHeader, sendBatch } from "../rpc/methods.ts"
import { providerTrouble, type RpcError } from "../rpc/RpcError.ts"
import { isOnlyProvider, type WatchContext } from "../scan/WatchContext.ts"
import { makeFinality } from "./finalityTags.ts"

/** Rounds in which an address may fail before it no longer holds up the others. */
const failingRounds = 3

/** The error of a provider that may have the newest block a moment later. */
const isLate = ({ reason }: RpcError): boolean =>
  reason === "missing" || reason === "inconsistent" || reason === "state"

/** Reconciles balances with one provider, and what fails there with another one. */
const readBoth = Effect.fnUntraced(function* (
  { chain, providers }: WatchContext,
  provider: Provider,
  head: BlockRef,
  asked: ReadonlyArray<BalanceQuery>,
  hopeless: ReadonlySet<string>,
  mayBeLate: boolean
) {
  const other = yield* providers.other(provider)
  if (other === undefined) return yield* reconcileBalances({ provider, others: [], chain }, head, asked, hopeless)
  const second = (part: ReadonlyArray<BalanceQuery>) =>
    reconcileBalances({ provider: other, others: [provider], chain }, head, part, hopeless)
  const first = yield* reconcileBalances({ provider, others: [other], chain }, head, asked).pipe(
    Effect.retry({ times: 3, schedule: Schedule.spaced("1 second"), while: (error) => mayBeLate && isLate(error) }),
    // What this provider keeps refusing would otherwise keep payments from ending.
    Effect.catchIf(
      ({ reason }) => !providerTrouble.has(reason),
      () => second(asked)
    )
  )
  if (first.failed.length === 0) return first
  const left = new Set(first.failed.map(({ address }) => address))
  // Income that is replaced already is not asked about again: a part that stays unattributed would be added twice.
  const isReplaced = (address: string, blockHash: string) =>
    first.replaced.some((one) => one.address === address && one.blockHash === blockHash)
  const unresolved = asked
    .filter(({ address }) => left.has(address))
    .map((one) => ({ ...one, doubts: one.doubts.filter(({ credit }) => !isReplaced(one.address, credit.blockHash)) }))
  const again = yield* second(unresolved).pipe(
    Effect.tapError((error) => (providerTrouble.has(error.reason) ? providers.failed(other, error) : Effect.void)),
    // Where the other provider fails as a whole, addresses are still given up after their failing rounds.
    Effect.orElse(() => reconcileBalances({ provider, others: [other], chain }, head, unresolved, hopeless)),
    Effect.either
  )
  if (Either.isLeft(again)) return first
  const { failed, replaced, rows, transfers } = again.right
  return {
    ...first,
    transfers: [...first.transfers, ...transfers],
    rows: [...first.rows, ...rows],
    replaced: [...first.replaced, ...replaced],
    failed
  }
})

/** Consecutive rounds in which each address has failed. */
type Failures = Map<string, number>

/** Counts the addresses that failed, and logs them. */
const noteFailed = (failures: Failures, asked: ReadonlyArray<BalanceQuery>, failed: ReadonlyArray<FailedAddress>) => {
  const now = new Set(failed.map(({ address }) => address))
  for (const { address } of asked) if (!now.has(address)) failures.delete(address)
  return Effect.forEach(
    failed,
    ({ address, error, givenUp }) => {
      const rounds = (failures.get(address) ?? 0) + 1
      failures.set(address, rounds)
      const logged = Effect.annotateLogs({ address, reason: error.message })
      if (rounds === 1) return Effect.logWarning("the income of an address cannot be attributed").pipe(logged)
      return givenUp && rounds === failingRounds
        ? Effect.logError("the income of an address cannot be attributed, and is stored as unattributed").pipe(logged)
        : Effect.void
    },
    { concurrency: 1, discard: true }
  )
}

/**
 * Compares the balances of addresses at the scanned head with the ledger, and stores the income found, except what
 * another provider denies.
 *
 * @param mayBeLate the provider does not serve, and may have the head a moment later: it is waited for, three seconds at most
 */
const compareBalances = Effect.fn("Watcher.compareBalances")(function* (
  watch: WatchContext,
  { disputed, failures }: { readonly failures: Failures; readonly disputed: Set<string> },
  provider: Provider,
  head: BlockRef,
  asked: ReadonlyArray<BalanceQuery>,
  of: CheckedBalances["of"],
  mayBeLate = false
) {
  const { settlement, writer } = watch
  const hopeless = new Set(Array.from(failures).flatMap(([one, rounds]) => (rounds >= failingRounds - 1 ? [one] : [])))
  const reported = yield* readBoth(watch, provider, head, asked, hopeless, mayBeLate)
  const reading = yield* withoutDenied(watch, provider, reported, disputed)
  yield* noteFailed(failures, asked, reading.failed)
  const refuted = yield* writer.write(
    commitBalances(settlement, { ...reading, of, corroborated: isOnlyProvider(watch) })
  )
  // While it serves, no round is whole, and no payment ends.
  if (refuted === undefined || refuted.size === 0) return
  const detail = `it still shows money of ${[...refuted].join(", ")} that two others deny: its balances are not stored`
  yield* watch.providers.contradicted(provider, detail)
})

/** How often finality tags are read and the verification pass continues: while no payment is open, and otherwise. */
export const idleTagInterval = Duration.toMillis("30 minutes")
export const tagInterval = Duration.toMillis("1 minute")
/** The same where a policy requires a tag, so that a payment may wait for it. */
export const policyTagInterval = Duration.toMillis("12 seconds")
/** Block ranges that the verification pass reads between two ticks. */
const passParts = 16
/** The nonces of payments that ended within this are compared by the longer sweeps: a day, and an interval on top. */
const nonceSpan = Duration.toMillis("30 hours")
/**
 * How often the balances of ended payments are compared, by how long ago they ended: most late payments come soon. What
 * comes within a day is found within the hour, and within an hour in 10 minutes, so each span has an interval on top.
 * The first sweep is of all watched addresses. Nonces only grow, so that comparing them a few times misses nothing of a
 * day; they take a call for each address. Each sweep asks the next provider in turn, by each span: one that hides money
 * hides it until the sweep of another one.
 */
const sweeps = [
  { interval: Duration.toMillis("1 day"), ended: Number.POSITIVE_INFINITY, nonces: nonceSpan },
  { interval: Duration.toMillis("6 hours"), ended: nonceSpan, nonces: nonceSpan },
  { interval: Duration.toMillis("1 hour"), ended: Duration.toMillis("25 hours"), nonces: 0 },
  { interval: Duration.toMillis("10 minutes"), ended: Duration.toMillis("70 minutes"), nonces: 0 }
]
/** How often the nonces of open payments in the chain's coin are compared too. */
const nonceInterval = Duration.toMillis("1 minute")
/** Addresses that a sweep compares in one tick. */
const sweepPage = 1000
/** How often new skipped addresses are looked up, and how many of them one tick searches. */
const gapInterval = Duration.toMillis("5 seconds")
const gapPage = 500
/** Blocks below the final ones that are kept, for reorgs of final blocks. */
const keptBelow = 10_000
/** How often older blocks are dropped, and how many of them one tick examines. */
const dropInterval = Duration.toMillis("1 hour")
const dropPage = 1000

/** The maintenance of one watcher. */
export interface Maintenance {
  /** Runs the tasks that are due, with the chain read up to `head`, and notes what failed. */
  readonly run: (provider: Provider, head: BlockRef, idle: boolean) => Effect.Effect<void, StoreUnavailable>
  /** Whether the last run did a page of addresses and others follow, for which an idle chain's next poll would be late. */
  readonly hasMore: () => boolean
}

/**
 * First the addresses of ended payments; then, where all are swept, skipped ones, which a lost copy of the database may
 * have handed out.
 */
type Sweep =
  | {
      readonly of: "ended"
      readonly due: (typeof sweeps)[number]
      readonly noncesFrom: number
      readonly after: Balances.Cursor
    }
  | { readonly of: "gaps"; readonly after: string | undefined }

/** Makes the maintenance of one watcher. */
export const makeMaintenance = (watch: WatchContext, payments: SettingsShape["payments"]): Maintenance => {
  const { chain, network, reader, settlement, writer } = watch
  const balanceInterval = Duration.toMillis(chain.balanceInterval)
  /** When each task was last done. Unix milliseconds. */
  const done = new Map<string, number>()
  /** Half a poll: a task is run by the tick nearest to its time, and ticks are not exactly apart. Milliseconds. */
  const tolerance = Duration.toMillis(chain.pollInterval) / 2
  /** Whether a task is due, also after the clock was set back. */
  const isDue = (task: string, interval: number, now: number) => {
    const last = done.get(task)
    return last === undefined || now < last || now - last >= interval - tolerance
  }
  /** The newest final block at the last whole comparison of balances. */
  let comparedFinal = -1
  /** Old blocks have been examined up to this number. */
  let droppedTo = -1
  /** Index of the provider that each of the sweeps has asked last; one turn for all would give each span the same one. */
  const turns = sweeps.map(() => -1)
  /** Index of the provider that the sweep under way asks, and its next page; undefined between two sweeps. */
  let sweptBy = -1
  let nextPage: Sweep | undefined
  const finality = makeFinality(watch)
  const noted = { failures: new Map<string, number>(), disputed: new Set<string>() }
  const pass = startPass()
  const search = makeEndingSearch(watch)
  const audit = makeAudit(watch, (provider, head, asked) =>
    compareBalances(watch, noted, provider, head, asked, "page")
  )
  let more = false

  const balances = Effect.fnUntraced(function* (provider: Provider, head: BlockRef, now: number) {
    if (!isDue("balances", balanceInterval, now) && !(yield* Balances.due(reader, network, head))) return
    done.set("balances", now)
    const scan = yield* Ledger.scan(reader, network)
    const final = finalBlockOf(watch, head.number, scan?.finalized)
    const withNonces = isDue("nonces", nonceInterval, now)
    if (withNonces) done.set("nonces", now)
    const asked = yield* Balances.dueInRound(reader, network, head, comparedFinal, withNonces)
    if (asked.length > 0) yield* compareBalances(watch, noted, provider, head, asked, "round")
    // Balances that a reorg changed are compared again once it is final: only then are they decided on.
    if ((yield* Ledger.scan(reader, network))?.checked?.number === head.number) comparedFinal = final
    yield* takeBackDenied(watch, provider, head, scan?.checked)
  })

  /**
   * Where the end of a payment's time lies between two stored blocks, also stores the block that has just got all its
   * confirmations: otherwise the payment would wait for the next stored block.
   */
  const settleEnded = Effect.fnUntraced(function* (provider: Provider, head: BlockRef) {
    const number = head.number - chain.confirmations + 1
    const stored = yield* Ledger.newestBlockAt(reader, network, number)
    if (stored === undefined || stored.number === number) return
    if (!(yield* Watched.anyOver(reader, network, stored, head))) return
    const [block, now] = yield* sendBatch(provider.client, [getHeader(number), getHeader(head.number)])
    // A block of another branch must not be stored as an ancestor of the head.
    if (now.hash !== head.hash) return
    yield* writer.write(
      Effect.gen(function* () {
        const scan = yield* Ledger.scan(yield* Tx, network)
        if (scan?.head.hash !== head.hash) return
        yield* Ledger.keepBlocks(network, [block])
        yield* settlement.settle({ network, head }, [])
      })
    )
  })

  const tags = Effect.fnUntraced(function* (provider: Provider, head: BlockRef, now: number, idle: boolean) {
    const interval = chain.policies.length > 0 ? policyTagInterval : tagInterval
    if (!isDue("tags", idle && !watch.troubles.has("finality") ? idleTagInterval : interval, now)) return
    done.set("tags", now)
    yield* finality.read(provider, head)
    for (let part = 0; part < passParts; part++) {
      const passed = yield* verificationPass(watch, provider, pass)
      if (passed !== "more") return
    }
    // With a small block range, one round in each tag interval may be slower than the chain: go on at the next tick.
    done.delete("tags")
  })

  const pageOf = Effect.fnUntraced(function* (at: Sweep) {
    if (at.of === "ended") {
      const { asked, next } = yield* Balances.endedPage(reader, network, at.after, at.noncesFrom, sweepPage)
      const skipped: Sweep | undefined = at.due === sweeps[0] ? { of: "gaps", after: undefined } : undefined
      return { asked, next: next === undefined ? skipped : { ...at, after: next } }
    }
    const { asked, next } = yield* Balances.skippedPage(reader, network, at.after, sweepPage)
    return { asked, next: next === undefined ? undefined : ({ of: "gaps", after: next } satisfies Sweep) }
  })

  const sweep = Effect.fnUntraced(function* (provider: Provider, head: BlockRef, now: number) {
    if (nextPage === undefined) {
      const at = sweeps.findIndex(({ interval }) => isDue(`sweep ${interval}`, interval, now))
      const due = sweeps[at]
      if (due === undefined) return
      // It includes those of the shorter ones.
      for (const { interval } of sweeps.slice(at)) done.set(`sweep ${interval}`, now)
      const span = Math.min(due.ended, Duration.toMillis(payments.lateWindow))
      const inTurn = [...(yield* watch.providers.others(provider)), provider].sort(
        (one, next) => one.index - next.index
      )
      const last = turns[at] ?? -1
      sweptBy = (inTurn.find(({ index }) => index > last) ?? inTurn[0] ?? provider).index
      turns.fill(sweptBy, at)
      nextPage = { of: "ended", due, noncesFrom: now - due.nonces, after: { endedAt: now - span, sequence: 0 } }
    }
    const { asked, next } = yield* pageOf(nextPage)
    const compare = (by: Provider) => compareBalances(watch, noted, by, head, asked, "page")
    const swept = watch.providers.all[sweptBy] ?? provider
    if (asked.length > 0) {
      const byAnother = compareBalances(watch, noted, swept, head, asked, "page", true)
      yield* swept === provider ? compare(provider) : Effect.catchTag(byAnother, "RpcError", () => compare(provider))
    }
    nextPage = next
    more ||= next !== undefined
  })

  /** Searches each skipped address once, for transfers from before it was watched. */
  const gaps = Effect.fnUntraced(function* (provider: Provider, head: BlockRef, now: number) {
    if (!isDue("gaps", gapInterval, now)) return
    const addresses = yield* Repair.unsearched(reader, network, gapPage)
    if (addresses.length < gapPage) done.set("gaps", now)
    if (addresses.length === 0) return
    yield* compareBalances(
      watch,
      noted,
      provider,
      head,
      yield* Balances.skippedQueries(reader, network, addresses),
      "page"
    )
    yield* findSkippedTokens(watch, provider, head, addresses)
    yield* writer.write(Repair.setSearched(network, addresses))
    more ||= addresses.length === gapPage
  })

  /** Drops stored blocks that no reorg can reach, that no receipt is in, and that no open payment counts from. */
  const drop = Effect.fnUntraced(function* (_provider: Provider, _head: BlockRef, now: number) {
    if (!isDue("drop", dropInterval, now)) return
    const scan = yield* Ledger.scan(reader, network)
    if (scan === undefined) return
    const before = Math.min(scan.verified, scan.finalized ?? scan.verified) - keptBelow
    const { last, unneeded } = yield* Ledger.oldBlocks(reader, network, droppedTo, before, dropPage)
    if (unneeded.length > 0) yield* writer.write(Ledger.dropBlocks(network, unneeded))
    droppedTo = last ?? Math.max(droppedTo, before - 1)
    if (last === undefined) done.set("drop", now)
  })

  const run = Effect.fnUntraced(function* (provider: Provider, head: BlockRef, idle: boolean) {
    const now = yield* Clock.currentTimeMillis
    more = false
    // Without watched addresses there is nothing to do, except to find out in time whether a policy's tag is available, and
    // whether money came to an address of long ago.
    const unwatched = chain.policies.length > 0 ? { tags, audit } : { audit }
    const all = { balances, settleEnded, searchEnding: search.run, tags, sweep, gaps, audit, drop }
    for (const [name, task] of Object.entries(watch.watched.size === 0 ? unwatched : all)) {
      const error = yield* task(provider, head, now, idle).pipe(
        Effect.as(undefined),
        Effect.catchTag("RpcError", (error: RpcError) =>
          Effect.logDebug("a maintenance task failed").pipe(
            Effect.annotateLogs({ reason: error.message }),
            Effect.zipRight(providerTrouble.has(error.reason) ? watch.providers.failed(provider, error) : Effect.void),
            Effect.as(error)
          )
        )
      )
      watch.troubles.note(`task ${name}`, error?.summary)
    }
  })

  return { run, hasMore: () => more }
}
