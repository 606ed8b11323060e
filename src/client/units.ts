import type { PaymentCurrency } from "./types.ts"

/** Decimals of the tokens on the public networks. */
const decimals: Readonly<Record<PaymentCurrency, number>> = { ETH: 18, USDC: 6, USDT: 6, DAI: 18, WBTC: 8 }

/**
 * A decimal amount, such as a quote's `chargeAmount`, in the smallest units that a payment's `amount` is counted in:
 * `toBaseUnits("54.63", "USDC")` is `"54630000"`. Nothing is rounded.
 *
 * @throws RangeError when `amount` is no decimal above zero, or has more decimals than the token, or the token is not known
 */
export const toBaseUnits = (amount: string, currency: PaymentCurrency): string => {
  // Without types nothing else would stop a name that is not known here, and the amount would be wrong by millions.
  if (!Object.hasOwn(decimals, currency)) {
    throw new RangeError(`currency must be one of ${Object.keys(decimals).join(", ")}, not "${currency}"`)
  }
  const [, whole = "", fraction = ""] = /^(\d+)(?:\.(\d+))?$/.exec(amount) ?? []
  const units = (whole + fraction.padEnd(decimals[currency], "0")).replace(/^0+/, "")
  if (units === "" || fraction.length > decimals[currency]) {
    throw new RangeError(
      `amount must be a decimal above 0 with at most ${decimals[currency]} decimals, not "${amount}"`
    )
  }
  return units
}
