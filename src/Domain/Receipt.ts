import { BigDecimal, Option, Schema } from "effect"
import type { ChainName, Mode } from "./Chain.ts"
import { ExceptionKind } from "./Exception.ts"
import type { PaymentId } from "./Ids.ts"

/** The block tags of JSON-RPC for blocks that a reorg is not expected to replace. */
export type FinalityTag = "safe" | "finalized"

/** A payment worth more than `aboveUsd`, a decimal, waits for the tag in addition to its confirmations. */
interface FinalityPolicy {
  readonly aboveUsd: string
  readonly require: FinalityTag
}

const isExceededBy = ({ aboveUsd }: FinalityPolicy, value: BigDecimal.BigDecimal): boolean =>
  Option.exists(BigDecimal.fromString(aboveUsd), (limit) => BigDecimal.greaterThan(value, limit))

/**
 * The tag that a payment worth `usdValue`, a decimal, waits for in addition to the confirmations. A payment of unknown worth
 * waits for the strictest tag of its chain's policies.
 */
export const requirementOf = (
  policies: ReadonlyArray<FinalityPolicy>,
  usdValue: string | undefined
): FinalityTag | undefined => {
  const value = usdValue === undefined ? Option.none() : BigDecimal.fromString(usdValue)
  const asked = policies.filter((policy) =>
    Option.match(value, { onNone: () => true, onSome: (worth) => isExceededBy(policy, worth) })
  )
  if (asked.some((policy) => policy.require === "finalized")) return "finalized"
  return asked.length > 0 ? "safe" : undefined
}

/** A block is deep at this many times the confirmations, and final without a `finalized` tag. */
const finalDepth = 4

/** The number of the newest block that is deep: providers rarely differ about it, minutes before a tag makes it final. */
export const deepBlock = (confirmations: number, head: number): number => head - finalDepth * confirmations

/**
 * The number of the newest block that a reorg is not expected to replace any more. The `finalized` tag comes from a single
 * provider: it makes no block final that is not deep enough as well.
 */
export const finalBlock = ({
  confirmations,
  finalized,
  head
}: {
  readonly confirmations: number
  /** The number of the block with that tag, where the chain has one. */
  readonly finalized: number | undefined
  readonly head: number
}): number => Math.min(finalized ?? head, deepBlock(confirmations, head))

/** A block that the watcher has read. */
export interface BlockRef {
  readonly number: number
  readonly hash: string
  /** Unix seconds, as the chain says. */
  readonly time: number
}

/** What a receipt is taken for. `before`: it came before the payment was made. */
export const ReceiptKind = Schema.Literal("credited", ...ExceptionKind.literals, "too_small", "gas", "before")
export type ReceiptKind = typeof ReceiptKind.Type

/** A receipt as it is shown with its payment; `at` in Unix seconds, hashes and addresses in lower case, `amount` in base units. */
export interface ShownReceipt {
  readonly txHash: string | undefined
  readonly from: string | undefined
  readonly chain: ChainName
  readonly currency: string
  readonly amount: string
  readonly at: number
  readonly kind: ReceiptKind
  readonly confirmations: number | undefined
}

/**
 * Money received at a watched address: one row of the ledger. Keyed by chain, mode, block hash, address and position, so that
 * reading a range twice cannot count money twice. The same transaction in another block is another receipt; the orphaned one
 * is not canonical.
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
   * `log:<transaction>:<contract>:<amount>:<n>` for a token, the n-th with that content from 0 on, since nodes number logs
   * differently. For native money `tx:<index in the block>` of a transaction to the address, `call:<hash>` of a transaction
   * with an internal transfer, `unattributed` where no provider can name the transaction.
   */
  readonly position: string
  /** Index of the log or the transaction in the block, 0 where there is none. Only for the order. */
  readonly place: number
  /** Undefined for `unattributed` only. */
  readonly txHash: string | undefined
  /** Who sent it, lower case; undefined where providers differ, and for money that moved inside contracts. */
  readonly sender?: string | undefined
  /**
   * The currency's symbol, or a known wrong token's name such as `USDC.e`. The symbol of its payment only for money of the
   * contract that the payment was created with: any other contract of that symbol goes by its address, lower case.
   */
  readonly currency: string
  /** Base units, above zero. */
  readonly amount: bigint
  /** Undefined where a lost copy of the database handed out the address. */
  readonly payment: PaymentId | undefined
  /** A second provider has the transaction in the same block, or only one provider is configured. */
  readonly corroborated: boolean
  /** The host of a provider whose head has reached the block, but which does not have the receipt. */
  readonly deniedBy?: string | undefined
  /**
   * An internal transfer for which no other provider has had state or traces for long: it may never be corroborated.
   */
  readonly unverifiable?: boolean
  /** False once a reorg has orphaned its block. */
  readonly canonical: boolean
  /** When it was first stored, Unix milliseconds. */
  readonly seenAt: number
  /**
   * The first block that the money may have arrived in, where only an interval of blocks is known, ending with `blockNumber`.
   * `time`, Unix seconds, is not after that of the first block.
   */
  readonly since?: { readonly number: number; readonly time: number } | undefined
  /** It is the payment's own money, and came as less than the payment's floor: it is credited where it completes the amount. */
  readonly small?: boolean
}

/**
 * Whether a receipt is evidence for an exception: it is corroborated, or it is unattributed. Unattributed money has no
 * transaction that a second provider could be asked about; it is shown as such and never confirms a payment.
 */
export const isCorroborated = ({ corroborated, txHash }: Receipt): boolean => corroborated || txHash === undefined

/** How far a chain has been read. */
export interface Scan {
  readonly chain: ChainName
  readonly mode: Mode
  /** Every block up to and including this one has been read. */
  readonly head: BlockRef
  /**
   * The block of the last balance reconciliation, which compared with the ledger the balances of all open native payments
   * and of every payment that was over at that block. Undefined before the first one. `time` in Unix seconds.
   */
  readonly checked: { readonly number: number; readonly time: number } | undefined
  /** Block numbers of the chain's tags when last read; undefined where it has none or none was read. */
  readonly safe: number | undefined
  readonly finalized: number | undefined
  /** The block up to which the verification pass has read the chain again. */
  readonly verified: number
}
