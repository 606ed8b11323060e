/**
 * The `safe` and `finalized` blocks of one chain: read from the providers, stored with the scan, and reported on
 * /readyz where a policy requires a tag that no provider serves or that stalls. A tag that a policy requires needs a
 * quorum of two providers, so that one provider alone cannot confirm a payment early. Maintenance reads the tags; the
 * doctor uses `findTagged`.
 */
import { Clock, Duration, Effect, Either } from "effect"
import { networkKey } from "../../Domain/Chain.ts"
import { type BlockRef, type FinalityTag, requirementOf } from "../../Domain/Receipt.ts"
import type { StoreUnavailable } from "../../Sql.ts"
import { reached } from "../evidence/Ballot.ts"
import * as Ledger from "../ledger/LedgerRepo.ts"
import * as Watched from "../ledger/WatchedAddressesRepo.ts"
import { ObservedDuration } from "../providers/ObservedDuration.ts"
import type { Provider } from "../providers/Providers.ts"
import { type BlockHeader, getTagged, sendBatch } from "../rpc/methods.ts"
import type { RpcError, RpcReason } from "../rpc/RpcError.ts"
import { isOnlyProvider, type WatchContext } from "../scan/WatchContext.ts"

/** Reasons with which a node rejects a tag that it does not know. */
const unknownTag: ReadonlySet<RpcReason> = new Set(["unsupported", "refused", "missing", "garbage"])
/** A tag that is further behind the head than this stalls. Seconds of the chain's clock. */
const usualDelay = Duration.toSeconds("1 hour")
/** How often a stalled tag is logged. */
const stallInterval = Duration.toMillis("1 hour")

/** The newest block with the tag; undefined where the chain or its node does not know the tag. */
export const findTagged = ({ client }: Pick<Provider, "client">, tag: FinalityTag) =>
  sendBatch(client, [getTagged(tag)]).pipe(
    Effect.map(([header]): BlockHeader | undefined => header),
    Effect.catchIf(
      (error) => unknownTag.has(error.reason),
      () => Effect.succeed(undefined)
    )
  )

/** A block with a tag, as a provider reports it. */
interface ReportedTag {
  readonly by: Provider
  readonly block: BlockHeader
}

/** The chain's finality tags, and whether payments that require one can be confirmed. */
export interface Finality {
  /** Reads the tags and stores them, and notes what is wrong with those that policies require. */
  readonly read: (provider: Provider, head: BlockRef) => Effect.Effect<void, RpcError | StoreUnavailable>
}

/** Makes the reader of one chain's tags. Those that a policy requires are read from the other providers too. */
export const makeFinality = (watch: WatchContext): Finality => {
  const { chain, network, providers, reader, writer } = watch
  const needed = new Set<FinalityTag>(chain.policies.map((policy) => policy.require))
  const policy = `chains.${networkKey(network)}.policy`
  const named = (tags: ReadonlyArray<FinalityTag>) => tags.map((tag) => `"${tag}"`).join(" and ")
  let loggedAt = Number.NEGATIVE_INFINITY

  /** The only provider that reports a tag, and for how long it has been the only one. */
  const soleReporters = new Map<FinalityTag, { readonly by: Provider; readonly alone: ObservedDuration }>()

  /** The tag as the other providers report it. */
  const reportedByOthers = Effect.fnUntraced(function* (provider: Provider, tag: FinalityTag) {
    const known: Array<ReportedTag> = []
    for (const other of yield* providers.others(provider)) {
      const found = yield* Effect.either(findTagged(other, tag))
      if (Either.isLeft(found)) yield* providers.failed(other, found.left)
      else if (found.right !== undefined) known.push({ by: other, block: found.right })
    }
    return known
  })

  /** Whether one provider has been the only one to report the tag for the whole patience. */
  const isPatienceOver = Effect.fnUntraced(function* (tag: FinalityTag, by: Provider) {
    const now = yield* Clock.currentTimeMillis
    const before = soleReporters.get(tag)
    const alone = before?.by === by ? before.alone : new ObservedDuration()
    alone.seen(now)
    soleReporters.set(tag, { by, alone })
    return alone.millis >= watch.soleProviderPatience
  })

  /**
   * A tag that a policy requires is the highest block that a quorum of the providers has reached. A tag that only one provider reports counts after `payments.sole_provider_patience`, whether the others are
   * silent or do not know the tag at the moment.
   */
  const find = Effect.fnUntraced(function* (provider: Provider, tag: FinalityTag) {
    const own = yield* findTagged(provider, tag)
    if (!needed.has(tag) || isOnlyProvider(watch)) return { any: own, awaits: false }
    const known = yield* reportedByOthers(provider, tag)
    if (own !== undefined) known.push({ by: provider, block: own })
    const [only, another] = known
    if (only !== undefined && another === undefined) {
      const counts = yield* isPatienceOver(tag, only.by)
      return { any: counts ? only.block : undefined, awaits: !counts }
    }
    soleReporters.delete(tag)
    return { any: reached(known, ({ block }) => block.number)?.block, awaits: false }
  })

  const lackOf = (tags: ReadonlyArray<FinalityTag>) =>
    tags.length === 0
      ? undefined
      : `no provider that answers knows the tag ${named(tags)}, which ${policy} requires: payments above its amount are never confirmed. Remedy: add a provider to rpc_urls that serves it, or take that policy out and raise confirmations.`

  /** Whether a payment waits for the tag: with receipts above block `number` that have their confirmations. */
  const isWaitedFor = (tag: FinalityTag, number: number, head: BlockRef) =>
    Effect.map(Watched.deepAbove(reader, network, number, head.number - chain.confirmations + 1), (values) =>
      values.some((value) => requirementOf(chain.policies, value) === tag)
    )

  /** Why the tag stalls, which is logged now and then; undefined where it does not, or no payment waits for it. */
  const stallOf = Effect.fnUntraced(function* (
    tag: FinalityTag,
    number: number,
    time: number | undefined,
    head: BlockRef
  ) {
    const at = time ?? (yield* Ledger.newestBlockAt(reader, network, number))?.time
    if (at === undefined || head.time - at <= usualDelay || !(yield* isWaitedFor(tag, number, head))) return undefined
    const hours = Math.floor((head.time - at) / 3600)
    const stalled = `finality stalls: the newest ${tag} block ${number} is ${hours} h behind the head, and a payment waits for the tag by ${policy}`
    const now = yield* Clock.currentTimeMillis
    if (now < loggedAt || now - loggedAt >= stallInterval) {
      loggedAt = now
      yield* Effect.logError("finality stalls, and a payment waits for it").pipe(
        Effect.annotateLogs({ reason: stalled })
      )
    }
    return stalled
  })

  const read = Effect.fn("Watcher.finality")(function* (provider: Provider, head: BlockRef) {
    const finalized = yield* find(provider, "finalized")
    const safe = needed.has("safe") ? yield* find(provider, "safe") : { any: undefined, awaits: false }
    if (finalized.any !== undefined || safe.any !== undefined) {
      // Stored tags only grow, so a tag above the blocks that have been read is not stored yet.
      const upTo = (tag: BlockRef | undefined) => tag && Math.min(tag.number, head.number)
      const tags = Ledger.setTags(network, { safe: upTo(safe.any), finalized: upTo(finalized.any) })
      // The next block may be far: a payment that waited for the tag is confirmed now.
      yield* writer.write(Effect.zipRight(tags, watch.settlement.settle({ network, head }, [])))
    }
    const found = { safe: safe.any, finalized: finalized.any }
    const awaits = { safe: safe.awaits, finalized: finalized.awaits }
    const awaited = Array.from(needed).filter((tag) => awaits[tag])
    const sole =
      awaited.length === 0
        ? undefined
        : `only one provider reports the tag ${named(awaited)}, which ${policy} requires: payments above its amount wait for another one, up to payments.sole_provider_patience. Remedy: add a provider to rpc_urls that serves it`
    const scan = yield* Ledger.scan(reader, network)
    // A tag that was stored once exists, and is only unavailable at the moment.
    const lacking = lackOf(
      Array.from(needed).filter((tag) => found[tag] === undefined && !awaits[tag] && scan?.[tag] === undefined)
    )
    let stalled: string | undefined
    for (const tag of needed) {
      const stored = scan?.[tag]
      if (stored !== undefined) stalled = (yield* stallOf(tag, stored, found[tag]?.time, head)) ?? stalled
    }
    const isNew = watch.troubles.note("finality", lacking ?? sole ?? stalled, lacking === undefined)
    if (lacking !== undefined && isNew) {
      yield* Effect.logError("a policy requires a tag that no provider knows").pipe(
        Effect.annotateLogs({ reason: lacking })
      )
    }
  })

  return { read }
}
