import { describe, expect } from "@effect/vitest"
import { Duration, Effect } from "effect"
import type { PaymentId } from "../../../src/Domain/Ids.ts"
import { alice, health, usdc } from "../around.ts"
import { watchedUsdc } from "../lying.ts"
import { type ModelChain, token } from "../ModelChain.ts"
import { pass, pay, paymentById } from "../world.ts"
import { mineOn, scene, seconds } from "./scene.ts"

// Issue 14 row 7: a single provider does not determine time and depth.

const payments = { clockTolerance: Duration.minutes(15) }
const statusOf = (id: PaymentId) => Effect.map(paymentById(id), (payment) => payment?.status)

/** The node dates every block above the tenth a day ahead. */
const datingAhead = (...chains: ReadonlyArray<ModelChain>) => {
  for (const chain of chains) {
    chain.distort = ({ method }, answer) => {
      const block = answer as { number: string; timestamp: string } | null
      if (method !== "eth_getBlockByNumber" || block === null || Number(block.number) <= 10) return answer
      return { ...block, timestamp: `0x${(Number(block.timestamp) + 86_400).toString(16)}` }
    }
  }
}

describe("block times a day ahead", () => {
  for (const nodes of [1, 2, 3]) {
    scene(`of the serving one of ${nodes} end no payment`, { nodes, payments }, function* (liar) {
      datingAhead(liar)
      const { id } = yield* watchedUsdc()
      yield* mineOn([liar], 60)
      expect(yield* statusOf(id)).toBe("pending")
      // The chain is read from another provider, or not at all without one; the reason names both possible causes.
      const now = yield* health
      expect(now?.ready).toBe(nodes > 1)
      if (nodes > 1) expect(now?.head).toBeGreaterThan(60)
      else expect(now?.reason).toMatch(/ahead of this machine's clock: one of the two is wrong. Remedy: let chrony/)
    })
  }

  scene(
    "of every provider show that this machine's clock is behind: payments confirm, and do not end",
    { nodes: 2, payments },
    function* (first, other) {
      datingAhead(first, other)
      const unpaid = yield* watchedUsdc()
      first.mine(token(usdc, alice, 5n))
      first.mineMany(3)
      yield* seconds(5)
      expect((yield* health)?.reason).toMatch(/this machine's clock is .* behind the chain's: payments do not end/)
      // One that is made since counts by the chain's time: it is paid in time.
      const bob = "0x00000000000000000000000000000000000B0b01"
      const late = yield* pay(bob, { currency: "USDC", amount: 5n })
      first.mine(token(usdc, bob, 5n))
      first.mineMany(3)
      yield* seconds(5)
      expect(yield* statusOf(late.id)).toBe("confirmed")
      yield* mineOn([first], 20)
      // Made before the clock was known to be wrong: its money is late by the chain's time, and the payment does not end by it.
      expect(yield* statusOf(unpaid.id)).toBe("pending")
    }
  )
})

for (const place of [0, 1]) {
  scene(
    `heads of provider ${place} of two that are 10 minutes ahead give payments no longer time`,
    { nodes: 2, place, payments },
    function* (liar) {
      liar.distort = ({ method, params: [of] }, answer) => {
        const block = answer as { timestamp: string } | null
        if (method !== "eth_getBlockByNumber" || of !== "latest" || block === null) return answer
        return { ...block, timestamp: `0x${(Number(block.timestamp) + 600).toString(16)}` }
      }
      const first = yield* watchedUsdc()
      yield* mineOn([liar], 20)
      const bob = "0x00000000000000000000000000000000000B0b01"
      const later = yield* pay(bob, { currency: "USDC", amount: 5n })
      const deadlines = [yield* paymentById(first.id), yield* paymentById(later.id)].map((one) => one?.dueAt)
      // An hour by the chain's heads, which are ahead of the clock here: at second 100 at first, and 300 later.
      expect(deadlines).toEqual([3_700_000, 3_900_000])
    }
  )
}

describe("depth", () => {
  scene(
    "is measured from the lower of two heads: twenty blocks that one provider claims confirm nothing",
    { nodes: 2, apart: true },
    function* (liar, honest) {
      const { id } = yield* watchedUsdc()
      honest.blocks.push(liar.mine(token(usdc, alice, 5n)))
      liar.mineMany(20)
      yield* seconds(20)
      expect(yield* statusOf(id)).toBe("detecting")
      honest.blocks.push(...liar.blocks.slice(12, 14))
      yield* seconds(60)
      expect(yield* statusOf(id)).toBe("confirmed")
    }
  )

  scene(
    "is measured from the lower of two heads: no payment ends by blocks that one provider claims",
    { nodes: 2, apart: true },
    function* (liar, honest) {
      const { id } = yield* watchedUsdc()
      for (let i = 0; i < 60; i++) {
        // Its time, and its grace, end with block 376: the chain is 100 s ahead of the clock.
        for (let k = 0; k < 10 && liar.height < 377; k++) honest.blocks.push(liar.mine())
        yield* seconds(1)
      }
      liar.mineMany(2)
      yield* seconds(30)
      expect((yield* health)?.reason).toMatch(/the head of \S+ is still block 377, not 379/)
      yield* seconds(30)
      expect(yield* statusOf(id)).toBe("pending")
      honest.blocks.push(...liar.blocks.slice(378))
      yield* seconds(20)
      expect(yield* statusOf(id)).toBe("expired")
    }
  )

  const settings = { pollInterval: Duration.seconds(30) }
  scene("is waited for, however long the other one lags", { nodes: 2, settings }, function* (first, other) {
    const { id } = yield* watchedUsdc()
    for (let i = 0; i < 32; i++) {
      first.mineMany(10)
      yield* seconds(1)
    }
    yield* pass("61 minutes")
    // Its time, and its grace, end with block 376.
    other.behind = 60
    first.mineMany(60)
    for (let i = 0; i < 40; i++) {
      // It also fails now and then: ten minutes between the first and the last failure are not ten silent minutes.
      other.failure = i % 4 === 3 ? "unreachable" : undefined
      first.mine()
      yield* pass("30 seconds")
    }
    other.failure = undefined
    expect(yield* statusOf(id)).toBe("pending")
    other.behind = 0
    yield* pass("2 minutes")
    expect(yield* statusOf(id)).toBe("expired")
  })

  scene(
    "is counted for each provider: a third one with the block, but not its confirmations, completes no quorum",
    { nodes: 3 },
    function* (first, failing, behind) {
      const { id } = yield* watchedUsdc()
      while (first.height < 370) {
        first.mineMany(10)
        yield* seconds(1)
      }
      failing.intercept = (batch) => {
        failing.failure = batch.some(({ method }) => method === "eth_getLogs") ? "timeout" : undefined
      }
      behind.behind = 2
      // The payment's time ends with the last but two of these blocks, which the lagging provider does not confirm yet.
      first.mineMany(9)
      yield* seconds(10)
      expect(yield* statusOf(id)).toBe("pending")
      behind.behind = 0
      yield* seconds(20)
      expect(yield* statusOf(id)).toBe("expired")
    }
  )
})

describe("a tag that a policy requires", () => {
  const settings = { policies: [{ aboveUsd: "0", require: "finalized" as const }] }

  scene("counts at the lower of two: one alone does not confirm", { nodes: 2, settings }, function* (liar, honest) {
    honest.finalized = 8
    const { id } = yield* watchedUsdc()
    liar.mine(token(usdc, alice, 5n))
    liar.mineMany(5)
    liar.finalized = 16
    yield* seconds(60)
    expect(yield* statusOf(id)).toBe("detecting")
    honest.finalized = 11
    yield* seconds(20)
    liar.mine()
    yield* seconds(5)
    expect(yield* statusOf(id)).toBe("confirmed")
  })

  scene("counts of a sole provider after its patience", { nodes: 2, settings }, function* (liar, honest) {
    liar.finalized = 16
    const { id } = yield* watchedUsdc()
    honest.failure = "unreachable"
    liar.mine(token(usdc, alice, 5n))
    liar.mineMany(5)
    yield* pass("9 minutes")
    expect(yield* statusOf(id)).toBe("detecting")
    yield* pass("3 minutes")
    // A payment that a tag makes final is confirmed with the next block.
    liar.mine()
    yield* seconds(1)
    expect(yield* statusOf(id)).toBe("confirmed")
  })
})
