import { Array as Arr, Effect, Either } from "effect"
import { tokensByMulticall } from "../rpc/balanceMethods.ts"
import { isCapabilityRefused, mayBeCapable } from "../rpc/capabilities.ts"
import { getTokenBalance, sendInBatches } from "../rpc/methods.ts"
import type { RpcClient } from "../rpc/Rpc.ts"

/** Addresses in one call of Multicall3. */
const perMulticall = 500

/**
 * Token balances of addresses at the head, base units, in their order: by Multicall3 where the provider has it,
 * otherwise in one call per address.
 *
 * @param contract the token's contract
 */
export const readTokenBalances = Effect.fn("Balances.readTokens")(function* (
  client: RpcClient,
  contract: string,
  addresses: ReadonlyArray<string>
) {
  if (yield* mayBeCapable(client, "multicall")) {
    const calls = Arr.chunksOf(addresses, perMulticall).map((part) => tokensByMulticall(contract, part))
    const packed = yield* Effect.either(sendInBatches(client, calls, 1))
    if (Either.isRight(packed)) return packed.right.flat()
    if (!isCapabilityRefused(packed.left)) return yield* packed.left
  }
  const calls = addresses.map((address) => getTokenBalance(contract, address))
  return yield* sendInBatches(client, calls)
})
