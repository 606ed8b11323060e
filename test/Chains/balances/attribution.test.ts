import { describe, expect, it } from "@effect/vitest"
import { Either } from "effect"
import {
  attribute,
  type BalanceChange,
  candidates,
  type PlacedTransaction,
  traced
} from "../../../src/Chains/balances/attribution.ts"
import { simulateBlock, traceTransaction } from "../../../src/Chains/rpc/balanceMethods.ts"
import { type Call, transferTopic } from "../../../src/Chains/rpc/methods.ts"
import type { TransactionOutcome } from "../../../src/Chains/rpc/transactionMethods.ts"

const alice = `0x${"a1".repeat(20)}`
const bob = `0x${"b2".repeat(20)}`
const contract = `0x${"c3".repeat(20)}`
const hash = (n: number) => `0x${n.toString(16).padStart(64, "0")}`
const block = { number: 7, hash: hash(700), time: 70 }

const transaction = (n: number, over: Partial<PlacedTransaction> = {}): PlacedTransaction => ({
  hash: hash(n),
  blockHash: block.hash,
  transactionIndex: n,
  from: bob,
  to: contract,
  value: 0n,
  gas: 100_000n,
  input: "0x12345678",
  block,
  ...over
})
const naming = (address: string) => `0x12345678${address.slice(2).toUpperCase().padStart(64, "0")}`
const outcomes = (transactions: ReadonlyArray<PlacedTransaction>, over: Partial<TransactionOutcome> = {}) =>
  new Map(
    transactions.map((one) => [
      one.hash,
      {
        transactionHash: one.hash,
        blockHash: block.hash,
        succeeded: true,
        fee: 10n,
        ...over
      } satisfies TransactionOutcome
    ])
  )
const change = (difference: bigint, over: Partial<BalanceChange> = {}): BalanceChange => ({
  address: alice,
  currency: "ETH",
  difference,
  credits: [],
  ...over
})
const attributed = (
  of: BalanceChange,
  transactions: ReadonlyArray<PlacedTransaction>,
  over: Partial<TransactionOutcome> = {}
) => {
  const { rest, transfers } = attribute(of, transactions, outcomes(transactions, over))
  return { rest, transfers: transfers.map(({ amount, position }) => `${position} ${amount}`) }
}
const credit = (position: string, amount: bigint) => ({
  blockNumber: block.number,
  blockHash: block.hash,
  position,
  amount
})

describe("attribution of income", () => {
  const paid = [transaction(1, { to: alice, value: 5n }), transaction(2, { to: alice, value: 5n })] as const

  it("gives each transaction that pays the address by its value a receipt of its own", () => {
    expect(attributed(change(10n), paid)).toEqual({ rest: 0n, transfers: ["tx:1 5", "tx:2 5"] })
    // What is in the ledger is not reported again.
    expect(attributed(change(10n, { credits: [credit("tx:1", 5n)] }), paid)).toEqual({
      rest: 0n,
      transfers: ["tx:2 5"]
    })
    expect(attributed(change(0n), paid, { succeeded: false })).toEqual({ rest: 0n, transfers: [] })
    // A transaction without value brings nothing.
    expect(attributed(change(5n), [paid[0], transaction(2, { to: alice })])).toEqual({
      rest: 0n,
      transfers: ["tx:1 5"]
    })
    // The same place in another block is another transaction.
    const earlier = { ...credit("tx:1", 5n), blockHash: hash(600) }
    expect(attributed(change(10n, { credits: [earlier] }), paid.slice(0, 1)).transfers).toEqual(["tx:1 5"])
  })

  it("attributes the rest to the only successful transaction that names the address", () => {
    const named = transaction(3, { input: naming(alice) })
    expect(attributed(change(12n), [...paid, named])).toEqual({
      rest: 0n,
      transfers: ["tx:1 5", "tx:2 5", `call:${named.hash} 2`]
    })
    expect(attributed(change(2n), [named, transaction(4, { input: naming(bob) })]).rest).toBe(0n)
    // Two of them, none, or one that is already known: no attribution.
    expect(attributed(change(2n), [named, transaction(4, { input: naming(alice) })])).toEqual({
      rest: 2n,
      transfers: []
    })
    expect(attributed(change(2n), [])).toEqual({ rest: 2n, transfers: [] })
    expect(attributed(change(6n, { credits: [credit(`call:${named.hash}`, 4n)] }), [named])).toEqual({
      rest: 2n,
      transfers: []
    })
    expect(attributed(change(2n), [named], { succeeded: false })).toEqual({ rest: 2n, transfers: [] })
    // A token's transfer names the address too, and nothing is left to attribute.
    expect(attributed(change(10n), [...paid, named])).toEqual({ rest: 0n, transfers: ["tx:1 5", "tx:2 5"] })
  })

  it("adds what the address's own transactions spent to the difference", () => {
    const spent = transaction(5, { from: alice, to: bob, value: 30n })
    expect(attributed(change(-40n), [spent])).toEqual({ rest: 0n, transfers: [] })
    expect(attributed(change(-33n), [spent])).toEqual({ rest: 7n, transfers: [] })
    // A failed transaction costs its fee.
    expect(attributed(change(-10n), [spent], { succeeded: false }).rest).toBe(0n)
    // What it sends to itself is no income.
    expect(attributed(change(-10n), [transaction(6, { from: alice, to: alice, value: 9n })])).toEqual({
      rest: 0n,
      transfers: []
    })
    // A lower balance than can be explained is not a fault.
    expect(attributed(change(-100n), []).rest).toBe(-100n)
  })

  it("orders candidates for traces by likelihood, without transactions that run no code", () => {
    const named = transaction(1, { input: naming(alice) })
    const carrying = transaction(2, { value: 5n })
    const other = transaction(3)
    const all = [other, carrying, transaction(4, { gas: 21_000n }), transaction(5, { to: alice }), named]
    expect(candidates(change(1n), all)).toEqual([named, carrying, other])
    expect(candidates(change(1n, { credits: [credit(`call:${named.hash}`, 1n)] }), all)).toEqual([carrying, other])
  })

  it("gives one receipt per traced transaction, with the sum of its moves to the address", () => {
    const moves = [
      { from: contract, to: alice, amount: 2n },
      { from: contract, to: alice, amount: 3n },
      { from: alice, to: alice, amount: 50n },
      { from: contract, to: bob, amount: 70n }
    ]
    expect(
      traced(change(5n), [
        [transaction(1), moves],
        [transaction(2), []]
      ])
    ).toEqual([
      {
        blockNumber: 7,
        blockHash: block.hash,
        blockTime: 70,
        txHash: hash(1),
        position: `call:${hash(1)}`,
        address: alice,
        currency: "ETH",
        amount: 5n
      }
    ])
  })
})

const decoded = <A>(call: Call<A>, answer: unknown): A | string => Either.merge(call.decode(answer))

describe("decoding the moves of a transaction", () => {
  const frame = (type: string, to: string, value: string, over: object = {}) => ({
    type,
    from: contract,
    to,
    value,
    ...over
  })
  const trace = traceTransaction(hash(1))

  it("counts call frames with value on every level, and none below a failed frame", () => {
    const moves = decoded(trace, {
      ...frame("CALL", contract, "0x1", { from: bob }),
      calls: [
        frame("CALL", alice, "0x2"),
        frame("SELFDESTRUCT", alice, "0x3"),
        frame("DELEGATECALL", alice, "0x4"),
        frame("CALLCODE", alice, "0x4"),
        frame("STATICCALL", alice, "0x0", { value: undefined }),
        frame("CALL", alice, "0x5", { error: "out of gas", calls: [frame("CALL", alice, "0x6")] }),
        frame("DELEGATECALL", contract, "0x0", { calls: [frame("CREATE2", alice, "0x7")] })
      ]
    })
    expect(moves).toHaveLength(4)
    expect(moves).toEqual(
      expect.arrayContaining([
        { from: bob, to: contract, amount: 1n },
        { from: contract, to: alice, amount: 2n },
        { from: contract, to: alice, amount: 3n },
        { from: contract, to: alice, amount: 7n }
      ])
    )
    const failed = { ...frame("CALL", alice, "0x1"), error: "execution reverted", calls: [frame("CALL", alice, "0x2")] }
    expect(decoded(trace, failed)).toEqual([])
  })

  it("reads a thousand levels, and rejects a malformed trace", () => {
    let deep: object = frame("CALL", alice, "0x1")
    for (let i = 0; i < 1024; i++) deep = frame("CALL", contract, "0x0", { calls: [deep] })
    expect(decoded(trace, deep)).toEqual([{ from: contract, to: alice, amount: 1n }])
    for (const bad of [null, [], {}, "0x", frame("CALL", "0x1", "0x1"), { ...frame("CALL", alice, "1"), calls: [] }]) {
      expect(typeof decoded(trace, bad)).toBe("string")
    }
    expect(typeof decoded(trace, { ...frame("CALL", alice, "0x1"), calls: [{ type: "CALL" }] })).toBe("string")
  })

  it("takes the native transfers of a simulation, and no token's logs", () => {
    const topic = (address: string) => `0x${address.slice(2).padStart(64, "0")}`
    const log = (address: string) => ({
      address,
      topics: [transferTopic, topic(contract), topic(alice)],
      data: hash(9)
    })
    const call = simulateBlock(block, [transaction(1), transaction(2)])
    const coins = `0x${"e".repeat(40)}`
    const answer = (calls: ReadonlyArray<object>) => [{ number: "0x7", calls }]
    expect(
      decoded(
        call,
        answer([
          { status: "0x1", logs: [log(coins), log(contract)] },
          { status: "0x0", logs: [] }
        ])
      )
    ).toEqual([[{ from: contract, to: alice, amount: 9n }], []])
    expect(decoded(call, answer([{ status: "0x1", logs: [] }]))).toBe("not as many results as calls")
    expect(typeof decoded(call, [])).toBe("string")
  })
})
