import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { Reader } from "../../../src/Sql.ts"
import { alice, around, aroundSome, health, next, second, upTo, usdc, watchedPayment, withTokens } from "../around.ts"
import { ModelChain, token } from "../ModelChain.ts"
import { ledger, pass, scanned, until } from "../world.ts"

const money = Effect.map(ledger, (rows) => rows.map(({ amount, canonical }) => [amount, canonical]))

/** A provider, and another one with blocks of its own above block 10. */
const twoBranches = () => {
  const forked = new ModelChain(10)
  return { forked, honest: new ModelChain(-1, [...forked.blocks]) }
}

/** The node does not respond when it is asked for a single block above block 10. */
const silentAbout = (chain: ModelChain) => {
  chain.intercept = ([call, ...more]) => {
    chain.failure = more.length === 0 && Number(call?.params[0]) > 10 ? "timeout" : undefined
  }
  return chain
}

describe("a reorg of blocks with their confirmations", () => {
  type Others = (nodes: ReturnType<typeof twoBranches>) => ReadonlyArray<ModelChain>
  it.scoped.each<[string, Others, canonical: number, isSilent?: boolean]>([
    [
      "is refused while one provider does not respond and a third one has the old blocks",
      ({ honest }) => [silentAbout(honest.twin()), honest],
      1
    ],
    ["is followed if another provider has the same blocks", ({ forked }) => [forked.twin()], 0],
    [
      "is followed if no other provider responds for the patience",
      ({ forked }) => [silentAbout(forked.twin())],
      0,
      true
    ]
  ])("%s", ([, others, canonical, isSilent]) => {
    const nodes = twoBranches()
    const { forked, honest } = nodes
    return Effect.gen(function* () {
      yield* watchedPayment(alice)
      yield* next(forked, token(usdc, alice, 5n))
      for (let i = 0; i < 6; i++) yield* next(forked)
      honest.blocks.push(...forked.blocks.slice(11))
      honest.mine()
      forked.rollback(7)
      forked.mineMany(8)
      yield* second
      if (isSilent) {
        expect(yield* money).toEqual([["5", 1]])
        for (let minute = 0; minute < 11; minute++) yield* pass("1 minute")
      }
      const [followed, refused] = canonical === 0 ? [forked, honest] : [honest, forked]
      yield* until(scanned, (now) => now?.head_hash === followed.blocks.at(-1)?.hash)
      expect(yield* money).toEqual([["5", canonical]])
      if (refused !== forked) return
      const now = yield* until(health, (state) => state?.providers[0]?.healthy === false)
      expect(now?.providers[0]?.reason).toContain("inconsistent")
    }).pipe(aroundSome([forked, ...others(nodes)]))
  })
})

it.scoped.each([
  ["a reorg of blocks without their confirmations is followed from any provider", { depth: 2, finalized: 10 }, true],
  ["a reorg of a block with its confirmations is refused from one provider alone", { depth: 3, finalized: 10 }, false],
  ["a reorg of a block above the final ones is followed at once, from any provider", { depth: 1, finalized: 12 }, true],
  ["a reorg of a final block is refused from one provider alone", { depth: 1, finalized: 13 }, false]
] as const)("%s", ([, { depth, finalized }, followed]) => {
  const { forked, honest: lagging } = twoBranches()
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

it.scoped.each([
  ["deeper than the provider's block range", { limit: 10, depth: 14 }],
  ["longer than the block range, and than 32 blocks", { limit: 40, depth: 61 }]
] as const)("a reorg that is %s is read in parts", ([, { depth, limit }]) => {
  const chain = new ModelChain(10)
  chain.intercept = (batch) => {
    const isTooMuch = batch.some(({ method, params: [of] }) => {
      const { fromBlock, toBlock } = (of ?? {}) as { fromBlock?: string; toBlock?: string }
      return method === "eth_getLogs" && fromBlock !== undefined && Number(toBlock) - Number(fromBlock) >= limit
    })
    chain.failure = isTooMuch ? "range" : undefined
  }
  const seconds = Effect.repeatN(second, 59)
  return Effect.gen(function* () {
    yield* watchedPayment(alice, { chain: "base", currency: "USDC" })
    yield* next(chain, token(usdc, alice, 5n))
    chain.mineMany(depth - 1)
    yield* seconds
    yield* upTo(10 + depth)
    chain.rollback(depth)
    chain.mineMany(depth)
    chain.mine(token(usdc, alice, 6n))
    yield* seconds
    yield* upTo(11 + depth)
    expect(yield* money).toEqual([
      ["5", 0],
      ["6", 1]
    ])
  }).pipe(around(chain, { ...withTokens, chain: "base", confirmations: 100 }))
})
