import { describe, expect, it } from "@effect/vitest"
import {
  balanceQueryOf,
  type CreditRow,
  type KnownRow,
  type RoundBounds,
  type Watched
} from "../../../src/Chains/balances/discrepancy.ts"
import { alice } from "./reconcileWorld.ts"

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
