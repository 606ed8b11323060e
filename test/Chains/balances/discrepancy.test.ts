import { expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import {
  creditsWithin,
  discrepancy,
  dueAgain,
  isReconciled,
  midpoint
} from "../../../src/Chains/balances/discrepancy.ts"

const credit = (blockNumber: number, amount: bigint) => ({
  blockNumber,
  amount,
  blockHash: `0x${blockNumber}`,
  position: "tx:0"
})

it("bisects an interval down to single blocks, whichever states are pruned", () =>
  fc.assert(
    fc.property(fc.nat(10_000), fc.nat(10_000), fc.nat(10_000), (lo, blocks, gone) => {
      const hi = lo + blocks
      const number = midpoint(lo, hi, gone)
      const from = Math.max(lo, gone)
      // None only where there is none.
      expect(number === undefined).toBe(hi - from < 2)
      if (number === undefined) return
      expect(number).toBeGreaterThan(from)
      expect(number).toBeLessThan(hi)
      // Neither half is longer than the other by more than a block.
      expect(Math.abs(hi - number - (number - from))).toBeLessThanOrEqual(1)
    })
  ))

it("finds no discrepancy where receipts explain the difference and nothing was sent", () =>
  fc.assert(
    fc.property(
      fc.array(fc.record({ number: fc.nat(30), amount: fc.bigInt({ min: 1n, max: 9n }) }), { maxLength: 10 }),
      fc.bigInt({ min: 0n, max: 50n }),
      fc.bigInt({ min: -5n, max: 5n }),
      fc.nat(1),
      (made, start, more, sent) => {
        const credits = made.map(({ amount, number }) => credit(number, amount))
        const came = made.filter(({ number }) => number > 10 && number <= 20).reduce((a, { amount }) => a + amount, 0n)
        const lo = { number: 10, balance: start, nonce: 3 }
        const hi = { number: 20, balance: start + came + more, nonce: 3 + sent }
        // One that had nothing and has sent something has had its fee at least.
        const spent = start + came === 0n ? BigInt(sent) : 0n
        expect(discrepancy(lo, hi, credits)).toBe(more + spent)
        expect(isReconciled(lo, hi, credits)).toBe(more === 0n && sent === 0)
        expect(creditsWithin(credits, 10, 20).every(({ blockNumber: n }) => n > 10 && n <= 20)).toBe(true)
      }
    )
  ))

it("searches for an unattributed receipt again some thirty times a day, more often while it is young", () => {
  const tries = (from: number, to: number, step: number) => {
    let count = 0
    for (let now = from + step; now <= to; now += step) if (dueAgain(0, now - step, now)) count++
    return count
  }
  expect(tries(0, 3600, 15)).toBeGreaterThanOrEqual(8)
  expect(tries(0, 86_400, 15)).toBeLessThanOrEqual(40)
  expect(tries(0, 86_400, 15)).toBeGreaterThanOrEqual(24)
  // A round at the same block, and one behind it.
  expect(dueAgain(100, 200, 200)).toBe(false)
  expect(dueAgain(100, 200, 150)).toBe(false)
  expect(dueAgain(100, 50, 90)).toBe(false)
  // The first round after it.
  expect(dueAgain(100, 100, 101)).toBe(true)
})
