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

/** What differs by chain, for public networks, test networks and local chains alike. */
export interface ChainTraits {
  /** As wallets name it. */
  readonly displayName: string
  /** The coin that pays for gas, and that a plain transaction's value is counted in. */
  readonly nativeToken: "ETH" | "MATIC"
  /** The usual time between two blocks. */
  readonly blockSeconds: number
  /**
   * Blocks are read with their transactions, which show the coins that were sent to an address. That is worth it where a
   * block comes every twelve seconds; elsewhere the balances show them, for a fraction of the calls.
   */
  readonly readsFullBlocks: boolean
  /** A transaction also pays for its data on Ethereum, https://docs.optimism.io/stack/transactions/fees */
  readonly hasL1Fee: boolean
  /** Base units of the native token: what one transfer of a token costs at most, even while gas is dearest. */
  readonly mostGas: bigint
  /** The default of `confirmations`. */
  readonly confirmations: number
  /** The default of `poll_interval`. */
  readonly pollInterval: string
}

// Confirmations. Ethereum: 12 blocks are 144 s, and the beacon chain's deepest reorg was 7 (25 May 2022, slots 3887075 to
// 3887081). Polygon: 16 blocks are half a minute, its milestones finalise within seconds (docs.polygon.technology/pos).
// Arbitrum: 80 blocks of 0.25 s are 20 s, the time in which a sequencer that restarts could forget what it has
// announced. Optimism and Base: 10 blocks of 2 s, for the same reason.
//
// Gas. A transfer of a token takes up to 100,000: 0.02 ETH at 200 gwei on Ethereum, 1 MATIC at 10,000 gwei on Polygon. On
// the others it is far below 0.001 ETH, with the data on Ethereum.
//
// Polling. About a tenth of the time that confirmations take, since every tick is two batches that the operator's plan pays
// for. Ethereum's 12 s are polled every 3 s, so that a block is seen when a quarter of its time has passed at the latest.
const opStack = {
  nativeToken: "ETH",
  blockSeconds: 2,
  readsFullBlocks: false,
  hasL1Fee: true,
  mostGas: 10n ** 15n
} as const

export const chainTraits: Readonly<Record<ChainName, ChainTraits>> = {
  ethereum: {
    displayName: "Ethereum",
    nativeToken: "ETH",
    blockSeconds: 12,
    readsFullBlocks: true,
    hasL1Fee: false,
    mostGas: 2n * 10n ** 16n,
    confirmations: 12,
    pollInterval: "3 seconds"
  },
  polygon: {
    displayName: "Polygon",
    nativeToken: "MATIC",
    blockSeconds: 2,
    readsFullBlocks: false,
    hasL1Fee: false,
    mostGas: 10n ** 18n,
    confirmations: 16,
    pollInterval: "3 seconds"
  },
  arbitrum: {
    displayName: "Arbitrum",
    nativeToken: "ETH",
    blockSeconds: 0.25,
    readsFullBlocks: false,
    hasL1Fee: false,
    mostGas: 10n ** 15n,
    confirmations: 80,
    pollInterval: "2 seconds"
  },
  optimism: { ...opStack, displayName: "Optimism", confirmations: 10, pollInterval: "3 seconds" },
  base: { ...opStack, displayName: "Base", confirmations: 10, pollInterval: "3 seconds" }
}
