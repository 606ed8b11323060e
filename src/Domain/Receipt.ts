import type { ChainName, Mode } from "./Chain.ts"
import type { PaymentId } from "./Ids.ts"

/** A block that the watcher has read. */
export interface BlockRef {
  readonly number: number
  readonly hash: string
  /** Unix seconds, as the chain says. */
  readonly time: number
}

/**
 * Money seen at a watched address: one row of the ledger, never changed but for `canonical`. Keyed by chain, mode, block
 * hash, address and position, so that reading a range twice, or the same transaction in another block, cannot count
 * twice.
 */
export interface Receipt {
  readonly chain: ChainName
  readonly mode: Mode
  readonly blockHash: string
  readonly blockNumber: number
  /** Unix seconds. */
  readonly blockTime: number
  /** Lower case. */
  readonly address: string
  /** `log:<index in the block>` for a token, `tx:<index in the block>` for the native coin. */
  readonly position: string
  readonly txHash: string
  /** The currency's symbol, or a known wrong token's name such as `USDC.e`. */
  readonly currency: string
  /** Base units, above zero. */
  readonly amount: bigint
  readonly payment: PaymentId
  /** False once a reorg has taken its block away. */
  readonly canonical: boolean
}

/** How far a chain has been read. */
export interface Scan {
  readonly chain: ChainName
  readonly mode: Mode
  /** Every block up to and including this one has been read. */
  readonly head: BlockRef
}
