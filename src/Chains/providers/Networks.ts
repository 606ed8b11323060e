import { Context, Effect, Layer } from "effect"
import { type Network, networkKey } from "../../Domain/Chain.ts"
import { Settings } from "../../Settings.ts"
import { Reader } from "../../Sql.ts"
import * as Ledger from "../ledger/LedgerRepo.ts"
import { Rpc } from "../rpc/Rpc.ts"
import { makeProviders, type Providers } from "./Providers.ts"

/** The connection to a network. */
export interface Connected {
  readonly providers: Providers
}

/** The providers of each configured network, shared by its watcher and everything else that calls them. */
export class Networks extends Context.Tag("tilld/Chains/Networks")<
  Networks,
  {
    /** The connection to a configured network. Throws for any other: that is a bug. */
    readonly connected: (network: Network) => Connected
  }
>() {
  static readonly layer = Layer.effect(
    Networks,
    Effect.gen(function* () {
      const settings = yield* Settings
      const rpc = yield* Rpc
      const reader = yield* Reader
      const entries = yield* Effect.forEach(
        settings.chains,
        (chain) =>
          Effect.gen(function* () {
            const genesis = yield* Ledger.genesisHash(reader, chain)
            const network = { chain: chain.chain, mode: chain.mode }
            const providers = yield* makeProviders(network, chain, rpc, genesis, settings.payments.soleProviderPatience)
            return [networkKey(chain), { providers }] as const
          }),
        { concurrency: 1 }
      )
      const byNetwork = new Map(entries)
      return {
        connected: (network) => {
          const connected = byNetwork.get(networkKey(network))
          if (connected === undefined) throw new Error(`chains.${networkKey(network)} is not configured`)
          return connected
        }
      }
    })
  )
}
