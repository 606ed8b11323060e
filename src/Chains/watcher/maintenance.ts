import { Clock, Duration, Effect } from "effect"
import type { BlockRef } from "../../Domain/Receipt.ts"
import type { SettingsShape } from "../../Settings.ts"
import { type StoreUnavailable, Tx } from "../../Sql.ts"
import * as Balances from "../balances/BalancesRepo.ts"
import { takeBackDenied } from "../corroboration/corroborateBalances.ts"
import { makeEndingSearch } from "../corroboration/endingSearch.ts"
import { finalBlockOf, startPass, verificationPass } from "../corroboration/verificationPass.ts"
import * as Ledger from "../ledger/LedgerRepo.ts"
import * as Watched from "../ledger/WatchedAddressesRepo.ts"
import type { Provider } from "../providers/Providers.ts"
import * as Gaps from "../repair/SkippedAddressesRepo.ts"
import { findSkippedTokens } from "../repair/skippedTokens.ts"
import { getHeader, sendBatch } from "../rpc/methods.ts"
import { providerTrouble, type RpcError } from "../rpc/RpcError.ts"
import type { WatchContext } from "../scan/WatchContext.ts"
import { makeFinality } from "./finalityTags.ts"
import { compareBalances } from "./reconcileRound.ts"

/** How often the chain's tags are asked for, and with them the second pass goes on: while no payment is open, and else. */
export const idleTagInterval = Duration.toMillis("30 minutes")
export const tagInterval = Duration.toMillis("1 minute")
/** Where a payment may wait for a tag. */
export const policyTagInterval = Duration.toMillis("12 seconds")
/** Spans that the second pass reads between two ticks. */
const passParts = 16
/** All addresses that are still watched are looked at once in this time, whatever became of their payments. */
const sweepInterval = Duration.toMillis("1 day")
/** Addresses that one tick looks at for that. */
const sweepPage = 1000
/** How often skipped addresses are looked for that are new, and how many one tick looks at. */
const gapInterval = Duration.toMillis("5 seconds")
const gapPage = 500
/** Blocks below the final ones that are kept for reorgs that nobody expects. */
const keptBelow = 10_000
/** How often older ones are dropped, and how many one tick goes through. */
const dropInterval = Duration.toMillis("1 hour")
const dropPage = 1000

/** What is not as it should be. `ready`: the chain's payments come to their end all the same. */
export interface Trouble {
  readonly reason: string
  readonly ready: boolean
}

/** What is to be done besides reading new blocks, each at a pace of its own. */
export interface Maintenance {
  /** Does what is due with the chain read up to `head`. Gives what could not be done, and what is not as it should be. */
  readonly run: (
    provider: Provider,
    head: BlockRef,
    idle: boolean
  ) => Effect.Effect<ReadonlyArray<Trouble>, StoreUnavailable>
}

/** When each was last done, Unix milliseconds by the clock. */
interface Done {
  balances: number
  tags: number
  /** The second pass had somebody to read from. */
  pass: number
  sweep: number
  gaps: number
  drop: number
  /** Up to this block, old blocks have been gone through. */
  droppedTo: number
  /** What the sweep under way goes on with; undefined between two. */
  next: Sweep | undefined
}

/** First the addresses of payments that have ended, then those that a lost copy of the database may have handed out. */
type Sweep =
  | { readonly of: "ended"; readonly after: Balances.Cursor | undefined }
  | { readonly of: "gaps"; readonly after: string | undefined }

/** Whether it is time again for what was last done at `last`, Unix milliseconds: also where the clock was set back since. */
const isTime = (last: number, interval: number, now: number): boolean => now < last || now - last >= interval

/** The chores of one watcher. */
export const makeMaintenance = (watch: WatchContext, payments: SettingsShape["payments"]): Maintenance => {
  const { chain, network, reader, settlement, writer } = watch
  const grace = Duration.toMillis(payments.settleGrace)
  const balanceInterval = Duration.toMillis(chain.balanceInterval)
  const never = Number.NEGATIVE_INFINITY
  const done: Done = {
    balances: never,
    tags: never,
    pass: never,
    sweep: never,
    gaps: never,
    drop: never,
    droppedTo: -1,
    next: undefined
  }
  const finality = makeFinality(watch)
  const noted = { failures: new Map<string, number>(), disputed: new Set<string>() }
  const pass = startPass()
  const search = makeEndingSearch(watch, payments)
  let unsearched: string | undefined

  const balances = Effect.fnUntraced(function* (provider: Provider, head: BlockRef, now: number) {
    if (!isTime(done.balances, balanceInterval, now) && !(yield* Balances.due(reader, network, head, grace))) return
    done.balances = now
    const scan = yield* Ledger.scan(reader, network)
    const final = finalBlockOf(watch, head.number, scan?.finalized)
    const asked = yield* Balances.asked(reader, network, head, grace, final)
    if (asked.length > 0) yield* compareBalances(watch, noted, provider, head, asked, "round")
    yield* takeBackDenied(watch, provider, head, scan?.checked)
  })

  /**
   * Where the end of a payment's time lies between two stored blocks, the one that has just got all its confirmations is
   * stored too: else the payment would wait for the next end of a range.
   */
  const settled = Effect.fnUntraced(function* (provider: Provider, head: BlockRef) {
    const number = head.number - chain.confirmations + 1
    const stored = yield* Ledger.newestBlockAt(reader, network, number)
    if (stored === undefined || stored.number === number) return
    if (!(yield* Watched.anyOver(reader, network, stored, head, grace))) return
    const [block, now] = yield* sendBatch(provider.client, [getHeader(number), getHeader(head.number)])
    // Of another branch it would be taken for an ancestor of the head.
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
    if (!isTime(done.tags, idle && finality.trouble() === undefined ? idleTagInterval : interval, now)) return
    done.tags = now
    if (done.pass === never || done.pass > now) done.pass = now
    const finalized = yield* finality.read(provider, head)
    for (let part = 0; part < passParts; part++) {
      const passed = yield* verificationPass(
        watch,
        provider,
        finalized,
        now - done.pass < watch.soleProviderPatience,
        pass
      )
      if (passed !== "waits") done.pass = now
      if (passed !== "more") return
    }
    // A provider that gives few blocks at once may be slower than the chain at the pace of tags.
    done.tags = never
  })

  const pageOf = Effect.fnUntraced(function* (at: Sweep, now: number) {
    if (at.of === "ended") {
      const since = now - Duration.toMillis(payments.lateWindow)
      const { asked, next } = yield* Balances.endedPage(reader, network, since, at.after, sweepPage)
      const following: Sweep = next === undefined ? { of: "gaps", after: undefined } : { of: "ended", after: next }
      return { asked, next: following }
    }
    const { asked, next } = yield* Balances.skippedPage(reader, network, at.after, sweepPage)
    return { asked, next: next === undefined ? undefined : ({ of: "gaps", after: next } satisfies Sweep) }
  })

  const sweep = Effect.fnUntraced(function* (provider: Provider, head: BlockRef, now: number) {
    if (done.next === undefined) {
      if (!isTime(done.sweep, sweepInterval, now)) return
      done.sweep = now
      done.next = { of: "ended", after: undefined }
    }
    const { asked, next } = yield* pageOf(done.next, now)
    if (asked.length > 0) yield* compareBalances(watch, noted, provider, head, asked, "page")
    done.next = next
  })

  const searched = Effect.fnUntraced(function* (provider: Provider, head: BlockRef) {
    unsearched = yield* search.run(provider, head)
  })

  /** Once for each skipped address: what came before it was watched. */
  const gaps = Effect.fnUntraced(function* (provider: Provider, head: BlockRef, now: number) {
    if (!isTime(done.gaps, gapInterval, now)) return
    const addresses = yield* Gaps.unsearched(reader, network, gapPage)
    if (addresses.length < gapPage) done.gaps = now
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
    yield* writer.write(Gaps.setSearched(network, addresses))
  })

  /** Drops stored blocks that no reorg can reach, that no receipt is in, and that no open payment counts from. */
  const drop = Effect.fnUntraced(function* (_provider: Provider, _head: BlockRef, now: number) {
    if (!isTime(done.drop, dropInterval, now)) return
    const scan = yield* Ledger.scan(reader, network)
    if (scan === undefined) return
    const before = Math.min(scan.verified, scan.finalized ?? scan.verified) - keptBelow
    const { last, unneeded } = yield* Ledger.oldBlocks(reader, network, done.droppedTo, before, dropPage)
    if (unneeded.length > 0) yield* writer.write(Ledger.dropBlocks(network, unneeded))
    done.droppedTo = last ?? Math.max(done.droppedTo, before - 1)
    if (last === undefined) done.drop = now
  })

  const run = Effect.fnUntraced(function* (provider: Provider, head: BlockRef, idle: boolean) {
    const now = yield* Clock.currentTimeMillis
    const troubles: Array<Trouble> = []
    // Nothing can have come to nobody; but whether a policy can be kept must be known before somebody pays.
    const unwatched = chain.policies.length > 0 ? [tags] : []
    for (const chore of watch.watched.size === 0 ? unwatched : [balances, settled, searched, tags, sweep, gaps, drop]) {
      yield* chore(provider, head, now, idle).pipe(
        Effect.catchTag("RpcError", (error: RpcError) => {
          troubles.push({ reason: error.summary, ready: true })
          return Effect.zipRight(
            Effect.logDebug("a chore could not be done").pipe(Effect.annotateLogs({ reason: error.message })),
            providerTrouble.has(error.reason) ? watch.providers.failed(provider, error) : Effect.void
          )
        })
      )
    }
    if (unsearched !== undefined) troubles.push({ reason: unsearched, ready: true })
    if (pass.dispute !== undefined) troubles.push({ reason: pass.dispute, ready: true })
    const final = finality.trouble()
    return final === undefined ? troubles : [final, ...troubles]
  })

  return { run }
}
