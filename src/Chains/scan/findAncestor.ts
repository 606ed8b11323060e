import { Effect } from "effect"
import type { Network } from "../../Domain/Chain.ts"
import type { BlockRef } from "../../Domain/Receipt.ts"
import type { Db } from "../../Sql.ts"
import * as Ledger from "../ledger/LedgerRepo.ts"
import { getHeader, sendBatch } from "../rpc/methods.ts"
import type { RpcClient } from "../rpc/Rpc.ts"
import { ancestorProbes, narrowAncestor } from "./reorg.ts"

/** Stored blocks in the first search; each further search covers this many times more. */
const firstSearch = 16

/** Where scanning resumes after a reorg. */
export interface Ancestor {
  /** The canonical block to resume from. */
  readonly block: BlockRef
  /** No stored block is canonical: `block` is the canonical one in place of the oldest stored block. */
  readonly beyondStored: boolean
}

/**
 * The common ancestor: the newest stored block that is still canonical. Reorgs are shallow, so it searches the newest
 * blocks first, and then ever more.
 *
 * @param now the chain's block in place of the last scanned one
 */
export const findAncestor = Effect.fn("Scan.findAncestor")(function* (
  client: RpcClient,
  db: Db,
  network: Network,
  now: BlockRef
) {
  let oldest = now
  for (let size = firstSearch; ; size *= firstSearch) {
    let page = yield* Ledger.blocksBelow(db, network, oldest.number, size)
    if (page.length === 0) return { block: oldest, beyondStored: true } satisfies Ancestor
    let found: BlockRef | undefined
    while (page.length > 0) {
      const headers = yield* sendBatch(
        client,
        ancestorProbes(page).map((block) => getHeader(block.number))
      )
      oldest = headers.at(-1) ?? oldest
      const { ancestor, between } = narrowAncestor(page, new Map(headers.map((header) => [header.number, header.hash])))
      found = ancestor ?? found
      page = between
    }
    if (found !== undefined) return { block: found, beyondStored: false } satisfies Ancestor
  }
})
