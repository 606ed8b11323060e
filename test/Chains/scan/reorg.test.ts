import { expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import { ancestorProbes, narrowAncestor } from "../../../src/Chains/scan/reorg.ts"
import type { BlockRef } from "../../../src/Domain/Receipt.ts"

const block = (number: number, branch: string): BlockRef => ({ number, hash: `${branch}${number}`, time: number })

/** Looks as the watcher does: asks about some, and goes on among what is left between. */
const search = (stored: ReadonlyArray<BlockRef>, chain: ReadonlyMap<number, string>) => {
  let ancestor: BlockRef | undefined
  let rounds = 0
  for (let page = stored; page.length > 0; rounds++) {
    const asked = ancestorProbes(page)
    expect(asked.length).toBeLessThanOrEqual(16)
    const said = narrowAncestor(page, new Map(asked.map(({ number }) => [number, chain.get(number) ?? ""])))
    ancestor = said.ancestor ?? ancestor
    expect(said.between.length).toBeLessThan(page.length)
    page = said.between
  }
  return { ancestor, rounds }
}

it("finds exactly the newest stored block that is still on the chain", () => {
  const numbers = fc.uniqueArray(fc.integer({ min: 0, max: 5000 }), { minLength: 1, maxLength: 600 })
  void fc.assert(
    fc.property(numbers, fc.integer({ min: -1, max: 5001 }), (kept, fork) => {
      const stored = kept.sort((a, b) => b - a).map((number) => block(number, "old"))
      const chain = new Map(kept.map((number) => [number, number < fork ? `old${number}` : `new${number}`]))
      const { ancestor, rounds } = search(stored, chain)
      expect(ancestor).toEqual(stored.find(({ number }) => number < fork))
      expect(rounds).toBeLessThanOrEqual(4)
    })
  )
})

it("needs few batches for a hundred thousand blocks", () => {
  const stored = Array.from({ length: 100_000 }, (_, i) => block(100_000 - i, "old"))
  const chain = new Map(stored.map(({ hash, number }) => [number, number <= 12_345 ? hash : "new"]))
  const { ancestor, rounds } = search(stored, chain)
  expect(ancestor?.number).toBe(12_345)
  expect(rounds).toBeLessThanOrEqual(5)
})

it("stops once the oldest block is known to be orphaned: so are all newer ones", () => {
  const stored = Array.from({ length: 100 }, (_, i) => block(100 - i, "old"))
  const said = new Map(ancestorProbes(stored).map(({ number }) => [number, "new"]))
  expect(narrowAncestor(stored, said)).toEqual({ ancestor: undefined, between: [] })
})

it("probes the newest and the oldest block", () => {
  const stored = Array.from({ length: 100 }, (_, i) => block(100 - i, "old"))
  expect(ancestorProbes(stored)[0]).toEqual(stored[0])
  expect(ancestorProbes(stored).at(-1)).toEqual(stored.at(-1))
  expect(ancestorProbes(stored.slice(0, 3))).toEqual(stored.slice(0, 3))
})
