import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { newestBefore } from "../../src/Chains/startBlock.ts"
import { ModelChain } from "./ModelChain.ts"

/** A chain of blocks ten seconds apart, whose node has let go of those below `kept`. */
const chainOf = (height: number, kept: number) => {
  const chain = new ModelChain(height)
  chain.distort = ({ params: [number] }, answer) => (Number(number) < kept ? null : answer)
  return chain
}

const heights = [0, 1, 2, 63, 64, 65, 575, 576, 577, 700]
const timesOf = (height: number) => [-5, 0, 1, 10, 15, height * 3, height * 10 - 9, height * 10, height * 10 + 5]
const keptOf = (height: number) => [0, 1, Math.floor(height / 2), Math.max(0, height - 1), height]

it.effect("the newest block that is older than a time, or the oldest that there is", () =>
  Effect.gen(function* () {
    for (const height of heights) {
      for (const time of timesOf(height)) {
        for (const kept of keptOf(height)) {
          const chain = chainOf(height, kept)
          const [head] = chain.blocks.slice(-1)
          if (head === undefined) return expect.unreachable()
          const { number } = yield* newestBefore(chain.client, head, time)
          const below = chain.blocks.slice(kept, height)
          const expected = below.findLast((block) => block.time < time) ?? below[0] ?? head
          expect({ height, time, kept, number }).toEqual({ height, time, kept, number: expected.number })
        }
      }
    }
  })
)

it.effect("takes few calls in a long chain", () =>
  Effect.gen(function* () {
    const chain = chainOf(20_000, 0)
    const [head] = chain.blocks.slice(-1)
    if (head === undefined) return expect.unreachable()
    expect((yield* newestBefore(chain.client, head, 35_005)).number).toBe(3_500)
    expect(chain.count("eth_getBlockByNumber")).toBeLessThan(20)
  })
)
