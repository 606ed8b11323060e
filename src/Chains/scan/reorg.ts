import type { BlockRef } from "../../Domain/Receipt.ts"

/** Blocks that one round asks the chain about. */
const probesPerRound = 16

/** Up to 16 of the stored blocks, spread evenly, the first and the last among them. */
export const probes = (stored: ReadonlyArray<BlockRef>): ReadonlyArray<BlockRef> => {
  if (stored.length <= probesPerRound) return stored
  const step = (stored.length - 1) / (probesPerRound - 1)
  return Array.from({ length: probesPerRound }, (_, i) => Math.round(i * step)).flatMap((at) => stored[at] ?? [])
}

export interface Narrowed {
  /** The newest block known to be on the chain, if one is. */
  readonly ancestor: BlockRef | undefined
  /** Newer ones that have not been asked about, newest first: when there are none, `ancestor` is the one. */
  readonly between: ReadonlyArray<BlockRef>
}

/**
 * What the chain's answers say of stored blocks. Below the common ancestor every stored block is on the chain and above
 * it none is, so that a search over millions of them takes a few rounds.
 *
 * @param stored newest first
 * @param onChain hashes that the chain now has, by the number of the block, for the blocks that were asked about
 */
export const narrow = (stored: ReadonlyArray<BlockRef>, onChain: ReadonlyMap<number, string>): Narrowed => {
  const match = stored.findIndex((block) => onChain.get(block.number) === block.hash)
  const newer = match < 0 ? stored : stored.slice(0, match)
  const lastOff = newer.findLastIndex((block) => onChain.has(block.number))
  return { ancestor: stored[match], between: newer.slice(lastOff + 1) }
}
