/**
 * Stores what the watcher's balance rounds have found, in one transaction of the writer: receipts in place of
 * unattributed ones, balance points and the blocks of all these; then settles the payments concerned.
 */
import { Effect } from "effect"
import type { Network } from "../../Domain/Chain.ts"
import type { BlockRef } from "../../Domain/Receipt.ts"
import { Tx } from "../../Sql.ts"
import type { DatedTransfer } from "../ledger/LedgerRepo.ts"
import * as Ledger from "../ledger/LedgerRepo.ts"
import type { Settlement } from "../ledger/SettlementTag.ts"
import * as Balances from "./BalancesRepo.ts"
import { isUnattributed } from "./discrepancy.ts"
import type { Reconciliation } from "./reconcile.ts"

/** A reconciliation to store, which addresses it covers, and whether it is corroborated. */
export interface CheckedBalances extends Reconciliation {
  /** `round`: all addresses of `BalancesRepo.dueInRound`. `page`: some of the addresses whose payments have ended. */
  readonly of: "round" | "page"
  /** No second provider has to confirm the receipts. */
  readonly corroborated: boolean
}

/**
 * Stores the receipts of a reconciliation. The ledger has one unattributed receipt per address and block: the amount of
 * an earlier one is added, since its first block. Returns whom they concern.
 */
export const keepIncome = (network: Network, transfers: ReadonlyArray<DatedTransfer>, corroborated: boolean) =>
  Effect.gen(function* () {
    const touched: Array<Ledger.Touched> = []
    for (const transfer of transfers) {
      const { address, amount, blockHash, blockNumber, since = blockNumber } = transfer
      const drop = Balances.dropUnattributed(network, address, blockHash)
      const before = isUnattributed(transfer) ? yield* drop : undefined
      const added = before && { amount: amount + before.amount, since: Math.min(since, before.since) }
      touched.push(...(yield* Ledger.keepReceipts(network, [{ ...transfer, ...added }], corroborated)))
    }
    return touched
  })

/**
 * Stores a reconciliation and settles the payments concerned, in the caller's transaction. Returns the addresses with money
 * that other providers have refuted; undefined, with nothing stored, when the scanned head has moved since.
 */
export const commitBalances = (settlement: Settlement["Type"], reading: CheckedBalances) =>
  Effect.gen(function* () {
    const { corroborated, at, failed, network, of, replaced, rows, transfers } = reading
    const tx = yield* Tx
    const scan = yield* Ledger.scan(tx, network)
    if (scan === undefined || scan.head.number !== at.number || scan.head.hash !== at.hash) return undefined

    for (const { address, blockHash } of replaced) yield* Balances.dropUnattributed(network, address, blockHash)
    const touched = new Set(yield* keepIncome(network, transfers, corroborated))
    const named = transfers.filter((transfer) => !isUnattributed(transfer))
    const counted = yield* Ledger.countedKeys(tx, network, named)
    // The balances that showed refuted money are not stored: later ones compared with them would hide real income.
    const refuted = new Set(named.flatMap((one) => (counted.has(Ledger.keyOf(one)) ? [] : [one.address])))
    const blocks = transfers.map(
      (one): BlockRef => ({ number: one.blockNumber, hash: one.blockHash, time: one.blockTime })
    )
    yield* Ledger.keepBlocks(network, new Map(blocks.map((block) => [block.number, block])).values())
    const kept = rows.filter(({ address }) => !refuted.has(address))
    yield* Balances.keepRows(network, kept)
    // Addresses that failed have not been compared: their payments must not expire before they are.
    const isWhole = refuted.size === 0 && failed.every(({ givenUp }) => givenUp)
    if (of === "round" && isWhole) yield* Balances.moveChecked(network, at)
    yield* settlement.settle({ network, head: at }, touched)
    return refuted
  })
