import { Effect } from "effect"
import type { BlockRef } from "../../Domain/Receipt.ts"
import { type Income, searchBalances } from "../balances/searchBalances.ts"
import { AddressSet } from "../ledger/AddressSet.ts"
import type { DatedTransfer } from "../ledger/LedgerRepo.ts"
import type { Provider } from "../providers/Providers.ts"
import { sendBatch, getHeader } from "../rpc/calls.ts"
import { RpcError } from "../rpc/RpcError.ts"
import { readTokens } from "../scan/range.ts"
import { sourceOf, type Watch } from "../scan/watch.ts"
import { withoutRefuted } from "./corroborateBalances.ts"
import type * as Searches from "./SearchesRepo.ts"
import { type OneSided, type SecondWord, secondWord } from "./vouching.ts"

// What one provider tells of payments that are to end.

/** What a provider's logs tell of the addresses in the blocks above `after` up to `settled`. */
const searchLogs = Effect.fnUntraced(function* (
  watch: Watch,
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
    const to = Math.min(settled.number, from + other.span.blocks)
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
    const part = readTokens(source, { number: from, hash: "", time: 0 }, end)
    const blocks = to - from
    found.push(...(yield* Effect.tapError(part, (error) => Effect.sync(() => other.span.failed(error, blocks)))))
    from = to
  }
  return found
})

/** What a search is about. */
export interface Page {
  readonly due: ReadonlyArray<Searches.Due>
  readonly told: OneSided
  /** The blocks above `after` up to `settled`. */
  readonly after: number
  readonly settled: BlockRef
}

/** What one provider tells. */
export interface Told extends Income, SecondWord {}

/** What a provider tells of the addresses, or why it does not; `others` may give what it has no states for. */
export const tell = (
  watch: Watch,
  others: ReadonlyArray<Provider>,
  other: Provider,
  { after, due, settled, told }: Page
) =>
  Effect.gen(function* () {
    const logs = yield* searchLogs(watch, other, due, after, settled)
    const income = yield* searchBalances(watch, others, other, due, settled)
    const transfers = yield* withoutRefuted(watch, other, income.transfers)
    const left = new Set(income.transfers.filter((one) => !transfers.includes(one)).map(({ address }) => address))
    const compared = income.compared.filter(({ address }) => !left.has(address))
    const word = yield* secondWord(watch, other, told, settled)
    return {
      ...word,
      transfers: [...logs, ...transfers].map((one) => ({ ...one, reportedBy: other.client.host })),
      compared,
      vouched: [...logs, ...word.vouched]
    } satisfies Told
  }).pipe(Effect.catchTag("RpcError", (error) => Effect.succeed({ error })))
