import { Data } from "effect"

/**
 * What went wrong: no connection, no answer in time, an HTTP status, too many calls in too short a time, a range of
 * blocks or an answer over the size limit, state that the node has let go, a method or parameter that it does not serve,
 * another error of the provider's, something that the node should have and does not, a head that is behind what has been
 * read, blocks that do not belong together, or bytes that are no such answer. `contradicted`: other providers deny what it
 * has reported.
 */
export type RpcReason =
  | "unreachable"
  | "timeout"
  | "http"
  | "rate_limited"
  | "range"
  | "too_large"
  | "state"
  | "unsupported"
  | "refused"
  | "missing"
  | "behind"
  | "inconsistent"
  | "garbage"
  | "contradicted"

/** What tells of the provider as a whole, and not of one method or one old block. */
export const providerTrouble: ReadonlySet<RpcReason> = new Set([
  "unreachable",
  "timeout",
  "http",
  "rate_limited",
  "behind"
])

const remedies: Readonly<Record<RpcReason, string>> = {
  unreachable: "check the address in rpc_urls and that the node runs",
  timeout: "the provider is slow or hangs; tilld tries again with smaller parts",
  http: "check the key in rpc_urls and the provider's limits",
  rate_limited: "tilld waits; a larger plan or another provider in rpc_urls takes more calls",
  range: "tilld tries again with smaller parts",
  too_large: "tilld tries again with smaller parts",
  state: "add a provider to rpc_urls that keeps older state",
  unsupported: "add a provider to rpc_urls that serves it",
  refused: "check the provider's limits and which methods it serves",
  missing: "the node is behind or does not keep enough; tilld tries again",
  behind: "tilld waits for it, or asks another provider of rpc_urls; check that the node is synchronised",
  inconsistent: "the chain moved or a balancer mixed its nodes; tilld reads again",
  garbage: "check that rpc_urls points to an Ethereum JSON-RPC endpoint",
  contradicted: "hold the transaction against a block explorer, and put another provider in its place in rpc_urls"
}

/** Reasons whose detail is in the provider's own words. */
const theirWords: ReadonlySet<RpcReason> = new Set([
  "http",
  "rate_limited",
  "range",
  "too_large",
  "state",
  "unsupported",
  "refused",
  "missing",
  "garbage"
])

/** A provider gave no usable answer. Nothing of it was stored; the watcher tries again. */
export class RpcError extends Data.TaggedError("RpcError")<{
  /** Without the path: that carries the provider's key. */
  readonly host: string
  readonly method: string
  readonly reason: RpcReason
  readonly detail: string
  /** Milliseconds for which the provider wants to be left alone, with HTTP 429 and 503. */
  readonly retryAfter?: number | undefined
  /** The most blocks that the provider takes at once, where it says so. */
  readonly maxBlocks?: number | undefined
  /** Blocks that it would have taken this time, where it says so. */
  readonly suggestedBlocks?: number | undefined
  /** The most calls that the provider takes in one batch, where it says so. */
  readonly maxCalls?: number | undefined
}> {
  override get message() {
    return `${this.method} at ${this.host} failed (${this.reason}): ${this.detail}. Remedy: ${remedies[this.reason]}.`
  }

  /** The message without the provider's words, which may tell of the operator's account: for those who need no key. */
  get summary() {
    const detail = theirWords.has(this.reason) ? "" : `: ${this.detail}`
    return `${this.method} at ${this.host} failed (${this.reason})${detail}`
  }
}

/**
 * Responses of one provider contradict each other, or blocks that the ledger has.
 *
 * @param retryAfter milliseconds for which the provider is left alone, where that is longer than the usual cooldown
 */
export const inconsistent = (
  { host }: { readonly host: string },
  method: string,
  detail: string,
  retryAfter?: number
): RpcError => new RpcError({ host, method, reason: "inconsistent", detail, retryAfter })
