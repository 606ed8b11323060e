import { Effect, Either } from "effect"
import type { BlockRef, Scan } from "../../Domain/Receipt.ts"
import { headOf } from "../providers/headOf.ts"
import type { Provider } from "../providers/Providers.ts"
import { type BlockHeader, findHeader, sendBatch } from "../rpc/methods.ts"
import { inconsistent } from "../rpc/RpcError.ts"
import { findAncestor } from "./findAncestor.ts"
import type { WatchContext } from "./WatchContext.ts"

// Where reading goes on when the last scanned block is no longer on the chain.

/**
 * Fails unless another provider, where one can be used, has the same block in the place of the last scanned one: a reorg
 * that is too deep to be one takes back what was confirmed, and is not believed of one node alone. Any of them is enough:
 * the first one asked may be the one whose branch was read.
 */
const confirmReorg = Effect.fnUntraced(function* (
  { providers }: WatchContext,
  { client }: Provider,
  now: BlockRef,
  others: ReadonlyArray<Provider>
) {
  const told: Array<string> = []
  for (const other of others) {
    const found = yield* Effect.either(sendBatch(other.client, [findHeader(now.number)]))
    if (Either.isLeft(found)) {
      yield* providers.failed(other, found.left)
      continue
    }
    const [theirs] = found.right
    if (theirs?.hash === now.hash) return
    told.push(theirs?.hash ?? "none")
  }
  if (told.length === 0) return
  const detail = `it replaces block ${now.number}, which should be final, by ${now.hash}, and other providers have ${told.join(", ")}`
  return yield* inconsistent(client, "eth_getBlockByNumber", detail)
})

/**
 * Whether the last scanned block is of a branch that a provider has made up: this provider's head and another one's are
 * below it, and newer than it by their times, which no chain's lower blocks are. They would be behind it for as long as
 * its number is above the chain's.
 */
export const isMadeUp = Effect.fnUntraced(function* (
  { providers }: WatchContext,
  provider: Provider,
  { head: last }: Scan,
  head: BlockHeader
) {
  const isNewer = ({ number, time }: BlockRef) => number < last.number && time > last.time
  if (!isNewer(head)) return false
  for (const other of yield* providers.others(provider)) {
    const theirs = yield* headOf(providers, other)
    if (theirs !== undefined && isNewer(theirs)) return true
  }
  return false
})

/** Where to go on from when the last scanned block is no longer on the chain, which has `now` in its place. */
export const commonAncestor = Effect.fn("Watcher.commonAncestor")(function* (
  watch: WatchContext,
  provider: Provider,
  { finalized, head: from }: Scan,
  now: BlockRef
) {
  const { chain, providers } = watch
  // A provider that has begun to serve another chain has other blocks too.
  yield* providers.verify(provider)
  const { beyondStored, block } = yield* findAncestor(provider.client, watch.reader, watch.network, now)
  const isBelowFinal = finalized !== undefined && block.number < finalized
  const isDeep = from.number - block.number > chain.confirmations
  if (isBelowFinal || isDeep) {
    yield* confirmReorg(watch, provider, now, yield* providers.others(provider))
  }
  if (isBelowFinal) {
    yield* Effect.logError("reorg below a block that the chain had called final").pipe(
      Effect.annotateLogs({ ancestor: block.number, finalized })
    )
  }
  const log = beyondStored
    ? Effect.logError("reorg deeper than every stored block: reading goes on from where it once started")
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
