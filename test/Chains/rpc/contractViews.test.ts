import { describe, expect, it } from "@effect/vitest"
import { Effect, Either } from "effect"
import { encodeFunctionResult, type Hex, multicall3Abi } from "viem"
import { multicall3Address, readContractViews } from "../../../src/Chains/rpc/contractViews.ts"
import type { CallResult, RpcRequest } from "../../../src/Chains/rpc/Rpc.ts"
import { RpcError, type RpcReason } from "../../../src/Chains/rpc/RpcError.ts"
import { nodeClient } from "../../sim/nodeClient.ts"

const views = [1, 2].map((n) => ({ to: `0x${String(n).repeat(40)}`, data: `0x0${n}` as Hex }))

const aggregated = (results: ReadonlyArray<{ success: boolean; returnData: Hex }>): CallResult =>
  Either.right(encodeFunctionResult({ abi: multicall3Abi, functionName: "aggregate3", result: results }))
const failure = (reason: RpcReason): CallResult =>
  Either.left(new RpcError({ host: "a", method: "eth_call", reason, detail: "as the test wants" }))

/** A node that responds to Multicall3 with `whole`, and to each separate call with `single`. */
const node = (whole: CallResult, single: ReadonlyArray<CallResult> = []) => {
  const asked: Array<unknown> = []
  const answer = ({ params: [call, at] }: RpcRequest): CallResult => {
    expect(at).toBe("latest")
    const { to } = call as { to: string }
    asked.push(to)
    return to === multicall3Address ? whole : (single[views.findIndex((view) => view.to === to)] ?? failure("refused"))
  }
  return { asked, client: nodeClient("a", (calls) => Effect.sync(() => calls.map(answer))) }
}

describe("calls of contracts", () => {
  it.effect("are one call of Multicall3, with the success of each", () => {
    const { asked, client } = node(
      aggregated([
        { success: false, returnData: "0xaa" },
        { success: true, returnData: "0xbb" }
      ])
    )
    return Effect.gen(function* () {
      expect(yield* readContractViews(client, views)).toEqual([Either.left("it reverts"), Either.right("0xbb")])
      expect(asked).toEqual([multicall3Address])
    })
  })

  it.effect.each([
    ["refuses it", failure("refused")],
    ["has no such contract", Either.right("0x")],
    ["answers for too few", aggregated([{ success: true, returnData: "0xaa" }])]
  ] as const)("are made one by one where the node %s", ([, whole]) => {
    const { client } = node(whole, [failure("state"), Either.right("0xbb")])
    return Effect.map(readContractViews(client, views), (returned) =>
      expect(returned).toEqual([Either.left("eth_call failed (state)"), Either.right("0xbb")])
    )
  })

  it.effect.each<RpcReason>(["unreachable", "timeout", "http", "rate_limited"])(
    "are not made one by one where the provider is out of reach: %s",
    (reason) => {
      const { asked, client } = node(failure(reason))
      return Effect.map(Effect.flip(readContractViews(client, views)), (error) => {
        expect(error.reason).toBe(reason)
        expect(asked).toEqual([multicall3Address])
      })
    }
  )
})
