import { Effect } from "effect"
import type { Scan } from "../Domain/Receipt.ts"
import { Tx } from "../Sql.ts"
import { ask, getHeader, type Header } from "./calls.ts"
import type { DatedTransfer } from "./LedgerRepo.ts"
import * as Ledger from "./LedgerRepo.ts"
import type { Provider } from "./Providers.ts"
import { RpcError } from "./Rpc.ts"
import { readTokens } from "./range.ts"
import { isAlone, sourceOf, type Watch } from "./tick.ts"

/** On a chain without the tag, what is this many times deeper than its confirmations counts as final. */
const finalDepths = 4
/** Reorgs above this block are still to be expected, below it they are an alarm. */
export const finalNumber = (watch: Watch, head: number, finalized: number | undefined): number =>
  Math.min(head, finalized ?? head - finalDepths * watch.chain.confirmations)

/**
 * Those that the ledger does not count yet. Each must be in the block that `provider` has, and that one must still be on the
 * branch that has been read: what belongs to another waits until the reorg has been seen.
 */
const missed = (watch: Watch, provider: Provider, { head }: Scan, transfers: ReadonlyArray<DatedTransfer>) =>
  Effect.gen(function* () {
    const known = yield* Ledger.countedKeys(watch.reader, watch.network, transfers)
    const unknown = transfers.filter((transfer) => !known.has(Ledger.keyOf(transfer)))
    if (unknown.length === 0) return []
    const blocks = [head, ...unknown.map(({ blockHash, blockNumber }) => ({ number: blockNumber, hash: blockHash }))]
    const headers = yield* ask(
      provider.client,
      blocks.map(({ number }) => getHeader(number))
    )
    const stranger = blocks.find(({ hash }, i) => headers[i]?.hash !== hash)
    if (stranger !== undefined) {
      return yield* new RpcError({
        host: provider.client.host,
        method: "eth_getLogs",
        reason: "inconsistent",
        detail: `block ${stranger.number} was ${stranger.hash} and is another one now`
      })
    }
    return unknown
  })

/** `waits`: for another provider, which only `patient` allows. `more`: final blocks are left to be read. */
type Passed = "waits" | "more" | "done"

/** The transfers of the blocks above `after`, by everything that these providers tell, each once. */
const toldBy = Effect.fnUntraced(function* (
  watch: Watch,
  provider: Provider,
  readers: ReadonlyArray<Provider>,
  after: number,
  last: Header
) {
  const told = yield* Effect.forEach(
    readers,
    (reader) =>
      readTokens(sourceOf(watch, reader), { number: after, hash: "", time: 0 }, last).pipe(
        Effect.tapErrorTag("RpcError", (error) => {
          reader.span.failed(error)
          return reader === provider ? Effect.void : watch.providers.failed(reader, error)
        })
      ),
    { concurrency: "unbounded" }
  )
  return [...new Map(told.flat().map((transfer) => [Ledger.keyOf(transfer), transfer])).values()]
})

/**
 * Reads blocks that have become final again, from every provider that can be used: a node that answered with too few logs
 * when they were new is not believed for ever, and the one that is asked now may be the one that was asked then. One span
 * at a time.
 */
export const secondPass = Effect.fn("Watcher.secondPass")(function* (
  watch: Watch,
  provider: Provider,
  finalized: Header | undefined,
  patient: boolean
) {
  const { network, providers, reader, settlement, watched, writer } = watch
  const scan = yield* Ledger.scan(reader, network)
  if (scan === undefined) return "done" satisfies Passed
  const final = finalNumber(watch, scan.head.number, finalized?.number)
  if (final <= scan.verified) return "done" satisfies Passed
  const others = yield* providers.others(provider)
  if (others.length === 0 && !isAlone(watch) && patient) return "waits" satisfies Passed
  const readers = [...others, provider]
  const to = Math.min(final, scan.verified + Math.min(...readers.map(({ span }) => span.blocks)))
  const found =
    watched.size === 0
      ? []
      : yield* Effect.gen(function* () {
          const [last] = to === finalized?.number ? [finalized] : yield* ask(provider.client, [getHeader(to)])
          return yield* missed(watch, provider, scan, yield* toldBy(watch, provider, readers, scan.verified, last))
        })
  if (found.length > 0) {
    yield* Effect.logWarning("the second pass found what a provider had left out").pipe(
      Effect.annotateLogs({ transactions: found.map(({ txHash }) => txHash).join(", ") })
    )
  }
  yield* writer.write(
    Effect.gen(function* () {
      const now = yield* Ledger.scan(yield* Tx, network)
      if (now === undefined || now.head.hash !== scan.head.hash) return
      const touched = yield* Ledger.keepReceipts(network, found, isAlone(watch))
      yield* Ledger.moveVerified(network, to)
      yield* settlement.settle({ network, head: now.head }, touched)
    })
  )
  const passed: Passed = to < final ? "more" : "done"
  return passed
})
