import { Effect } from "effect"
import type { BlockRef } from "../../Domain/Receipt.ts"
import { type SearchedIncome, searchBalances } from "../balances/searchBalances.ts"
import { AddressSet } from "../ledger/AddressSet.ts"
import type { DatedTransfer } from "../ledger/LedgerRepo.ts"
import type { Provider } from "../providers/Providers.ts"
import { getHeader, sendBatch } from "../rpc/methods.ts"
import { inconsistent } from "../rpc/RpcError.ts"
import { readTokenTransfers } from "../scan/readRange.ts"
import { sourceOf, type WatchContext } from "../scan/WatchContext.ts"
import { withoutRefuted } from "./corroborateBalances.ts"
import type * as Searches from "./SearchesRepo.ts"
import type { Undated } from "./SecondEvidenceRepo.ts"
import { type SecondEvidence, secondEvidenceOf } from "./secondEvidence.ts"

/**
 * The search of one provider for money of payments that are about to end: its token logs to their addresses, its
 * balances of them, and its evidence about receipts that so far one provider alone has reported. Called by
 * `endingSearch.ts`, once per provider that it needs.
 *
 * Reads only. An RPC error is a result here, not a failure: the caller decides whether another provider is asked.
 */

/** The token transfers to the addresses by a provider's logs, in the blocks above `after` up to `settled`. */
const searchLogs = Effect.fnUntraced(function* (
  watch: WatchContext,
  provider: Provider,
  { after, due, settled }: SearchPage
) {
  const watched = new AddressSet()
  for (const { address } of due) watched.add(address)
  const source = { ...sourceOf(watch, provider), watched }
  const found: Array<DatedTransfer> = []
  for (let from = after; from < settled.number; ) {
    const to = Math.min(settled.number, from + provider.blockRange.blocks)
    const isLast = to === settled.number
    const blocks = to - from
    const part = yield* readTokenTransfers(source, from, { number: to, hash: isLast ? settled.hash : undefined }).pipe(
      Effect.tapError((error) => Effect.sync(() => provider.blockRange.failed(error, blocks)))
    )
    // The headers are the provider's own. Its last one must be the block that the watcher read, on the same branch.
    const last = part.end ?? (isLast ? (yield* sendBatch(provider.client, [getHeader(to)]))[0] : undefined)
    if (isLast && last?.time !== settled.time) {
      const detail = `block ${to} has the time ${last?.time} at this provider, and had ${settled.time} when it was read`
      return yield* inconsistent(provider.client, "eth_getBlockByNumber", detail)
    }
    found.push(...part.transfers)
    from = to
  }
  return found
})

/** The subject of one search. */
export interface SearchPage {
  readonly due: ReadonlyArray<Searches.DuePayment>
  /** Money without a transaction of these payments that a single provider has reported. */
  readonly undated: ReadonlyArray<Undated>
  /** The blocks above `after` up to `settled`. */
  readonly after: number
  readonly settled: BlockRef
}

/** The result of one provider's search. */
export interface SearchEvidence extends SearchedIncome, SecondEvidence {}

/**
 * Searches one provider; gives `{ error }` where it fails with an `RpcError`.
 *
 * @param others asked for historical states that the provider does not have
 */
export const searchProvider = (
  watch: WatchContext,
  others: ReadonlyArray<Provider>,
  provider: Provider,
  page: SearchPage
) =>
  Effect.gen(function* () {
    const { due, settled, undated } = page
    const logs = yield* searchLogs(watch, provider, page)
    const income = yield* searchBalances(watch, others, provider, due, settled)
    const transfers = yield* withoutRefuted(watch, provider, income.transfers)
    const dropped = new Set(
      income.transfers.filter((transfer) => !transfers.includes(transfer)).map(({ address }) => address)
    )
    const compared = income.compared.filter(({ address }) => !dropped.has(address))
    const { answers, shown } = yield* secondEvidenceOf(watch, provider, undated, settled)
    return {
      shown,
      transfers: [...logs, ...transfers].map((transfer) => ({ ...transfer, reportedBy: provider.client.host })),
      compared,
      answers
    } satisfies SearchEvidence
  }).pipe(Effect.catchTag("RpcError", (error) => Effect.succeed({ error })))
