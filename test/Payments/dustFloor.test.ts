import { expect, it } from "@effect/vitest"
import { BigDecimal } from "effect"
import type { Payment } from "../../src/Domain/Payment.ts"
import { type DustSum, dustReceipts, floorOf } from "../../src/Payments/dust.ts"
import { somePayment } from "../lib/payments.ts"

const floor = (over: Partial<Payment>, usd = "0.10"): bigint =>
  floorOf(somePayment({ amount: 1_000_000n, ...over }), BigDecimal.unsafeFromString(usd))

it("dust: the floor is a thousandth of the amount, or what the configured one is worth where that is more", () => {
  expect(floor({})).toBe(1_000n)
  expect(floor({ amount: 1_000_001n })).toBe(1_001n)
  expect(floor({ usdValue: "1000" })).toBe(1_000n)
  expect(floor({ usdValue: "20" })).toBe(5_000n)
  expect(floor({ usdValue: "30" })).toBe(3_334n)
  expect(floor({ usdValue: "20" }, "0")).toBe(1_000n)
  expect(floor({ usdValue: "0.00" })).toBe(1_000n)
})

it("dust: the floor is never more than a hundredth of the amount, or of what is missing while the payment is open", () => {
  expect(floor({ usdValue: "1" })).toBe(10_000n)
  expect(floor({ amount: 50n, usdValue: "0.01" })).toBe(1n)
  expect(floor({ status: "detecting", amountReceived: 999_500n })).toBe(5n)
  expect(floor({ status: "detecting", amountReceived: 1_000_001n })).toBe(1_000n)
  expect(floor({ status: "failed", amountReceived: 999_500n, endedAt: 1 })).toBe(1_000n)
})

it("dust: what a payment had at its end counts once, however much uncorroborated dust came since", () => {
  const { address, chain, currency, id, mode } = somePayment({})
  const sum = (over: Partial<DustSum>): DustSum => ({
    ...{
      address,
      chain,
      currency,
      mode,
      payment: id,
      kind: "paying",
      corroborated: true,
      transfers: 10,
      amount: 5_000n
    },
    ...{ newest: { number: 7, time: 7 }, orphaned: undefined, txHash: "0xd", decided: 0n },
    ...over
  })
  const parts = (...sums: ReadonlyArray<DustSum>) =>
    dustReceipts(sums).map(
      ({ corroborated, amount, position }) => `${position.split(":")[3]} ${amount} ${corroborated}`
    )
  // All that was there then is corroborated: none of the rest was there.
  expect(parts(sum({ decided: 5_000n }), sum({ corroborated: false }))).toEqual(["since 5000 false", "known 5000 true"])
  // A part of it was corroborated after the end: it is still what was there then.
  expect(parts(sum({ amount: 2_000n }), sum({ corroborated: false, amount: 3_500n, decided: 5_000n }))).toEqual([
    "since 500 false",
    "known 2000 true",
    "known 3000 false"
  ])
})
