import type { RpcError, RpcReason } from "../rpc/RpcError.ts"

/** Blocks that one commit may carry, where each is read whole; what is left follows at once. */
const wholeBlocks = 100
/** What a provider says of a part that is too large, or may say of it. */
export const refusals: ReadonlySet<RpcReason> = new Set(["too_large", "range", "refused"])
/** Errors after which a smaller part may pass. */
export const rangeErrors: ReadonlySet<RpcReason> = new Set([...refusals, "timeout", "http"])
/** Parts of the size that a provider has named as its limit, until a larger one is tried. */
const partsUntilProbe = 64

const more = (blocks: number): number => blocks + Math.max(1, Math.floor(blocks / 8))

/**
 * How many blocks to read at once from a provider: the limit that it names, what it suggests or else half of what it
 * refused after another error that smaller parts may avoid, then slowly more. A limit that was named is tried to be passed now and then, by an eighth: it may have been
 * one of results, or of a plan that has been changed.
 */
export class BlockRange {
  readonly #largest: number
  #blocks: number
  /** As many as the provider has let pass, or named. */
  #limit: number
  #partsAtLimit = 0
  #stuck = false

  constructor(largest = wholeBlocks) {
    this.#largest = largest
    this.#blocks = largest
    this.#limit = largest
  }

  get blocks(): number {
    return this.#blocks
  }

  /** A single block could not be read when it was last tried. */
  get stuck(): boolean {
    return this.#stuck
  }

  /** @param blocks those of the part that failed */
  failed({ maxBlocks, reason, suggestedBlocks }: RpcError, blocks = this.#blocks): void {
    if (!rangeErrors.has(reason)) return
    this.#stuck = blocks === 1
    // A part that is refused is too large whatever its size; one that was not answered may have been small.
    const tried = refusals.has(reason) ? Math.min(blocks, this.#blocks) : this.#blocks
    if (maxBlocks !== undefined && maxBlocks < tried) {
      this.#blocks = maxBlocks
      this.#limit = maxBlocks
    } else if (suggestedBlocks !== undefined && suggestedBlocks < tried) {
      // By what these blocks hold: others may pass in larger parts.
      this.#blocks = suggestedBlocks
    } else if (tried > this.#limit) {
      this.#blocks = this.#limit
    } else {
      // Also where the limit that is named was kept: some name one number and mean another.
      this.#blocks = Math.max(1, Math.floor(tried / 2))
    }
  }

  /** A part of fewer blocks than allowed says nothing of larger ones. */
  succeeded(blocks: number): void {
    this.#stuck = false
    if (blocks < this.#blocks) return
    this.#limit = Math.max(this.#limit, this.#blocks)
    if (this.#blocks < this.#limit) {
      this.#blocks = Math.min(this.#limit, more(this.#blocks))
    } else if (this.#blocks < this.#largest && ++this.#partsAtLimit >= partsUntilProbe) {
      this.#partsAtLimit = 0
      this.#blocks = Math.min(this.#largest, more(this.#blocks))
    }
  }
}
