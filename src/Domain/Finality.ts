import { BigDecimal, Option } from "effect"

/** The tags of a chain by which its nodes say what a reorg does not replace. */
export type FinalityTag = "safe" | "finalized"

/** A payment that is worth more than `aboveUsd`, a decimal, waits for the tag besides its confirmations. */
export interface FinalityPolicy {
  readonly aboveUsd: string
  readonly require: FinalityTag
}

const isExceededBy = ({ aboveUsd }: FinalityPolicy, value: BigDecimal.BigDecimal): boolean =>
  Option.exists(BigDecimal.fromString(aboveUsd), (limit) => BigDecimal.greaterThan(value, limit))

/**
 * The tag that a payment worth `usdValue`, a decimal, waits for besides the confirmations. One of unknown worth waits for
 * the strictest that its chain asks for.
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

/** Where no chain tells what is final: this many times the confirmations deep. */
const finalDepth = 4

/**
 * The newest block that is not expected to be replaced any more. The tag, where no policy needs it, is one provider's
 * word: it makes no block final that is not deep.
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
}): number => Math.min(finalized ?? head, head - finalDepth * confirmations)
