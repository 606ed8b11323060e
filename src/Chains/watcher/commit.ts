/**
 * The transaction that ends a tick: blocks, receipts, the scan position, and what settles from them, stored together. A
 * reader never sees a reorg half applied.
 */
import { Effect } from "effect"
import type { Network } from "../../Domain/Chain.ts"
import type { BlockRef } from "../../Domain/Receipt.ts"
import { Tx } from "../../Sql.ts"
import * as Ledger from "../ledger/LedgerRepo.ts"
import type { Settlement } from "../ledger/SettlementTag.ts"
import * as Watched from "../ledger/WatchedAddressesRepo.ts"
import type { ReadRange } from "../scan/readRange.ts"

/** The result of a tick's reading, and the block that it extends. */
export interface TickReading extends ReadRange {
  readonly network: Network
  /** The stored head that the tick started from. */
  readonly from: BlockRef
  /** The common ancestor, when `from` is no longer on the chain. */
  readonly ancestor: BlockRef | undefined
  /** The receipts need no second provider. */
  readonly corroborated: boolean
  /** No address was watched: a verification pass could find nothing. */
  readonly unwatched: boolean
}

const sameBlock = (a: BlockRef, b: BlockRef): boolean => a.number === b.number && a.hash === b.hash

/**
 * Stores a reading, and settles the payments that it changes, in one transaction: a receipt that is on the old branch
 * and on the new one changes nothing. Returns false, and stores nothing, when the stored head is no longer the one that
 * the reading started from.
 */
export const commitReading = (settlement: Settlement["Type"], reading: TickReading) =>
  Effect.gen(function* () {
    const { corroborated, ancestor, end, from, network, transfers, unwatched } = reading
    const tx = yield* Tx
    const scan = yield* Ledger.scan(tx, network)
    if (scan === undefined || !sameBlock(scan.head, from)) return false

    const touched = new Set<Ledger.Touched>()
    if (ancestor !== undefined) {
      for (const payment of yield* Ledger.orphanAbove(network, ancestor)) touched.add(payment)
      yield* Watched.lowerTo(network, ancestor.number)
      yield* Ledger.keepBlocks(network, [ancestor])
    }
    for (const payment of yield* Ledger.keepReceipts(network, transfers, corroborated)) touched.add(payment)
    const paidIn = transfers.map(
      (transfer): BlockRef => ({ number: transfer.blockNumber, hash: transfer.blockHash, time: transfer.blockTime })
    )
    yield* Ledger.keepBlocks(network, [...new Map(paidIn.map((block) => [block.number, block])).values(), end])
    yield* Ledger.moveScan(network, end)
    if (unwatched) yield* Ledger.moveVerified(network, end.number)
    yield* settlement.settle({ network, head: end }, touched)
    return true
  })

/**
 * Stores where reading starts; payments made before count transfers above it. `head`: the chain's, which may be far above.
 * `genesis`: the hash of block 0, if known.
 */
export const commitStart = (
  network: Network,
  checkpoint: BlockRef,
  head: Pick<BlockRef, "time">,
  genesis: string | undefined,
  chainId?: number
) =>
  Effect.gen(function* () {
    yield* Ledger.startScan(network, checkpoint, genesis, chainId)
    yield* Ledger.keepBlocks(network, [checkpoint])
    yield* Watched.startAt(network, checkpoint.number)
    // A new database may have skipped them while this machine's clock was at an old time.
    yield* Watched.redateGaps(network.mode, head.time * 1000)
  })
