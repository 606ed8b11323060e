import { describe, expect } from "@effect/vitest"
import { Duration } from "effect"
import { rows } from "../../lib/rows.ts"
import { alice, health, usdc } from "../around.ts"
import { inventing, stateOf, untilOver, watchedUsdc } from "../lying.ts"
import { type ModelChain, token } from "../ModelChain.ts"
import { pass } from "../world.ts"
import { inventedLog, mineOn, scene, seconds, withholdingLogs, withLogs } from "./scene.ts"

// One provider lies and the others are honest: the payment ends by what the honest ones have.

const places = [0, 1, 2]

for (const nodes of [2, 3]) {
  scene(`a false block time of one of ${nodes} does not make its money be in time`, { nodes }, function* (liar) {
    liar.distort = ({ method, params: [of] }, answer) =>
      method === "eth_getBlockByNumber" && of === "0xb" && answer !== null
        ? { ...(answer as object), timestamp: "0x186a0" }
        : answer
    const { id } = yield* watchedUsdc()
    liar.mine(token(usdc, alice, 5n))
    yield* mineOn([liar], nodes === 2 ? 400 : 20)
    yield* seconds(60)
    expect(yield* stateOf(id)).toBe(nodes === 2 ? "pending" : "confirmed 5")
  })

  scene(`blocks that one of ${nodes} read are not searched by it alone before the end`, { nodes }, function* (liar) {
    withholdingLogs(liar)
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
  })
}

/** The outcome of money that was sent after the end. */
const exceptionsOf = rows<{ kind: string; amount: string }>("SELECT kind, amount FROM exceptions ORDER BY kind, amount")

for (const nodes of [2, 3]) {
  scene(
    `a payment that one of ${nodes} reports before it was sent is late when it is mined after the deadline`,
    { nodes },
    function* (liar) {
      const { distort } = liar
      const { id } = yield* watchedUsdc()
      liar.mine()
      const signed = inventing(liar)
      // Of two, neither is believed, and the payment waits for as long as the one lies.
      yield* mineOn([liar], nodes === 2 ? 400 : 1)
      expect(yield* stateOf(id)).toBe("detecting 5")
      liar.distort = distort
      if (nodes === 3) yield* mineOn([liar], 399)
      liar.mine(signed)
      yield* mineOn([liar], 900)
      expect(yield* stateOf(id)).toBe("expired")
      expect(yield* exceptionsOf).toEqual([{ kind: "late", amount: "5" }])
    }
  )
}

/** The node dates each block above the tenth some seconds off, later ones with a plus. */
const datingOff = (chain: ModelChain, by: number) => {
  const { distort } = chain
  chain.distort = (request, answer) => {
    const block = distort(request, answer) as { number: string; timestamp: string } | null
    if (request.method !== "eth_getBlockByNumber" || block === null || Number(block.number) <= 10) return block
    return { ...block, timestamp: `0x${Math.max(0, Number(block.timestamp) + by).toString(16)}` }
  }
}

describe("block times of one of three that are off keep no payment open", () => {
  for (const place of places) {
    for (const by of [-7_200, -1, 1, 600]) {
      scene(`provider ${place}, by ${by} s`, { nodes: 3, place }, function* (liar) {
        datingOff(liar, by)
        const { id } = yield* watchedUsdc()
        liar.mine(token(usdc, alice, 2n))
        yield* mineOn([liar], 420)
        expect(yield* stateOf(id)).toBe("failed insufficient_amount 2")
        expect(yield* exceptionsOf).toEqual([{ kind: "underpaid", amount: "2" }])
      })
    }
  }
})

for (const place of [0, 1]) {
  for (const by of [-1, 600]) {
    scene(
      `a payment waits while provider ${place} of two has block times that are off by ${by} s`,
      { nodes: 2, place },
      function* (liar) {
        const { distort } = liar
        datingOff(liar, by)
        const { id } = yield* watchedUsdc()
        liar.mine(token(usdc, alice, 2n))
        yield* mineOn([liar], 420)
        expect(yield* stateOf(id)).toBe("detecting 2")
        expect((yield* health)?.reason).toContain("disagree about block times")
        liar.distort = distort
        yield* mineOn([liar], 120)
        expect(yield* stateOf(id)).toBe("failed insufficient_amount 2")
      }
    )
  }
}

describe("branches", () => {
  for (const place of places) {
    scene(
      `where provider ${place} of three has a branch of its own, deeper than the confirmations, the others decide`,
      { nodes: 3, place, apart: true },
      function* (liar, honest) {
        const { id } = yield* watchedUsdc()
        liar.mine()
        honest.mine(token(usdc, alice, 5n))
        yield* mineOn([liar, honest], 200)
        expect(yield* stateOf(id)).toBe("confirmed 5")
      }
    )
  }

  scene(
    "an invented branch of 900 blocks is dropped once two others have newer heads below it",
    { nodes: 3, apart: true },
    function* (liar, honest) {
      const { id } = yield* watchedUsdc()
      liar.mineMany(900)
      // The branch's blocks take no time.
      liar.distort = ({ method }, answer) =>
        method === "eth_getBlockByNumber" && answer !== null && Number((answer as { number: string }).number) > 11
          ? { ...(answer as object), timestamp: "0x6e" }
          : answer
      honest.mine(token(usdc, alice, 5n))
      yield* mineOn([honest], 20)
      liar.failure = "rate_limited"
      yield* mineOn([honest], 300)
      expect(yield* stateOf(id)).toBe("confirmed 5")
    }
  )

  scene(
    "money that a liar denies, and for a while also an honest provider on another branch, counts in the end",
    { nodes: 3, place: 1, apart: true },
    function* (strayed, first, liar) {
      liar.distort = ({ method, params: [of] }, answer) => {
        if (method === "eth_getLogs") return []
        if (method === "eth_getTransactionReceipt") return null
        return of === "0xb" && answer !== null ? { ...(answer as object), transactions: [] } : answer
      }
      const { id } = yield* watchedUsdc()
      first.mine(token(usdc, alice, 5n))
      strayed.mine()
      yield* mineOn([first, strayed], 4)
      strayed.blocks.splice(11, 1000, ...first.blocks.slice(11))
      for (let i = 0; i < 60; i++) {
        strayed.blocks.push(first.mine())
        yield* seconds(1)
      }
      expect(yield* stateOf(id)).toBe("confirmed 5")
    }
  )
})

for (const cast of [
  { nodes: 2, place: 0 },
  { nodes: 2, place: 1 },
  { nodes: 3, place: 1 },
  { nodes: 3, place: 2 }
]) {
  scene(
    `dust that one of ${cast.nodes}, at ${cast.place}, invents again in every response keeps no payment open`,
    cast,
    function* (liar) {
      let made = 0
      withLogs(liar, () =>
        liar.height < 380
          ? []
          : [inventedLog(liar, 371, { amount: 1n, transactionHash: `0x${(++made).toString(16).padStart(64, "f")}` })]
      )
      const { id } = yield* watchedUsdc(5_000n)
      yield* untilOver(liar)
      yield* seconds(30)
      expect(yield* stateOf(id)).toBe("expired")
    }
  )
}

for (const cast of [
  { nodes: 2, place: 0 },
  { nodes: 3, place: 0 },
  { nodes: 3, place: 1 }
]) {
  scene(
    `a block with money that one of ${cast.nodes}, at ${cast.place}, has four blocks lower is not confirmed earlier`,
    { ...cast, apart: true },
    function* (liar, honest) {
      const { id } = yield* watchedUsdc()
      honest.mineMany(4)
      const paid = honest.mine(token(usdc, alice, 5n))
      liar.blocks.push({ ...paid, number: 11, parent: liar.blocks[10] })
      liar.mineMany(4)
      yield* seconds(60)
      expect(yield* stateOf(id)).toBe("detecting 5")
      yield* mineOn([honest, liar], 90)
      // It cannot be known which of two is right.
      expect(yield* stateOf(id)).toBe(cast.nodes === 2 ? "detecting 5" : "confirmed 5")
    }
  )
}

for (const place of places) {
  scene(
    `two providers whose chain stands still do not count as silent while provider ${place} of three goes on`,
    { nodes: 3, place, apart: true, settings: { pollInterval: Duration.seconds(10) } },
    function* (liar) {
      const { id } = yield* watchedUsdc()
      yield* seconds(20)
      liar.mine(token(usdc, alice, 5n))
      for (let i = 0; i < 130; i++) {
        liar.mine()
        yield* pass("10 seconds")
      }
      expect(yield* stateOf(id)).not.toContain("confirmed")
    }
  )
}
