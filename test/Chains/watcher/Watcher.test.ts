import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect, Queue, Redacted } from "effect"
import { WatchedAddresses } from "../../../src/Chains/ledger/WatchedAddresses.ts"
import { Chains } from "../../../src/Chains.ts"
import { temporaryDatabase } from "../../lib/store.ts"
import {
  address,
  alice,
  around,
  bridged,
  forget,
  lookAlike,
  next,
  readTo,
  second,
  usdc,
  watchedPayment,
  withTokens
} from "../around.ts"
import { coin, ModelChain, modelRpc, token } from "../ModelChain.ts"
import { chainSettings, committedTo, end, ledger, notingSettlement, pass, pay, watch, world } from "../world.ts"

describe("the watcher", () => {
  it.scoped("stores native and token transfers at their positions, and nothing that does not count", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      const payment = yield* watchedPayment(alice)
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
      const commit = yield* readTo(11)
      expect(commit.touched).toEqual([payment.id])
      const place = (position: string) => position.replace(/:0x[0-9a-f]{64}/, "")
      const rows = (yield* ledger).map((row) => [place(row.position), row.currency, row.amount, row.block_hash])
      // Positions are ordered by transaction hash first.
      expect(rows.sort()).toEqual([
        ["log:USDC.e:6:0", "USDC.e", "6", hash],
        ["log:USDC:5:0", "USDC", "5", hash],
        ["tx:5", "ETH", "8", hash]
      ])
    }).pipe(around(chain))
  })

  it.scoped("requests one header while no address is watched, and everything once one is", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      yield* watch
      yield* committedTo(10)
      yield* forget(chain)
      chain.batches.length = 0
      chain.mineMany(5)
      yield* pass("239 seconds")
      expect(chain.batches).toEqual([])
      yield* readTo(15)
      expect(chain.batches.map((batch) => batch.map((call) => call.method))).toEqual([
        ["eth_getBlockByNumber", "eth_chainId"]
      ])
      // Mined before the address existed.
      chain.mineMany(2)
      const payment = yield* pay(alice)
      expect(payment.createdHead).toBe(15)
      yield* committedTo(17)
      expect(chain.count("eth_getLogs")).toBe(1)
      chain.mine(coin(alice, 1n))
      yield* readTo(18)
      expect((yield* ledger).map(({ block_number }) => block_number)).toEqual([18])
    }).pipe(around(chain))
  })

  it.scoped("skips nothing when an address is added between the head and the range", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      yield* watch
      yield* committedTo(10)
      const matchSet = yield* WatchedAddresses
      // The scanned block has been replaced, which an idle tick does not check.
      chain.rollback(1)
      chain.mineMany(2)
      // The batch of an idle tick is in flight; its head was mined before.
      chain.intercept = () => {
        chain.intercept = () => {}
        matchSet.add("test", alice)
      }
      yield* pass("4 minutes")
      yield* committedTo(11)
      expect(chain.count("eth_getLogs")).toBe(1)
    }).pipe(around(chain))
  })

  it.scoped("filters logs by receivers while they are few", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      const matchSet = yield* WatchedAddresses
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
      yield* readTo(11)
      expect(topics()).toEqual([[1, 1, 500], [1]])
      expect((yield* ledger).map(({ amount }) => amount)).toEqual(["3"])
    }).pipe(around(chain))
  })

  it.scoped("does not request the logs of all contracts when no token is configured", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      yield* watchedPayment(alice)
      expect(chain.count("eth_getLogs")).toBe(0)
    }).pipe(around(chain, chainSettings()))
  })

  it.scoped("polls every second while a payment is open, and every four minutes when none is", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      const payment = yield* watchedPayment(alice)
      for (let i = 11; i < 15; i++) {
        chain.mine()
        yield* readTo(i)
      }
      yield* end(payment.id, 1)
      chain.mine()
      yield* readTo(15)
      yield* forget(chain)
      chain.mine()
      yield* pass("239 seconds")
      expect(yield* Queue.size(chain.answered)).toBe(0)
      yield* second
      // Late money is seen too.
      yield* committedTo(16)
    }).pipe(around(chain))
  })
})

it.scoped(
  "a chain without open payments is polled every two minutes while others have some, and at once when one is created",
  () => {
    const [busy, aside] = [new ModelChain(10), new ModelChain(10)]
    const chains = [withTokens, chainSettings({ chain: "base", rpcUrls: [Redacted.make("model:base")] })]
    const rpc = modelRpc({ "model:ethereum": busy, "model:base": aside })
    return Effect.flatMap(temporaryDatabase, (path) =>
      Effect.gen(function* () {
        const looks = (chain: ModelChain) => chain.batches.filter(([call]) => call?.params[0] === "latest").length
        yield* watchedPayment(alice)
        yield* committedTo(10)
        const before = [looks(busy), looks(aside)]
        yield* Effect.repeatN(second, 239)
        expect([looks(busy), looks(aside)].map((now, i) => now - (before[i] ?? 0))).toEqual([240, 2])
        yield* pay(address(2), { chain: "base" })
        aside.mine()
        yield* committedTo(11)
      }).pipe(Effect.provide(world(path, chains, rpc, notingSettlement)))
    )
  }
)

it.scoped("a head that follows the last scanned block takes one call, any other two", () => {
  const chain = new ModelChain(10)
  return Effect.gen(function* () {
    yield* watchedPayment(alice)
    yield* second
    const looks = () => {
      const found = chain.batches.filter(([call]) => call?.params[0] === "latest").map(({ length }) => length)
      chain.batches.length = 0
      return found
    }
    looks()
    yield* second
    expect(looks()).toEqual([1])
    yield* next(chain, coin(alice, 5n))
    expect(looks()).toEqual([1])
    chain.mineMany(2)
    yield* readTo(13)
    expect(looks()).toEqual([1, 2])
    // If the head moves by more, the full batch comes first.
    chain.mineMany(2)
    yield* readTo(15)
    expect(looks()).toEqual([2])
    expect((yield* ledger).map(({ amount }) => amount)).toEqual(["5"])
  }).pipe(around(chain))
})

describe("the gas price", () => {
  it.scoped("is read on demand, at most twice a minute, and kept for two minutes", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      const chains = yield* Chains
      const network = { chain: "ethereum", mode: "test" } as const
      yield* watchedPayment(alice)
      yield* pass("1 minute")
      expect(chain.count("eth_gasPrice")).toBe(0)
      expect(yield* chains.gas(network)).toMatchObject({ price: 1_000_000_000n, l1Fee: 0n })
      expect(yield* chains.gas({ ...network, mode: "live" })).toBeUndefined()
      yield* Effect.repeatN(Effect.zipRight(second, chains.gas(network)), 59)
      expect(chain.count("eth_gasPrice")).toBe(3)
      chain.failure = "unreachable"
      yield* pass(Duration.seconds(119))
      expect(yield* chains.gas(network)).toMatchObject({ price: 1_000_000_000n, l1Fee: 0n })
      yield* pass("2 seconds")
      expect(yield* chains.gas(network)).toBeUndefined()
    }).pipe(around(chain))
  })

  it.scoped("is unknown without the data fee of an OP-stack chain, and payments are still seen", () => {
    const chain = new ModelChain(10)
    return Effect.gen(function* () {
      const chains = yield* Chains
      yield* watch
      yield* committedTo(10)
      // This node refuses contract calls.
      expect(yield* chains.gas({ chain: "base", mode: "test" })).toBeUndefined()
      expect(chain.count("eth_gasPrice")).toBe(1)
      expect(chain.count("eth_call")).toBe(1)
      chain.mineMany(2)
      yield* pass("4 minutes")
      yield* committedTo(12)
    }).pipe(around(chain, chainSettings({ chain: "base" })))
  })
})
