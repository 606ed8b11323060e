import { Schema } from "effect"

const max = 2n ** 256n - 1n

/** Base units as they travel in JSON and rest in the store: decimal digits, no sign, no leading zero, 1 to 2^256 - 1. */
export const BaseUnits = Schema.String.pipe(
  Schema.pattern(/^[1-9][0-9]{0,77}$/, {
    message: () =>
      'must be a string of digits without sign or leading zero, in the token\'s smallest unit, e.g. "1000000"'
  }),
  Schema.filter((digits) => digits.length < 78 || BigInt(digits) <= max, {
    message: () => "must be at most 2^256 - 1"
  })
)

/** What must have arrived for `amount` to count as paid: ceil(amount × (10000 − toleranceBps) / 10000), base units. */
export const required = (amount: bigint, toleranceBps: number): bigint =>
  (amount * BigInt(10_000 - toleranceBps) + 9_999n) / 10_000n

export const sum = (amounts: Iterable<bigint>): bigint => {
  let total = 0n
  for (const amount of amounts) total += amount
  return total
}
