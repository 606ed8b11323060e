import { BigDecimal, Option } from "effect"

/** The block tags of JSON-RPC for blocks that a reorg is not expected to replace. */
export type FinalityTag = "safe" | "finalized"

/** A payment worth more than `aboveUsd`, a decimal, waits for the tag in addition to its confirmations. */
export interface FinalityPolicy {
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
