import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { newestBefore } from "../../../src/Chains/watcher/tick.ts"
import { clockTest } from "../../lib/scopedTest.ts"
import { ModelChain } from "../ModelChain.ts"

const heights = [0, 1, 2, 63, 64, 65, 127, 128, 129, 700]
const timesOf = (height: number) => [-5, 0, 1, 10, 15, height * 3, height * 10 - 9, height * 10, height * 10 + 5]

// Blocks are ten seconds apart.
clockTest("finds the newest block that is older than a time, or the first block", function* () {
  for (const height of heights) {
    for (const time of timesOf(height)) {
      const chain = new ModelChain(height)
      const [head] = chain.blocks.slice(-1)
      if (head === undefined) return expect.unreachable()
      const { number } = yield* newestBefore(chain.client, head, time)
      const expected = chain.blocks.findLast((block) => block.time < time)?.number ?? 0
      expect({ height, time, number }).toEqual({ height, time, number: expected })
    }
  }
})

clockTest("fails when the node lacks a block on the way, even once", function* () {
  const chain = new ModelChain(1_000)
  const [head] = chain.blocks.slice(-1)
  if (head === undefined) return expect.unreachable()
  for (const lacking of [936, 744, 616]) {
    chain.distort = ({ params: [number] }, answer) => (Number(number) === lacking ? null : answer)
    expect(yield* Effect.flip(newestBefore(chain.client, head, 6_165))).toMatchObject({ reason: "missing" })
  }
  chain.distort = (_, answer) => answer
  expect((yield* newestBefore(chain.client, head, 6_165)).number).toBe(616)
})

clockTest("takes few calls on a long chain", function* () {
  const chain = new ModelChain(20_000)
  const [head] = chain.blocks.slice(-1)
  if (head === undefined) return expect.unreachable()
  expect((yield* newestBefore(chain.client, head, 35_005)).number).toBe(3_500)
  expect(chain.count("eth_getBlockByNumber")).toBeLessThan(30)
})
