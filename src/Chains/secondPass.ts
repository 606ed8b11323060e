import { Array as Arr, Effect, Either } from "effect"
import type { Scan } from "../Domain/Receipt.ts"
import { type StoreUnavailable, Tx } from "../Sql.ts"
import { ask, getHeader, type Header } from "./calls.ts"
import type { DatedTransfer } from "./LedgerRepo.ts"
import * as Ledger from "./LedgerRepo.ts"
import type { Provider } from "./Providers.ts"
import { RpcError } from "./Rpc.ts"
import { readTokens } from "./range.ts"
import { refusals } from "./Span.ts"
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

/** More blocks than one were asked for, and fewer may pass. */
const isTooLarge = ({ reason }: RpcError, after: number, last: Header): boolean =>
  refusals.has(reason) && last.number - after > 1

/**
 * What each of the providers tells of the blocks above `after`. One besides `provider` that fails is put aside, and left
 * out: it was to give a second opinion only. Fails where the blocks are too many for one of them.
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
          Effect.map((transfers): ReadonlyArray<Told> => {
            reader.span.succeeded(last.number - after)
            return [{ reader, transfers }]
          }),
          Effect.catchTag("RpcError", (error) => {
            reader.span.failed(error, last.number - after)
            if (reader === provider || isTooLarge(error, after, last)) return error
            return Effect.as(watch.providers.failed(reader, error), [])
          })
        ),
      { concurrency: "unbounded" }
    ),
    (told) => told.flat()
  )

const contentOf = (transfer: DatedTransfer): string =>
  `${Ledger.keyOf(transfer)} ${transfer.txHash} ${transfer.currency} ${transfer.amount}`

/**
 * Those that the ledger does not count yet, or has otherwise than two providers tell, each once. Each must be in the block
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
  // Whose word it is that the ledger has wrong, nobody can say, until two say the same.
  const otherwise = Arr.groupBy(yield* Ledger.contradicting(db, network, all), contentOf)
  const isUnknown = (transfer: DatedTransfer) =>
    !known.has(Ledger.keyOf(transfer)) || (otherwise[contentOf(transfer)]?.length ?? 0) > 1
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

/** What the ledger lacks up to a block; undefined while another provider is waited for. */
interface Heard {
  readonly to: number
  readonly found: ReadonlyArray<DatedTransfer> | undefined
}

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
  const read = Effect.fnUntraced(function* (): Effect.fn.Return<Heard, RpcError | StoreUnavailable> {
    const to = Math.min(final, scan.verified + Math.min(...readers.map(({ span }) => span.blocks)))
    if (watched.size === 0) return { to, found: [] }
    const [last] = to === finalized?.number ? [finalized] : yield* ask(provider.client, [getHeader(to)])
    const told = yield* Effect.either(hear(watch, provider, readers, scan.verified, last))
    if (Either.isLeft(told)) return isTooLarge(told.left, scan.verified, last) ? yield* read() : yield* told.left
    const isSecond = told.right.some(({ reader }) => reader !== provider)
    const isEnough = isSecond || isAlone(watch) || !patient
    return { to, found: isEnough ? yield* missed(watch, provider, scan, told.right) : undefined }
  })
  const { found, to } = yield* read()
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
