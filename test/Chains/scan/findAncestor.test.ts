import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import * as Ledger from "../../../src/Chains/ledger/LedgerRepo.ts"
import { ancestorProbes, findAncestor, narrowAncestor } from "../../../src/Chains/scan/commonAncestor.ts"
import type { BlockRef } from "../../../src/Domain/Receipt.ts"
import { Reader, Writer } from "../../../src/Sql.ts"
import { inWorld } from "../around.ts"
import { ModelChain } from "../ModelChain.ts"

const network = { chain: "ethereum", mode: "test" } as const

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

it("the search finds exactly the newest stored block that is still on the chain", () => {
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

it("the search needs few batches for a hundred thousand blocks", () => {
  const stored = Array.from({ length: 100_000 }, (_, i) => block(100_000 - i, "old"))
  const chain = new Map(stored.map(({ hash, number }) => [number, number <= 12_345 ? hash : "new"]))
  const { ancestor, rounds } = search(stored, chain)
  expect(ancestor?.number).toBe(12_345)
  expect(rounds).toBeLessThanOrEqual(5)
})

it.scoped("the common ancestor is the newest stored block that is canonical, whichever blocks are probed", () => {
  const chain = new ModelChain(200)
  return Effect.gen(function* () {
    const reader = yield* Reader
    const writer = yield* Writer
    const found: Array<number> = []
    const forks = [2, 41, 57, 100, 133, 142, 179, 198]
    for (const fork of forks) {
      const stored = chain.blocks.slice(1, 200).map(({ hash, number, time }) => ({
        number,
        time,
        hash: number <= fork ? hash : `0x${String(number).padStart(64, "f")}`
      }))
      yield* writer.write(Ledger.keepBlocks(network, stored))
      const now = chain.blocks[199] ?? block(199, "missing")
      const ancestor = yield* findAncestor(chain.client, reader, network, now)
      expect(ancestor).toMatchObject({
        beyondStored: false,
        block: { hash: chain.blocks[ancestor.block.number]?.hash }
      })
      found.push(ancestor.block.number)
    }
    expect(found).toEqual(forks)
  }).pipe(inWorld)
})
