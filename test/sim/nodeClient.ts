import { type MakeRpcError, methodsOf, resultsInOrder } from "../../src/Chains/rpc/batchResponse.ts"
import { makeClient, type RpcClient, type RpcRequest } from "../../src/Chains/rpc/Rpc.ts"
import { RpcError } from "../../src/Chains/rpc/RpcError.ts"
import { Refusal } from "./node.ts"

/** The errors of a node, as a client makes them. */
export const errorsOf =
  (host: string, calls: ReadonlyArray<RpcRequest>): MakeRpcError =>
  (reason, detail, { method = methodsOf(calls), ...more } = {}) =>
    new RpcError({ host, method, reason, detail, ...more })

/** What a client makes of a node's answers to a batch; `one` gives the result of a call or throws a `Refusal`. */
export const replies = (host: string, calls: ReadonlyArray<RpcRequest>, one: (call: RpcRequest) => unknown) =>
  resultsInOrder(
    calls,
    calls.map((call, i) => {
      const id = i + 1
      try {
        return { id, result: one(call) }
      } catch (cause) {
        if (!(cause instanceof Refusal)) throw cause
        return { id, error: { code: cause.code, message: cause.message } }
      }
    }),
    errorsOf(host, calls)
  )

/** The client of a node in this process. */
export const nodeClient = (host: string, sendEach: RpcClient["sendEach"]): RpcClient =>
  makeClient({ host, sendEach, counters: { calls: 0, batches: 0, sent: 0, received: 0 } })
