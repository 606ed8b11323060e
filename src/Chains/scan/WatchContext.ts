import { Effect } from "effect"
import type { Network } from "../../Domain/Chain.ts"
import type { ChainSettings } from "../../Settings.ts"
import type { Db, Writer } from "../../Sql.ts"
import type { AddressSet } from "../ledger/AddressSet.ts"
import type { Settlement } from "../ledger/Settlement.ts"
import type { WrongChain } from "../providers/chainIdentity.ts"
import type { HeadClock } from "../providers/HeadClock.ts"
import type { ImplausibleHeads } from "../providers/ImplausibleHeads.ts"
import type { Provider, Providers } from "../providers/Providers.ts"
import type { RpcError } from "../rpc/RpcError.ts"
import type { ScanSource } from "./ScanSource.ts"
import type { Contracts } from "./transfers.ts"

/** What a watcher works with. It is the only one to change this network's rows. */
export interface WatchContext {
  readonly network: Network
  readonly chain: ChainSettings
  readonly contracts: Contracts
  readonly watched: AddressSet
  readonly providers: Providers
  readonly reader: Db
  readonly writer: Writer["Type"]
  readonly settlement: Settlement["Type"]
  readonly implausibleHeads: ImplausibleHeads
  /** Shared by all watchers: a clock that is wrong is wrong for all of them. */
  readonly headClock: HeadClock
  /** Milliseconds for which the other providers of the chain are waited for before one decides alone. */
  readonly soleProviderPatience: number
}

/** The chain as one provider shows it. */
export const sourceOf = ({ chain, contracts, providers, watched }: WatchContext, provider: Provider): ScanSource => ({
  client: provider.client,
  chain,
  contracts,
  watched,
  stuck: provider.blockRange.stuck,
  other: Effect.map(providers.other(provider), (other) => other?.client)
})

/**
 * Whether the serving one of several providers decides alone on something that has waited since `since`: all others have
 * been asked in vain for the configured patience. Times are Unix milliseconds.
 */
export const decidesAsSoleProvider = (
  { providers, soleProviderPatience: solePatience }: WatchContext,
  provider: Provider,
  since: number,
  now: number
) => now - since >= solePatience && providers.silence(provider) >= solePatience

/** Nobody has to be asked about what a chain's only provider says. */
export const isOnlyProvider = ({ providers }: WatchContext): boolean => providers.all.length < 2

/** Works between two ticks of a network's watcher, with that network's rows to itself, by the provider that serves then. */
export type ExclusiveWork = <A, E, R>(
  work: (watch: WatchContext, provider: Provider) => Effect.Effect<A, E, R>
) => Effect.Effect<A, E | RpcError | WrongChain, R>
