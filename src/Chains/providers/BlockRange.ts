/** How many blocks a watcher reads from a provider at once, adapted to the success or error of each range. */
import type { RpcError, RpcReason } from "../rpc/RpcError.ts"

/** Blocks of one commit where full blocks are read; the next commit follows at once. */
const maxFullBlocks = 100
/** Reasons with which a provider refuses a range that is too large, or may be. */
export const refusals: ReadonlySet<RpcReason> = new Set(["too_large", "range", "refused", "unsupported"])
/** Reasons after which a smaller range may succeed. */
export const rangeErrors: ReadonlySet<RpcReason> = new Set([...refusals, "timeout", "http"])
/** Ranges of the size of a known limit that succeed before a larger one is tried. */
const rangesUntilProbe = 64

const enlarged = (blocks: number): number => blocks + Math.max(1, Math.floor(blocks / 8))

/**
 * The number of blocks to read at once. After an error that a smaller range may avoid: the limit that the provider
 * names, the range that it suggests, or half of the failed range; then slowly more. A named limit is exceeded by an
 * eighth now and then: it may have been a limit of results, or of a plan that has changed.
 */
export class BlockRange {
  readonly #largest: number
  #blocks: number
  /** The largest range that has succeeded, or the limit that the provider named. */
  #limit: number
  #rangesAtLimit = 0
  #stuck = false

  constructor(largest = maxFullBlocks) {
    this.#largest = largest
    this.#blocks = largest
    this.#limit = largest
  }

  /** Blocks to read next. */
  get blocks(): number {
    return this.#blocks
  }

  /** A range of a single block failed when it was last tried. */
  get stuck(): boolean {
    return this.#stuck
  }

  /** Notes a failed range. @param blocks its length */
  failed({ maxBlocks, reason, suggestedBlocks }: RpcError, blocks = this.#blocks): void {
    if (!rangeErrors.has(reason)) return
    this.#stuck = blocks === 1
    // A refused range was too large whatever its length. After a timeout, its length proves nothing about larger
    // ranges.
    const tried = refusals.has(reason) ? Math.min(blocks, this.#blocks) : this.#blocks
    if (maxBlocks !== undefined && maxBlocks < tried) {
      this.#blocks = maxBlocks
      this.#limit = maxBlocks
    } else if (suggestedBlocks !== undefined && suggestedBlocks < tried) {
      // A suggestion depends on the logs in these blocks: it is not a limit for others.
      this.#blocks = suggestedBlocks
    } else if (tried > this.#limit) {
      this.#blocks = this.#limit
    } else {
      // Also where the named limit was kept: some providers name one number and apply another.
      this.#blocks = Math.max(1, Math.floor(tried / 2))
    }
  }

  /** Notes a successful range of `blocks`. A range shorter than allowed proves nothing about longer ones. */
  succeeded(blocks: number): void {
    this.#stuck = false
    if (blocks < this.#blocks) return
    this.#limit = Math.max(this.#limit, this.#blocks)
    if (this.#blocks < this.#limit) {
      this.#blocks = Math.min(this.#limit, enlarged(this.#blocks))
    } else if (this.#blocks < this.#largest && ++this.#rangesAtLimit >= rangesUntilProbe) {
      this.#rangesAtLimit = 0
      this.#blocks = Math.min(this.#largest, enlarged(this.#blocks))
    }
  }
}
