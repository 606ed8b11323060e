import { describe, expect, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { Reader } from "../../../src/Sql.ts"
import {
  alice,
  aroundSome,
  aroundSomeReal,
  health,
  hourAfter,
  next,
  readTo,
  reason,
  second,
  upTo,
  usdc,
  watchedPayment
} from "../around.ts"
import { stateOf, watchedUsdc } from "../lying.ts"
import { coin, ModelChain, token } from "../ModelChain.ts"
import { ledger, nextCommit, pass, scanned, until } from "../world.ts"
import { onChain } from "./onChain.ts"

const storedBlocks = Effect.flatMap(Reader, (reader) =>
  reader.all<{ number: number; hash: string }>("SELECT number, hash FROM blocks ORDER BY number")
)
const money = Effect.map(ledger, (rows) => rows.map(({ amount, canonical }) => [amount, canonical]))
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
    expect(yield* money).toEqual([
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

it.scoped.each([1, 2])(
  "a reorg that removes the only, confirmed payment makes it fail once the new branch is final: providers: %d",
  (count) => {
    const first = new ModelChain(10)
    const nodes = [first, ...(count === 2 ? [first.twin()] : [])] as const
    return Effect.gen(function* () {
      for (const node of nodes) node.finalized = 8
      const { id } = yield* watchedUsdc()
      yield* next(first, token(usdc, alice, 5n))
      yield* next(first)
      yield* next(first)
      yield* until(stateOf(id), (state) => state === "confirmed 5")
      first.rollback(3)
      first.mineMany(5)
      yield* pass("4 minutes")
      yield* upTo(15)
      yield* pass("5 minutes")
      expect(yield* stateOf(id)).toBe("confirmed 5")
      // One provider can invent the tag: alone it makes no shallow block final.
      for (const node of nodes) node.finalized = 11
      first.mine()
      yield* pass("5 minutes")
      expect(yield* stateOf(id)).toBe("confirmed 5")
      first.mineMany(8)
      yield* pass("1 minute")
      first.mine()
      yield* pass("4 minutes")
      expect(yield* stateOf(id)).toBe("failed reorged")
      // The chain is polled slowly again.
      const asked = first.batches.length
      yield* pass("3 minutes")
      expect(first.batches.length - asked).toBeLessThan(20)
    }).pipe(aroundSomeReal(nodes))
  }
)

it.scoped.each([
  ["a reorg of blocks without their confirmations is followed from any provider", { depth: 2, finalized: 10 }, true],
  ["a reorg of a block with its confirmations is refused from one provider alone", { depth: 3, finalized: 10 }, false],
  ["a reorg of a block above the final ones is followed at once, from any provider", { depth: 1, finalized: 12 }, true],
  ["a reorg of a final block is refused from one provider alone", { depth: 1, finalized: 13 }, false]
] as const)("%s", ([, { depth, finalized }, followed]) => {
  const forked = new ModelChain(10)
  const lagging = new ModelChain(-1, [...forked.blocks])
  const final = Effect.flatMap(Reader, (reader) =>
    reader.get<{ number: number | null }>("SELECT finalized_number AS number FROM scans")
  )
  return Effect.gen(function* () {
    yield* watchedPayment(alice)
    yield* next(forked)
    yield* next(forked)
    yield* next(forked, token(usdc, alice, 5n))
    forked.finalized = finalized
    yield* pass("1 minute")
    yield* until(final, (row) => row?.number === finalized)
    yield* upTo(13)
    lagging.blocks.push(...forked.blocks.slice(11))
    // It is no longer in cooldown for the blocks that it lacked.
    yield* pass("1 minute")
    forked.rollback(depth)
    forked.mineMany(depth + 1)
    yield* second
    const [state] = yield* until(
      Effect.zip(health, scanned),
      ([now, scan]) => now?.providers[0]?.healthy === false || scan?.head_number === 14
    )
    expect(state?.providers[0]).toMatchObject({ healthy: followed })
    expect(yield* money).toEqual([["5", followed ? 0 : 1]])
  }).pipe(aroundSome([forked, lagging]))
})
