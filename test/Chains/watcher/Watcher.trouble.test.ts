import { describe, expect, it } from "@effect/vitest"
import { Cause, Context, Effect, Exit, Layer, Redacted } from "effect"
import { Settlement } from "../../../src/Chains/ledger/SettlementTag.ts"
import { Chains } from "../../../src/Chains.ts"
import { StoreUnavailable } from "../../../src/Sql.ts"
import { temporaryDatabase } from "../../lib/store.ts"
import {
  alice,
  around,
  aroundTwo,
  forget,
  health,
  readTo,
  reason,
  second,
  upTo,
  usdc,
  watchedPayment,
  withTokens
} from "../around.ts"
import { coin, ModelChain, modelRpc, token } from "../ModelChain.ts"
import {
  chainSettings,
  committedTo,
  ledger,
  nextCommit,
  notingSettlement,
  pass,
  scanned,
  watch,
  world
} from "../world.ts"

describe("a provider in trouble", () => {
  it.scoped("is retried, and the watcher catches up in parts", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      yield* watchedPayment(alice)
      chain.failure = "unreachable"
      for (let i = 0; i < 250; i++)
        chain.mine(...(i % 100 === 7 ? [coin(alice, BigInt(i)), token(usdc, alice, 1n)] : []))
      yield* pass("2 minutes")
      expect(yield* health).toMatchObject({ ready: false, head: 10 })
      expect((yield* health)?.reason).toContain("any at model failed (unreachable)")
      const tries = chain.batches.length
      yield* pass("1 minute")
      expect(chain.batches.length - tries).toBeGreaterThanOrEqual(5)
      chain.failure = undefined
      yield* pass("10 seconds")
      const parts = [yield* nextCommit, yield* nextCommit, yield* nextCommit]
      expect(parts.map((part) => part.head.number)).toEqual([110, 210, 260])
      expect((yield* ledger).map(({ block_number }) => block_number)).toEqual([18, 18, 118, 118, 218, 218])
      expect(yield* upTo(260)).toMatchObject({ ready: true, head: 260 })
    }).pipe(around(chain))
  })

  it.scoped("that refuses large parts gets smaller ones", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      yield* watchedPayment(alice)
      chain.mineMany(80)
      chain.intercept = (batch) => {
        chain.failure = batch.length > 9 ? "refused" : undefined
      }
      // Each refusal is followed by a wait.
      yield* Effect.repeat(pass("10 seconds"), {
        until: () => Effect.map(health, (now) => now?.head === 90)
      })
      yield* committedTo(90)
    }).pipe(around(chain))
  })

  it.scoped("that starts to serve another chain goes into cooldown, and the other one serves", () => {
    const first = new ModelChain(10)
    const other = first.twin()
    return Effect.gen(function* () {
      yield* watchedPayment(alice, { currency: "USDC" })
      first.chainId = 1
      first.distort = ({ method }, answer) =>
        method === "eth_getBlockByNumber"
          ? { ...(answer as object), hash: `0x${"1".repeat(64)}`, parentHash: `0x${"2".repeat(64)}` }
          : answer
      first.mine(token(usdc, alice, 5n))
      yield* Effect.raceFirst(committedTo(11), Effect.forever(second))
      expect((yield* ledger).map(({ amount, canonical }) => [amount, canonical])).toEqual([["5", 1]])
      expect((yield* health)?.providers[0]?.reason).toContain("serves chain 1, and chains.ethereum.test is chain 77")
    }).pipe(aroundTwo(first, other))
  })

  it.scoped("that lags makes the watcher wait: nothing is orphaned", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      yield* watchedPayment(alice)
      chain.mine(coin(alice, 1n))
      yield* readTo(11)
      yield* forget(chain)
      chain.behind = 4
      yield* second
      expect(yield* reason).toContain("(behind): its head is 7, and 11, which it lacks, has been read")
      expect(yield* scanned).toMatchObject({ head_number: 11 })
      expect((yield* ledger).map(({ canonical }) => canonical)).toEqual([1])
      chain.behind = 0
      chain.mine()
      yield* second
      expect((yield* upTo(12))?.reason).toBeUndefined()
    }).pipe(around(chain))
  })

  it.scoped("that lags orphans nothing while no address is watched", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      yield* watch
      yield* committedTo(10)
      chain.behind = 4
      yield* pass("4 minutes")
      expect(yield* reason).toContain("its head is 6, and 10")
      expect(yield* scanned).toMatchObject({ head_number: 10 })
    }).pipe(around(chain))
  })

  it.scoped.each<[string, (method: string, answer: unknown) => unknown]>([
    ["a missing block", (method, answer) => (method === "full" ? null : answer)],
    [
      "a block with another number",
      (method, answer) => (method === "full" ? { ...(answer as object), number: "0x1" } : answer)
    ],
    [
      "a block without transactions",
      (method, answer) => (method === "full" ? { ...(answer as object), transactions: null } : answer)
    ],
    ["a malformed hash", (method, answer) => (method === "full" ? { ...(answer as object), hash: "0x12" } : answer)],
    [
      "a wrong parent hash",
      (method, answer) => (method === "full" ? { ...(answer as object), parentHash: `0x${"0".repeat(64)}` } : answer)
    ],
    ["logs that are not a list", (method, answer) => (method === "eth_getLogs" ? {} : answer)],
    [
      "logs of another branch",
      (method, answer) =>
        method === "eth_getLogs"
          ? (answer as Array<object>).map((log) => ({ ...log, blockHash: `0x${"1".repeat(64)}` }))
          : answer
    ],
    [
      "logs with another block number",
      (method, answer) =>
        method === "eth_getLogs" ? (answer as Array<object>).map((log) => ({ ...log, blockNumber: "0xa" })) : answer
    ],
    ["a missing receipt", (method, answer) => (method === "eth_getTransactionReceipt" ? null : answer)],
    [
      "a receipt without a status",
      (method, answer) => (method === "eth_getTransactionReceipt" ? { ...(answer as object), status: "0x2" } : answer)
    ],
    [
      "a receipt of another block",
      (method, answer) =>
        method === "eth_getTransactionReceipt" ? { ...(answer as object), blockHash: `0x${"1".repeat(64)}` } : answer
    ]
  ])("that returns %s changes nothing", ([, distort]) => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      yield* watchedPayment(alice)
      yield* forget(chain)
      chain.distort = ({ method, params }, answer) => distort(params[1] === true ? "full" : method, answer)
      chain.mine(coin(alice, 1n), token(usdc, alice, 2n))
      yield* second
      expect(yield* reason).toContain("failed")
      yield* pass("1 minute")
      expect(yield* scanned).toMatchObject({ head_number: 10 })
      expect(yield* ledger).toEqual([])
      chain.distort = (_, answer) => answer
      yield* pass("10 seconds")
      yield* committedTo(11)
      expect((yield* ledger).map(({ amount }) => amount)).toEqual(["2", "1"])
    }).pipe(around(chain))
  })

  it.scoped("does not hide a defect", () => {
    const chain = new ModelChain(10)
    chain.intercept = () => {
      throw new Error("a bug")
    }
    return Effect.gen(function* () {
      const exit = yield* Effect.exit(Effect.flatMap(Chains, (chains) => chains.run))
      expect(Exit.isFailure(exit) && Cause.isDie(exit.cause)).toBe(true)
    }).pipe(around(chain))
  })

  it.scoped("does not delay other chains", () => {
    const [broken, sound] = [new ModelChain(10), new ModelChain(10)]
    const chains = [withTokens, chainSettings({ chain: "base", rpcUrls: [Redacted.make("model:base")] })]
    broken.failure = "timeout"
    return Effect.gen(function* () {
      yield* watchedPayment(alice, { chain: "base" })
      for (let i = 11; i < 15; i++) {
        sound.mine(coin(alice, 1n))
        expect((yield* readTo(i)).network.chain).toBe("base")
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

it.scoped("a failed write is retried, and nothing is stored in part", () => {
  const chain = new ModelChain(10)
  let full = false
  const settlement = Layer.map(notingSettlement, (context) => {
    const noting = Context.get(context, Settlement)
    return Context.make(Settlement, {
      ...noting,
      settle: (scan, touched) =>
        full
          ? Effect.fail(new StoreUnavailable({ code: "SQLITE_FULL", message: "full" }))
          : noting.settle(scan, touched)
    })
  })
  return Effect.flatMap(temporaryDatabase, (path) =>
    Effect.gen(function* () {
      yield* watchedPayment(alice)
      full = true
      chain.mine(coin(alice, 1n))
      yield* second
      expect(yield* reason).toBe("full")
      expect(yield* ledger).toEqual([])
      expect(yield* scanned).toMatchObject({ head_number: 10 })
      full = false
      yield* readTo(11)
      expect((yield* ledger).map(({ amount }) => amount)).toEqual(["1"])
    }).pipe(Effect.provide(world(path, [withTokens], modelRpc({ "model:ethereum": chain }), settlement)))
  )
})
