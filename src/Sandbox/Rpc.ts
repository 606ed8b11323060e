import { json } from "node:stream/consumers"
import { Data, Duration, Effect } from "effect"
import { numberToHex } from "viem"
import { makeHttpClient, readBody } from "../lib/httpClient.ts"

/** Far above any base fee that a test's blocks lead to, so that a transaction is never stuck and can be re-included. */
export const ampleFees = { maxFeePerGas: numberToHex(10n ** 11n), maxPriorityFeePerGas: numberToHex(10n ** 9n) }

/** A JSON-RPC call to a local chain that gave no result. */
export class LocalRpcError extends Data.TaggedError("LocalRpcError")<{
  readonly chain: string
  readonly method: string
  /** `Refused`: the chain answered with an error. `Unreachable`: no connection, or no JSON. `Deadline`: no answer in time. */
  readonly reason: "Refused" | "Unreachable" | "Deadline"
  readonly detail: string
}> {
  override get message() {
    return `${this.method} on the local chain ${this.chain} failed (${this.reason}): ${this.detail}`
  }
}

/**
 * One JSON-RPC call: the `result` as the chain gave it, unchecked, since the other end is our own Anvil.
 * `deadline` covers connecting, sending and reading; default 5 seconds.
 */
export type SandboxRpc = <A = unknown>(
  method: string,
  params?: ReadonlyArray<unknown>,
  deadline?: Duration.DurationInput
) => Effect.Effect<A, LocalRpcError>

/** Calls to the chain at `url` over kept connections, which close with the scope. */
export const makeRpc = Effect.fn("Rpc.make")(function* (chain: string, url: string) {
  const client = yield* makeHttpClient("30 seconds")
  const slots = yield* Effect.makeSemaphore(8)
  const rpc: SandboxRpc = <A>(
    method: string,
    params: ReadonlyArray<unknown> = [],
    deadline: Duration.DurationInput = "5 seconds"
  ) => {
    const failed = (reason: LocalRpcError["reason"]) => (detail: unknown) =>
      new LocalRpcError({ chain, method, reason, detail: detail instanceof Error ? detail.message : String(detail) })
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params })
    const request = {
      url: new URL(url),
      method: "POST",
      headers: { "content-type": "application/json" },
      body
    } as const
    return client.send({ ...request, maxBytes: Number.POSITIVE_INFINITY }).pipe(
      Effect.flatMap((response) => readBody(response, json)),
      Effect.map((answer) => answer as { readonly result: A; readonly error?: { readonly message: string } }),
      slots.withPermits(1),
      Effect.mapError(failed("Unreachable")),
      Effect.timeoutFail({
        duration: deadline,
        onTimeout: () => failed("Deadline")(`no answer within ${Duration.format(Duration.decode(deadline))}`)
      }),
      Effect.filterOrFail(
        (answer) => answer.error === undefined,
        (answer) => failed("Refused")(answer.error?.message)
      ),
      Effect.map((answer) => answer.result),
      Effect.withSpan("LocalChain.rpc", { attributes: { chain, method } })
    )
  }
  return rpc
})
