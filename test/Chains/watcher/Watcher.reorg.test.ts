import { describe, expect, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { Chains } from "../../../src/Chains.ts"
import { Reader } from "../../../src/Sql.ts"
import { address, alice, around, aroundReal, hourAfter, readTo, second, usdc, watchedPayment } from "../around.ts"
import { coin, ModelChain, type ModelTransaction, token } from "../ModelChain.ts"
import { Announced, ledger, nextCommit, pay, paymentById, scanned, until } from "../world.ts"

const storedBlocks = Effect.flatMap(Reader, (reader) =>
  reader.all<{ number: number; hash: string }>("SELECT number, hash FROM blocks ORDER BY number")
)
const counted = Effect.map(ledger, (rows) => rows.map((row) => [row.block_number, row.tx_hash, row.canonical]))

describe("a reorg", () => {
  it.scoped("orphans the receipts that it drops, and counts again those that come back", () => {
    const chain = new ModelChain(10)
    const [first, later] = [coin(alice, 1n), token(usdc, alice, 2n)]
    return Effect.gen(function* () {
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
    }).pipe(around(chain))
  })

  it.scoped("to a branch and back counts the same rows again", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      yield* watchedPayment(alice)
      chain.mine(coin(alice, 1n))
      chain.mine()
      yield* readTo(12)
      const branch = chain.blocks.slice(11)
      chain.rollback(2)
      chain.mineMany(3)
      yield* readTo(13)
      expect((yield* ledger).map(({ canonical }) => canonical)).toEqual([0])
      chain.rollback(3)
      chain.blocks.push(...branch)
      chain.mineMany(2)
      yield* readTo(14)
      expect((yield* ledger).map(({ canonical, block_hash }) => [canonical, block_hash])).toEqual([
        [1, branch[0]?.hash]
      ])
    }).pipe(around(chain))
  })

  it.scoped("of many ticks is followed to the common ancestor, in one commit", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
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
    }).pipe(around(chain))
  })

  it.scoped("below all stored blocks continues from the start block", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
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
    }).pipe(around(chain))
  })

  it.scoped("lets a payment of the old branch be paid in a block that has an old number", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      yield* watchedPayment(address(1))
      chain.mineMany(2)
      yield* readTo(12)
      const payment = yield* pay(alice)
      expect(payment.createdHead).toBe(12)
      chain.rollback(2)
      chain.mine(coin(alice, 1n))
      chain.mineMany(2)
      yield* readTo(13)
      expect((yield* paymentById(payment.id))?.createdHead).toBe(10)
      expect((yield* ledger).map(({ block_number }) => block_number)).toEqual([11])
    }).pipe(around(chain))
  })

  it.scoped("in the middle of a tick stores nothing of either branch", () => {
    const chain = new ModelChain(10)
    const [before, after] = [coin(alice, 1n), coin(alice, 2n)]
    return Effect.gen(function* () {
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
      const reason = yield* until(
        Effect.flatMap(Chains, (chains) => chains.health),
        ([health]) => health?.reason !== undefined
      )
      expect(reason[0]?.reason).toContain("does not follow")
      expect(yield* ledger).toEqual([])
      yield* readTo(12)
      expect(yield* counted).toEqual([[12, after.hash, 1]])
    }).pipe(around(chain))
  })
})

describe("a reorg with real settlement", () => {
  /** A payment that was paid in block 11, below the head. */
  const paidIn = (chain: ModelChain, paid: ModelTransaction) =>
    Effect.gen(function* () {
      const payment = yield* watchedPayment(alice)
      chain.mine(paid)
      chain.mine()
      yield* readTo(12)
      return payment
    })

  it.scoped("with the receipt on both branches changes nothing, and the payment is confirmed once", () => {
    const chain = new ModelChain(10)
    const paid = coin(alice, 100n)
    return Effect.gen(function* () {
      const payment = yield* paidIn(chain, paid)
      const announced = yield* Announced
      expect(announced).toEqual(["detecting"])
      chain.rollback(2)
      chain.mine()
      chain.mine(paid)
      yield* second
      yield* nextCommit
      expect(announced).toEqual(["detecting"])
      expect(yield* paymentById(payment.id)).toMatchObject({ status: "detecting", amountReceived: 100n })
      // Its block is now 12, with three confirmations at 14; its first block would have had them at 13.
      chain.mine()
      yield* readTo(13)
      expect(announced).toEqual(["detecting"])
      chain.mine()
      yield* readTo(14)
      expect(announced).toEqual(["detecting", "confirmed"])
      expect(yield* paymentById(payment.id)).toMatchObject({ status: "confirmed", txHash: paid.hash })
    }).pipe(aroundReal(chain))
  })

  it.scoped("that drops the payment's receipt sends no event, until the receipt is back", () => {
    const chain = new ModelChain(10)
    const paid = coin(alice, 100n)
    return Effect.gen(function* () {
      const payment = yield* paidIn(chain, paid)
      const announced = yield* Announced
      chain.rollback(2)
      chain.mineMany(2)
      yield* second
      yield* nextCommit
      expect(yield* paymentById(payment.id)).toMatchObject({ status: "pending", amountReceived: undefined })
      chain.mine(paid)
      yield* readTo(13)
      chain.mineMany(2)
      yield* readTo(15)
      expect(announced).toEqual(["detecting", "detecting", "confirmed"])
    }).pipe(aroundReal(chain))
  })
})
