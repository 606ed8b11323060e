import { Effect, Either } from "effect"
import { decodeFunctionResult, encodeFunctionData, type Hex, multicall3Abi } from "viem"
import { multicall3Address } from "./balanceMethods.ts"
import { type Call, ethCall, sendBatch } from "./methods.ts"
import type { RpcClient } from "./Rpc.ts"
import type { RpcError, RpcReason } from "./RpcError.ts"

/** A call of a contract that changes nothing. */
export interface ContractView {
  readonly to: string
  readonly data: Hex
}

/** What one call returned, or why it failed. */
export type ViewResult = Either.Either<Hex, string>

const aggregated = (views: ReadonlyArray<ContractView>): Call<ReadonlyArray<ViewResult>> => ({
  ...ethCall({
    to: multicall3Address,
    data: encodeFunctionData({
      abi: multicall3Abi,
      functionName: "aggregate3",
      args: [views.map(({ data, to }) => ({ target: to as Hex, allowFailure: true, callData: data }))]
    })
  }),
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

const sendSingly = (client: RpcClient, views: ReadonlyArray<ContractView>) =>
  Effect.map(
    client.sendEach(views.map((view) => ethCall(view))),
    (replies): ReadonlyArray<ViewResult> =>
      replies.map((reply) =>
        Either.flatMap(
          Either.mapLeft(reply, ({ reason }) => `eth_call failed (${reason})`),
          (result) => (typeof result === "string" ? Either.right(result as Hex) : Either.left("no data"))
        )
      )
  )

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
  sendBatch(client, [aggregated(views)]).pipe(
    Effect.map(([returned]) => returned),
    Effect.catchIf(
      ({ reason }) => !unavailable.has(reason),
      () => sendSingly(client, views)
    )
  )
