import { describe, expect, it } from "@effect/vitest"
import { Effect, TestClock } from "effect"
import { AddressSet } from "../../../src/Chains/ledger/AddressSet.ts"
import { latestStart } from "../../../src/Chains/scan/startBlock.ts"
import { Reader } from "../../../src/Sql.ts"
import { temporaryDatabase } from "../../lib/store.ts"
import {
  alice,
  around,
  aroundTwo,
  health,
  hourAfter,
  readTo,
  reason,
  second,
  upTo,
  watchedPayment,
  withTokens
} from "../around.ts"
import { coin, ModelChain, modelRpc } from "../ModelChain.ts"
import {
  committedTo,
  ledger,
  notingSettlement,
  pass,
  pay,
  paymentById,
  scanned,
  until,
  watch,
  world
} from "../world.ts"

describe("the first head", () => {
  it.scoped("sets the start block a few blocks below it", () => {
    const chain = new ModelChain(20)
    return Effect.gen(function* () {
      expect((yield* health)?.ready).toBe(false)
      yield* watch
      yield* committedTo(20)
      expect(yield* scanned).toMatchObject({ start_number: 18, head_number: 20, head_hash: chain.blocks[20]?.hash })
      expect(yield* upTo(20)).toMatchObject({ ready: true })
    }).pipe(around(chain))
  })

  it.scoped("that comes long after a payment was created sets the start block below the payment's money", () => {
    // The block time is 10 seconds.
    const chain = new ModelChain(1_000)
    return Effect.gen(function* () {
      yield* TestClock.setTime(10_000_000)
      const payment = yield* pay(alice)
      expect(payment.createdHead).toBeUndefined()
      chain.mine(coin(alice, 1n))
      chain.mine(coin(alice, 2n))
      chain.mineMany(298)
      yield* watch
      yield* committedTo(1_300)
      // The last block before the payment, with the clock tolerance.
      expect((yield* scanned)?.start_number).toBe(940)
      expect((yield* paymentById(payment.id))?.createdHead).toBe(939)
      expect((yield* ledger).map(({ amount, block_number }) => [block_number, amount])).toEqual([
        [1_001, "1"],
        [1_002, "2"]
      ])
    }).pipe(around(chain))
  })

  it.scoped("comes from a provider that has the blocks below the payments, not from one that lacks them", () => {
    const chain = new ModelChain(1_000)
    const full = chain.twin()
    chain.distort = ({ method, params: [number] }, answer) =>
      method === "eth_getBlockByNumber" && Number(number) < 1_250 ? null : answer
    return Effect.gen(function* () {
      yield* TestClock.setTime(10_000_000)
      yield* pay(alice)
      chain.mine(coin(alice, 1n))
      chain.mineMany(299)
      yield* watch
      yield* Effect.raceFirst(committedTo(1_300), Effect.forever(second))
      expect((yield* scanned)?.start_number).toBe(940)
      expect((yield* ledger).map(({ block_number }) => block_number)).toEqual([1_001])
    }).pipe(aroundTwo(chain, full))
  })

  it.scoped("is not taken while the only provider lacks the blocks below the payments", () => {
    const chain = new ModelChain(1_000)
    chain.distort = ({ method, params: [number] }, answer) =>
      method === "eth_getBlockByNumber" && Number(number) < 950 ? null : answer
    return Effect.gen(function* () {
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
    }).pipe(around(chain))
  })

  it.scoped("sets the configured start block, for ever", () => {
    const chain = new ModelChain(20)
    return Effect.gen(function* () {
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
    }).pipe(around(chain, { ...withTokens, startBlock: 30 }))
  })

  it.scoped("that is replaced before the block below it is read sets no start block", () => {
    const chain = new ModelChain(20)
    chain.intercept = (batch) => {
      if (!batch.some(({ params: [number] }) => number === "0x11")) return
      chain.intercept = () => {}
      chain.rollback(10)
      chain.mineMany(10)
    }
    return Effect.gen(function* () {
      yield* watch
      expect(yield* reason).toMatch(/block 20 was 0x\w+ and is 0x/)
      expect(yield* scanned).toBeUndefined()
      yield* second
      yield* committedTo(20)
      expect(yield* scanned).toMatchObject({ start_number: 18, head_hash: chain.blocks[20]?.hash })
    }).pipe(around(chain))
  })

  /** The node reports another first block of the chain. */
  const ofAnother = (chain: ModelChain) => {
    chain.distort = ({ params: [number] }, answer) =>
      number === "0x0" ? { ...(answer as object), hash: `0x${"2".repeat(64)}` } : answer
  }
  const genesis = Effect.flatMap(Reader, (reader) =>
    reader.get<{ genesis_hash: string }>("SELECT genesis_hash FROM scans")
  )
  const seconds = (count: number) => Effect.repeatN(second, count - 1)

  it.scoped("is not taken while the providers disagree on the chain's first block", () => {
    const chain = new ModelChain(20)
    const other = chain.twin()
    ofAnother(chain)
    return Effect.gen(function* () {
      yield* watch
      expect(yield* reason).toMatch(/do not agree on its first block: model \(1 of rpc_urls\) says 0x2{64}, model \(2/)
      expect(yield* health).toMatchObject({ ready: false })
      yield* seconds(90)
      expect(yield* scanned).toBeUndefined()
      chain.distort = (_, answer) => answer
      yield* Effect.raceFirst(committedTo(20), Effect.forever(second))
      expect(yield* genesis).toEqual({ genesis_hash: chain.blocks[0]?.hash })
    }).pipe(aroundTwo(chain, other))
  })

  it.scoped("is not taken from a provider of another chain when the right one does not respond once", () => {
    const [right, wrong] = [new ModelChain(20), new ModelChain(500)]
    ofAnother(wrong)
    let answers = 0
    right.intercept = () => {
      right.failure = answers++ === 0 ? "timeout" : undefined
    }
    return Effect.gen(function* () {
      yield* watch
      yield* seconds(90)
      expect(yield* reason).toContain("do not agree on its first block")
      expect(yield* scanned).toBeUndefined()
    }).pipe(aroundTwo(right, wrong))
  })

  it.scoped("is from the right provider after a minute if that of another chain no longer responds", () => {
    const [right, wrong] = [new ModelChain(20), new ModelChain(500)]
    ofAnother(wrong)
    wrong.intercept = (batch) => {
      if (batch.some(({ params: [tag] }) => tag === "latest")) wrong.failure = "unreachable"
    }
    return Effect.gen(function* () {
      yield* watch
      yield* seconds(50)
      expect(yield* scanned).toBeUndefined()
      yield* Effect.raceFirst(committedTo(20), seconds(60))
      expect(yield* genesis).toEqual({ genesis_hash: right.blocks[0]?.hash })
      wrong.intercept = () => {}
      wrong.failure = undefined
      right.failure = "unreachable"
      yield* seconds(240)
      const [first] = (yield* health)?.providers ?? []
      expect(first).toMatchObject({ healthy: false, reason: expect.stringContaining("serves another chain") })
      expect(yield* scanned).toMatchObject({ head_number: 20 })
    }).pipe(aroundTwo(wrong, right))
  })

  it.scoped("that is replaced while nothing else is stored causes a wait, but no cooldown of its provider", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      yield* TestClock.setTime(hourAfter(chain))
      yield* watchedPayment(alice)
      chain.rollback(1)
      chain.mine()
      yield* second
      expect(yield* reason).toBe("block 10 was replaced and none has followed yet")
      expect(yield* health).toMatchObject({ providers: [{ healthy: true }] })
      chain.mine(coin(alice, 1n))
      yield* readTo(11)
      expect((yield* ledger).map(({ block_number }) => block_number)).toEqual([11])
    }).pipe(around(chain, { ...withTokens, startBlock: 11 }))
  })

  it.scoped("and each later one while no address is watched come from a provider of the right chain", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      yield* watch
      yield* committedTo(10)
      chain.chainId = 1
      chain.mine()
      yield* pass("4 minutes")
      expect(yield* reason).toContain("model serves chain 1")
      expect(yield* scanned).toMatchObject({ head_number: 10 })
    }).pipe(around(chain))
  })

  it.scoped("of another chain is refused until the provider serves the right one", () => {
    const chain = new ModelChain(20)
    chain.chainId = 1
    return Effect.gen(function* () {
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
        providers: [{ host: "model", healthy: true }]
      })

      // After an outage another node may respond.
      chain.failure = "unreachable"
      yield* second
      yield* reason
      chain.failure = undefined
      chain.chainId = 1
      chain.mine()
      yield* pass("10 seconds")
      yield* until(health, (now) => now?.reason?.includes("serves chain 1") === true)
      expect(yield* scanned).toMatchObject({ head_number: 20 })
    }).pipe(around(chain))
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
