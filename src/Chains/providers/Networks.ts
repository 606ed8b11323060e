import { Context, Effect, Layer } from "effect"
import { type Network, networkKey } from "../../Domain/Chain.ts"
import { Settings } from "../../Settings.ts"
import { Reader } from "../../Sql.ts"
import * as Ledger from "../ledger/LedgerRepo.ts"
import { Rpc } from "../rpc/Rpc.ts"
import { makeProviders, type Providers } from "./Providers.ts"

/** How a chain is reached. */
export interface Connected {
  readonly providers: Providers
}

/** The providers of each configured chain, which everybody who asks a chain something shares. */
export class Networks extends Context.Tag("tilld/Chains/Networks")<
  Networks,
  {
    /** Of a configured chain; anything else is a bug. */
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
            const providers = yield* makeProviders(network, chain, rpc, genesis)
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
