import { describe, expect } from "@effect/vitest"
import { address, health, second, usdc } from "../around.ts"
import { stateOf, watchedUsdc } from "../lying.ts"
import { type ModelChain, token } from "../ModelChain.ts"
import { pass, pay } from "../world.ts"
import { inventedLog, mineOn, scene, withLogs } from "./scene.ts"

// The serving provider invents receipts in each block.

const two = { nodes: 2 }
const bob = address(0xb0b)
const carol = address(0xca401)
const prefix = `0x${"f".repeat(32)}`

/** A log of an invented transfer of 5 to alice, whose hash names its place. */
const logOf = (chain: ModelChain, block: number, i: number) =>
  inventedLog(chain, block, {
    transactionHash: `${prefix}${(block * 1000 + i).toString(16).padStart(32, "0")}`,
    logIndex: `0x${(700 + i).toString(16)}`
  })

/**
 * The node invents transfers in each block above 10. `owns`: it also has them when it is asked about them again.
 * `first`: the first index.
 */
const inventing = (chain: ModelChain, perBlock: number, owns: boolean, first = 0) => {
  chain.distort = ({ method, params: [of] }, answer) => {
    if (method !== "eth_getTransactionReceipt" || !owns || !String(of).startsWith(prefix)) return answer
    const place = Number(`0x${String(of).slice(34)}`)
    if (place % 1000 < first || place % 1000 >= first + perBlock) return null
    const log = logOf(chain, Math.floor(place / 1000), place % 1000)
    return { transactionHash: of, blockHash: log.blockHash, status: "0x1", logs: [log] }
  }
  withLogs(chain, () =>
    chain.blocks
      .slice(11)
      .flatMap(({ number }) => Array.from({ length: perBlock }, (_, i) => logOf(chain, number, first + i)))
  )
}

describe("three providers, of which the serving one invents receipts in every block", () => {
  for (const [perBlock, owns] of [
    [1, true],
    [1, false],
    [200, true]
  ] as const) {
    scene(
      `${perBlock} in each, confirmed by it later: ${owns}. It stops serving, and the payment ends`,
      { nodes: 3, hosts: true },
      function* (liar) {
        inventing(liar, perBlock, owns)
        const { id } = yield* watchedUsdc()
        yield* mineOn([liar], 20)
        expect((yield* health)?.providers).toMatchObject([{ healthy: false }, { healthy: true }, { healthy: true }])
        expect((yield* health)?.providers[0]?.reason).toContain("contradicted")
        for (let i = 0; i < 40; i++) {
          liar.mineMany(10)
          yield* second
        }
        yield* mineOn([liar], 60)
        expect(yield* stateOf(id)).toBe("expired")
      }
    )
  }
})

describe("two providers, of which the serving one invents receipts in every block", () => {
  scene("it stops serving once the other one has denied three of them; other payments confirm", two, function* (liar) {
    inventing(liar, 1, true)
    const { id } = yield* watchedUsdc()
    const other = yield* pay(bob, { currency: "USDC", amount: 7n })
    yield* mineOn([liar], 4)
    expect((yield* health)?.providers).toMatchObject([{ healthy: true }, { healthy: true }])
    yield* mineOn([liar], 6)
    expect((yield* health)?.providers).toMatchObject([{ healthy: false }, { healthy: true }])
    expect((yield* health)?.providers[0]?.reason).toContain("contradicted")
    liar.mine(token(usdc, bob, 7n))
    yield* mineOn([liar], 20)
    expect(yield* stateOf(other.id)).toBe("confirmed 7")
    // No third provider can decide which of the two lies.
    expect(yield* stateOf(id)).toMatch(/^detecting/)
  })

  scene("it decides nothing when it alone is left, however long, and health names it", two, function* (liar, honest) {
    inventing(liar, 1, true)
    yield* watchedUsdc()
    const other = yield* pay(bob, { currency: "USDC", amount: 7n })
    yield* mineOn([liar], 10)
    honest.failure = "unreachable"
    liar.mine(token(usdc, bob, 7n))
    liar.mineMany(500)
    yield* pass("12 minutes")
    expect(yield* stateOf(other.id)).toBe("pending")
    expect(yield* health).toMatchObject({ ready: false, head: 20 })
    expect((yield* health)?.reason).toMatch(/contradicted|unreachable/)
    expect((yield* health)?.providers).toMatchObject([{ healthy: false }, { healthy: false }])
    honest.failure = undefined
    yield* pass("2 minutes")
    expect(yield* stateOf(other.id)).toMatch(/^confirmed/)
  })

  scene(
    "where the other one invents as well, the chain is read on, and none decides alone",
    two,
    function* (one, other) {
      inventing(one, 1, true)
      inventing(other, 1, true, 500)
      yield* watchedUsdc()
      const paid = yield* pay(bob, { currency: "USDC", amount: 7n })
      yield* mineOn([one], 40)
      expect(yield* health).toMatchObject({
        ready: true,
        head: one.height,
        reason: expect.stringMatching(/each provider denies what another one has reported: .* Remedy: /),
        providers: [{ healthy: false }, { healthy: false }]
      })
      // Both have this one.
      one.mine(token(usdc, bob, 7n))
      yield* mineOn([one], 20)
      expect(yield* stateOf(paid.id)).toBe("confirmed 7")
      const alone = yield* pay(carol, { currency: "USDC", amount: 7n })
      // The other one serves since the first was contradicted.
      one.failure = "unreachable"
      one.mine(token(usdc, carol, 7n))
      for (let minute = 0; minute < 12; minute++) {
        yield* mineOn([one], 1)
        yield* pass("1 minute")
      }
      expect(yield* stateOf(alone.id)).toMatch(/^(pending|detecting)/)
      one.failure = undefined
      yield* mineOn([one], 60)
      expect(yield* stateOf(alone.id)).toBe("confirmed 7")
    }
  )

  scene("health names at once what the other denies; the chain is ready", { nodes: 2, hosts: true }, function* (liar) {
    inventing(liar, 1, true)
    yield* watchedUsdc()
    yield* mineOn([liar], 2)
    expect(yield* health).not.toHaveProperty("reason")
    yield* mineOn([liar], 1)
    expect(yield* health).toMatchObject({
      ready: true,
      reason: expect.stringMatching(
        /^node-1 denies receipts .* such as 0x\w{64} of pay_.* tilld payments show names them/
      )
    })
  })
})
