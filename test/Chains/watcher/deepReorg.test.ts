import { describe, expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { Reader } from "../../../src/Sql.ts"
import { temporaryDatabase } from "../../lib/store.ts"
import {
  alice,
  around,
  aroundTwo,
  health,
  next,
  second,
  upTo,
  usdc,
  watchedPayment,
  withTokens,
  withTwo
} from "../around.ts"
import { ModelChain, modelRpc, token } from "../ModelChain.ts"
import { ledger, notingSettlement, pass, scanned, until, world } from "../world.ts"

describe("a reorg that is implausibly deep", () => {
  const logHashes = Effect.map(ledger, (rows) => rows.map(({ amount, canonical }) => [amount, canonical]))
  const deep = (chain: ModelChain) =>
    Effect.gen(function* () {
      yield* watchedPayment(alice)
      yield* next(chain, token(usdc, alice, 5n))
      for (let i = 0; i < 6; i++) yield* next(chain)
    })
  /** The same chain up to block 10, and another one above. */
  const forked = (chain: ModelChain) => {
    chain.rollback(chain.height - 10)
    chain.mineMany(8)
  }

  it.scoped("is refused from one provider while another has the old blocks", () => {
    const first = new ModelChain(10)
    const other = new ModelChain(-1, [...first.blocks])
    return Effect.gen(function* () {
      yield* deep(first)
      other.blocks.push(...first.blocks.slice(11))
      other.mine()
      forked(first)
      yield* second
      yield* until(scanned, (now) => now?.head_hash === other.blocks.at(-1)?.hash)
      expect(yield* logHashes).toEqual([["5", 1]])
      const now = yield* until(health, (state) => state?.providers[0]?.healthy === false)
      expect(now?.providers[0]?.reason).toContain("inconsistent")
    }).pipe(aroundTwo(first, other))
  })

  it.scoped("is refused while another provider does not respond and a third one has the old blocks", () => {
    const first = new ModelChain(10)
    const third = new ModelChain(-1, [...first.blocks])
    const silent = first.twin()
    const providers = { "model:first": first, "model:silent": silent, "model:third": third }
    const settings = { ...withTwo, rpcUrls: Object.keys(providers).map((url) => Redacted.make(url)) }
    return Effect.gen(function* () {
      yield* deep(first)
      third.blocks.push(...first.blocks.slice(11))
      third.mine()
      forked(first)
      silent.intercept = ([call]) => {
        silent.failure = call?.method === "eth_getBlockByNumber" ? "timeout" : undefined
      }
      yield* second
      yield* until(scanned, (now) => now?.head_hash === third.blocks.at(-1)?.hash)
      expect(yield* logHashes).toEqual([["5", 1]])
    }).pipe((test) =>
      Effect.flatMap(temporaryDatabase, (path) =>
        Effect.provide(test, world(path, [settings], modelRpc(providers), notingSettlement))
      )
    )
  })

  it.scoped("is followed when another provider has the same blocks", () => {
    const first = new ModelChain(10)
    return Effect.gen(function* () {
      yield* deep(first)
      forked(first)
      yield* second
      yield* until(scanned, (now) => now?.head_hash === first.blocks.at(-1)?.hash)
      expect(yield* logHashes).toEqual([["5", 0]])
    }).pipe(aroundTwo(first, first.twin()))
  })

  it.scoped("is followed if there is only one provider", () => {
    const first = new ModelChain(10)
    const other = first.twin()
    return Effect.gen(function* () {
      yield* deep(first)
      other.failure = "unreachable"
      forked(first)
      yield* second
      yield* until(scanned, (now) => now?.head_hash === first.blocks.at(-1)?.hash)
      expect(yield* logHashes).toEqual([["5", 0]])
    }).pipe(aroundTwo(first, other))
  })
})

it.scoped("a reorg as deep as the confirmations is followed at once, from any provider", () => {
  const first = new ModelChain(10)
  const lagging = new ModelChain(-1, [...first.blocks])
  return Effect.gen(function* () {
    yield* watchedPayment(alice)
    yield* next(first, token(usdc, alice, 5n))
    yield* next(first)
    yield* next(first)
    lagging.blocks.push(...first.blocks.slice(11))
    // It is no longer in cooldown for the blocks that it lacked.
    yield* pass("1 minute")
    first.rollback(3)
    first.mineMany(4)
    yield* second
    yield* until(scanned, (now) => now?.head_hash === first.blocks.at(-1)?.hash)
    expect((yield* health)?.providers[0]).toMatchObject({ healthy: true })
  }).pipe(aroundTwo(first, lagging))
})

it.scoped("a reorg that is longer than the block range, and than 32 blocks, is read in parts", () => {
  const chain = new ModelChain(10)
  return Effect.gen(function* () {
    yield* watchedPayment(alice, { chain: "base", currency: "USDC" })
    yield* next(chain, token(usdc, alice, 5n))
    chain.intercept = (batch) => {
      const [filter] = batch.flatMap(({ method, params }) =>
        method === "eth_getLogs" ? params : []
      ) as ReadonlyArray<{
        fromBlock?: string
        toBlock?: string
      }>
      chain.failure = Number(filter?.toBlock) - Number(filter?.fromBlock) >= 40 ? "range" : undefined
    }
    chain.mineMany(60)
    for (let i = 0; i < 20; i++) yield* second
    yield* upTo(71)
    chain.rollback(61)
    chain.mineMany(61)
    chain.mine(token(usdc, alice, 6n))
    for (let i = 0; i < 20; i++) yield* second
    yield* upTo(72)
    expect((yield* ledger).map(({ amount, canonical }) => [amount, canonical])).toEqual([
      ["5", 0],
      ["6", 1]
    ])
  }).pipe(around(chain, { ...withTokens, chain: "base", confirmations: 100 }))
})

describe("a reorg of one block", () => {
  /** One provider has replaced block 12, by `forked`, and the other one has not seen it. */
  const replacedAbove = (finalized: number) =>
    Effect.gen(function* () {
      const forked = new ModelChain(10)
      const lagging = new ModelChain(-1, [...forked.blocks])
      const test = Effect.gen(function* () {
        yield* watchedPayment(alice)
        yield* next(forked)
        yield* next(forked, token(usdc, alice, 5n))
        forked.finalized = finalized
        yield* pass("1 minute")
        yield* until(tags, (row) => row?.finalized === finalized)
        yield* upTo(12)
        lagging.blocks.push(...forked.blocks.slice(11))
        forked.rollback(1)
        forked.mineMany(2)
        yield* second
        const [first] = yield* Effect.map(
          until(
            Effect.zip(health, scanned),
            ([now, scan]) => now?.providers[0]?.healthy === false || scan?.head_number === 13
          ),
          ([now]) => now?.providers ?? []
        )
        return { healthy: first?.healthy, ledger: (yield* ledger).map(({ canonical }) => canonical) }
      })
      return yield* test.pipe(aroundTwo(forked, lagging))
    })
  const tags = Effect.flatMap(Reader, (reader) =>
    reader.get<{ finalized: number | null }>("SELECT finalized_number AS finalized FROM scans")
  )

  it.scoped("above the final blocks is followed at once, from any provider", () =>
    Effect.map(replacedAbove(11), (found) => expect(found).toEqual({ healthy: true, ledger: [0] }))
  )

  it.scoped("of a final block is refused from one provider alone", () =>
    Effect.map(replacedAbove(12), (found) => expect(found).toEqual({ healthy: false, ledger: [1] }))
  )
})
