import { Schema } from "effect"

/** The chains tilld can watch, as the API names them. */
export const ChainName = Schema.Literal("ethereum", "polygon", "arbitrum", "optimism", "base")
export type ChainName = typeof ChainName.Type
export const chainNames: ReadonlyArray<ChainName> = ChainName.literals

/** `live` moves real funds, `test` runs on test networks and local chains. Nothing crosses from one to the other. */
export const Mode = Schema.Literal("live", "test")
export type Mode = typeof Mode.Type
export const modes: ReadonlyArray<Mode> = Mode.literals

/** One watched chain in one mode. Each has a watcher, a scan and a ledger of its own. */
export interface Network {
  readonly chain: ChainName
  readonly mode: Mode
}

/** `ethereum.test`: the form of configuration paths and log lines. */
export const networkKey = (network: Network): string => `${network.chain}.${network.mode}`
