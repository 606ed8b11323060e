import { Effect } from "effect"
import type { RpcClient, RpcRequest } from "../../src/Chains/rpc/Rpc.ts"
import type { BalanceModel } from "./balances/BalanceModel.ts"

/** The same node, which answers some calls otherwise. */
export const distorted = (client: RpcClient, edit: (call: RpcRequest, answer: unknown) => unknown): RpcClient => ({
  ...client,
  send: (calls) =>
    Effect.map(client.send(calls), (answers) =>
      answers.map((answer, i) => edit(calls[i] ?? { method: "", params: [] }, answer))
    )
})

/** A node by which every address had so much already with the first block. */
export const older = ({ blocks, client }: BalanceModel, held: bigint): RpcClient =>
  distorted(client, ({ method, params }, answer) => {
    const at = params[1] as { readonly blockHash?: string } | undefined
    return method === "eth_getBalance" && at?.blockHash === blocks[0]?.hash ? `0x${held.toString(16)}` : answer
  })

/** A node by which an address has so much more from the block after the first on. */
export const richer = ({ blocks, client }: BalanceModel, more: bigint): RpcClient =>
  distorted(client, ({ method, params }, answer) => {
    const at = params[1] as { readonly blockHash?: string } | undefined
    const isFirst = at?.blockHash === blocks[0]?.hash
    if (isFirst || (method !== "eth_getBalance" && method !== "eth_call")) return answer
    const balance = BigInt(String(answer)) + more
    return method === "eth_call" ? `0x${balance.toString(16).padStart(64, "0")}` : `0x${balance.toString(16)}`
  })
