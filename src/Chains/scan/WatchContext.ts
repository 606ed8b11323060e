import { Effect } from "effect"
import type { Network } from "../../Domain/Chain.ts"
import type { ChainSettings } from "../../Settings.ts"
import type { Db, Writer } from "../../Sql.ts"
import type { Troubles } from "../evidence/Troubles.ts"
import type { AddressSet } from "../ledger/AddressSet.ts"
import type { Settlement } from "../ledger/SettlementTag.ts"
import type { WrongChain } from "../providers/chainIdentity.ts"
import type { HeadClock } from "../providers/HeadClock.ts"
import type { Heads } from "../providers/Heads.ts"
import type { Provider, Providers } from "../providers/Providers.ts"
import type { RpcError } from "../rpc/RpcError.ts"
import type { ScanSource } from "./ScanSource.ts"
import type { Contracts } from "./transfers.ts"

/** The context of one network's watcher. Only this watcher changes the network's rows in the ledger. */
export interface WatchContext {
  readonly network: Network
  readonly chain: ChainSettings
  readonly contracts: Contracts
  readonly watched: AddressSet
  readonly providers: Providers
  readonly reader: Db
  readonly writer: Writer["Type"]
  readonly settlement: Settlement["Type"]
  readonly heads: Heads
  /** Shared by all watchers: they use the same machine clock. */
  readonly headClock: HeadClock
  readonly troubles: Troubles
  /** Milliseconds to wait for the other providers of the chain before one decides alone. */
  readonly soleProviderPatience: number
}

/** The source for scanning with one provider. */
export const sourceOf = ({ chain, contracts, providers, watched }: WatchContext, provider: Provider): ScanSource => ({
  client: provider.client,
  chain,
  contracts,
  watched,
  stuck: provider.blockRange.stuck,
  other: Effect.map(providers.other(provider), (other) => other?.client)
})

/** Whether the chain has one provider only: then nothing waits for a second one. */
export const isOnlyProvider = ({ providers }: WatchContext): boolean => providers.all.length < 2

/** Runs work between two ticks of a network's watcher, as the only writer of its rows, with the serving provider. */
export type ExclusiveWork = <A, E, R>(
  work: (watch: WatchContext, provider: Provider) => Effect.Effect<A, E, R>
) => Effect.Effect<A, E | RpcError | WrongChain, R>
