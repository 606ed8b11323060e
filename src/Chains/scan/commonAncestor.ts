/**
 * Reorg handling: where scanning resumes when the last scanned block is orphaned. A reorg deeper than the
 * confirmations, or below a finalized block, needs a second provider. The watcher's tick calls it.
 */
import { Effect, Either } from "effect"
import type { BlockRef, Scan } from "../../Domain/Receipt.ts"
import { Ballot, yes } from "../evidence/Ballot.ts"
import type { Provider } from "../providers/Providers.ts"
import { findHeader, sendBatch } from "../rpc/methods.ts"
import { inconsistent } from "../rpc/RpcError.ts"
import { findAncestor } from "./findAncestor.ts"
import type { WatchContext } from "./WatchContext.ts"

/**
 * Fails as `inconsistent` unless another provider has the same block in place of the last scanned one, or this one decides
 * alone: a reorg this deep orphans confirmed receipts. Any other provider is enough: the first one may be the one whose
 * branch was scanned.
 */
const confirmReorg = Effect.fnUntraced(function* (
  { providers }: WatchContext,
  provider: Provider,
  now: BlockRef,
  others: ReadonlyArray<Provider>
) {
  /** On each hash that is reported at this height. */
  const ballot = new Ballot<string, true, Provider>()
  ballot.vote(now.hash, provider, yes(true))
  for (const other of others) {
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
  const { chain, providers } = watch
  // Different blocks may also mean that the provider now serves another chain.
  yield* providers.verify(provider)
  const { beyondStored, block } = yield* findAncestor(provider.client, watch.reader, watch.network, now)
  const isBelowFinal = finalized !== undefined && block.number < finalized
  const isDeep = from.number - block.number > chain.confirmations
  if (isBelowFinal || isDeep) {
    yield* confirmReorg(watch, provider, now, yield* providers.answering(provider))
  }
  if (isBelowFinal) {
    yield* Effect.logError("reorg below a finalized block").pipe(
      Effect.annotateLogs({ ancestor: block.number, finalized })
    )
  }
  const log = beyondStored
    ? Effect.logError("reorg deeper than every stored block: scanning resumes where it once started")
    : isDeep
      ? Effect.logError("reorg deeper than the confirmations: the new branch is read from the common ancestor")
      : Effect.logInfo("reorg: the new branch is read from the common ancestor")
  yield* log.pipe(
    Effect.annotateLogs({
      number: from.number,
      hash: from.hash,
      ancestor: block.number,
      depth: from.number - block.number
    })
  )
  return block
})
