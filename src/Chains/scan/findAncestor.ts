import { Effect } from "effect"
import type { Network } from "../../Domain/Chain.ts"
import type { BlockRef } from "../../Domain/Receipt.ts"
import type { Db } from "../../Sql.ts"
import * as Ledger from "../ledger/LedgerRepo.ts"
import { getHeader, sendBatch } from "../rpc/methods.ts"
import type { RpcClient } from "../rpc/Rpc.ts"
import { narrow, probes } from "./reorg.ts"

/** Stored blocks that the first look goes through; each further look takes this many times more. */
const firstLook = 16

export interface Ancestor {
  /** The chain's block to go on from. */
  readonly block: BlockRef
  /** No stored block is on the chain: `block` is what the chain has now in the place of the oldest. */
  readonly beyondStored: boolean
}

/**
 * The newest stored block that is on the chain, after `stored` turned out not to be: the chain has `now` in its place.
 * Reorgs are shallow, so it looks through the newest blocks first, and through ever more.
 */
export const findAncestor = Effect.fn("Chains.findAncestor")(function* (
  client: RpcClient,
  db: Db,
  network: Network,
  now: BlockRef
) {
  let oldest = now
  for (let size = firstLook; ; size *= firstLook) {
    let page = yield* Ledger.blocksBelow(db, network, oldest.number, size)
    if (page.length === 0) return { block: oldest, beyondStored: true } satisfies Ancestor
    let found: BlockRef | undefined
    while (page.length > 0) {
      const headers = yield* sendBatch(
        client,
        probes(page).map((block) => getHeader(block.number))
      )
      oldest = headers.at(-1) ?? oldest
      const { ancestor, between } = narrow(page, new Map(headers.map((header) => [header.number, header.hash])))
      found = ancestor ?? found
      page = between
    }
    if (found !== undefined) return { block: found, beyondStored: false } satisfies Ancestor
  }
})
