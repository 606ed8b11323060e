import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Ledger from "../../../src/Chains/ledger/LedgerRepo.ts"
import { findAncestor } from "../../../src/Chains/scan/findAncestor.ts"
import { Reader, Writer } from "../../../src/Sql.ts"
import { around } from "../around.ts"
import { ModelChain } from "../ModelChain.ts"

const network = { chain: "ethereum", mode: "test" } as const

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
      const [now] = chain.blocks.slice(199, 200)
      if (now === undefined) return yield* Effect.dieMessage("the chain has that block")
      const { beyondStored, block } = yield* findAncestor(chain.client, reader, network, now)
      expect([beyondStored, block.hash]).toEqual([false, chain.blocks[block.number]?.hash])
      found.push(block.number)
    }
    expect(found).toEqual(forks)
  }).pipe(around(chain))
})
