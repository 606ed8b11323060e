import { expect } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { alice, health, usdc } from "../around.ts"
import { stateOf, watchedUsdc } from "../lying.ts"
import { type ModelChain, token } from "../ModelChain.ts"
import { scene, seconds } from "./scene.ts"

// A serving provider with a branch of its own that is far above everyone's, with plausible block times: the others are
// asked for blocks that they do not have. That does not count as silence.

const ahead = 100
const cast = { nodes: 3, place: 0, apart: true, hosts: true, payments: { clockTolerance: Duration.minutes(15) } }

/** The liar's blocks above `fork()` have the times of the real ones that many blocks below. */
const withPlausibleTimes = (liar: ModelChain, fork: () => number) => {
  liar.distort = ({ method }, answer) => {
    if (method !== "eth_getBlockByNumber" || answer === null) return answer
    const block = answer as { number: string }
    const number = Number(block.number)
    return number <= fork()
      ? answer
      : { ...block, timestamp: `0x${(10 * Math.max(fork(), number - ahead)).toString(16)}` }
  }
}

/** Blocks that both have. */
const mineAlike = (liar: ModelChain, honest: ModelChain, count: number) =>
  Effect.repeatN(
    Effect.suspend(() => {
      liar.blocks.push(honest.mine())
      return seconds(10)
    }),
    count - 1
  )

/** From now on the liar has a separate, higher branch. */
const leave = (liar: ModelChain) => {
  liar.rollback(0)
  liar.mineMany(ahead)
}

/** Whether the second pass has read blocks below the liar's newest. */
const watchingPass = (liar: ModelChain) => {
  const seen = { pass: false }
  liar.intercept = (batch) => {
    const isPass = batch.some(({ method, params: [of] }) => {
      const { toBlock = "" } = (of ?? {}) as { readonly toBlock?: string }
      return method === "eth_getLogs" && Number(toBlock) < liar.height - 4
    })
    if (isPass) seen.pass = true
  }
  return seen
}

for (const nodes of [2, 3]) {
  scene(
    `a liar of ${nodes} with a higher branch does not decide alone while the others answer`,
    { ...cast, nodes },
    function* (liar, honest) {
      let fork = Number.POSITIVE_INFINITY
      withPlausibleTimes(liar, () => fork)
      yield* seconds(100)
      const { id } = yield* watchedUsdc()
      yield* mineAlike(liar, honest, 30)
      fork = honest.height
      leave(liar)
      for (let i = 0; i < 72; i++) {
        liar.mine()
        honest.mine()
        yield* seconds(10)
        expect((yield* health)?.decidesAloneSeconds).toBeUndefined()
      }
      const seen = watchingPass(liar)
      for (let i = 0; i < 90; i++) {
        if (i % 10 === 0) for (const chain of [liar, honest]) chain.mine()
        if (seen.pass && liar.height < honest.height + ahead + 1) {
          liar.mine(token(usdc, alice, 5n))
          liar.mineMany(4)
        }
        yield* seconds(1)
      }
      expect(seen.pass).toBe(true)
      expect(yield* stateOf(id)).not.toContain("confirmed")
    }
  )
}
