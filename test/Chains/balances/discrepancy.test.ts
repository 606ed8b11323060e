import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import {
  balanceQueryOf,
  type CreditRow,
  creditsWithin,
  discrepancy,
  dueAgain,
  isReconciled,
  type KnownRow,
  midpoint,
  type RoundBounds,
  type Watched
} from "../../../src/Chains/balances/discrepancy.ts"
import { alice } from "./reconcileWorld.ts"

const amountAt = (blockNumber: number, amount: bigint) => ({
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
        const credits = made.map(({ amount, number }) => amountAt(number, amount))
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

const watched: Watched = { address: alice, own: true, createdHead: 10, everyRound: true, withNonce: false }
const point = (number: number, balance: string): KnownRow => ({ address: alice, number, balance, nonce: 0 })
const credit = (block: number, position: string, amount: string): CreditRow => ({
  address: alice,
  blockNumber: block,
  blockHash: `0x${block}`,
  blockTime: block * 10,
  position,
  amount
})

/** The last round was at block 40, and this one is at block 60. */
const since: RoundBounds = { checked: { number: 40, time: 400 }, at: { number: 60, hash: "0x60", time: 600 } }

describe("the query of an address", () => {
  it("has the newest balance point, or an assumed empty one at the payment's creation", () => {
    expect(balanceQueryOf(watched, since, [point(20, "5"), point(30, "7")], []).known).toEqual({
      number: 30,
      balance: 7n,
      nonce: 0,
      assumed: false
    })
    expect(balanceQueryOf(watched, since, [], []).known).toEqual({ number: 10, balance: 0n, nonce: 0, assumed: true })
    expect(balanceQueryOf({ ...watched, createdHead: undefined }, since, [], []).known).toMatchObject({
      number: 0,
      assumed: false
    })
  })

  it("counts as compared to the last round only if the address is in every round", () => {
    const rows = [point(20, "5")]
    expect(balanceQueryOf(watched, since, rows, []).comparedTo).toBe(40)
    expect(balanceQueryOf({ ...watched, everyRound: false }, since, rows, []).comparedTo).toBe(20)
    expect(balanceQueryOf(watched, undefined, rows, []).comparedTo).toBe(20)
    expect(balanceQueryOf(watched, { ...since, checked: { number: 15, time: 150 } }, rows, []).comparedTo).toBe(20)
  })

  it("has the receipts above the balance point, which includes those up to it", () => {
    const receipts = [credit(19, "tx:0", "1"), credit(20, "tx:0", "2"), credit(21, "tx:0", "3")]
    expect(balanceQueryOf(watched, since, [point(20, "5")], receipts).credits.map(({ amount }) => amount)).toEqual([3n])
  })
})

describe("an unattributed receipt", () => {
  const rows = [point(19, "0"), point(20, "9"), point(30, "9")]
  const receipts = [
    credit(20, "tx:3", "2"),
    credit(20, "unattributed", "7"),
    credit(25, "unattributed", "4"),
    credit(28, "tx:0", "1")
  ]

  it("is searched for with all other receipts of the address, of its own block and position too", () => {
    const { doubts } = balanceQueryOf(watched, since, rows, receipts)
    expect(doubts).toHaveLength(1)
    expect(doubts[0]).toMatchObject({
      credit: { blockNumber: 20, position: "unattributed", amount: 7n },
      lo: { number: 19, balance: 0n },
      hi: { number: 20, balance: 9n }
    })
    expect(doubts[0]?.others.map(({ blockNumber, position }) => [blockNumber, position])).toEqual([
      [20, "tx:3"],
      [25, "unattributed"],
      [28, "tx:0"]
    ])
  })

  it("is searched for again by rounds only, and only with balance points on both sides", () => {
    const doubtsOf = (over: Partial<Watched>, known = rows) =>
      balanceQueryOf({ ...watched, ...over }, since, known, receipts).doubts.length
    expect(doubtsOf({})).toBe(1)
    expect(doubtsOf({ everyRound: false })).toBe(0)
    expect(balanceQueryOf(watched, undefined, rows, receipts).doubts).toEqual([])
    expect(doubtsOf({}, [point(19, "0"), point(30, "9")])).toBe(0)
    // Nothing below it but when the payment was made.
    expect(doubtsOf({ createdHead: 10 }, [point(20, "9")])).toBe(1)
    expect(doubtsOf({ createdHead: 20 }, [point(20, "9")])).toBe(0)
  })
})
