/** How the online commands reach a chain: through its configured providers, of which another serves where one fails. */
import { Effect, Schedule } from "effect"
import type { WrongChain } from "../Chains/providers/chainIdentity.ts"
import { makeProviders, type Providers } from "../Chains/providers/Providers.ts"
import { Rpc, type RpcClient } from "../Chains/rpc/Rpc.ts"
import { RpcError, type RpcReason } from "../Chains/rpc/RpcError.ts"
import { type Network, networkKey } from "../Domain/Chain.ts"
import type { ChainSettings, SettingsShape } from "../Settings.ts"
import { collectRefusal } from "./CollectRefused.ts"

/** A configured chain, and its providers. */
export interface ChainAccess {
  readonly chain: ChainSettings
  readonly providers: Providers
}

export const accessTo = Effect.fn("Collect.accessTo")(function* (settings: SettingsShape, network: Network) {
  const chain = settings.chains.find((one) => one.chain === network.chain && one.mode === network.mode)
  if (chain === undefined) {
    const known = settings.chains.map(networkKey).join(", ")
    return yield* collectRefusal(`chains.${networkKey(network)} is not configured: there are ${known}`)
  }
  const patience = settings.payments.soleProviderPatience
  const providers = yield* makeProviders(network, chain, yield* Rpc, undefined, patience)
  const access: ChainAccess = { chain, providers }
  return access
})

/** Reasons that pass: the node is behind or busy, or another one can be asked. */
const passing: ReadonlySet<RpcReason> = new Set([
  ...(["unreachable", "timeout", "rate_limited", "http"] as const),
  ...(["behind", "missing", "inconsistent"] as const)
])

/** Five attempts within about eight seconds. */
const attempts = Schedule.exponential("500 millis").pipe(Schedule.jittered, Schedule.intersect(Schedule.recurs(4)))

/** Reads by the serving provider; where that fails, by another one or again. */
export const reading = <A, E = never>(
  { providers }: ChainAccess,
  read: (client: RpcClient) => Effect.Effect<A, RpcError | E>
): Effect.Effect<A, RpcError | WrongChain | E> => {
  const passes = (error: unknown): error is RpcError => error instanceof RpcError && passing.has(error.reason)
  return providers.current.pipe(
    Effect.flatMap((provider) =>
      Effect.tapError(read(provider.client), (error) =>
        passes(error) ? providers.failed(provider, error) : Effect.void
      )
    ),
    Effect.retry({ schedule: attempts, while: passes })
  )
}
