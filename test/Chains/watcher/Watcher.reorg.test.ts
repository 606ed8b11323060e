import { describe, expect } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { Reader } from "../../../src/Sql.ts"
import { alice, hourAfter, readTo, reason, second, upTo, usdc, watchedPayment, withReceipts } from "../around.ts"
import { coin, token } from "../ModelChain.ts"
import { Announced, ledger, nextCommit, pass, pay, paymentById, scanned, until, watch } from "../world.ts"
import { onChain, onRealChain } from "./onChain.ts"

const storedBlocks = Effect.flatMap(Reader, (reader) =>
  reader.all<{ number: number; hash: string }>("SELECT number, hash FROM blocks ORDER BY number")
)
const counted = Effect.map(ledger, (rows) => rows.map((row) => [row.block_number, row.tx_hash, row.canonical]))

describe("a reorg", () => {
  onChain("orphans the receipts that it drops, and counts again those that come back", function* (chain) {
    const [first, later] = [coin(alice, 1n), token(usdc, alice, 2n)]
    const payment = yield* watchedPayment(alice)
    chain.mine(first)
    chain.mine(later)
    expect((yield* readTo(12)).touched).toEqual([payment.id])

    chain.rollback(2)
    chain.mineMany(2)
    yield* second
    const dropped = yield* nextCommit
    expect(dropped).toMatchObject({ head: { number: 12, hash: chain.blocks[12]?.hash }, touched: [payment.id] })
    expect(yield* counted).toEqual([
      [11, first.hash, 0],
      [12, later.hash, 0]
    ])
    expect((yield* storedBlocks).every(({ hash, number }) => chain.blocks[number]?.hash === hash)).toBe(true)

    chain.mine(later, first)
    expect((yield* readTo(13)).touched).toEqual([payment.id])
    expect(yield* counted).toEqual([
      [11, first.hash, 0],
      [12, later.hash, 0],
      [13, later.hash, 1],
      [13, first.hash, 1]
    ])
  })

  onChain("of many ticks is followed to the common ancestor, in one commit", function* (chain) {
    yield* TestClock.setTime(hourAfter(chain))
    yield* watchedPayment(alice)
    const paid = coin(alice, 1n)
    for (let i = 11; i <= 50; i++) {
      chain.mine(...(i === 30 ? [paid] : []))
      yield* readTo(i)
    }
    chain.rollback(25)
    chain.mineMany(4)
    chain.mine(paid)
    chain.mineMany(21)
    yield* second
    const commit = yield* nextCommit
    expect(commit.head.number).toBe(51)
    expect(yield* counted).toEqual([
      [30, paid.hash, 0],
      [30, paid.hash, 1]
    ])
    expect((yield* storedBlocks).map(({ number }) => number)).toEqual([
      7,
      ...Array.from({ length: 16 }, (_, i) => i + 10),
      30,
      51
    ])
  })

  onChain("below all stored blocks continues from the start block", function* (chain) {
    yield* TestClock.setTime(hourAfter(chain))
    yield* watchedPayment(alice)
    chain.mine(coin(alice, 1n))
    yield* readTo(11)
    chain.rollback(8)
    chain.mineMany(5)
    chain.mine(coin(alice, 2n))
    chain.mineMany(5)
    yield* readTo(14)
    expect((yield* ledger).map(({ amount, canonical }) => [amount, canonical])).toEqual([
      ["2", 1],
      ["1", 0]
    ])
    expect(yield* scanned).toMatchObject({ start_number: 8, head_hash: chain.blocks[14]?.hash })
    expect((yield* storedBlocks).every(({ hash, number }) => chain.blocks[number]?.hash === hash)).toBe(true)
  })

  onChain("in the middle of a tick stores nothing of either branch", function* (chain) {
    const [before, after] = [coin(alice, 1n), coin(alice, 2n)]
    yield* watchedPayment(alice)
    chain.mine(before)
    chain.mine()
    chain.intercept = (batch) => {
      if (!batch.some((call) => call.method === "eth_getLogs")) return
      chain.intercept = () => {}
      // The head was read on one branch; the range is requested on another, which also replaces scanned blocks.
      chain.rollback(3)
      chain.mineMany(2)
      chain.mine(after)
    }
    yield* second
    expect(yield* reason).toContain("does not follow")
    expect(yield* ledger).toEqual([])
    yield* readTo(12)
    expect(yield* counted).toEqual([[12, after.hash, 1]])
  })

  onRealChain("that is longer than the block range is one commit", { confirmations: 30 }, function* (chain) {
    const paid = token(usdc, alice, 100n)
    const payment = yield* watchedPayment(alice, { currency: "USDC" })
    const announced = yield* Announced
    chain.mine()
    chain.mine(paid)
    yield* readTo(12)
    expect(announced).toEqual(["detecting"])
    // The block range is one block from here on.
    let refused = 0
    chain.intercept = (batch) => {
      chain.failure = undefined
      const logs = batch.find(({ method }) => method === "eth_getLogs")
      const { fromBlock, toBlock } = (logs?.params[0] ?? {}) as { fromBlock?: string; toBlock?: string }
      if (refused >= 7 || fromBlock === toBlock) return
      refused++
      chain.failure = "too_large"
    }
    chain.mineMany(8)
    yield* pass("1 minute")
    expect(refused).toBe(7)
    yield* upTo(20)
    chain.rollback(9)
    chain.mineMany(8)
    chain.mine(paid)
    chain.mine()
    yield* pass("5 seconds")
    yield* upTo(21)
    expect((yield* paymentById(payment.id))?.status).toBe("detecting")
    expect(announced).toEqual(["detecting"])
  })

  onRealChain(
    "that mines native coin again, below the payment's first block, orphans nothing",
    { height: 12, chain: "base", confirmations: 30 },
    function* (chain) {
      const paid = coin(alice, 100n)
      withReceipts(chain)
      yield* watch
      yield* upTo(12)
      const payment = yield* pay(alice, { chain: "base" })
      const announced = yield* Announced
      chain.mine(paid)
      yield* Effect.raceFirst(upTo(13), Effect.forever(second))
      yield* Effect.raceFirst(
        until(paymentById(payment.id), (now) => now?.status === "detecting"),
        Effect.forever(second)
      )
      chain.rollback(3)
      chain.mine(paid)
      chain.mineMany(3)
      yield* Effect.raceFirst(upTo(14), Effect.forever(second))
      expect(yield* paymentById(payment.id)).toMatchObject({ status: "detecting", amountReceived: 100n })
      expect(announced).toEqual(["detecting"])
    }
  )

  onChain(
    "is not missed while one node of a load balancer lacks the last block that was read",
    { chain: "base" },
    function* (chain) {
      yield* watchedPayment(alice, { chain: "base", currency: "USDC" })
      chain.mine(token(usdc, alice, 5n))
      yield* readTo(11)
      chain.rollback(1)
      chain.mineMany(3)
      let denied = 0
      chain.distort = ({ method, params }, answer) => {
        if (method !== "eth_getBlockByNumber" || params[0] !== "0xb" || denied > 0) return answer
        denied++
        return null
      }
      yield* pass("10 seconds")
      yield* upTo(13)
      expect(denied).toBe(1)
      expect((yield* ledger).map(({ canonical }) => canonical)).toEqual([0])
    }
  )
})
