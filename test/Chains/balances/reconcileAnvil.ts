import { Effect, Redacted } from "effect"
import { type Address, encodeFunctionData, getAddress, numberToHex, pad } from "viem"
import { Rpc, type RpcClient, type RpcRequest } from "../../../src/Chains/rpc/Rpc.ts"
import type { RpcReason } from "../../../src/Chains/rpc/RpcError.ts"
import type { BlockRef } from "../../../src/Domain/Receipt.ts"
import { batcherAbi, batcherAddress, type LocalChain, startLocalChain } from "../../../src/Sandbox/LocalChain.ts"
import { nodeClient } from "../../sim/nodeClient.ts"
import { errorOf } from "../providing.ts"
import { inStore } from "./reconcileWorld.ts"

export const ether = 10n ** 18n
export const address = (n: number): Address => getAddress(pad(numberToHex(0xba1a00000n + BigInt(n)), { size: 20 }))
const startChain = startLocalChain({ chain: "base", chainId: 31_337, tokens: [] })

export const headOf = (chain: LocalChain) =>
  Effect.map(chain.head, ({ hash, number, timestamp }): BlockRef => ({ hash, number, time: timestamp }))

const clientOf = (chain: LocalChain) => Effect.map(Rpc, (rpc) => rpc.client(Redacted.make(chain.url)))

/** A provider that refuses some calls, and counts the others. */
export const refusing = (client: RpcClient, refuses: (call: RpcRequest) => boolean, reason: RpcReason = "refused") => {
  const made: Array<RpcRequest> = []
  const provider = nodeClient("choosy", (calls) => {
    made.push(...calls)
    return calls.some(refuses) ? errorOf("choosy", reason) : client.sendEach(calls)
  })
  return { provider, made }
}

/** Calls by their methods. */
export const methods = (made: ReadonlyArray<RpcRequest>) => made.map(({ method }) => method)

/** Deposits `amount` for a payee, in a separate block; what `release` sends names no address. */
export const keep = Effect.fnUntraced(function* (chain: LocalChain, id: bigint, payee: Address, amount: bigint) {
  yield* chain.send({
    to: batcherAddress,
    value: amount,
    data: encodeFunctionData({ abi: batcherAbi, functionName: "keep", args: [id, payee] })
  })
  yield* chain.mine()
})

export const release = (id: bigint, amount: bigint) => ({
  to: batcherAddress,
  data: encodeFunctionData({ abi: batcherAbi, functionName: "release", args: [id, amount] })
})

export const onChain = <A, E, R>(test: (chain: LocalChain, client: RpcClient) => Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const chain = yield* startChain
    return yield* test(chain, yield* clientOf(chain))
  }).pipe(Effect.provide(Rpc.layer), inStore)
