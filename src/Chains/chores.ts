import { Clock, Duration, Effect } from "effect"
import type { BlockRef } from "../Domain/Receipt.ts"
import type { SettingsShape } from "../Settings.ts"
import { type StoreUnavailable, Tx } from "../Sql.ts"
import * as Balances from "./BalancesRepo.ts"
import type { Asked } from "./balances.ts"
import { ask, getHeader } from "./calls.ts"
import { type Checked, commitBalances } from "./commitBalances.ts"
import * as Ledger from "./LedgerRepo.ts"
import { readBalances } from "./oracle.ts"
import type { Provider } from "./Providers.ts"
import type { RpcError, RpcReason } from "./Rpc.ts"
import { finalNumber, findTagged, secondPass } from "./secondPass.ts"
import type { Watch } from "./tick.ts"
import * as Watched from "./WatchedRepo.ts"

/** How often the chain's tags are asked for, and with them the second pass goes on: while no payment is open, and else. */
export const idleTagInterval = Duration.toMillis("10 minutes")
export const tagInterval = Duration.toMillis("30 seconds")
/** Where a payment may wait for a tag. */
export const policyTagInterval = Duration.toMillis("12 seconds")
/** The second pass waits this long for a second provider that is put aside. */
const secondProviderPatience = Duration.toMillis("10 minutes")
/** Spans that the second pass reads between two ticks. */
const passParts = 16
/** All addresses that are still watched are looked at once in this time, whatever became of their payments. */
const sweepInterval = Duration.toMillis("1 day")
/** Addresses that one tick looks at for that. */
const sweepPage = 1000
/** What tells of the provider as a whole, and not of one method or one old block. */
const providerTrouble: ReadonlySet<RpcReason> = new Set(["unreachable", "timeout", "http", "rate_limited", "behind"])

/** What is to be done besides reading new blocks, each at a pace of its own. */
export interface Chores {
  /** Does what is due with the chain read up to `head`. Gives what could not be done, and why. */
  readonly run: (
    provider: Provider,
    head: BlockRef,
    idle: boolean
  ) => Effect.Effect<string | undefined, StoreUnavailable>
}

/** When each was last done, Unix milliseconds by the clock. */
interface Done {
  balances: number
  tags: number
  /** The second pass had somebody to read from. */
  pass: number
  sweep: number
  /** What the sweep under way goes on with; undefined between two. */
  next: Sweep | undefined
}

/** First the addresses of payments that have ended, then those that a lost copy of the database may have handed out. */
type Sweep =
  | { readonly of: "ended"; readonly after: Balances.Cursor | undefined }
  | { readonly of: "gaps"; readonly after: string | undefined }

const look = Effect.fnUntraced(function* (
  { chain, providers, settlement, writer }: Watch,
  provider: Provider,
  head: BlockRef,
  asked: ReadonlyArray<Asked>,
  of: Checked["of"]
) {
  const other = yield* providers.other(provider)
  const reading = yield* readBalances(
    { provider, others: other === undefined ? [] : [other], chain },
    head,
    asked
  ).pipe(
    // What this one refuses for good may be all that keeps payments from ending.
    Effect.catchIf(
      ({ reason }) => other !== undefined && !providerTrouble.has(reason),
      (error) =>
        other === undefined ? error : readBalances({ provider: other, others: [provider], chain }, head, asked)
    )
  )
  yield* writer.write(commitBalances(settlement, { ...reading, of, agreed: providers.all.length < 2 }))
})

/** The chores of one watcher. */
export const makeChores = (watch: Watch, payments: SettingsShape["payments"]): Chores => {
  const { chain, network, reader, settlement, writer } = watch
  const grace = Duration.toMillis(payments.settleGrace)
  const balanceInterval = Duration.toMillis(chain.balanceInterval)
  const never = Number.NEGATIVE_INFINITY
  const done: Done = { balances: never, tags: never, pass: never, sweep: never, next: undefined }

  const balances = Effect.fnUntraced(function* (provider: Provider, head: BlockRef, now: number) {
    const isTime = now - done.balances >= balanceInterval
    if (!isTime && !(yield* Balances.due(reader, network, head, grace))) return
    done.balances = now
    const scan = yield* Ledger.scan(reader, network)
    const final = finalNumber(watch, head.number, scan?.finalized)
    const asked = yield* Balances.asked(reader, network, head, grace, final)
    if (asked.length > 0) yield* look(watch, provider, head, asked, "round")
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
    const [block, now] = yield* ask(provider.client, [getHeader(number), getHeader(head.number)])
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
    if (now - done.tags < (idle ? idleTagInterval : interval)) return
    done.tags = now
    if (done.pass === never) done.pass = now
    const finalized = yield* findTagged(provider, "finalized")
    const wantsSafe = chain.policies.some((policy) => policy.require === "safe")
    const safe = wantsSafe ? yield* findTagged(provider, "safe") : undefined
    if (finalized !== undefined || safe !== undefined) {
      // Stored tags only grow: what has not been read yet is nobody's to call final.
      const upTo = (tag: BlockRef | undefined) => tag && Math.min(tag.number, head.number)
      yield* writer.write(Ledger.setTags(network, { safe: upTo(safe), finalized: upTo(finalized) }))
    }
    for (let part = 0; part < passParts; part++) {
      const passed = yield* secondPass(watch, provider, finalized, now - done.pass < secondProviderPatience)
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
    const { asked, next } = yield* Balances.gapPage(reader, network, at.after, sweepPage)
    return { asked, next: next === undefined ? undefined : ({ of: "gaps", after: next } satisfies Sweep) }
  })

  const sweep = Effect.fnUntraced(function* (provider: Provider, head: BlockRef, now: number) {
    if (done.next === undefined) {
      if (now - done.sweep < sweepInterval) return
      done.sweep = now
      done.next = { of: "ended", after: undefined }
    }
    const { asked, next } = yield* pageOf(done.next, now)
    if (asked.length > 0) yield* look(watch, provider, head, asked, "page")
    done.next = next
  })

  const run = Effect.fnUntraced(function* (provider: Provider, head: BlockRef, idle: boolean) {
    const now = yield* Clock.currentTimeMillis
    let trouble: string | undefined
    for (const chore of [balances, settled, tags, sweep]) {
      yield* chore(provider, head, now, idle).pipe(
        Effect.catchTag("RpcError", (error: RpcError) => {
          trouble = error.summary
          return Effect.zipRight(
            Effect.logDebug("a chore could not be done").pipe(Effect.annotateLogs({ reason: error.message })),
            providerTrouble.has(error.reason) ? watch.providers.failed(provider, error) : Effect.void
          )
        })
      )
    }
    return trouble
  })

  return { run }
}
