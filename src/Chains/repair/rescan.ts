/**
 * `tilld rescan`: reads a range of scanned blocks again and stores the receipts that the ledger lacks. Also what all
 * repairs share: retries, the check of the branch, and storing receipts of old blocks. Repairs run between two ticks of
 * the watcher, which stays the only writer of the network's rows, and never move the scan.
 */
import { Clock, Duration, Effect, Schedule } from "effect"
import { networkKey } from "../../Domain/Chain.ts"
import { nativeToken } from "../../Domain/Currency.ts"
import type { Scan } from "../../Domain/Receipt.ts"
import { RepairRefused } from "../../Domain/RepairErrors.ts"
import { type StoreUnavailable, Tx } from "../../Sql.ts"
import * as Income from "../balances/IncomeRepo.ts"
import * as Ledger from "../ledger/LedgerRepo.ts"
import { refusals } from "../providers/BlockRange.ts"
import type { Provider } from "../providers/Providers.ts"
import { getHeader, sendBatch } from "../rpc/methods.ts"
import { inconsistent, type RpcError } from "../rpc/RpcError.ts"
import { readRange } from "../scan/readRange.ts"
import { type ExclusiveWork, isOnlyProvider, sourceOf, type WatchContext } from "../scan/WatchContext.ts"
import * as Repair from "./RepairRepo.ts"

/** Delays between attempts at the same blocks. */
const tryAgain = Schedule.intersect(Schedule.exponential("500 millis"), Schedule.recurs(3))

/** The error of a repair that cannot succeed. */
export const refused = (message: string): RepairRefused => new RepairRefused({ message })

/** How far the chain has been scanned. Fails before the first tick: only scanned blocks can be repaired. */
export const scanOf = ({ network, reader }: WatchContext): Effect.Effect<Scan, RepairRefused | StoreUnavailable> =>
  Effect.flatMap(Ledger.scan(reader, network), (scan) =>
    scan === undefined
      ? refused(
          `Nothing of chains.${networkKey(network)} has been read yet: /readyz on the [admin] listener and the log have the reason`
        )
      : Effect.succeed(scan)
  )

/**
 * Runs work between two ticks of the network's watcher and retries it after an error, with another provider if there is
 * one. Gives up after three retries, some seconds, with the last error; does not retry `RepairRefused`.
 */
export const persistently = <A, E>(
  exclusively: ExclusiveWork,
  work: (watch: WatchContext, provider: Provider) => Effect.Effect<A, E>
) => Effect.retry(exclusively(work), { schedule: tryAgain, while: (error) => !(error instanceof RepairRefused) })

const otherBranch = ({ client }: Provider, detail: string) => inconsistent(client, "eth_getBlockByNumber", detail)

/** Fails as `inconsistent` unless the provider has the scanned head: then its responses are of the scanned branch. */
export const checkBranch = (provider: Provider, { head }: Scan) =>
  Effect.flatMap(sendBatch(provider.client, [getHeader(head.number)]), ([header]) =>
    header.hash === head.hash
      ? Effect.void
      : otherBranch(provider, `block ${head.number} is ${header.hash} and was read as ${head.hash}`)
  )

const aboveBound = ({ address, after, amount, upTo }: Income.IncomeBound, excess: bigint) =>
  refused(
    `Its coins are in the ledger already, as money of other transactions: ${address} got ${amount} wei in ` +
      `${upTo === after + 1 ? `block ${upTo}` : `blocks ${after + 1} to ${upTo}`}, and with it the ledger would have ` +
      `${excess} more`
  )

/**
 * Stores transfers of scanned blocks and settles the payments concerned, in one transaction. The scan and the blocks
 * stored for reorgs stay unchanged. Fails as `inconsistent`, with nothing stored, when the branch has changed
 * meanwhile. Returns the number of receipts that the ledger lacked, or that did not count before.
 *
 * @param bounds upper bounds of the addresses' income: fails with `RepairRefused` where the ledger would exceed one
 */
export const storeRepaired = (
  watch: WatchContext,
  provider: Provider,
  scan: Scan,
  transfers: ReadonlyArray<Ledger.DatedTransfer>,
  bounds: ReadonlyArray<Income.IncomeBound> = []
) =>
  Effect.gen(function* () {
    const { network, settlement } = watch
    const coin = nativeToken(network.chain)
    const stored = yield* watch.writer.write(
      Effect.gen(function* () {
        const tx = yield* Tx
        const now = yield* Ledger.scan(tx, network)
        if (now?.head.hash !== scan.head.hash) return undefined
        if (yield* Ledger.contradicts(tx, network, transfers)) return undefined
        const counted = yield* Ledger.countedKeys(tx, network, transfers)
        const added = transfers.filter((transfer) => !counted.has(Ledger.keyOf(transfer)))
        for (const transfer of added) {
          if (transfer.currency === coin) yield* Income.takeFromUnattributed(network, transfer)
        }
        yield* Repair.reopen(network, transfers)
        const touched = yield* Ledger.keepReceipts(network, transfers, isOnlyProvider(watch))
        for (const bound of bounds) {
          if (!added.some(({ address, currency }) => address === bound.address && currency === coin)) continue
          const excess = yield* Income.keepWithin(network, bound)
          if (excess > 0n) return yield* aboveBound(bound, excess)
        }
        yield* settlement.settle({ network, head: now.head }, new Set(touched))
        return added.length
      })
    )
    return (
      stored ?? (yield* otherBranch(provider, "the blocks that were read are not those of the chain that is stored"))
    )
  })

/** The progress of a rescan. */
export interface Rescanned {
  /** The last block that was read. */
  readonly through: number
  /** The last block to read. */
  readonly to: number
  /** Transfers to watched addresses in the blocks that were read. */
  readonly receipts: number
  /** The number of them that the ledger lacked. */
  readonly added: number
}

/** Reads blocks of the scanned branch from `from` up to at most `to`, as many as the provider's block range allows. */
const readPart = Effect.fnUntraced(function* (
  watch: WatchContext,
  provider: Provider,
  scan: Scan,
  from: number,
  to: number
): Effect.fn.Return<{ through: number; transfers: ReadonlyArray<Ledger.DatedTransfer> }, RpcError> {
  const { client, blockRange } = provider
  const [after, last] = yield* sendBatch(client, [
    getHeader(from - 1),
    getHeader(Math.min(to, from + blockRange.blocks - 1))
  ])
  yield* checkBranch(provider, scan)
  const blocks = last.number - after.number
  return yield* readRange(sourceOf(watch, provider), after, last).pipe(
    Effect.map(({ transfers }) => ({ through: last.number, transfers })),
    Effect.tapBoth({
      onFailure: (error) => Effect.sync(() => blockRange.failed(error, blocks)),
      onSuccess: () => Effect.sync(() => blockRange.succeeded(blocks))
    }),
    Effect.catchIf(
      ({ reason }) => refusals.has(reason) && blocks > 1,
      () => readPart(watch, provider, scan, from, to)
    )
  )
})

/** Reads the next part of [from, to] again and stores what the ledger lacks. */
const readAgain = Effect.fnUntraced(function* (watch: WatchContext, provider: Provider, from: number, wanted?: number) {
  const scan = yield* scanOf(watch)
  const key = `chains.${networkKey(watch.network)}`
  const to = wanted ?? scan.head.number
  if (to > scan.head.number) {
    return yield* refused(`Block ${to} of ${key} has not been read yet: it has been read up to ${scan.head.number}`)
  }
  // Block 0 has no transactions.
  if (from > Math.max(to, 1)) return yield* refused(`Block ${from} is above the last one to be read, ${to}`)
  if (to === 0 || watch.watched.size === 0) return { through: to, to, receipts: 0, added: 0 } satisfies Rescanned

  const { through, transfers } = yield* readPart(watch, provider, scan, from, to)
  yield* checkBranch(provider, scan)
  const added = transfers.length === 0 ? 0 : yield* storeRepaired(watch, provider, scan, transfers)
  return { through, to, receipts: transfers.length, added } satisfies Rescanned
})

/**
 * Reads scanned blocks again, from block 1 up to the scanned head at most, and stores what the ledger lacks. Nothing
 * changes where nothing is missing. The watcher ticks between its parts. Stops after `budget` and returns how far it
 * has come.
 *
 * Fails with `RepairRefused` for a range that has not been scanned, and with `RpcError` after some retries.
 */
export const rescan = Effect.fn("Repair.rescan")(function* (
  exclusively: ExclusiveWork,
  range: { readonly from: number; readonly to?: number },
  budget: Duration.DurationInput
) {
  const until = (yield* Clock.currentTimeMillis) + Duration.toMillis(budget)
  const from = Math.max(range.from, 1)
  let done = yield* persistently(exclusively, (watch, provider) => readAgain(watch, provider, from, range.to))
  while (done.through < done.to && (yield* Clock.currentTimeMillis) < until) {
    yield* Effect.yieldNow()
    const { added, receipts, through, to } = done
    const part = yield* persistently(exclusively, (watch, provider) => readAgain(watch, provider, through + 1, to))
    done = { ...part, receipts: receipts + part.receipts, added: added + part.added }
  }
  return done
})
