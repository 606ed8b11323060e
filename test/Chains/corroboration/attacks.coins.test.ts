import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { Settlement } from "../../../src/Chains/ledger/SettlementTag.ts"
import { Reader } from "../../../src/Sql.ts"
import { alice, aroundSomeReal, second, watchedPayment, withReceipts } from "../around.ts"
import { stateOf, untilOver } from "../lying.ts"
import { ModelChain } from "../ModelChain.ts"

// One provider lies about coins without a transaction: only what the honest providers have counts.

const seconds = (count: number) => Effect.repeatN(second, count - 1)

/** What an address holds at a block according to a node; undefined where the node does not respond. */
type Held = (block: number) => { readonly balance: number; readonly nonce?: number } | undefined

/** Nodes of one chain, one of which lies: each reports the given state of alice's address. */
const nodesOf = (count: number, place: number, honest: Held, lie: (liar: ModelChain) => Held) => {
  const liar = new ModelChain(10)
  const others = Array.from({ length: count - 1 }, () => liar.twin())
  const nodes = [...others.slice(0, place), liar, ...others.slice(place)]
  for (const [i, node] of nodes.entries()) {
    node.host = `node-${i}`
    withReceipts(node)
    const held = node === liar ? lie(liar) : honest
    const { distort } = node
    node.distort = (request, answer) => {
      const { method, params } = request
      const isAsked = method === "eth_getBalance" || method === "eth_getTransactionCount"
      if (answer === null || !isAsked) return answer === null ? null : distort(request, answer)
      if (String(params[0]).toLowerCase() !== alice.toLowerCase()) return answer
      const state = held(node.numberOf(params[1]))
      if (state === undefined) return null
      return `0x${(method === "eth_getBalance" ? state.balance : (state.nonce ?? 0)).toString(16)}`
    }
  }
  return { liar, others, nodes }
}

/** With each search before a payment ends, the liar invents more money in blocks whose states the others have pruned. */
const makingUpAnew = (count: number, place: number, honest: Held) => {
  let searches = 0
  const made = nodesOf(count, place, honest, (node) => (block) => ({
    balance: node.height < 380 ? 0 : 10 * Math.max(0, Math.min(searches, block - 200))
  }))
  const { liar, others } = made
  for (const node of others) node.oldestState = 360
  // Each search begins with the logs.
  liar.intercept = (batch) => {
    if (liar.height >= 380 && batch.some(({ method }) => method === "eth_getLogs")) searches++
  }
  return made
}

const watchedCoins = (amount = 5n) =>
  Effect.gen(function* () {
    yield* Effect.forkScoped((yield* Settlement).expire)
    return yield* watchedPayment(alice, { amount })
  })

/** The corroborated receipts, by block. */
const corroborated = Effect.flatMap(Reader, (reader) =>
  reader.all(
    "SELECT block_number AS block, amount FROM receipts WHERE canonical = 1 AND corroborated = 1 ORDER BY block_number"
  )
)

describe("coins without a transaction", () => {
  it.scoped.each([2, 3])(
    "that one of %d reported while the others lagged are not corroborated by itself once another one serves",
    (count) => {
      const { liar, nodes, others } = nodesOf(
        count,
        0,
        () => ({ balance: 0 }),
        () => (block) => ({ balance: block >= 30 ? 3 : 0 })
      )
      return Effect.gen(function* () {
        const { id } = yield* watchedCoins()
        for (const node of others) node.behind = 1
        liar.mineMany(20)
        yield* seconds(40)
        expect(yield* stateOf(id)).toBe("detecting 3")
        for (const node of others) node.behind = 0
        liar.failure = "rate_limited"
        yield* seconds(3)
        liar.failure = undefined
        for (let i = 0; i < 200; i++) {
          if (i % 10 === 0) liar.mine()
          yield* second
        }
        yield* untilOver(liar)
        yield* seconds(60)
        expect(yield* stateOf(id)).toBe(count === 2 ? "detecting 3" : "expired")
        expect(yield* corroborated).toEqual([])
      }).pipe(aroundSomeReal(nodes))
    }
  )

  it.scoped.each([2, 3])("are not counted twice because of an intermediate state that one of %d invented", (count) => {
    let lies = false
    let low = 1_000_000
    const { liar, nodes } = nodesOf(
      count,
      0,
      (block) => ({ balance: block >= 12 ? 2 : 0 }),
      (node) => (block) => {
        if (lies && block === node.height) low = Math.min(low, block)
        return block === low ? { balance: 0, nonce: 1 } : { balance: block >= 12 ? 2 : 0 }
      }
    )
    return Effect.gen(function* () {
      const { id } = yield* watchedCoins()
      liar.mineMany(20)
      yield* seconds(60)
      lies = true
      liar.mine()
      yield* seconds(60)
      lies = false
      liar.failure = "rate_limited"
      yield* seconds(3)
      liar.mineMany(3)
      yield* seconds(3)
      liar.failure = undefined
      for (let i = 0; i < 200; i++) {
        if (i % 10 === 0) liar.mine()
        yield* second
      }
      yield* untilOver(liar)
      yield* seconds(60)
      // With two providers, money that one reports when the payment is about to end keeps it open.
      expect(yield* stateOf(id)).toBe(count === 2 ? "detecting 4" : "failed insufficient_amount 2")
      expect(yield* corroborated).toEqual([{ block: 12, amount: "2" }])
    }).pipe(aroundSomeReal(nodes))
  })

  it.scoped(
    "are shown by the serving provider and the second other one where the first other one has no states",
    () => {
      // They were collected before another provider could be asked.
      const held: Held = (block) => (block < 100 ? { balance: block >= 30 ? 3 : 0 } : { balance: 0, nonce: 1 })
      const { liar: serving, nodes, others } = nodesOf(3, 0, held, () => held)
      for (const node of others) node.oldestState = 1_000
      return Effect.gen(function* () {
        const { id } = yield* watchedCoins()
        yield* untilOver(serving)
        for (const [i, node] of others.entries()) node.oldestState = i === 0 ? 360 : 0
        yield* seconds(60)
        expect(yield* stateOf(id)).toBe("failed insufficient_amount 3")
      }).pipe(aroundSomeReal(nodes))
    }
  )

  it.scoped.each([0, 1])("do not grow where one of two, at %d, reports more when payments end", (place) => {
    const { liar, nodes } = nodesOf(
      2,
      place,
      (block) => ({ balance: block >= 365 ? 3 : 0 }),
      (node) => (block) => {
        if (node.height < 380) return block === 364 ? undefined : { balance: block >= 365 ? 3 : 0 }
        return { balance: block >= 365 ? 4 : 0 }
      }
    )
    return Effect.gen(function* () {
      const { id } = yield* watchedCoins()
      yield* untilOver(liar)
      yield* seconds(120)
      expect(yield* stateOf(id)).toBe("detecting 4")
      expect(yield* corroborated).toEqual([])
    }).pipe(aroundSomeReal(nodes))
  })

  it.scoped.each([
    [2, 0],
    [2, 1],
    [3, 0],
    [3, 1],
    [3, 2]
  ] as const)(
    "keep no payment open where one of %d, at %d, invents more with each search, in blocks without states",
    ([count, place]) => {
      const { liar, nodes } = makingUpAnew(count, place, () => ({ balance: 0 }))
      return Effect.gen(function* () {
        const { id } = yield* watchedCoins(5_000n)
        yield* untilOver(liar)
        yield* seconds(60)
        expect(yield* stateOf(id)).toBe("expired")
      }).pipe(aroundSomeReal(nodes))
    }
  )

  it.scoped.each([0, 1])(
    "are waited for where one of two, at %d, denies them and invents others with each search",
    (place) => {
      const { liar, nodes, others } = makingUpAnew(2, place, (block) => ({ balance: block >= 365 ? 3_000 : 0 }))
      return Effect.gen(function* () {
        const { id } = yield* watchedCoins(5_000n)
        yield* untilOver(liar)
        const calls = () => others.map((node) => node.count("eth_getBalance") + node.count("eth_getBlockByNumber"))
        yield* seconds(60)
        const [before = 0] = calls()
        yield* seconds(120)
        expect(yield* stateOf(id)).toContain("detecting")
        expect(yield* corroborated).toEqual([])
        // The honest provider is asked less and less, however much the other one invents: two searches in two minutes.
        expect((calls()[0] ?? 0) - before).toBeLessThan(1_200)
      }).pipe(aroundSomeReal(nodes))
    }
  )
})
