import { expect, it } from "@effect/vitest"
import { Effect, Either } from "effect"
import { type MakeRpcError, resultsInOrder } from "../../../src/Chains/rpc/batchResponse.ts"
import { RpcError } from "../../../src/Chains/rpc/RpcError.ts"

const failed: MakeRpcError = (reason, detail, { method = "all", ...more } = {}) =>
  new RpcError({ host: "a", method, reason, detail, ...more })

it.effect("a response counts with any result, null included, also where its error is null", () =>
  Effect.gen(function* () {
    const calls = ["one", "two"].map((method) => ({ method, params: [] }))
    const answers = [
      { id: 1, result: null },
      { id: 0, result: "0x1", error: null }
    ]
    expect(yield* resultsInOrder(calls, answers, failed)).toEqual([Either.right("0x1"), Either.right(null)])
  })
)
