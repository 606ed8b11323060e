import { Context, type Effect } from "effect"
import type { Network } from "../../Domain/Chain.ts"
import type { Payment } from "../../Domain/Payment.ts"
import type { BlockRef } from "../../Domain/Receipt.ts"
import type { StoreUnavailable, Tx } from "../../Sql.ts"
import type * as LedgerRepo from "./LedgerRepo.ts"

/** The scan of a network, as just stored by the watcher. */
export interface ScanResult {
  readonly network: Network
  readonly head: BlockRef
}

/**
 * Turns the ledger into transitions of payments and into exceptions, each stored with its event and deliveries in one
 * transaction. Watchers, corroboration and repair call it; `Payments/` implements it.
 */
export class Settlement extends Context.Tag("tilld/Payments/Settlement")<
  Settlement,
  {
    /**
     * Runs inside the transaction that stores a scan: settles the payments whose receipts that scan changed, those
     * whose receipts it made deep enough, and those that a reorg has undone permanently.
     */
    readonly settle: (
      scan: ScanResult,
      touched: Iterable<LedgerRepo.Touched>
    ) => Effect.Effect<void, StoreUnavailable, Tx>
    /**
     * Runs inside the transaction that changes a refund of a payment: settles the payment while it is open, and updates its
     * exceptions. Lets the next scan settle again all payments of the chain that lost receipts to reorgs, since the
     * refunded money may have replaced what such a reorg orphaned.
     */
    readonly refundsChanged: (payment: Payment) => Effect.Effect<void, StoreUnavailable, Tx>
    /** The worker that ends payments whose time is over, once the scan has passed it, and raises alarms. */
    readonly expire: Effect.Effect<never>
  }
>() {}
