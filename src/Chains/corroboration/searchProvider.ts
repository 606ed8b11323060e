import { Effect } from "effect"
import type { BlockRef } from "../../Domain/Receipt.ts"
import { type SearchedIncome, searchBalances } from "../balances/searchBalances.ts"
import { AddressSet } from "../ledger/AddressSet.ts"
import type { DatedTransfer } from "../ledger/LedgerRepo.ts"
import type { Provider } from "../providers/Providers.ts"
import { getHeader, sendBatch } from "../rpc/methods.ts"
import { RpcError } from "../rpc/RpcError.ts"
import { readTokenTransfers } from "../scan/readRange.ts"
import { sourceOf, type WatchContext } from "../scan/WatchContext.ts"
import { withoutRefuted } from "./corroborateBalances.ts"
import type * as Searches from "./SearchesRepo.ts"
import { type SecondEvidence, type SingleSourced, secondEvidenceOf } from "./secondEvidence.ts"

// What one provider tells of payments that are to end.

/** What a provider's logs tell of the addresses in the blocks above `after` up to `settled`. */
const searchLogs = Effect.fnUntraced(function* (
  watch: WatchContext,
  other: Provider,
  due: ReadonlyArray<Searches.Due>,
  after: number,
  settled: BlockRef
) {
  const watched = new AddressSet()
  for (const { address } of due) watched.add(address)
  const source = { ...sourceOf(watch, other), watched }
  const found: Array<DatedTransfer> = []
  for (let from = after; from < settled.number; ) {
    const to = Math.min(settled.number, from + other.blockRange.blocks)
    const [last] = yield* sendBatch(other.client, [getHeader(to)])
    // Its own blocks up to here, and the last one is the one that was read: it has the same branch.
    if (to === settled.number && last.time !== settled.time) {
      const detail = `block ${to} is of ${last.time} to it, and was read as of ${settled.time}`
      return yield* new RpcError({
        host: other.client.host,
        method: "eth_getBlockByNumber",
        reason: "inconsistent",
        detail
      })
    }
    const end = to === settled.number ? { ...last, hash: settled.hash } : last
    const part = readTokenTransfers(source, { number: from, hash: "", time: 0 }, end)
    const blocks = to - from
    found.push(...(yield* Effect.tapError(part, (error) => Effect.sync(() => other.blockRange.failed(error, blocks)))))
    from = to
  }
  return found
})

/** What a search is about. */
export interface SearchPage {
  readonly due: ReadonlyArray<Searches.Due>
  readonly told: SingleSourced
  /** The blocks above `after` up to `settled`. */
  readonly after: number
  readonly settled: BlockRef
}

/** What one provider tells. */
export interface SearchEvidence extends SearchedIncome, SecondEvidence {}

/** What a provider tells of the addresses, or why it does not; `others` may give what it has no states for. */
export const searchProvider = (
  watch: WatchContext,
  others: ReadonlyArray<Provider>,
  other: Provider,
  { after, due, settled, told }: SearchPage
) =>
  Effect.gen(function* () {
    const logs = yield* searchLogs(watch, other, due, after, settled)
    const income = yield* searchBalances(watch, others, other, due, settled)
    const transfers = yield* withoutRefuted(watch, other, income.transfers)
    const left = new Set(income.transfers.filter((one) => !transfers.includes(one)).map(({ address }) => address))
    const compared = income.compared.filter(({ address }) => !left.has(address))
    const word = yield* secondEvidenceOf(watch, other, told, settled)
    return {
      ...word,
      transfers: [...logs, ...transfers].map((one) => ({ ...one, reportedBy: other.client.host })),
      compared,
      corroborated: [...logs, ...word.corroborated]
    } satisfies SearchEvidence
  }).pipe(Effect.catchTag("RpcError", (error) => Effect.succeed({ error })))
