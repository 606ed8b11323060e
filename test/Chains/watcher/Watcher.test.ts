import { describe, expect, it } from "@effect/vitest"
import { Clock, Duration, Effect, Queue, Redacted } from "effect"
import { WatchedAddresses } from "../../../src/Chains/ledger/WatchedAddresses.ts"
import { intervalOf } from "../../../src/Chains/watcher/interval.ts"
import { Chains } from "../../../src/Chains.ts"
import { deadline } from "../../../src/Domain/Payment.ts"
import { Reader } from "../../../src/Sql.ts"
import { change } from "../../lib/rows.ts"
import { inTransaction } from "../../lib/store.ts"
import {
  address,
  alice,
  around,
  aroundSome,
  forget,
  health,
  next,
  readTo,
  second,
  usdc,
  watchedPayment,
  withTokens
} from "../around.ts"
import { coin, ModelChain, token } from "../ModelChain.ts"
import {
  chainSettings,
  committedTo,
  end,
  insertPayment,
  ledger,
  pass,
  pay,
  paymentById,
  until,
  watch
} from "../world.ts"
import { aroundChains, onChain } from "./onChain.ts"

describe("the watcher", () => {
  onChain("requests one header while no address is watched, and everything once one is", function* (chain) {
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
  })

  onChain("skips nothing when an address is added between the head and the range", function* (chain) {
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
  })

  onChain("filters logs by receivers while they are few", function* (chain) {
    const matchSet = yield* WatchedAddresses
    const topics = () =>
      chain.batches
        .flat()
        .filter((call) => call.method === "eth_getLogs")
        .map((call) => (call.params[0] as { topics: ReadonlyArray<unknown> }).topics.map((one) => [one].flat().length))
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
  })

  onChain("polls every second while a payment is open, and every four minutes when none is", function* (chain) {
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
  })

  onChain("polls soon, when no payment is open, while a sweep of balances is under way", function* (chain) {
    const matchSet = yield* WatchedAddresses
    matchSet.add("test", alice)
    yield* watch
    yield* committedTo(10)
    const looks = () => chain.batches.filter(([call]) => call?.params[0] === "latest").length
    const before = looks()
    // The first sweep has done the ended payments; the page that follows, of skipped addresses, is the last one.
    yield* second
    yield* second
    expect(looks() - before).toBe(1)
    yield* Effect.repeatN(second, 199)
    expect(looks() - before).toBe(1)
  })
})

it.scoped(
  "a chain without open payments is polled every two minutes while others have some, and at once when one is created",
  () => {
    const [busy, aside] = [new ModelChain(10), new ModelChain(10)]
    const chains = [withTokens, chainSettings({ chain: "base", rpcUrls: [Redacted.make("model:base")] })]
    const looks = (chain: ModelChain) => chain.batches.filter(([call]) => call?.params[0] === "latest").length
    return Effect.gen(function* () {
      yield* watchedPayment(alice)
      yield* committedTo(10)
      const before = [looks(busy), looks(aside)]
      yield* Effect.repeatN(second, 239)
      expect([looks(busy), looks(aside)].map((now, i) => now - (before[i] ?? 0))).toEqual([240, 2])
      yield* pay(address(2), { chain: "base" })
      aside.mine()
      yield* committedTo(11)
    }).pipe(aroundChains(chains, { "model:ethereum": busy, "model:base": aside }))
  }
)

it.each([
  ["3 seconds", [3, 15, 120, 240]],
  ["100 millis", [0.1, 15, 120, 240]],
  // As configured, where that is longer.
  ["20 seconds", [20, 20, 120, 240]],
  ["1 hour", [3_600, 3_600, 3_600, 3_600]]
] as const)("with a poll interval of %s the intervals are %j seconds", (pollInterval, seconds) => {
  const chain = chainSettings({ pollInterval: Duration.decode(pollInterval) })
  const activities = ["hot", "open", "elsewhere", "idle"] as const
  expect(activities.map((activity) => intervalOf(chain, activity) / 1000)).toEqual(seconds)
})

describe("a chain whose open payments are old", () => {
  const network = { chain: "ethereum", mode: "test" } as const
  const looks = (chain: ModelChain) => chain.batches.filter(([call]) => call?.params[0] === "latest").length

  /** Ticks in so many seconds. */
  const ticksIn = Effect.fnUntraced(function* (chain: ModelChain, seconds: number) {
    const before = looks(chain)
    yield* pass(Duration.seconds(seconds))
    return looks(chain) - before
  })

  /** Of one payment, which is open for another 45 minutes. */
  const aged = Effect.fnUntraced(function* (chain: ModelChain) {
    const { id } = yield* watchedPayment(alice)
    yield* pass("14 minutes")
    expect(yield* ticksIn(chain, 59)).toBe(59)
    yield* pass("16 seconds")
    return (yield* paymentById(id)) ?? (yield* Effect.dieMessage("the payment is gone"))
  })

  onChain("is polled every 15 seconds, and counts as ready meanwhile", function* (chain) {
    yield* aged(chain)
    const tags = () => chain.calls.filter(({ params }) => params[0] === "finalized").length
    const before = tags()
    expect(yield* ticksIn(chain, 600)).toBe(40)
    // What becomes deep is read again every minute, as on any chain with open payments.
    expect(tags() - before).toBe(10)
    yield* pass("14 seconds")
    expect(yield* health).toMatchObject({ ready: true, lagBlocks: 0 })
    chain.mine(coin(alice, 5n))
    yield* second
    yield* committedTo(11)
    expect((yield* ledger).map(({ amount }) => amount)).toEqual(["5"])
  })

  onChain("compares balances at each poll, though polls are not exactly apart", { chain: "base" }, function* (chain) {
    yield* watchedPayment(alice, { chain: "base" })
    yield* pass("16 minutes")
    let looks = 0
    chain.delay = ([call]) =>
      call?.params[0] === "latest" && looks++ % 2 === 0 ? Effect.sleep("40 millis") : Effect.void
    const before = chain.count("eth_getBalance")
    yield* pass("10 minutes")
    expect(chain.count("eth_getBalance") - before).toBe(40)
  })

  onChain("was polled at its poll interval for 15 minutes after a start: they might be young", function* (chain) {
    yield* inTransaction(insertPayment({ address: alice, chain: "ethereum", expiresAt: 3_600_000 }))
    ;(yield* WatchedAddresses).add("test", alice)
    yield* watch
    yield* committedTo(10)
    expect(yield* ticksIn(chain, 899)).toBe(899)
    yield* pass("16 seconds")
    expect(yield* ticksIn(chain, 60)).toBe(4)
  })

  onChain("is polled at once, and for 15 minutes at its poll interval, when a payment is created", function* (chain) {
    yield* aged(chain)
    chain.mine()
    yield* pay(address(2))
    yield* committedTo(11)
    expect(yield* ticksIn(chain, 899)).toBe(899)
    yield* pass("15 seconds")
    expect(yield* ticksIn(chain, 60)).toBe(4)
  })

  onChain("is read first when a payment is about to be created: older money does not count", function* (chain) {
    yield* aged(chain)
    chain.mineMany(5)
    yield* (yield* Chains).refresh(network)
    expect((yield* pay(address(2))).createdHead).toBe(15)
  })

  onChain("is polled at once, and for half a minute at its poll interval, when its page is viewed", function* (chain) {
    yield* aged(chain)
    const { viewed } = yield* Chains
    chain.mine()
    viewed(network)
    yield* committedTo(11)
    expect(yield* ticksIn(chain, 15)).toBe(15)
    viewed(network)
    expect(yield* ticksIn(chain, 29)).toBe(29)
    yield* pass("15 seconds")
    expect(yield* ticksIn(chain, 60)).toBe(4)
  })

  onChain("is polled at its poll interval while money is not final", function* (chain) {
    const { id } = yield* aged(chain)
    yield* change("UPDATE payments SET status = 'detecting' WHERE id = ?", id)
    yield* pass("15 seconds")
    expect(yield* ticksIn(chain, 60)).toBe(60)
    yield* change("UPDATE payments SET status = 'pending' WHERE id = ?", id)
    yield* pass("15 seconds")
    expect(yield* ticksIn(chain, 60)).toBe(4)
  })

  onChain("is polled at its poll interval from a deadline on, until the payment has ended", function* (chain) {
    const payment = yield* aged(chain)
    yield* pass(deadline(payment) - (yield* Clock.currentTimeMillis) - 30_000)
    expect(yield* ticksIn(chain, 15)).toBe(1)
    yield* pass("15 seconds")
    expect(yield* ticksIn(chain, 60)).toBe(60)
    yield* end(payment.id, 1)
    yield* second
    expect(yield* ticksIn(chain, 239)).toBe(0)
  })

  onChain("is so by its own time, where that is ahead of this machine's", function* (chain) {
    const payment = yield* aged(chain)
    // Blocks are ten seconds apart.
    chain.mineMany(deadline(payment) / 10_000 - chain.height)
    yield* pass("15 seconds")
    yield* committedTo(chain.height)
    expect(yield* ticksIn(chain, 60)).toBe(60)
  })
})

it.scoped.each(["ethereum", "base"] as const)("no logs are requested on %s while no token is configured", (chain) => {
  const model = new ModelChain(10)
  return Effect.gen(function* () {
    yield* watchedPayment(alice, { chain })
    expect(model.count("eth_getLogs")).toBe(0)
  }).pipe(around(model, chainSettings({ chain })))
})

onChain("a head that follows the last scanned block takes one call, any other two", function* (chain) {
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
  // The head may move by one and by two blocks in turn: by more two polls ago, and the full batch comes first.
  yield* next(chain)
  expect(looks()).toEqual([1])
  chain.mineMany(2)
  yield* readTo(16)
  expect(looks()).toEqual([2])
  expect((yield* ledger).map(({ amount }) => amount)).toEqual(["5"])
})

it.scoped.each([
  ["is corroborated at once where no other provider is configured", 1, 1],
  ["waits for another provider where one is configured", 2, 0]
] as const)("a receipt %s", ([, count, corroborated]) => {
  const first = new ModelChain(10)
  const other = first.twin()
  return Effect.gen(function* () {
    yield* watchedPayment(alice, { currency: "USDC" })
    other.failure = "unreachable"
    yield* next(first, token(usdc, alice, 5n))
    const reader = yield* Reader
    expect(yield* reader.all("SELECT corroborated FROM receipts")).toEqual([{ corroborated }])
  }).pipe(aroundSome([first, other].slice(0, count)))
})

onChain("the gas price is read on demand, at most twice a minute, and kept for two minutes", function* (chain) {
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
})

it.scoped("two modes of a chain are read separately, each for its own payments, also through a reorg", () => {
  const [test, live] = [new ModelChain(10), new ModelChain(10)]
  live.chainId = 1
  const ofLive = { ...withTokens, mode: "live" as const, chainId: 1, rpcUrls: [Redacted.make("model:live")] }
  const [tested, lived] = [address(1), address(2)]
  const receipts = Effect.flatMap(Reader, (reader) =>
    reader.all("SELECT mode, address, amount, canonical FROM receipts ORDER BY mode")
  )
  const receipt = (mode: string, to: string, amount: string, canonical = 1) => ({
    ...{ mode, amount, canonical },
    address: to.toLowerCase()
  })
  const readTo = (head: number) =>
    until(
      Effect.flatMap(Chains, (all) => all.health),
      (all) => all.every((one) => one.head === head && one.lagBlocks === 0)
    )
  return Effect.gen(function* () {
    yield* pay(tested)
    yield* pay(lived, { mode: "live" })
    yield* watch
    yield* readTo(10)
    // Money on one network does not count on the other.
    test.mine(coin(tested, 1n), coin(lived, 2n))
    live.mine(coin(tested, 3n), coin(lived, 4n))
    yield* second
    yield* readTo(11)
    expect(yield* receipts).toEqual([receipt("live", lived, "4"), receipt("test", tested, "1")])
    test.rollback(1)
    test.mineMany(2)
    live.mine()
    yield* second
    yield* readTo(12)
    expect(yield* receipts).toEqual([receipt("live", lived, "4"), receipt("test", tested, "1", 0)])
  }).pipe(aroundChains([withTokens, ofLive], { "model:ethereum": test, "model:live": live }))
})
