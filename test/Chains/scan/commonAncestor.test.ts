import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import * as Ledger from "../../../src/Chains/ledger/LedgerRepo.ts"
import {
  ancestorProbes,
  commonAncestor,
  findAncestor,
  narrowAncestor
} from "../../../src/Chains/scan/commonAncestor.ts"
import type { BlockRef } from "../../../src/Domain/Receipt.ts"
import { Reader } from "../../../src/Sql.ts"
import { write } from "../../lib/rows.ts"
import { someProviders } from "../../lib/soleProvider.ts"
import { inWorld } from "../around.ts"
import { base, inStore, scanTo, watchOf } from "../balances/reconcileWorld.ts"
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
  const numbers = fc.uniqueArray(fc.integer({ min: 0, max: 5000 }), { minLength: 1, maxLength: 600, size: "max" })
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
    for (const fork of [2, 41, 57, 100, 133, 142, 179, 198]) {
      const orphaned = chain.blocks.slice(fork + 1, 200).map(({ number }) => block(number, "old"))
      const stored = [...chain.blocks.slice(1, fork + 1), ...orphaned]
      yield* write(Ledger.keepBlocks(network, stored))
      const now = chain.blocks[199] as BlockRef
      const ancestor = { beyondStored: false, block: { number: fork, hash: chain.blocks[fork]?.hash } }
      expect(yield* findAncestor(chain.client, reader, network, now)).toMatchObject(ancestor)
    }
  }).pipe(inWorld)
})

it.scoped("one that decides alone undoes nothing that another one still reports", () =>
  Effect.gen(function* () {
    const honest = new ModelChain(10)
    honest.mineMany(base.confirmations + 5)
    const forked = new ModelChain(-1, [...honest.blocks])
    forked.rollback(base.confirmations + 5)
    forked.mineMany(base.confirmations + 6)
    for (const one of honest.blocks.slice(8)) yield* scanTo(one)
    const some = someProviders(forked.client, honest.client)
    const watch = yield* watchOf({ ...some.providers, decidesAlone: () => true })
    const scan = yield* Ledger.scan(yield* Reader, base)
    const at = forked.blocks[scan?.head.number ?? -1]
    if (scan === undefined || at === undefined) throw new Error("none")
    expect(at.hash).not.toBe(scan.head.hash)
    const resume = commonAncestor(watch, some.provider, scan, at)
    expect(yield* Effect.flip(resume)).toMatchObject({ reason: "inconsistent" })
    honest.failure = "timeout"
    expect(yield* resume).toMatchObject({ number: 10 })
  }).pipe(inStore)
)
