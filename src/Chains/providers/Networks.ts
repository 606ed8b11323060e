import { Context, Effect, Layer } from "effect"
import { type Network, networkKey } from "../../Domain/Chain.ts"
import { Settings } from "../../Settings.ts"
import { Reader } from "../../Sql.ts"
import * as Ledger from "../ledger/LedgerRepo.ts"
import { Rpc } from "../rpc/Rpc.ts"
import { makeProviders, type Providers } from "./Providers.ts"

/** The providers of each configured network, shared by its watcher and everything else that calls them. */
export class Networks extends Context.Tag("tilld/Chains/Networks")<
  Networks,
  {
    /** The providers of a configured network. Throws for any other: that is a bug. */
    readonly providersOf: (network: Network) => Providers
  }
>() {
  static readonly layer = Layer.effect(
    Networks,
    Effect.gen(function* () {
      const settings = yield* Settings
      const rpc = yield* Rpc
      const reader = yield* Reader
      const byNetwork = new Map<string, Providers>()
      for (const chain of settings.chains) {
        const genesis = yield* Ledger.genesisHash(reader, chain)
        const network = { chain: chain.chain, mode: chain.mode }
        const patience = settings.payments.soleProviderPatience
        byNetwork.set(networkKey(chain), yield* makeProviders(network, chain, rpc, genesis, patience))
      }
      return {
        providersOf: (network) => {
          const providers = byNetwork.get(networkKey(network))
          if (providers === undefined) throw new Error(`chains.${networkKey(network)} is not configured`)
          return providers
        }
      }
    })
  )
}
