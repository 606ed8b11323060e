/**
 * Reorgs: where scanning resumes when the last scanned block is orphaned. One that orphans a block with its confirmations,
 * or a finalized one, needs a second provider. The watcher's tick calls it.
 */
import { Effect, Either } from "effect"
import type { Network } from "../../Domain/Chain.ts"
import type { BlockRef, Scan } from "../../Domain/Receipt.ts"
import type { Db } from "../../Sql.ts"
import { Ballot, yes } from "../evidence/Ballot.ts"
import * as Ledger from "../ledger/LedgerRepo.ts"
import type { Provider } from "../providers/Providers.ts"
import { findHeader, getHeader, sendBatch } from "../rpc/methods.ts"
import type { RpcClient } from "../rpc/Rpc.ts"
import { inconsistent } from "../rpc/RpcError.ts"
import type { WatchContext } from "./WatchContext.ts"

/** Blocks in one batch of the search for the common ancestor. */
const probesPerBatch = 16
/** Stored blocks in the first search; each further search covers this many times more. */
const firstSearch = 16

/** Up to 16 of the stored blocks, spread evenly, the first and the last among them. */
export const ancestorProbes = (stored: ReadonlyArray<BlockRef>): ReadonlyArray<BlockRef> => {
  if (stored.length <= probesPerBatch) return stored
  const step = (stored.length - 1) / (probesPerBatch - 1)
  return Array.from({ length: probesPerBatch }, (_, i) => Math.round(i * step)).flatMap((at) => stored[at] ?? [])
}

/**
 * Narrows the search by the chain's present hashes. Stored blocks are canonical up to the common ancestor and orphaned
 * above it, so a search over millions of them takes a few batches. Returns the newest one known to be canonical, if any,
 * and the newer ones that may be, newest first: when there are none, `ancestor` is the common ancestor.
 *
 * @param stored newest first
 * @param onChain canonical hashes by block number, of the blocks that were probed
 */
export const narrowAncestor = (stored: ReadonlyArray<BlockRef>, onChain: ReadonlyMap<number, string>) => {
  const match = stored.findIndex((block) => onChain.get(block.number) === block.hash)
  const newer = match < 0 ? stored : stored.slice(0, match)
  const lastOff = newer.findLastIndex((block) => onChain.has(block.number))
  return { ancestor: stored[match], between: newer.slice(lastOff + 1) }
}

/**
 * The common ancestor: the newest stored block that is still canonical. Reorgs are shallow, so it searches the newest
 * blocks first, and then more. `beyondStored`: no stored block is canonical, and `block` is the canonical one in place
 * of the oldest stored block.
 *
 * @param now the chain's block in place of the last scanned one
 */
export const findAncestor = Effect.fn("Scan.findAncestor")(function* (
  client: RpcClient,
  db: Db,
  network: Network,
  now: BlockRef
) {
  let oldest = now
  for (let size = firstSearch; ; size *= firstSearch) {
    let page = yield* Ledger.blocksBelow(db, network, oldest.number, size)
    if (page.length === 0) return { block: oldest, beyondStored: true }
    let found: BlockRef | undefined
    while (page.length > 0) {
      const calls = ancestorProbes(page).map(({ number }) => getHeader(number))
      const headers = yield* sendBatch(client, calls)
      oldest = headers.at(-1) ?? oldest
      const { ancestor, between } = narrowAncestor(page, new Map(headers.map(({ hash, number }) => [number, hash])))
      found = ancestor ?? found
      page = between
    }
    if (found !== undefined) return { block: found, beyondStored: false }
  }
})

/**
 * Fails as `inconsistent` unless another provider has the same block in place of the last scanned one, or this one decides
 * alone: a reorg this deep orphans confirmed receipts. Any other provider is enough: the first one may be the one whose
 * branch was scanned.
 */
const confirmReorg = Effect.fnUntraced(function* ({ providers }: WatchContext, provider: Provider, now: BlockRef) {
  /** On each hash that is reported at this height. */
  const ballot = new Ballot<string, true, Provider>()
  ballot.vote(now.hash, provider, yes(true))
  for (const other of yield* providers.answering(provider)) {
    const found = yield* Effect.either(sendBatch(other.client, [findHeader(now.number)]))
    if (Either.isLeft(found)) {
      yield* providers.failed(other, found.left)
      continue
    }
    ballot.vote(found.right[0]?.hash ?? "none", other, yes(true))
    if (ballot.tally(now.hash).outcome === "shown") return
  }
  const reported = ballot.claimed.map(([hash]) => hash).filter((hash) => hash !== now.hash)
  if (reported.length === 0 && providers.decidesAlone(provider)) return
  const evidence = reported.length === 0 ? "no other provider responds" : `other providers have ${reported.join(", ")}`
  const detail = `it replaces block ${now.number}, which should be final, by ${now.hash}, and ${evidence}`
  return yield* inconsistent(provider.client, "eth_getBlockByNumber", detail)
})

/**
 * The block to resume scanning from when the last scanned block is orphaned.
 *
 * @param now the chain's block in its place
 */
export const commonAncestor = Effect.fn("Watcher.commonAncestor")(function* (
  watch: WatchContext,
  provider: Provider,
  { finalized, head: from }: Scan,
  now: BlockRef
) {
  // Different blocks may also mean that the provider now serves another chain.
  yield* watch.providers.verify(provider)
  const { beyondStored, block } = yield* findAncestor(provider.client, watch.reader, watch.network, now)
  const depth = from.number - block.number
  const isBelowFinal = finalized !== undefined && block.number < finalized
  const isDeep = depth >= watch.chain.confirmations
  if (isBelowFinal || isDeep) yield* confirmReorg(watch, provider, now)
  if (isBelowFinal) {
    yield* Effect.logError("reorg below a finalized block").pipe(
      Effect.annotateLogs({ ancestor: block.number, finalized })
    )
  }
  const log = beyondStored
    ? Effect.logError("reorg deeper than every stored block: scanning resumes where it once started")
    : isDeep
      ? Effect.logError("reorg as deep as the confirmations: the new branch is read from the common ancestor")
      : Effect.logInfo("reorg: the new branch is read from the common ancestor")
  yield* log.pipe(Effect.annotateLogs({ number: from.number, hash: from.hash, ancestor: block.number, depth }))
  return block
})
