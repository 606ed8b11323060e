import { expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { Chains } from "../../../src/Chains.ts"
import { Reader } from "../../../src/Sql.ts"
import { temporaryDatabase } from "../../lib/store.ts"
import { address, around, reason, second, withTokens } from "../around.ts"
import { coin, ModelChain, modelRpc } from "../ModelChain.ts"
import { committedTo, notingSettlement, pass, pay, scanned, until, watch, world } from "../world.ts"

it.scoped("two modes of a chain are read separately, each for its own payments, also through a reorg", () => {
  const [test, live] = [new ModelChain(10), new ModelChain(10)]
  live.chainId = 1
  const chains = [
    withTokens,
    { ...withTokens, mode: "live" as const, chainId: 1, rpcUrls: [Redacted.make("model:live")] }
  ]
  const rpc = modelRpc({ "model:ethereum": test, "model:live": live })
  const [tested, lived] = [address(1), address(2)]
  const receipts = Effect.flatMap(Reader, (reader) =>
    reader.all("SELECT mode, address, amount, canonical FROM receipts ORDER BY mode, amount")
  )
  const receipt = (mode: string, to: string, amount: string, canonical = 1) => ({
    mode,
    address: to.toLowerCase(),
    amount,
    canonical
  })
  const heads = Effect.map(
    Effect.flatMap(Chains, (all) => all.health),
    (all) => all.map(({ head, lagBlocks }) => (lagBlocks === 0 ? head : undefined))
  )
  const read = (ofTest: number, ofLive: number) =>
    until(heads, ([now, nowLive]) => now === ofTest && nowLive === ofLive)
  return Effect.flatMap(temporaryDatabase, (path) =>
    Effect.gen(function* () {
      yield* pay(tested)
      yield* pay(lived, { mode: "live" })
      yield* watch
      yield* read(10, 10)
      // Money on one network does not count on the other.
      test.mine(coin(tested, 1n), coin(lived, 2n))
      live.mine(coin(tested, 3n), coin(lived, 4n))
      yield* second
      yield* read(11, 11)
      const both = [receipt("live", lived, "4"), receipt("test", tested, "1")]
      expect(yield* receipts).toEqual(both)
      test.rollback(1)
      test.mineMany(2)
      live.mine()
      yield* second
      yield* read(12, 12)
      expect(yield* receipts).toEqual([receipt("live", lived, "4"), receipt("test", tested, "1", 0)])
    }).pipe(Effect.provide(world(path, chains, rpc, notingSettlement)))
  )
})

it.scoped("a chain that was restarted with the same id is not taken for the one read before", () => {
  const [before, anew] = [new ModelChain(10), new ModelChain(20)]
  anew.distort = ({ params: [number] }, answer) =>
    number === "0x0" ? { ...(answer as object), hash: `0x${"2".repeat(64)}` } : answer
  return Effect.flatMap(temporaryDatabase, (path) => {
    const run = (chain: ModelChain) =>
      Effect.provide(world(path, [withTokens], modelRpc({ "model:ethereum": chain }), notingSettlement))
    return Effect.gen(function* () {
      yield* Effect.zipRight(watch, committedTo(10)).pipe(run(before), Effect.scoped)
      yield* Effect.gen(function* () {
        yield* watch
        expect(yield* reason).toContain("its first block is 0x2222")
        yield* pass("1 minute")
        expect(yield* scanned).toMatchObject({ head_number: 10 })
      }).pipe(run(anew), Effect.scoped)
    })
  })
})

it.scoped("a chain without tokens that is read without full blocks requests no logs", () => {
  const chain = new ModelChain(10)
  return Effect.gen(function* () {
    yield* pay(address(1), { chain: "base" })
    yield* watch
    yield* committedTo(10)
    expect(chain.count("eth_getLogs")).toBe(0)
  }).pipe(around(chain, { ...withTokens, chain: "base", tokens: [], wrongTokens: [] }))
})
