/** Calls of contracts that change nothing: many in one call of Multicall3 or, where that fails, one by one. */
import { Effect, Either } from "effect"
import { decodeFunctionResult, encodeFunctionData, type Hex, multicall3Abi } from "viem"
import { type Call, ethCall, sendBatch } from "./methods.ts"
import type { CallResult, RpcClient } from "./Rpc.ts"
import type { RpcError, RpcReason } from "./RpcError.ts"

/** The same address on every public chain, https://github.com/mds1/multicall */
export const multicall3Address = "0xca11bde05977b3631167028862be2a173976ca11"

/** A call of a contract that changes nothing. */
export interface ContractView {
  readonly to: string
  readonly data: Hex
}

/** The result of one call, or why it failed. */
export type ViewResult = Either.Either<Hex, string>

/** Results of views in one call of Multicall3, in order. Without `allowFailure` it fails where one reverts. */
export const aggregate3 = (
  views: ReadonlyArray<ContractView>,
  allowFailure: boolean,
  block?: unknown
): Call<ReadonlyArray<ViewResult>> => ({
  ...ethCall(
    {
      to: multicall3Address,
      data: encodeFunctionData({
        abi: multicall3Abi,
        functionName: "aggregate3",
        args: [views.map(({ data, to }) => ({ target: to as Hex, allowFailure, callData: data }))]
      })
    },
    block
  ),
  decode: (result) =>
    Either.try({
      try: () => decodeFunctionResult({ abi: multicall3Abi, functionName: "aggregate3", data: result as Hex }),
      // The result is "0x" where the contract does not exist.
      catch: () => "not a result of Multicall3's aggregate3"
    }).pipe(
      Either.filterOrLeft(
        (returned) => returned.length === views.length,
        () => "not as many results as calls"
      ),
      Either.map((returned) =>
        returned.map(({ returnData, success }) => (success ? Either.right(returnData) : Either.left("it reverts")))
      )
    )
})

const singleResult = (reply: CallResult): ViewResult => {
  if (Either.isLeft(reply)) return Either.left(`eth_call failed (${reply.left.reason})`)
  return typeof reply.right === "string" ? Either.right(reply.right as Hex) : Either.left("no data")
}

/** Reasons for which single calls would fail too. */
const unavailable: ReadonlySet<RpcReason> = new Set(["unreachable", "timeout", "http", "rate_limited"])

/**
 * Calls contracts at the head: in one call of Multicall3, or where that fails in single calls of one batch. The results
 * are in the order of `views`, and all of one block with Multicall3.
 */
export const readContractViews = (
  client: RpcClient,
  views: ReadonlyArray<ContractView>
): Effect.Effect<ReadonlyArray<ViewResult>, RpcError> =>
  sendBatch(client, [aggregate3(views, true)]).pipe(
    Effect.map(([returned]) => returned),
    Effect.catchIf(
      ({ reason }) => !unavailable.has(reason),
      () => Effect.map(client.sendEach(views.map((view) => ethCall(view))), (replies) => replies.map(singleResult))
    )
  )
