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
 * What a sum of dust is of: transfers that pay for their payment, such that came too late, and such of another currency or
 * on another chain.
 */
export type DustKind = "paying" | "late" | "stray"

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
  /**
   * `log:<transaction>:<currency>:<amount>:<n>` for a token, the n-th of that content from 0 on, since nodes number logs
   * differently; for the native coin `tx:<index in the block>` of a transaction to the
   * address, `call:<hash>` of one that brought it from inside a contract, `unattributed` where no node can tell.
   */
  readonly position: string
  /** Index in the block of the log or the transaction, 0 where there is none: for order only. */
  readonly place: number
  /** Undefined for `unattributed` only. */
  readonly txHash: string | undefined
  /** The currency's symbol, or a known wrong token's name such as `USDC.e`. */
  readonly currency: string
  /** Base units, above zero. */
  readonly amount: bigint
  /** Undefined where a lost copy of the database handed out the address. */
  readonly payment: PaymentId | undefined
  /** A second provider has the transaction in the same block, or there is none to ask. */
  readonly corroborated: boolean
  /** The host of a provider that has its block's height, and not it. */
  readonly deniedBy?: string | undefined
  /**
   * It moved inside contracts, and no other provider has the states or the trace that would tell of it, for long: one
   * provider's word is all that there may ever be.
   */
  readonly unverifiable?: boolean
  /** False once a reorg has taken its block away. */
  readonly canonical: boolean
  /** When it was first stored, Unix milliseconds. */
  readonly seenAt: number
  /**
   * The first block that the money may have come with, where only an interval is known that ends with `blockNumber`.
   * `time`, Unix seconds, is not after that block's.
   */
  readonly since?: { readonly number: number; readonly time: number } | undefined
  /**
   * Of a receipt that no row of the ledger stands behind: it is the sum of many small ones, all of which are canonical and
   * in its block or below.
   */
  readonly dust?: DustKind
}

/**
 * Whether more than one provider's word stands for a receipt. One without a transaction has none that another provider
 * could be asked about: it is told of as what it is, and confirms nothing.
 */
export const isCorroborated = ({ corroborated, txHash }: Receipt): boolean => corroborated || txHash === undefined

/** How far a chain has been read. */
export interface Scan {
  readonly chain: ChainName
  readonly mode: Mode
  /** Every block up to and including this one has been read. */
  readonly head: BlockRef
  /**
   * The block at which the balances of all open native payments, and of every payment that was over by its time, were
   * last compared with the ledger. Undefined before the first time. `time` in Unix seconds.
   */
  readonly checked: { readonly number: number; readonly time: number } | undefined
  /** Numbers of the chain's tags when they were last asked for; undefined where it has none or nobody has asked. */
  readonly safe: number | undefined
  readonly finalized: number | undefined
  /** Up to this block, which is final, a second pass has read the chain again. */
  readonly verified: number
}
