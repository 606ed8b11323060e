import { BigDecimal, Schema } from "effect"
import type { Payment } from "./Payment.ts"

const max = 2n ** 256n - 1n

/** Base units as they are in JSON and in the store: decimal digits, no sign, no leading zero, 1 to 2^256 - 1. */
export const BaseUnits = Schema.String.pipe(
  Schema.pattern(/^[1-9][0-9]{0,77}$/, {
    message: () =>
      'must be a string of digits without sign or leading zero, in the token\'s smallest unit, e.g. "1000000"'
  }),
  Schema.filter((digits) => digits.length < 78 || BigInt(digits) <= max, {
    message: () => "must be at most 2^256 - 1"
  })
)

/** The base units that must arrive for a payment to count as paid: ceil(amount × (10000 − toleranceBps) / 10000). */
export const required = ({ amount, toleranceBps }: Pick<Payment, "amount" | "toleranceBps">): bigint =>
  (amount * BigInt(10_000 - toleranceBps) + 9_999n) / 10_000n

/** The base units of a payment that are still to be paid: none once what came counts as the whole amount. */
export const remaining = (payment: Pick<Payment, "amount" | "amountReceived" | "toleranceBps">): bigint => {
  const { amount, amountReceived = 0n } = payment
  return amountReceived >= required(payment) ? 0n : amount - amountReceived
}

const ceil = (dividend: bigint, divisor: bigint): bigint => (dividend + divisor - 1n) / divisor

/**
 * The floor of a new payment, base units: what is smaller is not credited, unless it completes what is missing. A hundredth
 * of the amount, or what is worth `floorUsd` where the payment's worth is known and that is less.
 */
export const floorOf = (amount: bigint, usdValue: string | undefined, floorUsd: BigDecimal.BigDecimal): bigint => {
  const hundredth = ceil(amount, 100n)
  const value = BigDecimal.unsafeFromString(usdValue ?? "0")
  const scale = Math.max(value.scale, floorUsd.scale)
  const [worth, whole] = [floorUsd, value].map((one) => BigDecimal.scale(one, scale).value) as [bigint, bigint]
  // More than a hundredth of the worth, or that is not known.
  return worth * 100n > whole ? hundredth : ceil(amount * worth, whole)
}

export const sum = (amounts: Iterable<bigint>): bigint => {
  let total = 0n
  for (const amount of amounts) total += amount
  return total
}
