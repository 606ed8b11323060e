import type { RpcError, RpcReason } from "./Rpc.ts"

/** Blocks that one commit may carry, where each is read whole; what is left follows at once. */
const wholeBlocks = 100
/** Errors after which a smaller part may pass. */
export const sizeErrors: ReadonlySet<RpcReason> = new Set(["timeout", "http", "too_large", "range", "refused"])
/** Parts of the size that a provider has named as its limit, until a larger one is tried. */
const partsUntilProbe = 64

const more = (blocks: number): number => blocks + Math.max(1, Math.floor(blocks / 8))

/**
 * How many blocks to read at once from a provider: the limit that it names, half after another error that smaller parts
 * may avoid, then slowly more. A limit that was named is tried to be passed now and then, by an eighth: it may have been
 * one of results, or of a plan that has been changed.
 */
export class Span {
  readonly #largest: number
  #blocks: number
  /** As many as the provider has let pass, or named. */
  #limit: number
  #partsAtLimit = 0

  constructor(largest = wholeBlocks) {
    this.#largest = largest
    this.#blocks = largest
    this.#limit = largest
  }

  get blocks(): number {
    return this.#blocks
  }

  failed({ maxBlocks, reason }: RpcError): void {
    if (!sizeErrors.has(reason)) return
    if (maxBlocks !== undefined && maxBlocks < this.#blocks) {
      this.#blocks = maxBlocks
      this.#limit = maxBlocks
    } else if (this.#blocks > this.#limit) {
      this.#blocks = this.#limit
    } else {
      // Also where the limit that is named was kept: some name one number and mean another.
      this.#blocks = Math.max(1, Math.floor(this.#blocks / 2))
    }
  }

  /** A part of fewer blocks than allowed says nothing of larger ones. */
  succeeded(blocks: number): void {
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
