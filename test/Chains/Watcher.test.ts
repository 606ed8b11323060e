import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect, Queue, Redacted, TestClock } from "effect"
import { getAddress, type Hex } from "viem"
import { MatchSet } from "../../src/Chains/MatchSet.ts"
import { Chains } from "../../src/Chains.ts"
import type { ChainSettings } from "../../src/Settings.ts"
import { temporaryDatabase } from "../lib/store.ts"
import { coin, ModelChain, modelRpc, token } from "./ModelChain.ts"
import {
  chainSettings,
  committedTo,
  end,
  ledger,
  nextCommit,
  notingSettlement,
  pay,
  paymentById,
  scanned,
  until,
  watch,
  world
} from "./world.ts"

const address = (n: number): string => getAddress(`0x${n.toString(16).padStart(40, "0")}` as Hex)
const contract = (n: number): string => `0x${n.toString(16).padStart(40, "c")}`
const [usdc, bridged, lookAlike] = [contract(1), contract(2), contract(3)]
const alice = address(0xa11ce)

const withTokens = chainSettings({
  tokens: [{ symbol: "USDC", address: usdc, decimals: 6 }],
  wrongTokens: [{ name: "USDC.e", address: bridged }]
})

/** A world around one model chain; nothing is watched until `watch`. */
const around =
  (chain: ModelChain, settings: ChainSettings = withTokens) =>
  <A, E, R>(test: Effect.Effect<A, E, R>) =>
    Effect.flatMap(temporaryDatabase, (path) =>
      Effect.provide(test, world(path, [settings], modelRpc({ "model:ethereum": chain }), notingSettlement))
    )

const health = Effect.flatMap(Chains, (chains) => chains.health).pipe(Effect.map((all) => all[0]))
const upTo = (head: number) => until(health, (now) => now?.head === head && now.lagBlocks === 0)
const reason = until(health, (now) => now?.reason !== undefined).pipe(Effect.map((now) => now?.reason))
const second = TestClock.adjust("1 second")
const forget = (chain: ModelChain) => Effect.asVoid(Queue.takeAll(chain.answered))

describe("the first head", () => {
  it.scoped("fixes the start below it, and payments made before count from there", () => {
    const chain = new ModelChain(16)
    return Effect.gen(function* () {
      const payment = yield* pay(alice)
      expect(payment.createdHead).toBeUndefined()
      chain.mine(coin(alice, 1n))
      chain.mine(coin(alice, 2n))
      chain.mineMany(2)
      expect((yield* health)?.ready).toBe(false)
      yield* watch
      yield* committedTo(20)
      expect(yield* scanned).toMatchObject({ start_number: 18, head_number: 20, head_hash: chain.blocks[20]?.hash })
      expect((yield* paymentById(payment.id))?.createdHead).toBe(17)
      expect((yield* ledger).map(({ amount, block_number }) => [block_number, amount])).toEqual([[18, "2"]])
      expect(yield* upTo(20)).toMatchObject({ ready: true })
    }).pipe(around(chain))
  })

  it.scoped("is where a configured block says, and stays there", () => {
    const chain = new ModelChain(20)
    return Effect.gen(function* () {
      yield* pay(alice)
      chain.mine(coin(alice, 1n))
      yield* watch
      expect(yield* reason).toContain("start_block 30 is above the chain's head 21")
      expect(yield* scanned).toBeUndefined()
      chain.mineMany(8)
      chain.mine(coin(alice, 2n))
      yield* second
      yield* committedTo(30)
      expect(yield* scanned).toMatchObject({ start_number: 30, head_number: 30 })
      expect((yield* ledger).map(({ amount }) => amount)).toEqual(["2"])
    }).pipe(around(chain, { ...withTokens, startBlock: 30 }))
  })

  it.scoped("of another chain is refused until it is the right one", () => {
    const chain = new ModelChain(20)
    chain.chainId = 1
    return Effect.gen(function* () {
      yield* pay(alice)
      yield* watch
      expect(yield* reason).toContain("model serves chain 1, and chains.ethereum.test is chain 77")
      expect(chain.count("eth_getBlockByNumber")).toBe(0)
      yield* TestClock.adjust("1 minute")
      expect(chain.count("eth_getBlockByNumber")).toBe(0)
      chain.chainId = 77
      yield* TestClock.adjust("10 seconds")
      expect(yield* upTo(20)).toEqual({ chain: "ethereum", mode: "test", ready: true, head: 20, lagBlocks: 0 })

      // What answers after an outage may be another node.
      chain.failure = "unreachable"
      yield* second
      yield* reason
      chain.failure = undefined
      chain.chainId = 1
      chain.mine()
      yield* TestClock.adjust("10 seconds")
      yield* until(health, (now) => now?.reason?.includes("serves chain 1") === true)
      expect(yield* scanned).toMatchObject({ head_number: 20 })
    }).pipe(around(chain))
  })
})

describe("reading", () => {
  it.scoped("stores coins and tokens at their positions, and nothing that does not count", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      const payment = yield* pay(alice)
      yield* watch
      yield* committedTo(10)
      const { hash } = chain.mine(
        coin(address(99), 1n),
        token(usdc, alice, 5n),
        token(bridged, alice, 6n),
        token(lookAlike, alice, 7n),
        token(usdc, alice, 0n),
        coin(alice, 8n),
        coin(alice, 9n, { fails: true }),
        coin(alice, 0n)
      )
      yield* second
      const commit = yield* committedTo(11)
      expect(commit.touched).toEqual([payment.id])
      expect((yield* ledger).map((row) => [row.position, row.currency, row.amount, row.block_hash])).toEqual([
        ["log:1", "USDC", "5", hash],
        ["log:2", "USDC.e", "6", hash],
        ["tx:5", "ETH", "8", hash]
      ])
    }).pipe(around(chain))
  })

  it.scoped("tells the settlement the newest block with the confirmations", () => {
    const chain = new ModelChain(1)
    return Effect.gen(function* () {
      yield* pay(alice)
      yield* watch
      expect((yield* committedTo(1)).settled).toBeUndefined()
      chain.mine()
      yield* second
      expect((yield* committedTo(2)).settled).toMatchObject({ number: 0, time: 0 })
      chain.mineMany(7)
      yield* second
      expect((yield* committedTo(9)).settled).toMatchObject({ number: 7, time: 70, hash: chain.blocks[7]?.hash })
    }).pipe(around(chain))
  })

  it.scoped("asks for one header while nothing is watched, and for everything once something is", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      yield* watch
      yield* committedTo(10)
      yield* forget(chain)
      chain.batches.length = 0
      chain.mineMany(5)
      yield* TestClock.adjust("59 seconds")
      expect(chain.batches).toEqual([])
      yield* second
      yield* committedTo(15)
      expect(chain.batches.map((batch) => batch.map((call) => call.method))).toEqual([
        ["eth_getBlockByNumber", "eth_gasPrice"]
      ])
      // Mined before the address was known to anybody.
      chain.mineMany(2)
      const payment = yield* pay(alice)
      expect(payment.createdHead).toBe(15)
      yield* committedTo(17)
      expect(chain.count("eth_getLogs")).toBe(1)
      chain.mine(coin(alice, 1n))
      yield* second
      yield* committedTo(18)
      expect((yield* ledger).map(({ block_number }) => block_number)).toEqual([18])
    }).pipe(around(chain))
  })

  it.scoped("skips nothing when an address comes between the head and the range", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      yield* watch
      yield* committedTo(10)
      const matchSet = yield* MatchSet
      // What was scanned has been replaced, which an idle tick does not ask about.
      chain.rollback(1)
      chain.mineMany(2)
      // The batch of an idle tick is on its way; the head that it brings was mined before.
      chain.intercept = () => {
        chain.intercept = () => {}
        matchSet.add("test", alice)
      }
      yield* TestClock.adjust("1 minute")
      yield* committedTo(11)
      expect(chain.count("eth_getLogs")).toBe(1)
    }).pipe(around(chain))
  })

  it.scoped("names the receivers to the node while they are few", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      const matchSet = yield* MatchSet
      const topics = () =>
        chain.batches
          .flat()
          .filter((call) => call.method === "eth_getLogs")
          .map((call) =>
            (call.params[0] as { topics: ReadonlyArray<unknown> }).topics.map((one) => [one].flat().length)
          )
      yield* pay(alice)
      for (let i = 1; i < 500; i++) matchSet.add("test", address(i))
      yield* watch
      yield* committedTo(10)
      expect(topics()).toEqual([[1, 1, 500]])
      matchSet.add("test", address(500))
      chain.mine(token(usdc, alice, 3n))
      yield* second
      yield* committedTo(11)
      expect(topics()).toEqual([[1, 1, 500], [1]])
      expect((yield* ledger).map(({ amount }) => amount)).toEqual(["3"])
    }).pipe(around(chain))
  })

  it.scoped("does not ask for the logs of all contracts when no token is configured", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      yield* pay(alice)
      yield* watch
      yield* committedTo(10)
      expect(chain.count("eth_getLogs")).toBe(0)
    }).pipe(around(chain, chainSettings()))
  })

  it.scoped("looks every second while a payment is open, and once a minute when none is", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      const payment = yield* pay(alice)
      yield* watch
      yield* committedTo(10)
      for (let i = 11; i < 15; i++) {
        chain.mine()
        yield* second
        yield* committedTo(i)
      }
      yield* end(payment.id, 1)
      chain.mine()
      yield* second
      yield* committedTo(15)
      yield* forget(chain)
      chain.mine()
      yield* TestClock.adjust("59 seconds")
      expect(yield* Queue.size(chain.answered)).toBe(0)
      yield* second
      // Money that comes late is seen all the same.
      yield* committedTo(16)
    }).pipe(around(chain))
  })
})

describe("a provider in trouble", () => {
  it.scoped("is asked again, and everything is caught up with in parts", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      yield* pay(alice)
      yield* watch
      yield* committedTo(10)
      chain.failure = "unreachable"
      for (let i = 0; i < 250; i++)
        chain.mine(...(i % 100 === 7 ? [coin(alice, BigInt(i)), token(usdc, alice, 1n)] : []))
      yield* TestClock.adjust("2 minutes")
      expect(yield* health).toMatchObject({ ready: false, head: 10 })
      expect((yield* health)?.reason).toContain("any at model failed (unreachable)")
      const tries = chain.batches.length
      yield* TestClock.adjust("1 minute")
      expect(chain.batches.length - tries).toBeGreaterThanOrEqual(5)
      chain.failure = undefined
      yield* TestClock.adjust("10 seconds")
      const parts = [yield* nextCommit, yield* nextCommit, yield* nextCommit]
      expect(parts.map((part) => [part.head.number, part.settled?.number])).toEqual([
        [110, 108],
        [210, 208],
        [260, 258]
      ])
      expect((yield* ledger).map(({ block_number }) => block_number)).toEqual([18, 18, 118, 118, 218, 218])
      expect(yield* upTo(260)).toEqual({ chain: "ethereum", mode: "test", ready: true, head: 260, lagBlocks: 0 })
    }).pipe(around(chain))
  })

  it.scoped("that refuses large parts gets smaller ones", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      yield* pay(alice)
      yield* watch
      yield* committedTo(10)
      chain.mineMany(80)
      chain.intercept = (batch) => {
        chain.failure = batch.length > 9 ? "refused" : undefined
      }
      // Each refusal is followed by a wait.
      yield* Effect.repeat(TestClock.adjust("10 seconds"), {
        until: () => Effect.map(health, (now) => now?.head === 90)
      })
      yield* committedTo(90)
    }).pipe(around(chain))
  })

  it.scoped("that is behind is waited for: nothing goes backwards", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      yield* pay(alice)
      yield* watch
      yield* committedTo(10)
      chain.mine(coin(alice, 1n))
      yield* second
      yield* committedTo(11)
      yield* forget(chain)
      chain.behind = 4
      yield* second
      expect(yield* reason).toContain("model is behind: its head is 7, and 11 has been read")
      expect(yield* scanned).toMatchObject({ head_number: 11 })
      expect((yield* ledger).map(({ canonical }) => canonical)).toEqual([1])
      chain.behind = 0
      chain.mine()
      yield* second
      expect((yield* upTo(12))?.reason).toBeUndefined()
    }).pipe(around(chain))
  })

  it.scoped.each<[string, (method: string, answer: unknown) => unknown]>([
    ["a block that is not there", (method, answer) => (method === "full" ? null : answer)],
    [
      "a block of another number",
      (method, answer) => (method === "full" ? { ...(answer as object), number: "0x1" } : answer)
    ],
    [
      "a block without transactions",
      (method, answer) => (method === "full" ? { ...(answer as object), transactions: null } : answer)
    ],
    ["a hash that is none", (method, answer) => (method === "full" ? { ...(answer as object), hash: "0x12" } : answer)],
    [
      "a broken link",
      (method, answer) => (method === "full" ? { ...(answer as object), parentHash: `0x${"0".repeat(64)}` } : answer)
    ],
    ["logs that are no list", (method, answer) => (method === "eth_getLogs" ? {} : answer)],
    [
      "logs of another branch",
      (method, answer) =>
        method === "eth_getLogs"
          ? (answer as Array<object>).map((log) => ({ ...log, blockHash: `0x${"1".repeat(64)}` }))
          : answer
    ],
    [
      "logs of another number",
      (method, answer) =>
        method === "eth_getLogs" ? (answer as Array<object>).map((log) => ({ ...log, blockNumber: "0xa" })) : answer
    ],
    ["a receipt that is not there", (method, answer) => (method === "eth_getTransactionReceipt" ? null : answer)],
    [
      "a receipt without a status",
      (method, answer) => (method === "eth_getTransactionReceipt" ? { ...(answer as object), status: "0x2" } : answer)
    ],
    [
      "a receipt of another block",
      (method, answer) =>
        method === "eth_getTransactionReceipt" ? { ...(answer as object), blockHash: `0x${"1".repeat(64)}` } : answer
    ]
  ])("that answers with %s changes nothing", ([, distort]) => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      yield* pay(alice)
      yield* watch
      yield* committedTo(10)
      yield* forget(chain)
      chain.distort = ({ method, params }, answer) => distort(params[1] === true ? "full" : method, answer)
      chain.mine(coin(alice, 1n), token(usdc, alice, 2n))
      yield* second
      expect(yield* reason).toContain("failed")
      yield* TestClock.adjust("1 minute")
      expect(yield* scanned).toMatchObject({ head_number: 10 })
      expect(yield* ledger).toEqual([])
      chain.distort = (_, answer) => answer
      yield* TestClock.adjust("10 seconds")
      yield* committedTo(11)
      expect((yield* ledger).map(({ amount }) => amount)).toEqual(["2", "1"])
    }).pipe(around(chain))
  })

  it.scoped("holds up no other chain", () => {
    const [broken, sound] = [new ModelChain(10), new ModelChain(10)]
    const chains = [withTokens, chainSettings({ chain: "base", rpcUrls: [Redacted.make("model:base")] })]
    broken.failure = "timeout"
    return Effect.gen(function* () {
      yield* pay(alice)
      yield* watch
      yield* committedTo(10)
      for (let i = 11; i < 15; i++) {
        sound.mine(coin(alice, 1n))
        yield* second
        expect((yield* committedTo(i)).network.chain).toBe("base")
      }
      const all = yield* Effect.flatMap(Chains, (it) => it.health)
      expect(all.map((one) => [one.chain, one.ready, one.head])).toEqual([
        ["ethereum", false, undefined],
        ["base", true, 14]
      ])
    }).pipe((test) =>
      Effect.flatMap(temporaryDatabase, (path) =>
        Effect.provide(
          test,
          world(path, chains, modelRpc({ "model:ethereum": broken, "model:base": sound }), notingSettlement)
        )
      )
    )
  })
})

describe("a restart", () => {
  it.scoped("goes on behind the checkpoint, also when the chain has another branch by then", () => {
    const chain = new ModelChain(10)
    const [kept, dropped, missed] = [coin(alice, 1n), coin(alice, 2n), coin(alice, 3n)]
    return Effect.gen(function* () {
      const path = yield* temporaryDatabase
      const alive = Effect.provide(world(path, [withTokens], modelRpc({ "model:ethereum": chain }), notingSettlement))
      yield* Effect.gen(function* () {
        yield* pay(alice)
        yield* watch
        yield* committedTo(10)
        chain.mine(kept)
        yield* second
        yield* committedTo(11)
        chain.mine(dropped)
        yield* second
        yield* committedTo(12)
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
        expect(full.map(({ params }) => Number(params[0]))).toEqual([12, 13, 14, 15])
      }).pipe(alive, Effect.scoped)
    })
  })
})

describe("the gas price", () => {
  it.scoped("is kept for two minutes, and asked for twice a minute", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      const chains = yield* Chains
      const network = { chain: "ethereum", mode: "test" } as const
      expect(yield* chains.gasPrice(network)).toBeUndefined()
      yield* pay(alice)
      yield* watch
      yield* committedTo(10)
      expect(yield* chains.gasPrice(network)).toBe(1_000_000_000n)
      expect(yield* chains.gasPrice({ ...network, mode: "live" })).toBeUndefined()
      const before = chain.count("eth_gasPrice")
      yield* Effect.repeatN(second, 59)
      expect(chain.count("eth_gasPrice") - before).toBe(2)
      chain.failure = "unreachable"
      yield* TestClock.adjust(Duration.seconds(119))
      expect(yield* chains.gasPrice(network)).toBe(1_000_000_000n)
      yield* TestClock.adjust("2 seconds")
      expect(yield* chains.gasPrice(network)).toBeUndefined()
    }).pipe(around(chain))
  })
})
