import type { RpcError, RpcReason } from "./Rpc.ts"

/** Blocks that one commit may carry; what is left follows at once. */
const largest = 100
/** Errors after which a smaller part may pass. */
const sizeErrors: ReadonlySet<RpcReason> = new Set(["timeout", "http", "too_large", "refused"])

/** How many blocks to read at once from a provider: half after an error that smaller parts may avoid, an eighth more after each success. */
export class Span {
  #blocks = largest

  get blocks(): number {
    return this.#blocks
  }

  failed({ reason }: RpcError): void {
    if (sizeErrors.has(reason)) this.#blocks = Math.max(1, Math.floor(this.#blocks / 2))
  }

  succeeded(): void {
    this.#blocks = Math.min(largest, this.#blocks + Math.max(1, Math.floor(this.#blocks / 8)))
  }
}
