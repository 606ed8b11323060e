import { describe, expect, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { AddressSet } from "../../../src/Chains/ledger/AddressSet.ts"
import * as Ledger from "../../../src/Chains/ledger/LedgerRepo.ts"
import { latestStart } from "../../../src/Chains/watcher/tick.ts"
import { Reader } from "../../../src/Sql.ts"
import { temporaryDatabase } from "../../lib/store.ts"
import { alice, health, hourAfter, readTo, reason, second, upTo, watchedPayment, withTokens } from "../around.ts"
import { coin, ModelChain, modelRpc } from "../ModelChain.ts"
import { committedTo, end, ledger, notingSettlement, pass, pay, paymentById, scanned, watch, world } from "../world.ts"
import { onChain, onTwo } from "./onChain.ts"

// The block time is 10 seconds.

/** The numbers of the blocks that have receipts. */
const numbers = Effect.map(ledger, (rows) => rows.map(({ block_number }) => block_number))

/** A node that lacks the blocks below this one. */
const lacking =
  (oldest: number): ModelChain["distort"] =>
  ({ method, params: [number] }, answer) =>
    method === "eth_getBlockByNumber" && Number(number) < oldest ? null : answer

/** Block 1,001 pays a payment; reading begins 299 blocks later. */
const watchPaidLongBefore = Effect.fn(function* (chain: ModelChain) {
  yield* TestClock.setTime(10_000_000)
  const payment = yield* pay(alice)
  chain.mine(coin(alice, 1n))
  chain.mineMany(299)
  yield* watch
  return payment
})

describe("the first head", () => {
  onChain(
    "that comes long after a payment sets the start block below the payment's money",
    { height: 1_000 },
    function* (chain) {
      const payment = yield* watchPaidLongBefore(chain)
      expect(payment.createdHead).toBeUndefined()
      yield* committedTo(1_300)
      // The last block before the payment, with the clock tolerance.
      expect((yield* scanned)?.start_number).toBe(940)
      expect((yield* paymentById(payment.id))?.createdHead).toBe(939)
      expect(yield* numbers).toEqual([1_001])
    }
  )

  onTwo("comes from a provider that has the blocks below the payments", { height: 1_000 }, function* (chain) {
    chain.distort = lacking(1_250)
    yield* watchPaidLongBefore(chain)
    yield* Effect.raceFirst(committedTo(1_300), Effect.forever(second))
    expect((yield* scanned)?.start_number).toBe(940)
    expect(yield* numbers).toEqual([1_001])
  })

  onChain("is not taken while no provider has the blocks below the payments", { height: 1_000 }, function* (chain) {
    chain.distort = lacking(950)
    yield* TestClock.setTime(10_000_000)
    yield* pay(alice)
    yield* watch
    expect(yield* reason).toContain("failed (missing)")
    expect(yield* scanned).toBeUndefined()
    // The log line.
    const start = latestStart(withTokens, chain.client, yield* Reader, new AddressSet(), {
      number: 1_000,
      hash: "",
      time: 10_000
    })
    expect(yield* Effect.flip(start)).toMatchObject({
      reason: "missing",
      message: expect.stringMatching(
        /answered null; payments were made before .* keeps such blocks helps, or a start_block/
      )
    })
  })

  onTwo(
    "is not placed by one provider's times alone before the patience is over",
    { height: 1_000 },
    function* (chain, other) {
      other.failure = "unreachable"
      // Each block as if it was older than the payment.
      chain.distort = ({ method, params: [number] }, answer) =>
        method === "eth_getBlockByNumber" && number !== "latest" && number !== "0x0"
          ? { ...(answer as object), timestamp: "0x1" }
          : answer
      yield* watchPaidLongBefore(chain)
      yield* Effect.repeatN(second, 300)
      expect(yield* reason).toContain("no other provider answers how far back to read")
      expect(yield* scanned).toBeUndefined()
      other.failure = undefined
      yield* Effect.raceFirst(committedTo(1_300), Effect.forever(second))
      expect((yield* scanned)?.start_number).toBe(940)
      expect(yield* numbers).toEqual([1_001])
    }
  )

  onTwo(
    "is placed by one provider alone once the patience with one that went silent meanwhile is over",
    { height: 1_000 },
    function* (chain, other) {
      // Asked for an older block, after all that tells which chain it serves.
      other.intercept = (batch) => {
        if (batch.some(({ params: [number] }) => Number(number) > 0)) other.failure = "unreachable"
      }
      yield* watchPaidLongBefore(chain)
      yield* Effect.repeatN(second, 300)
      expect(yield* scanned).toBeUndefined()
      yield* Effect.repeatN(second, 600)
      expect((yield* scanned)?.start_number).toBe(940)
      expect(yield* numbers).toEqual([1_001])
    }
  )

  onChain("permanently sets the configured start block", { height: 20, startBlock: 30 }, function* (chain) {
    yield* pay(alice)
    chain.mine(coin(alice, 1n))
    yield* watch
    expect(yield* reason).toContain("start_block 30 is above the chain's head 21")
    expect(yield* scanned).toBeUndefined()
    chain.mineMany(8)
    chain.mine(coin(alice, 2n))
    yield* readTo(30)
    expect(yield* scanned).toMatchObject({ start_number: 30, head_number: 30 })
    expect((yield* ledger).map(({ amount }) => amount)).toEqual(["2"])
  })

  onChain("that is replaced before the block below it is read sets no start block", { height: 20 }, function* (chain) {
    chain.intercept = (batch) => {
      if (!batch.some(({ params: [number] }) => number === "0x11")) return
      chain.intercept = () => {}
      chain.rollback(10)
      chain.mineMany(10)
    }
    yield* watch
    expect(yield* reason).toMatch(/block 20 was 0x\w+ and is 0x/)
    expect(yield* scanned).toBeUndefined()
    yield* second
    yield* committedTo(20)
    expect(yield* scanned).toMatchObject({ start_number: 18, head_hash: chain.blocks[20]?.hash })
  })

  onTwo("is not taken while the providers disagree on the chain's first block", function* (chain) {
    chain.distort = ({ params: [number] }, answer) =>
      number === "0x0" ? { ...(answer as object), hash: `0x${"2".repeat(64)}` } : answer
    yield* watch
    expect(yield* reason).toMatch(/do not agree on its first block: model \(1 of rpc_urls\) says 0x2{64}, model \(2/)
    expect(yield* health).toMatchObject({ ready: false })
    yield* Effect.repeatN(second, 89)
    expect(yield* scanned).toBeUndefined()
    chain.distort = (_, answer) => answer
    yield* Effect.raceFirst(committedTo(10), Effect.forever(second))
    expect(yield* Ledger.genesisHash(yield* Reader, { chain: "ethereum", mode: "test" })).toBe(chain.blocks[0]?.hash)
  })

  onChain("is not taken with a first block that the provider has reported once, and not again", function* (chain) {
    let reports = 0
    chain.distort = ({ params: [number] }, answer) =>
      number === "0x0" && ++reports === 1 ? { ...(answer as object), hash: `0x${"2".repeat(64)}` } : answer
    yield* watch
    expect(yield* reason).toMatch(/its first block was 0x2{64} and is 0x/)
    expect(yield* scanned).toBeUndefined()
    yield* Effect.raceFirst(committedTo(10), Effect.forever(second))
    expect(yield* Ledger.genesisHash(yield* Reader, { chain: "ethereum", mode: "test" })).toBe(chain.blocks[0]?.hash)
  })

  onChain(
    "that is replaced while nothing else is stored causes a wait, but no cooldown",
    { startBlock: 11 },
    function* (chain) {
      yield* TestClock.setTime(hourAfter(chain))
      yield* watchedPayment(alice)
      chain.rollback(1)
      chain.mine()
      yield* second
      expect(yield* reason).toBe("block 10 was replaced and none has followed yet")
      expect(yield* health).toMatchObject({ providers: [{ healthy: true }] })
      chain.mine(coin(alice, 1n))
      yield* readTo(11)
      expect(yield* numbers).toEqual([11])
    }
  )

  onChain("and each later one while no address is watched come from a provider of the right chain", function* (chain) {
    yield* watch
    yield* committedTo(10)
    chain.chainId = 1
    chain.mine()
    yield* pass("4 minutes")
    expect(yield* reason).toContain("model serves chain 1")
    expect(yield* scanned).toMatchObject({ head_number: 10 })
  })

  onChain("of another chain is refused until the provider serves the right one", { height: 20 }, function* (chain) {
    chain.chainId = 1
    yield* pay(alice)
    yield* watch
    expect(yield* reason).toContain("model serves chain 1, and chains.ethereum.test is chain 77")
    expect(chain.count("eth_getBlockByNumber")).toBe(0)
    yield* pass("1 minute")
    expect(chain.count("eth_getBlockByNumber")).toBe(0)
    chain.chainId = 77
    yield* pass("10 seconds")
    expect(yield* upTo(20)).toEqual({
      chain: "ethereum",
      mode: "test",
      ready: true,
      head: 20,
      lagBlocks: 0,
      headAheadSeconds: 130,
      providers: [{ host: "model", healthy: true }]
    })
  })
})

describe("a restart", () => {
  it.scoped("continues after the checkpoint, also if the chain has another branch by then", () => {
    const chain = new ModelChain(10)
    const [kept, dropped, missed] = [coin(alice, 1n), coin(alice, 2n), coin(alice, 3n)]
    return Effect.gen(function* () {
      const path = yield* temporaryDatabase
      const alive = Effect.provide(world(path, [withTokens], modelRpc({ "model:ethereum": chain }), notingSettlement))
      yield* Effect.gen(function* () {
        yield* watchedPayment(alice)
        chain.mine(kept)
        yield* readTo(11)
        chain.mine(dropped)
        yield* readTo(12)
      }).pipe(alive, Effect.scoped)

      chain.rollback(1)
      chain.mineMany(3)
      chain.mine(missed)
      chain.batches.length = 0
      yield* Effect.gen(function* () {
        yield* watch
        yield* committedTo(15)
        const rows = yield* ledger
        expect(rows.map((row) => [row.tx_hash, row.canonical])).toEqual([
          [kept.hash, 1],
          [dropped.hash, 0],
          [missed.hash, 1]
        ])
        // Block 11 was read before, and is still on the chain.
        const full = chain.batches.flat().filter(({ params }) => params[1] === true)
        expect([...new Set(full.map(({ params }) => Number(params[0])))]).toEqual([12, 13, 14, 15])
      }).pipe(alive, Effect.scoped)
    })
  })
})

describe("the start block", () => {
  const longAgo = Effect.zipRight(TestClock.setTime(10_000_000), pay(alice))
  for (const [title, options, made, start] of [
    ["is a few blocks below the first head", { height: 20 }, Effect.void, 18],
    ["is the chain's first one if that is shorter than its confirmations", { height: 1 }, Effect.void, 1],
    ["is below the confirmations where a payment was just made", { height: 1_000, confirmations: 200 }, longAgo, 801],
    ["is above the chain's first block, where that is configured", { height: 0, startBlock: 0 }, pay(alice), 1],
    ["may be configured as the next block, which is not waited for", { startBlock: 11 }, pay(alice), 11]
  ] as const) {
    onChain(title, options, function* (chain) {
      const { height } = chain
      expect((yield* health)?.ready).toBe(false)
      yield* made
      yield* watch
      const now = yield* Effect.raceFirst(upTo(height), Effect.forever(second))
      expect(now).toMatchObject({ ready: true })
      expect(now).not.toHaveProperty("reason")
      expect(yield* scanned).toEqual({
        start_number: start,
        head_number: height,
        head_hash: chain.blocks[height]?.hash
      })
      // The others begin with blocks that are there.
      if (start <= height) return
      chain.mine(coin(alice, 1n))
      yield* readTo(height + 1)
      expect(yield* numbers).toEqual([start])
      expect(yield* health).toMatchObject({ ready: true })
    })
  }

  onChain("is below an ended payment too, while late money is still watched for", { height: 800 }, function* (chain) {
    chain.mine(coin(alice, 1n))
    chain.mineMany(199)
    yield* TestClock.setTime(8_000_000)
    const { id } = yield* pay(alice)
    yield* TestClock.setTime(10_000_000)
    yield* end(id, 10_000_000)
    yield* watch
    yield* Effect.raceFirst(upTo(1_000), Effect.forever(second))
    expect(yield* numbers).toEqual([801])
  })
})
