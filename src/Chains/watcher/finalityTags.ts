import { Clock, Duration, Effect, Either } from "effect"
import { networkKey } from "../../Domain/Chain.ts"
import { type FinalityTag, requirementOf } from "../../Domain/Finality.ts"
import type { BlockRef } from "../../Domain/Receipt.ts"
import type { StoreUnavailable } from "../../Sql.ts"
import * as Ledger from "../ledger/LedgerRepo.ts"
import * as Watched from "../ledger/WatchedAddressesRepo.ts"
import { ObservedDuration } from "../providers/ObservedDuration.ts"
import type { Provider } from "../providers/Providers.ts"
import { type BlockHeader, getTagged, sendBatch } from "../rpc/methods.ts"
import type { RpcError, RpcReason } from "../rpc/RpcError.ts"
import { isOnlyProvider, type WatchContext } from "../scan/WatchContext.ts"

/** How a node says that it does not know a tag. */
const unknownTag: ReadonlySet<RpcReason> = new Set(["unsupported", "refused", "missing", "garbage"])
/** A tag that is further behind the head than this stands still. Seconds of the chain's clock. */
const usualDelay = Duration.toSeconds("1 hour")
/** How often the log is told of a tag that stands still. */
const stallInterval = Duration.toMillis("1 hour")

/** The newest block with the tag; undefined where the chain or its node knows no such thing. */
export const findTagged = ({ client }: Pick<Provider, "client">, tag: FinalityTag) =>
  sendBatch(client, [getTagged(tag)]).pipe(
    Effect.map(([header]): BlockHeader | undefined => header),
    Effect.catchIf(
      (error) => unknownTag.has(error.reason),
      () => Effect.succeed(undefined)
    )
  )

/** A block with a tag, by a provider. */
interface Claim {
  readonly by: Provider
  readonly block: BlockHeader
}

/** The chain's tags, and whether the payments that wait for one can ever get it. */
export interface Finality {
  /** Asks for the tags and stores them. Gives the newest block that this provider calls final, if it knows the tag. */
  readonly read: (
    provider: Provider,
    head: BlockRef
  ) => Effect.Effect<BlockHeader | undefined, RpcError | StoreUnavailable>
  /** What is not as it should be, as of the last `read`. */
  readonly trouble: () => { readonly reason: string; readonly ready: boolean } | undefined
}

/** Asks for one chain's tags: of another provider too where a policy needs one that the serving provider refuses. */
export const makeFinality = (watch: WatchContext): Finality => {
  const { chain, network, providers, reader, writer } = watch
  const needed = new Set<FinalityTag>(chain.policies.map((policy) => policy.require))
  const policy = `chains.${networkKey(network)}.policy`
  const named = (tags: ReadonlyArray<FinalityTag>) => tags.map((tag) => `"${tag}"`).join(" and ")
  let lacking: string | undefined
  let sole: string | undefined
  let stalled: string | undefined
  let told = Number.NEGATIVE_INFINITY

  /** Who alone tells a tag, and for how long. */
  const soles = new Map<FinalityTag, { readonly by: Provider; readonly alone: ObservedDuration }>()

  /** The tag as the other providers have it. */
  const elsewhere = Effect.fnUntraced(function* (provider: Provider, tag: FinalityTag) {
    const known: Array<Claim> = []
    for (const other of yield* providers.others(provider)) {
      const found = yield* Effect.either(findTagged(other, tag))
      if (Either.isLeft(found)) yield* providers.failed(other, found.left)
      else if (found.right !== undefined) known.push({ by: other, block: found.right })
    }
    return known
  })

  /** Whether one provider alone has told the tag for as long as others are waited for. */
  const isLeftToIt = Effect.fnUntraced(function* (tag: FinalityTag, by: Provider) {
    const now = yield* Clock.currentTimeMillis
    const before = soles.get(tag)
    const alone = before?.by === by ? before.alone : new ObservedDuration()
    alone.seen(now)
    soles.set(tag, { by, alone })
    return alone.millis >= watch.soleProviderPatience
  })

  /**
   * A tag that a policy requires is the second highest that the providers know: one alone may claim too much. Of one that
   * only one provider tells, its word counts after the patience for a sole one, whether the others are silent or say for
   * the moment that they know no such tag.
   */
  const find = Effect.fnUntraced(function* (provider: Provider, tag: FinalityTag) {
    const own = yield* findTagged(provider, tag)
    if (!needed.has(tag) || isOnlyProvider(watch)) return { own, any: own, awaits: false }
    const known = yield* elsewhere(provider, tag)
    if (own !== undefined) known.push({ by: provider, block: own })
    const [highest, second] = known.sort((a, b) => b.block.number - a.block.number)
    if (highest !== undefined && second === undefined) {
      const counts = yield* isLeftToIt(tag, highest.by)
      return { own, any: counts ? highest.block : undefined, awaits: !counts }
    }
    soles.delete(tag)
    return { own, any: second?.block, awaits: false }
  })

  const noteLack = Effect.fnUntraced(function* (tags: ReadonlyArray<FinalityTag>) {
    const before = lacking
    lacking =
      tags.length === 0
        ? undefined
        : `no provider that answers knows the tag ${named(tags)}, which ${policy} requires: payments above its amount are never confirmed. Remedy: add a provider to rpc_urls that serves it, or take that policy out and raise confirmations.`
    if (lacking !== undefined && lacking !== before) {
      yield* Effect.logError("a policy requires a tag that no provider knows").pipe(
        Effect.annotateLogs({ reason: lacking })
      )
    }
  })

  /** Whether a payment waits for the tag, with receipts that have their confirmations above block `number`. */
  const isWaitedFor = (tag: FinalityTag, number: number, head: BlockRef) =>
    Effect.map(Watched.deepAbove(reader, network, number, head.number - chain.confirmations + 1), (values) =>
      values.some((value) => requirementOf(chain.policies, value) === tag)
    )

  const noteStall = Effect.fnUntraced(function* (
    tag: FinalityTag,
    number: number,
    time: number | undefined,
    head: BlockRef
  ) {
    const at = time ?? (yield* Ledger.newestBlockAt(reader, network, number))?.time
    if (at === undefined || head.time - at <= usualDelay || !(yield* isWaitedFor(tag, number, head))) return
    const hours = Math.floor((head.time - at) / 3600)
    stalled = `finality stalls: the newest ${tag} block ${number} is ${hours} h behind the head, and a payment waits for the tag by ${policy}`
    const now = yield* Clock.currentTimeMillis
    if (now >= told && now - told < stallInterval) return
    told = now
    yield* Effect.logError("finality stalls, and a payment waits for it").pipe(Effect.annotateLogs({ reason: stalled }))
  })

  const read = Effect.fn("Watcher.finality")(function* (provider: Provider, head: BlockRef) {
    const finalized = yield* find(provider, "finalized")
    const safe = needed.has("safe") ? yield* find(provider, "safe") : { own: undefined, any: undefined, awaits: false }
    if (finalized.any !== undefined || safe.any !== undefined) {
      // Stored tags only grow: what has not been read yet is nobody's to call final.
      const upTo = (tag: BlockRef | undefined) => tag && Math.min(tag.number, head.number)
      yield* writer.write(Ledger.setTags(network, { safe: upTo(safe.any), finalized: upTo(finalized.any) }))
    }
    const found = { safe: safe.any, finalized: finalized.any }
    const awaits = { safe: safe.awaits, finalized: finalized.awaits }
    const awaited = Array.from(needed).filter((tag) => awaits[tag])
    sole =
      awaited.length === 0
        ? undefined
        : `only one provider tells the tag ${named(awaited)}, which ${policy} requires: payments above its amount wait for another one, up to payments.sole_provider_patience. Remedy: add a provider to rpc_urls that serves it`
    const scan = yield* Ledger.scan(reader, network)
    // What has been known once is there, and only not told of now.
    yield* noteLack(
      Array.from(needed).filter((tag) => found[tag] === undefined && !awaits[tag] && scan?.[tag] === undefined)
    )
    stalled = undefined
    for (const tag of needed) {
      const stored = scan?.[tag]
      if (stored !== undefined) yield* noteStall(tag, stored, found[tag]?.time, head)
    }
    return finalized.own
  })

  return {
    read,
    trouble: () => {
      if (lacking !== undefined) return { reason: lacking, ready: false }
      const reason = sole ?? stalled
      return reason === undefined ? undefined : { reason, ready: true }
    }
  }
}
