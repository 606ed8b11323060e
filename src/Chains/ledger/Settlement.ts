import { Context, type Effect } from "effect"
import type { Network } from "../../Domain/Chain.ts"
import type { BlockRef } from "../../Domain/Receipt.ts"
import type { StoreUnavailable, Tx } from "../../Sql.ts"
import type * as LedgerRepo from "./LedgerRepo.ts"

/** A chain's new scan, as the watcher has just stored it. */
export interface ScanResult {
  readonly network: Network
  readonly head: BlockRef
}

/**
 * Turns the ledger into transitions and exceptions. Each is stored with its event and its deliveries in one transaction,
 * and is always recomputed there from the rows.
 */
export class Settlement extends Context.Tag("tilld/Payments/Settlement")<
  Settlement,
  {
    /**
     * Runs inside the transaction that stores a scan: settles the payments whose receipts that scan changed, those whose
     * receipts it made deep enough, and those that a reorg has undone for good.
     */
    readonly settle: (
      scan: ScanResult,
      touched: Iterable<LedgerRepo.Touched>
    ) => Effect.Effect<void, StoreUnavailable, Tx>
    /**
     * Has all that reorgs took on a chain looked at again with its next scan: what is left of a payment's money is less by
     * now.
     */
    readonly lookAgain: (network: Network) => Effect.Effect<void, never, Tx>
    /** The worker that ends payments whose time is over, behind each chain's scan, and raises the alarms. */
    readonly expire: Effect.Effect<never>
  }
>() {}
