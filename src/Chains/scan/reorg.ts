import type { BlockRef } from "../../Domain/Receipt.ts"

/** Blocks in one batch of the search for the common ancestor. */
const probesPerBatch = 16

/** Up to 16 of the stored blocks, spread evenly, the first and the last among them. */
export const ancestorProbes = (stored: ReadonlyArray<BlockRef>): ReadonlyArray<BlockRef> => {
  if (stored.length <= probesPerBatch) return stored
  const step = (stored.length - 1) / (probesPerBatch - 1)
  return Array.from({ length: probesPerBatch }, (_, i) => Math.round(i * step)).flatMap((at) => stored[at] ?? [])
}

/** The state of the search for the common ancestor. */
export interface Narrowed {
  /** The newest stored block known to be canonical, if any. */
  readonly ancestor: BlockRef | undefined
  /** Newer ones that may be canonical, newest first: when there are none, `ancestor` is the common ancestor. */
  readonly between: ReadonlyArray<BlockRef>
}

/**
 * Narrows the search by the chain's present hashes. Stored blocks are canonical up to the common ancestor and orphaned
 * above it, so a search over millions of them takes a few batches.
 *
 * @param stored newest first
 * @param onChain canonical hashes by block number, of the blocks that were probed
 */
export const narrowAncestor = (stored: ReadonlyArray<BlockRef>, onChain: ReadonlyMap<number, string>): Narrowed => {
  const match = stored.findIndex((block) => onChain.get(block.number) === block.hash)
  const newer = match < 0 ? stored : stored.slice(0, match)
  const lastOff = newer.findLastIndex((block) => onChain.has(block.number))
  return { ancestor: stored[match], between: newer.slice(lastOff + 1) }
}
