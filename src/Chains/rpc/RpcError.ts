import { Data } from "effect"

/** Remedies for the operator, by reason. */
const remedies = {
  unreachable: "check the address in rpc_urls and that the node runs",
  timeout: "the provider is slow or hangs: if that lasts, add another one to rpc_urls",
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

/**
 * What went wrong:
 * - `unreachable`: no connection; `timeout`: no response in time; `http`: an HTTP status other than 2xx
 * - `rate_limited`: too many calls in too short a time
 * - `range`: too many blocks or logs in one call; `too_large`: a response over the size limit
 * - `state`: the node has pruned the state; `unsupported`: it does not serve the method or a parameter
 * - `refused`: another error of the provider's; `missing`: the node lacks something that it should have
 * - `behind`: its head is below what has been read; `inconsistent`: blocks that are not of one branch
 * - `garbage`: not a valid response; `contradicted`: other providers deny what it has reported
 */
export type RpcReason = keyof typeof remedies

/** Reasons that concern the provider as a whole, not one method or one old block. */
export const providerTrouble: ReadonlySet<RpcReason> = new Set([
  "unreachable",
  "timeout",
  "http",
  "rate_limited",
  "behind"
])

/** Reasons whose detail is the provider's own text. */
const withProviderText: ReadonlySet<RpcReason> = new Set([
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

/** A provider gave no usable response. Nothing of it was stored; the watcher tries again. */
export class RpcError extends Data.TaggedError("RpcError")<{
  /** Without the path, which carries the provider's key. */
  readonly host: string
  /** The method, or all methods of the batch. */
  readonly method: string
  readonly reason: RpcReason
  readonly detail: string
  /** The remedy, where it is not the usual one of the reason. */
  readonly remedy?: string | undefined
  /** Milliseconds to wait by the Retry-After header of HTTP 429 and 503. */
  readonly retryAfter?: number | undefined
  /** The provider's limit of blocks in one call, where its error names one. */
  readonly maxBlocks?: number | undefined
  /** The number of blocks that the provider suggests for this call, where its error names one. */
  readonly suggestedBlocks?: number | undefined
  /** The provider's limit of calls in one batch, where its error names one. */
  readonly maxCalls?: number | undefined
}> {
  override get message() {
    return `${this.method} at ${this.host} failed (${this.reason}): ${this.detail}. Remedy: ${this.remedy ?? remedies[this.reason]}.`
  }

  /** The message without the provider's text, which may name the operator's account: for /readyz, without a key. */
  get summary() {
    const detail = withProviderText.has(this.reason) ? "" : `: ${this.detail}`
    return `${this.method} at ${this.host} failed (${this.reason})${detail}. Remedy: ${this.remedy ?? remedies[this.reason]}`
  }
}

/**
 * Responses of one provider contradict each other, or blocks that the ledger has.
 *
 * @param retryAfter milliseconds of cooldown, where that is longer than usual
 */
export const inconsistent = ({ host }: Pick<RpcError, "host">, method: string, detail: string, retryAfter?: number) =>
  new RpcError({ host, method, reason: "inconsistent", detail, retryAfter })

/** The error of a provider that has another block, with the hash `found`, in place of one that was read. */
export const otherBlock = (
  client: Pick<RpcError, "host">,
  { hash, number }: { readonly number: number; readonly hash: string | undefined },
  found: string | undefined,
  method = "eth_getBlockByNumber"
): RpcError =>
  inconsistent(client, method, `its block ${number} is ${found ?? "missing"}, and the one that was read is ${hash}`)
