import { BigDecimal, Option } from "effect"
import { formatUnits } from "viem"
import type { ChainSettings } from "../Settings.ts"

type Policy = ChainSettings["policies"][number]

const isExceededBy = ({ aboveUsd }: Policy, value: BigDecimal.BigDecimal): boolean =>
  Option.exists(BigDecimal.fromString(aboveUsd), (limit) => BigDecimal.greaterThan(value, limit))

/**
 * The tag that a payment worth `usdValue` waits for besides the confirmations. One of unknown worth waits for the
 * strictest that its chain asks for.
 */
export const requirementOf = (
  policies: ReadonlyArray<Policy>,
  usdValue: string | undefined
): Policy["require"] | undefined => {
  const value = usdValue === undefined ? Option.none() : BigDecimal.fromString(usdValue)
  const asked = policies.filter((policy) =>
    Option.match(value, { onNone: () => true, onSome: (worth) => isExceededBy(policy, worth) })
  )
  if (asked.some((policy) => policy.require === "finalized")) return "finalized"
  return asked.length > 0 ? "safe" : undefined
}

/** What `amount` smallest units of a token are worth at a price of a whole one, in USD: a plain decimal. */
export const usdValueOf = (amount: bigint, decimals: number, price: BigDecimal.BigDecimal): string =>
  price.scale < 0
    ? formatUnits(amount * price.value * 10n ** BigInt(-price.scale), decimals)
    : formatUnits(amount * price.value, decimals + price.scale)
