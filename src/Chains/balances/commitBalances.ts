import { Effect } from "effect"
import type { Network } from "../../Domain/Chain.ts"
import type { BlockRef } from "../../Domain/Receipt.ts"
import { Tx } from "../../Sql.ts"
import type { DatedTransfer } from "../ledger/LedgerRepo.ts"
import * as Ledger from "../ledger/LedgerRepo.ts"
import type { Settlement } from "../ledger/Settlement.ts"
import * as Balances from "./BalancesRepo.ts"
import type { Reconciliation } from "./reconcile.ts"

/** A reading, which addresses it is of, and how far it is to be believed. */
export interface Checked extends Reconciliation {
  /** `round`: everything that `asked` gave. `page`: some of the addresses whose payments have ended. */
  readonly of: "round" | "page"
  /** No second provider has to be asked about it. */
  readonly corroborated: boolean
}

/** One row holds all that nobody can tell of in one block: since the earliest that a part of it may have come with. */
const withEarlier = (network: Network, transfer: Ledger.DatedTransfer) =>
  Effect.map(Balances.dropUnattributed(network, transfer.address, transfer.blockHash), (before) =>
    before === undefined
      ? transfer
      : {
          ...transfer,
          amount: transfer.amount + before.amount,
          since: Math.min(before.since, transfer.since ?? transfer.blockNumber)
        }
  )

/**
 * Stores what balances have told of. Gives whose it is.
 */
export const keepIncome = (network: Network, transfers: ReadonlyArray<DatedTransfer>, corroborated: boolean) =>
  Effect.gen(function* () {
    const touched: Array<Ledger.Touched> = []
    for (const transfer of transfers) {
      const kept = [transfer.txHash === undefined ? yield* withEarlier(network, transfer) : transfer]
      touched.push(...(yield* Ledger.keepReceipts(network, kept, corroborated)))
    }
    return touched
  })

/**
 * Addresses of which a balance tells what has been refuted: a point of comparison there would hide the money that they
 * really got.
 */
const refutedAmong = (network: Network, transfers: ReadonlyArray<DatedTransfer>) =>
  Effect.gen(function* () {
    const named = transfers.filter(({ txHash }) => txHash !== undefined)
    const counted = yield* Ledger.countedKeys(yield* Tx, network, named)
    return new Set(named.flatMap((one) => (counted.has(Ledger.keyOf(one)) ? [] : [one.address])))
  })

/**
 * Stores what a round has found, and settles what follows in the same transaction. False, and nothing stored, when the
 * chain has been read further since, or back.
 */
export const commitBalances = (settlement: Settlement["Type"], reading: Checked) =>
  Effect.gen(function* () {
    const { corroborated, at, failed, network, of, replaced, rows, transfers } = reading
    const tx = yield* Tx
    const scan = yield* Ledger.scan(tx, network)
    if (scan === undefined || scan.head.number !== at.number || scan.head.hash !== at.hash) return false

    for (const { address, blockHash } of replaced) yield* Balances.dropUnattributed(network, address, blockHash)
    const touched = new Set(yield* keepIncome(network, transfers, corroborated))
    const refuted = yield* refutedAmong(network, transfers)
    if (refuted.size > 0) {
      yield* Effect.logWarning("a provider goes on to show money that others deny: its balances are not kept").pipe(
        Effect.annotateLogs({ ...network, addresses: [...refuted].join(", ") })
      )
    }
    const blocks = transfers.map((hit): readonly [number, BlockRef] => [
      hit.blockNumber,
      { number: hit.blockNumber, hash: hit.blockHash, time: hit.blockTime }
    ])
    yield* Ledger.keepBlocks(network, new Map(blocks).values())
    yield* Balances.keepRows(
      network,
      rows.filter(({ address }) => !refuted.has(address))
    )
    // What was left out has not been compared: its payment must not end for want of money that nobody has looked for.
    const isWhole = refuted.size === 0 && failed.every(({ givenUp }) => givenUp)
    if (of === "round" && isWhole) yield* Balances.moveChecked(network, at)
    yield* settlement.settle({ network, head: at }, touched)
    return true
  })
