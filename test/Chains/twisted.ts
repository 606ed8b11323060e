import { Effect } from "effect"
import type { RpcClient, RpcRequest } from "../../src/Chains/rpc/Rpc.ts"
import { lie } from "../sim/Lie.ts"
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
export const older = (model: BalanceModel, had: bigint): RpcClient =>
  model.telling(lie({ balance: ({ number }, _, held) => (number === 0 ? had : held) }))

/** A node by which an address has so much more from the block after the first on. */
export const richer = (model: BalanceModel, more: bigint): RpcClient =>
  model.telling(lie({ balance: ({ number }, _, held) => (number === 0 ? held : held + more) }))
