import { Array as Arr, Effect } from "effect"
import type { PaymentId } from "../Domain/Ids.ts"
import type { BlockRef } from "../Domain/Receipt.ts"
import { Tx } from "../Sql.ts"
import { ask, findTransactionReceipt } from "./calls.ts"
import * as Ledger from "./LedgerRepo.ts"
import type { Provider } from "./Providers.ts"
import type { Watch } from "./tick.ts"

/** Receipts that one tick asks about; the next ones wait for the next tick. */
const atOnce = 500
/** Calls in one batch; providers allow from 100 up. */
const callsPerBatch = 50

/** Those of the receipts whose transaction `other` has in the same block, where it succeeded. */
const confirmedBy = (other: Provider, receipts: ReadonlyArray<Ledger.Unagreed>) =>
  Effect.gen(function* () {
    const byHash = Arr.groupBy(receipts, (receipt) => receipt.txHash)
    const agreed: Array<Ledger.Unagreed> = []
    for (const hashes of Arr.chunksOf(Object.keys(byHash), callsPerBatch)) {
      const found = yield* ask(other.client, hashes.map(findTransactionReceipt))
      for (const [hash, receipt] of Arr.zip(hashes, found)) {
        if (receipt === undefined || !receipt.status) continue
        agreed.push(...(byHash[hash] ?? []).filter((one) => one.blockHash === receipt.blockHash))
      }
    }
    return agreed
  })

/**
 * Asks a second provider about the receipts that nobody else has vouched for yet: without its word they confirm nothing.
 * While no other provider is healthy, the sole one decides alone, once the receipt is deep enough.
 *
 * Gives whether the sole provider had to decide.
 */
export const agree = Effect.fn("Watcher.agree")(function* (watch: Watch, provider: Provider, head: BlockRef) {
  const { chain, network, providers, reader, settlement, writer } = watch
  const receipts = yield* Ledger.unagreed(reader, network, atOnce)
  if (receipts.length === 0) return false
  const other = yield* providers.other(provider)
  const agreed =
    other === undefined
      ? receipts.filter((receipt) => head.number - receipt.blockNumber + 1 >= chain.confirmations)
      : yield* Effect.catchAll(confirmedBy(other, receipts), (error) => Effect.as(providers.failed(other, error), []))
  if (agreed.length > 0) {
    yield* writer.write(
      Effect.gen(function* () {
        const touched = new Set<PaymentId>()
        for (const receipt of agreed) {
          yield* Ledger.setAgreed(network, receipt)
          if (receipt.payment !== undefined) touched.add(receipt.payment)
        }
        // What has been read since is the watcher's own doing: nobody else moves the head.
        const scan = yield* Ledger.scan(yield* Tx, network)
        if (scan !== undefined) yield* settlement.settle({ network, head: scan.head }, touched)
      })
    )
  }
  return other === undefined
})
