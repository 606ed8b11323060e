import { Effect, Either } from "effect"
import type { Network } from "../../Domain/Chain.ts"
import { deepBlock, finalBlock, type Scan } from "../../Domain/Receipt.ts"
import { type StoreUnavailable, Tx } from "../../Sql.ts"
import { Ballot, unanimous, yes } from "../evidence/Ballot.ts"
import type { DatedTransfer } from "../ledger/LedgerRepo.ts"
import * as Ledger from "../ledger/LedgerRepo.ts"
import { refusals } from "../providers/BlockRange.ts"
import { inTime, type Provider } from "../providers/Providers.ts"
import { getHeader, sendBatch } from "../rpc/methods.ts"
import { inconsistent, type RpcError } from "../rpc/RpcError.ts"
import { readTokenTransfers } from "../scan/readRange.ts"
import { isOnlyProvider, sourceOf, type WatchContext } from "../scan/WatchContext.ts"
import { settleDispute } from "./blockDispute.ts"
import * as CorroborationRepo from "./CorroborationRepo.ts"
import * as SecondEvidenceRepo from "./SecondEvidenceRepo.ts"

/**
 * The verification pass: once blocks are deep, they are read a second time, from every usable provider. A provider
 * that returned incomplete logs when the blocks were new is found out here, even if it serves again now. Missed
 * receipts are added to the ledger, and receipts that two providers report alike are corroborated.
 *
 * The watcher's maintenance runs it, one block range per call. `Scan.verified` is the block up to which it has come.
 */

/**
 * Number of the newest final block. A reorg above it is expected now and then; a reorg below it raises an alarm.
 *
 * @param finalized number of the block with the tag `finalized`, where the chain has one
 */
export const finalBlockOf = (watch: WatchContext, head: number, finalized: number | undefined): number =>
  finalBlock({ confirmations: watch.chain.confirmations, finalized, head })

/** The token transfers that one provider reports in the blocks. */
interface BlockReport {
  readonly provider: Provider
  readonly transfers: ReadonlyArray<DatedTransfer>
}

/** The state of a verification pass between two calls. */
export interface PassState {
  /** The serving provider has reread the blocks up to here by itself, which does not verify them. */
  aloneTo: number
}
/** The state of a pass that has not run yet. */
export const startPass = (): PassState => ({ aloneTo: -1 })

const otherBlock = ({ client }: Provider, { number, hash }: { readonly number: number; readonly hash: string }) =>
  inconsistent(
    client,
    "eth_getLogs",
    `it reported block ${number} as ${hash}; another provider, or a later response, has another block there`
  )

/** The provider refused a range of several blocks: a smaller one may pass. */
const isTooLarge = ({ reason }: RpcError, blocks: number): boolean => refusals.has(reason) && blocks > 1

/**
 * Decides which provider is wrong where another one contradicts the serving one about a deep block. Fails where the
 * serving one is wrong. Returns whether the dispute stays open.
 */
const resolveDispute = Effect.fnUntraced(function* (
  watch: WatchContext,
  serving: Provider,
  other: Provider,
  number: number,
  error: RpcError
) {
  const dispute = yield* settleDispute(watch, serving, other, number)
  if (dispute._tag === "Wrong") {
    yield* watch.providers.failed(dispute.provider, dispute.error)
    return dispute.provider === serving ? yield* dispute.error : false
  }
  if (dispute._tag === "None") {
    // Both have the same block now: a load balancer may have mixed its nodes. The other provider is left out this time.
    watch.troubles.note("deep blocks", error.summary)
    return false
  }
  // The pass does not go beyond it.
  if (watch.troubles.note("deep blocks", dispute.reason)) {
    yield* Effect.logError("two providers disagree about a deep block").pipe(
      Effect.annotateLogs({ reason: dispute.reason })
    )
  }
  return true
})

/**
 * Reads the blocks above `after` up to `to`, first from the serving provider, then from the others up to the block that it
 * has there. Undefined where two of them disagree about that block and the dispute stays open. Another provider that fails
 * gets a cooldown and is left out. Fails where the serving provider fails, or the range is too large for one of them.
 */
const readAll = Effect.fnUntraced(function* (
  watch: WatchContext,
  serving: Provider,
  others: ReadonlyArray<Provider>,
  after: number,
  to: number
) {
  const readBy = (reader: Provider, hash: string | undefined) =>
    readTokenTransfers(sourceOf(watch, reader), after, { number: to, hash }).pipe(
      Effect.tap(() => Effect.sync(() => reader.blockRange.succeeded(to - after))),
      Effect.tapErrorTag("RpcError", (error) => Effect.sync(() => reader.blockRange.failed(error, to - after)))
    )
  const { end, transfers } = yield* readBy(serving, undefined)
  const reports = yield* Effect.forEach(
    others,
    (other) =>
      inTime(other, "eth_getLogs", readBy(other, end?.hash)).pipe(
        Effect.tap(() => watch.providers.answered(other)),
        Effect.map((read): ReadonlyArray<BlockReport> => [{ provider: other, transfers: read.transfers }]),
        Effect.catchTag("RpcError", (error) => {
          if (isTooLarge(error, to - after)) return error
          if (error.reason !== "inconsistent") return Effect.as(watch.providers.failed(other, error), [])
          return Effect.map(resolveDispute(watch, serving, other, to, error), (open) => (open ? undefined : []))
        })
      ),
    { concurrency: "unbounded" }
  )
  const undisputed = reports.filter((report) => report !== undefined)
  return undisputed.length < reports.length ? undefined : [...undisputed.flat(), { provider: serving, transfers }]
})

/**
 * The reported transfers that the ledger does not count yet, each once, and the `readers` whose reports they are from. Each
 * must be in the block that the serving provider has at that height, else one of the two is wrong, and the other's report
 * is left out. One in another block than was read at that height takes two providers: the same money would count twice.
 * The serving provider must still be on the branch that the watcher read: otherwise the pass fails and waits until the
 * watcher has seen the reorg. Undefined where a dispute stays open.
 */
const missedTransfers = Effect.fnUntraced(function* (
  watch: WatchContext,
  serving: Provider,
  { head }: Scan,
  reports: ReadonlyArray<BlockReport>
) {
  const all = reports.flatMap(({ transfers }) => transfers)
  const known = yield* Ledger.countedKeys(watch.reader, watch.network, all)
  const isUnknown = (transfer: DatedTransfer) => !known.has(Ledger.keyOf(transfer))
  const numbers = [...new Set(all.filter(isUnknown).map(({ blockNumber }) => blockNumber))]
  const readers = new Set(reports.map(({ provider }) => provider))
  if (numbers.length === 0) return { missed: [], readers }
  const [now, ...headers] = yield* sendBatch(serving.client, [head.number, ...numbers].map(getHeader))
  if (now?.hash !== head.hash) return yield* otherBlock(serving, head)
  const hashes = new Map(headers.map(({ hash, number }) => [number, hash]))
  const ballot = new Ballot<string, DatedTransfer, Provider>(() => true)
  for (const { provider, transfers } of reports) {
    const unknown = transfers.filter(isUnknown)
    const misplaced = unknown.find(({ blockHash, blockNumber }) => hashes.get(blockNumber) !== blockHash)
    if (misplaced === undefined) {
      const reportedBy = provider.client.host
      for (const one of unknown) ballot.vote(Ledger.keyOf(one), provider, yes({ ...one, reportedBy }))
      continue
    }
    const error = otherBlock(provider, { number: misplaced.blockNumber, hash: misplaced.blockHash })
    if (provider === serving) return yield* error
    if (yield* resolveDispute(watch, serving, provider, misplaced.blockNumber, error)) return undefined
    readers.delete(provider)
  }
  const shown = new Set(ballot.shown.map(([key]) => key))
  const found = ballot.claimed.flatMap(([, alike]) => alike.slice(-1))
  const missed = yield* Effect.filter(found, (one) =>
    shown.has(Ledger.keyOf(one))
      ? Effect.succeed(true)
      : Effect.negate(Ledger.contradicts(watch.reader, watch.network, [one]))
  )
  return { missed, readers }
})

/**
 * The transfers that two providers report with the same block time, each with all its confirmations below its own head.
 * Empty where nothing was missed and the ledger has nothing to corroborate.
 */
const corroboratedTransfers = Effect.fnUntraced(function* (
  watch: WatchContext,
  serving: Provider,
  scan: Scan,
  reports: ReadonlyArray<BlockReport>,
  missed: ReadonlyArray<DatedTransfer>,
  after: number,
  to: number
) {
  const isKnown =
    missed.length === 0 && !(yield* CorroborationRepo.anyUncorroborated(watch.reader, watch.network, after, to))
  if (isKnown || reports.length < 2) return []
  const ballot = new Ballot<string, DatedTransfer, Provider>((one, other) => one.blockTime === other.blockTime)
  for (const { provider, transfers } of reports) {
    const head = provider === serving ? scan.head.number : ((yield* watch.heads.of(provider))?.number ?? -1)
    for (const transfer of transfers) {
      const isDeep = head - transfer.blockNumber + 1 >= watch.chain.confirmations
      if (isDeep) ballot.vote(Ledger.keyOf(transfer), provider, yes(transfer))
    }
  }
  return ballot.shown.flatMap(([, alike]) =>
    alike.slice(0, 1).map((transfer) => ({ ...transfer, sender: unanimous(alike.map(({ sender }) => sender)) }))
  )
})

/** The result of one call. `waits`: for another provider. `more`: there are further deep blocks to read. */
type PassResult = "waits" | "more" | "done"

/** The result of one block range of a pass. */
interface PassRange {
  readonly network: Network
  readonly missed: ReadonlyArray<DatedTransfer>
  readonly corroborated: ReadonlyArray<DatedTransfer>
  /** Its last block. */
  readonly to: number
  /** Another provider has read it too, or only one is configured. */
  readonly isVerified: boolean
}

const store = ({ settlement, writer, ...watch }: WatchContext, scan: Scan, part: PassRange) =>
  writer.write(
    Effect.gen(function* () {
      const { network } = part
      const now = yield* Ledger.scan(yield* Tx, network)
      if (now === undefined || now.head.hash !== scan.head.hash) return
      const touched = new Set(yield* Ledger.keepReceipts(network, part.missed, watch.providers.all.length < 2))
      for (const payment of yield* SecondEvidenceRepo.setPassCorroborated(network, part.corroborated))
        touched.add(payment)
      if (part.isVerified) yield* Ledger.moveVerified(network, part.to)
      yield* settlement.settle({ network, head: now.head }, touched)
    })
  )

/**
 * Reads the next range of deep blocks again, from every usable provider, and stores what it finds.
 *
 * Where no other provider can be used, the pass waits until the serving one decides alone. Then that one rereads the
 * blocks by itself, since a load balancer may ask another node this time. That does not verify them: the pass is
 * repeated once another provider is back.
 */
export const verificationPass = Effect.fn("Watcher.verificationPass")(function* (
  watch: WatchContext,
  provider: Provider,
  state: PassState = startPass()
) {
  const { network, providers, reader, watched } = watch
  const scan = yield* Ledger.scan(reader, network)
  if (scan === undefined) return "done" satisfies PassResult
  const deep = deepBlock(watch.chain.confirmations, scan.head.number)
  if (deep <= scan.verified) return "done" satisfies PassResult
  const others = yield* providers.others(provider)
  const isSole = others.length === 0 && !isOnlyProvider(watch)
  const isPatient = () => !providers.decidesAlone(provider)
  if (isSole && isPatient()) return "waits" satisfies PassResult
  const after = isSole ? Math.max(scan.verified, state.aloneTo) : scan.verified
  if (deep <= after) return "done" satisfies PassResult
  // A contradicted provider still counts for the quorum, but adds no receipts of its own.
  const witnesses = yield* providers.witnesses(provider)
  const trusted = [...others, provider]
  const read = Effect.fnUntraced(function* (): Effect.fn.Return<PassRange | undefined, RpcError | StoreUnavailable> {
    const to = Math.min(deep, after + Math.min(...[...witnesses, provider].map(({ blockRange }) => blockRange.blocks)))
    const verified = { network, missed: [], corroborated: [], to, isVerified: true } satisfies PassRange
    if (watched.size === 0) return verified
    const reading = yield* Effect.either(readAll(watch, provider, witnesses, after, to))
    if (Either.isLeft(reading)) return isTooLarge(reading.left, to - after) ? yield* read() : yield* reading.left
    const reports = reading.right
    if (reports === undefined) return undefined
    const trustedReports = reports.filter((report) => trusted.includes(report.provider))
    const found = yield* missedTransfers(watch, provider, scan, trustedReports)
    if (found === undefined) return undefined
    const isVerified = isOnlyProvider(watch) || found.readers.size > 1
    if (!isVerified && isPatient()) return undefined
    const corroborated = yield* corroboratedTransfers(watch, provider, scan, reports, found.missed, after, to)
    return { ...verified, missed: found.missed, corroborated, isVerified } satisfies PassRange
  })
  const part = yield* read()
  if (part === undefined) return "waits" satisfies PassResult
  if (part.missed.length > 0) {
    yield* Effect.logWarning("the verification pass found transactions that a provider had left out").pipe(
      Effect.annotateLogs({ transactions: part.missed.map(({ txHash }) => txHash).join(", ") })
    )
  }
  yield* store(watch, scan, part)
  if (part.isVerified) watch.troubles.note("deep blocks", undefined)
  else state.aloneTo = part.to
  return (part.to < deep ? "more" : "done") satisfies PassResult
})
