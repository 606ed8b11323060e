import type { RpcError, RpcReason } from "./Rpc.ts"

/** Blocks that one commit may carry; what is left follows at once. */
const largest = 100
/** Errors after which a smaller part may pass. */
const sizeErrors: ReadonlySet<RpcReason> = new Set(["timeout", "http", "too_large", "refused"])

/** How many blocks to read at once from a provider: half after an error that smaller parts may avoid, then slowly more. */
export class Span {
  #blocks = largest

  get blocks(): number {
    return this.#blocks
  }

  failed({ reason }: RpcError): void {
    if (sizeErrors.has(reason)) this.#blocks = Math.max(1, Math.floor(this.#blocks / 2))
  }

  /** A part of fewer blocks than allowed says nothing of larger ones. */
  succeeded(blocks: number): void {
    if (blocks < this.#blocks) return
    this.#blocks = Math.min(largest, this.#blocks + Math.max(1, Math.floor(this.#blocks / 8)))
  }
}
