import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { alice, aroundSomeReal, second, usdc } from "./around.ts"
import { stateOf, watchedUsdc } from "./lying.ts"
import { ModelChain, token } from "./ModelChain.ts"

// One provider lies, and the others are honest: what becomes of a payment is what the honest ones have.

const seconds = (count: number) => Effect.repeatN(second, count - 1)

/** Another node's own copy of a chain, which from here on mines another branch. */
const forkOf = (chain: ModelChain) => {
  const fork = new ModelChain(-1, [...chain.blocks])
  fork.rollback(0)
  return fork
}

/** Mines a block on each of some chains, and lets a second pass, so many times. */
const mineOn = (chains: ReadonlyArray<ModelChain>, count: number) =>
  Effect.repeatN(
    Effect.suspend(() => {
      for (const chain of chains) chain.mine()
      return second
    }),
    count - 1
  )

/** The node gives a false time for the block. */
const misdating = (chain: ModelChain, block: number, time: number) => {
  chain.distort = ({ method, params: [of] }, answer) =>
    method === "eth_getBlockByNumber" && of === `0x${block.toString(16)}` && answer !== null
      ? { ...(answer as object), timestamp: `0x${time.toString(16)}` }
      : answer
}

describe("block times", () => {
  it.scoped.each([2, 3])(
    "a false time of a receipt's block, of %d providers: its money is on time to no one's word alone",
    (count) => {
      const liar = new ModelChain(10)
      misdating(liar, 11, 100_000)
      const nodes = [liar, ...Array.from({ length: count - 1 }, () => liar.twin())]
      return Effect.gen(function* () {
        const { id } = yield* watchedUsdc()
        liar.mine(token(usdc, alice, 5n))
        yield* mineOn([liar], count === 2 ? 400 : 20)
        yield* seconds(60)
        expect(yield* stateOf(id)).toBe(count === 2 ? "pending" : "confirmed 5")
      }).pipe(aroundSomeReal(nodes))
    }
  )
})

describe("silence", () => {
  it.scoped.each([2, 3])(
    "blocks that the liar read are not searched by it alone before a payment ends, of %d providers",
    (count) => {
      const liar = new ModelChain(10)
      liar.distort = ({ method }, answer) => (method === "eth_getLogs" ? [] : answer)
      const nodes = [liar, ...Array.from({ length: count - 1 }, () => liar.twin())]
      return Effect.gen(function* () {
        const { id } = yield* watchedUsdc()
        yield* mineOn([liar], 350)
        liar.mine()
        liar.mine(token(usdc, alice, 5n))
        yield* mineOn([liar], 4)
        liar.failure = "rate_limited"
        yield* seconds(2)
        liar.failure = undefined
        yield* seconds(15)
        liar.mineMany(3)
        yield* seconds(30)
        yield* mineOn([liar], 1)
        yield* seconds(30)
        yield* mineOn([liar], 40)
        yield* seconds(60)
        expect(yield* stateOf(id)).toBe("confirmed 5")
      }).pipe(aroundSomeReal(nodes))
    }
  )
})

describe("branches", () => {
  it.scoped.each([0, 1, 2])(
    "provider %d of three has a branch of its own, deeper than the confirmations: the others are believed",
    (place) => {
      const liar = new ModelChain(10)
      const honest = forkOf(liar)
      const nodes = [honest, honest.twin()]
      nodes.splice(place, 0, liar)
      return Effect.gen(function* () {
        const { id } = yield* watchedUsdc()
        liar.mine()
        honest.mine(token(usdc, alice, 5n))
        yield* mineOn([liar, honest], 200)
        expect(yield* stateOf(id)).toBe("confirmed 5")
      }).pipe(aroundSomeReal(nodes))
    }
  )

  it.scoped("a branch of 900 made-up blocks is left, once two others have newer heads below it", () => {
    const liar = new ModelChain(10)
    const honest = forkOf(liar)
    return Effect.gen(function* () {
      const { id } = yield* watchedUsdc()
      liar.mineMany(900)
      // Its blocks take no time.
      liar.distort = ({ method }, answer) =>
        method === "eth_getBlockByNumber" && answer !== null && Number((answer as { number: string }).number) > 11
          ? { ...(answer as object), timestamp: "0x6e" }
          : answer
      honest.mine(token(usdc, alice, 5n))
      yield* mineOn([honest], 20)
      liar.failure = "rate_limited"
      yield* mineOn([honest], 300)
      expect(yield* stateOf(id)).toBe("confirmed 5")
    }).pipe(aroundSomeReal([liar, honest, honest.twin()]))
  })

  it.scoped("money that a liar denies, and an honest one on another branch for a while, counts in the end", () => {
    const first = new ModelChain(10)
    const other = forkOf(first)
    const liar = first.twin()
    liar.distort = ({ method, params: [of] }, answer) => {
      if (method === "eth_getLogs") return []
      if (method === "eth_getTransactionReceipt") return null
      return of === "0xb" && answer !== null ? { ...(answer as object), transactions: [] } : answer
    }
    return Effect.gen(function* () {
      const { id } = yield* watchedUsdc()
      first.mine(token(usdc, alice, 5n))
      other.mine()
      yield* mineOn([first, other], 4)
      other.blocks.splice(11, 1000, ...first.blocks.slice(11))
      for (let i = 0; i < 60; i++) {
        other.blocks.push(first.mine())
        yield* second
      }
      expect(yield* stateOf(id)).toBe("confirmed 5")
    }).pipe(aroundSomeReal([first, other, liar]))
  })
})
