import { Effect } from "effect"
import type { RpcClient, RpcRequest } from "../../src/Chains/rpc/Rpc.ts"
import { lie } from "../sim/Lie.ts"
import type { BalanceModel } from "./balances/BalanceModel.ts"

/** The same node, which responds differently to some calls. */
export const distorted = (client: RpcClient, edit: (call: RpcRequest, answer: unknown) => unknown): RpcClient => ({
  ...client,
  send: (calls) =>
    Effect.map(client.send(calls), (answers) =>
      answers.map((answer, i) => edit(calls[i] ?? { method: "", params: [] }, answer))
    )
})

/** A node that reports this balance of every address from the first block on. */
export const older = (model: BalanceModel, had: bigint): RpcClient =>
  model.telling(lie({ balance: ({ number }, _, held) => (number === 0 ? had : held) }))

/** A node that reports a higher balance of an address from the block after the first on. */
export const richer = (model: BalanceModel, more: bigint): RpcClient =>
  model.telling(lie({ balance: ({ number }, _, held) => (number === 0 ? held : held + more) }))
