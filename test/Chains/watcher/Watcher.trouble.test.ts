import { describe, expect, it } from "@effect/vitest"
import { Cause, Context, Deferred, Effect, Exit, Fiber, Layer, Logger, Redacted, TestClock } from "effect"
import { Settlement } from "../../../src/Chains/ledger/SettlementTag.ts"
import { RpcError } from "../../../src/Chains/rpc/RpcError.ts"
import { codeExceptionsAsErrors, storeDefectsAsDefects } from "../../../src/Chains/watcher/Watcher.ts"
import { Chains } from "../../../src/Chains.ts"
import { StoreUnavailable } from "../../../src/Sql.ts"
import { clockTest } from "../../lib/scopedTest.ts"
import { temporaryDatabase } from "../../lib/store.ts"
import {
  alice,
  around,
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
import { aroundChains, onChain, onTwo } from "./onChain.ts"

const otherHash = `0x${"1".repeat(64)}`
const each = (over: object) => (logs: object) => (logs as ReadonlyArray<object>).map((log) => ({ ...log, ...over }))

describe("a provider in trouble", () => {
  onChain("is retried, and the watcher catches up in parts", function* (chain) {
    yield* watchedPayment(alice)
    chain.failure = "unreachable"
    for (let i = 0; i < 250; i++) chain.mine(...(i % 100 === 7 ? [coin(alice, BigInt(i)), token(usdc, alice, 1n)] : []))
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
  })

  onChain("that lags makes the watcher wait: nothing is orphaned", function* (chain) {
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
  })

  onChain("that lags orphans nothing while no address is watched", function* (chain) {
    yield* watch
    yield* committedTo(10)
    chain.behind = 4
    yield* pass("4 minutes")
    expect(yield* reason).toContain("its head is 6, and 10")
    expect(yield* scanned).toMatchObject({ head_number: 10 })
  })

  it.scoped.each<[string, call: string, answer: (answer: object) => unknown]>([
    ["no block", "block", () => null],
    ["a block with a wrong parent hash", "block", (block) => ({ ...block, parentHash: `0x${"0".repeat(64)}` })],
    ["logs that are no list", "eth_getLogs", () => ({})],
    ["logs of another branch", "eth_getLogs", each({ blockHash: otherHash })],
    ["worthless logs of another branch", "eth_getLogs", each({ blockHash: otherHash, data: `0x${"0".repeat(64)}` })],
    ["logs with another block number", "eth_getLogs", each({ blockNumber: "0xa" })],
    ["no receipt", "eth_getTransactionReceipt", () => null],
    ["a receipt of another block", "eth_getTransactionReceipt", (receipt) => ({ ...receipt, blockHash: otherHash })]
  ])("that returns %s changes nothing", ([, call, edit]) => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      yield* watchedPayment(alice)
      yield* forget(chain)
      chain.distort = ({ method, params }, answer) =>
        (params[1] === true ? "block" : method) === call ? edit(answer as object) : answer
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

  onChain("does not hide a defect", function* (chain) {
    chain.intercept = () => {
      throw new Error("a bug")
    }
    const exit = yield* Effect.exit(Effect.flatMap(Chains, (chains) => chains.run))
    expect(Exit.isFailure(exit) && Cause.isDie(exit.cause)).toBe(true)
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
    }).pipe(aroundChains(chains, { "model:ethereum": broken, "model:base": sound }))
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

const turnOf = Effect.map(Chains, (chains) => chains.exclusively({ chain: "ethereum", mode: "test" }))

describe("work on the rows of a network", () => {
  onChain("has exclusive access: the watcher waits until it is done", function* (chain) {
    const turn = yield* turnOf
    yield* watchedPayment(alice)
    yield* upTo(10)
    const done = yield* Deferred.make<string>()
    const begun = yield* Deferred.make<void>()
    const work = yield* Effect.fork(
      turn(() => Effect.zipRight(Deferred.succeed(begun, undefined), Deferred.await(done)))
    )
    yield* Deferred.await(begun)
    chain.batches.length = 0
    chain.mine(coin(alice, 1n))
    yield* TestClock.adjust("5 seconds")
    expect(chain.batches).toEqual([])
    yield* Deferred.succeed(done, "done")
    expect(yield* Fiber.join(work)).toBe("done")
    yield* committedTo(11)
    expect((yield* ledger).map(({ block_number }) => block_number)).toEqual([11])
  })

  onTwo("that fails because of a provider puts it into cooldown, and the next work gets another one", function* () {
    const turn = yield* turnOf
    yield* watchedPayment(alice)
    yield* upTo(10)
    const error = new RpcError({ host: "model", method: "any", reason: "timeout", detail: "as the test wants" })
    expect(yield* Effect.flip(turn(() => error))).toBe(error)
    expect((yield* health)?.providers.map(({ healthy }) => healthy)).toEqual([false, true])
    expect(yield* turn((_, { index }) => Effect.succeed(index))).toBe(1)
  })
})

it.scoped(
  "a single failed response is not logged as a warning; several in a row are, once, and so is the recovery",
  () => {
    const chain = new ModelChain(10)
    const said: Array<string> = []
    const noting = Logger.add(
      Logger.make(({ logLevel, message }) => {
        if (String(message).startsWith("the chain ")) said.push(`${logLevel.label} ${String(message)}`)
      })
    )
    return Effect.gen(function* () {
      yield* watchedPayment(alice)
      yield* upTo(10)
      // Every fifth batch.
      let batches = 0
      chain.intercept = () => {
        chain.failure = batches++ % 5 === 0 ? "unreachable" : undefined
      }
      yield* pass("1 minute")
      chain.intercept = () => {}
      expect(said).toEqual([])
      chain.failure = "unreachable"
      yield* pass("1 minute")
      expect(said).toEqual(["WARN the chain cannot be read"])
      chain.failure = undefined
      yield* pass("30 seconds")
      expect(said).toEqual(["WARN the chain cannot be read", "INFO the chain is read again"])
    }).pipe(Effect.provide(noting), around(chain))
  }
)

const { client } = new ModelChain(1)
const asExit = (work: Effect.Effect<unknown>) => Effect.exit(codeExceptionsAsErrors(client)(work))

describe("a defect while a response of a provider is processed", () => {
  it.effect.each([
    new RangeError("Maximum call stack size exceeded"),
    new TypeError("no function"),
    new SyntaxError("0x")
  ])("is the provider's failure if a value has an unexpected type: %s", (defect) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(codeExceptionsAsErrors(client)(Effect.die(defect)))
      expect(error).toMatchObject({ _tag: "RpcError", reason: "garbage", host: client.host })
      expect(error.message).toContain(defect.message)
      // The message may contain the provider's data: it is not for the public.
      expect(error.summary).not.toContain(defect.message)
    })
  )

  clockTest("ends the process if it is any other defect", function* () {
    const bug = new Error("a bug")
    expect(yield* asExit(Effect.die(bug))).toEqual(Exit.die(bug))
  })

  clockTest("ends the process if it comes from the database, whatever it is", function* () {
    const bug = new TypeError("a bug in a command")
    const { write } = storeDefectsAsDefects({ write: () => Effect.die(bug) })
    const exit = yield* asExit(Effect.orDie(write(Effect.void)))
    expect(Exit.isFailure(exit) && Cause.isDie(exit.cause)).toBe(true)
    expect(String(Exit.isFailure(exit) && Cause.pretty(exit.cause, { renderErrorCause: true }))).toContain(bug.message)
  })
})
