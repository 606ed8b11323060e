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

/** What one provider tells of the blocks. */
interface Told {
  readonly reader: Provider
  readonly transfers: ReadonlyArray<DatedTransfer>
}

const inconsistent = ({ client }: Provider, { number, hash }: { readonly number: number; readonly hash: string }) =>
  new RpcError({
    host: client.host,
    method: "eth_getLogs",
    reason: "inconsistent",
    detail: `block ${number} is ${hash} to it, and another one to another provider or by now`
  })

/**
 * What each of the providers tells of the blocks above `after`. One besides `provider` that fails is put aside, and left
 * out: it was to give a second opinion only.
 */
const hear = (
  watch: Watch,
  provider: Provider,
  readers: ReadonlyArray<Provider>,
  after: number,
  last: Header
): Effect.Effect<ReadonlyArray<Told>, RpcError> =>
  Effect.map(
    Effect.forEach(
      readers,
      (reader) =>
        readTokens(sourceOf(watch, reader), { number: after, hash: "", time: 0 }, last).pipe(
          Effect.map((transfers): ReadonlyArray<Told> => [{ reader, transfers }]),
          Effect.catchTag("RpcError", (error) => {
            reader.span.failed(error)
            return reader === provider ? error : Effect.as(watch.providers.failed(reader, error), [])
          })
        ),
      { concurrency: "unbounded" }
    ),
    (told) => told.flat()
  )

/**
 * Those that the ledger does not count yet, each once. Each must be in the block
 * that `provider` has, else who has told of it is put aside; and that one must still be on the branch that has been read:
 * what belongs to another waits until the reorg has been seen.
 */
const missed = Effect.fnUntraced(function* (
  { network, providers, reader: db }: Watch,
  provider: Provider,
  { head }: Scan,
  told: ReadonlyArray<Told>
) {
  const all = told.flatMap(({ transfers }) => transfers)
  const known = yield* Ledger.countedKeys(db, network, all)
  const isUnknown = (transfer: DatedTransfer) => !known.has(Ledger.keyOf(transfer))
  const numbers = [...new Set(all.filter(isUnknown).map(({ blockNumber }) => blockNumber))]
  if (numbers.length === 0) return []
  const [now, ...headers] = yield* ask(provider.client, [head.number, ...numbers].map(getHeader))
  if (now?.hash !== head.hash) return yield* inconsistent(provider, head)
  const hashes = new Map(headers.map(({ hash, number }) => [number, hash]))
  const found = new Map<string, DatedTransfer>()
  for (const { reader, transfers } of told) {
    const unknown = transfers.filter(isUnknown)
    const stranger = unknown.find(({ blockHash, blockNumber }) => hashes.get(blockNumber) !== blockHash)
    if (stranger === undefined) for (const transfer of unknown) found.set(Ledger.keyOf(transfer), transfer)
    else {
      const error = inconsistent(reader, { number: stranger.blockNumber, hash: stranger.blockHash })
      if (reader === provider) return yield* error
      yield* providers.failed(reader, error)
    }
  }
  return [...found.values()]
})

/** `waits`: for another provider, which only `patient` allows. `more`: final blocks are left to be read. */
type Passed = "waits" | "more" | "done"

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
  const found = yield* Effect.gen(function* () {
    if (watched.size === 0) return []
    const [last] = to === finalized?.number ? [finalized] : yield* ask(provider.client, [getHeader(to)])
    const told = yield* hear(watch, provider, readers, scan.verified, last)
    const isSecond = told.some(({ reader }) => reader !== provider)
    return isSecond || isAlone(watch) || !patient ? yield* missed(watch, provider, scan, told) : undefined
  })
  if (found === undefined) return "waits" satisfies Passed
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
