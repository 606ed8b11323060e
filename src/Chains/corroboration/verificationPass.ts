import { Effect, Either } from "effect"
import type { Network } from "../../Domain/Chain.ts"
import { finalBlock } from "../../Domain/Finality.ts"
import type { Scan } from "../../Domain/Receipt.ts"
import { type StoreUnavailable, Tx } from "../../Sql.ts"
import type { DatedTransfer } from "../ledger/LedgerRepo.ts"
import * as Ledger from "../ledger/LedgerRepo.ts"
import { refusals } from "../providers/BlockRange.ts"
import { headOf } from "../providers/headOf.ts"
import type { Provider } from "../providers/Providers.ts"
import { type BlockHeader, getHeader, sendBatch } from "../rpc/methods.ts"
import { RpcError } from "../rpc/RpcError.ts"
import { readTokenTransfers } from "../scan/readRange.ts"
import { isOnlyProvider, sourceOf, type WatchContext } from "../scan/WatchContext.ts"
import * as CorroborationRepo from "./CorroborationRepo.ts"
import { settleDispute } from "./finalBlockDispute.ts"
import * as SecondEvidenceRepo from "./SecondEvidenceRepo.ts"

/** Reorgs above this block are still to be expected, below it they are an alarm. */
export const finalBlockOf = (watch: WatchContext, head: number, finalized: number | undefined): number =>
  finalBlock({ confirmations: watch.chain.confirmations, finalized, head })

/** What one provider tells of the blocks. */
interface Told {
  readonly reader: Provider
  readonly transfers: ReadonlyArray<DatedTransfer>
}

/** What a verification pass keeps between two calls. */
export interface PassState {
  /** Up to here the serving provider has read the chain again without another one, which is no verification. */
  aloneTo: number
  /** What two providers disagree about, with nobody to decide; the pass stays below it. */
  dispute: string | undefined
}
export const startPass = (): PassState => ({ aloneTo: -1, dispute: undefined })

const inconsistent = ({ client }: Provider, { number, hash }: { readonly number: number; readonly hash: string }) =>
  new RpcError({
    host: client.host,
    method: "eth_getLogs",
    reason: "inconsistent",
    detail: `block ${number} is ${hash} to it, and another one to another provider or by now`
  })

/** More blocks than one were asked for, and fewer may pass. */
const isTooLarge = ({ reason }: RpcError, after: number, last: BlockHeader): boolean =>
  refusals.has(reason) && last.number - after > 1

/** Two providers disagree about a final block: fails where the serving one is wrong. True: the dispute stays open. */
const disagree = Effect.fnUntraced(function* (
  watch: WatchContext,
  serving: Provider,
  reader: Provider,
  number: number,
  error: RpcError,
  state: PassState
) {
  const dispute = yield* settleDispute(watch, serving, reader, number)
  if (dispute._tag === "Wrong" && dispute.provider === serving) {
    yield* watch.providers.failed(serving, dispute.error)
    return yield* dispute.error
  }
  if (dispute._tag === "Wrong") {
    yield* watch.providers.failed(reader, dispute.error)
    return false
  }
  if (dispute._tag === "None") {
    // Both have the same block: what did not belong to it may be a balancer's doing, and is left out this time.
    state.dispute = error.summary
    return false
  }
  if (state.dispute !== dispute.reason) {
    yield* Effect.logError("two providers disagree about a final block").pipe(
      Effect.annotateLogs({ reason: dispute.reason })
    )
  }
  state.dispute = dispute.reason
  return true
})

/**
 * What each of the providers tells of the blocks above `after`; undefined where two of them disagree about the last one. One
 * besides `provider` that fails is put aside, and left out: it was to give a second opinion only. Fails where the blocks are
 * too many for one of them.
 */
const hear = Effect.fnUntraced(function* (
  watch: WatchContext,
  provider: Provider,
  readers: ReadonlyArray<Provider>,
  after: number,
  last: BlockHeader,
  state: PassState
) {
  const parts = yield* Effect.forEach(
    readers,
    (reader) =>
      readTokenTransfers(sourceOf(watch, reader), { number: after, hash: "", time: 0 }, last).pipe(
        Effect.map((transfers): ReadonlyArray<Told> => {
          reader.blockRange.succeeded(last.number - after)
          return [{ reader, transfers }]
        }),
        Effect.tap(() => (reader === provider ? Effect.void : watch.providers.answered(reader))),
        Effect.catchTag("RpcError", (error) => {
          reader.blockRange.failed(error, last.number - after)
          if (reader === provider || isTooLarge(error, after, last)) return error
          if (error.reason !== "inconsistent") return Effect.as(watch.providers.failed(reader, error), [])
          return Effect.map(disagree(watch, provider, reader, last.number, error, state), (open) =>
            open ? undefined : []
          )
        })
      ),
    { concurrency: "unbounded" }
  )
  const told = parts.filter((part) => part !== undefined)
  return told.length === parts.length ? told.flat() : undefined
})

/**
 * Those that the ledger does not count yet, each once. Each must be in the block that `provider` has, else one of the two
 * is wrong; and that one must still be on the branch that has been read: what belongs to another waits until the reorg has
 * been seen. Undefined where nobody can tell who is wrong.
 */
const missed = Effect.fnUntraced(function* (
  watch: WatchContext,
  provider: Provider,
  { head }: Scan,
  told: ReadonlyArray<Told>,
  state: PassState
) {
  const all = told.flatMap(({ transfers }) => transfers)
  const known = yield* Ledger.countedKeys(watch.reader, watch.network, all)
  const isUnknown = (transfer: DatedTransfer) => !known.has(Ledger.keyOf(transfer))
  const numbers = [...new Set(all.filter(isUnknown).map(({ blockNumber }) => blockNumber))]
  if (numbers.length === 0) return []
  const [now, ...headers] = yield* sendBatch(provider.client, [head.number, ...numbers].map(getHeader))
  if (now?.hash !== head.hash) return yield* inconsistent(provider, head)
  const hashes = new Map(headers.map(({ hash, number }) => [number, hash]))
  const found = new Map<string, DatedTransfer>()
  for (const { reader, transfers } of told) {
    const unknown = transfers.filter(isUnknown)
    const stranger = unknown.find(({ blockHash, blockNumber }) => hashes.get(blockNumber) !== blockHash)
    if (stranger === undefined) {
      const reportedBy = reader.client.host
      for (const transfer of unknown) found.set(Ledger.keyOf(transfer), { ...transfer, reportedBy })
      continue
    }
    const error = inconsistent(reader, { number: stranger.blockNumber, hash: stranger.blockHash })
    if (reader === provider) return yield* error
    if (yield* disagree(watch, provider, reader, stranger.blockNumber, error, state)) return undefined
  }
  return [...found.values()]
})

/**
 * What two of the providers have told of alike, block times included, where the ledger has anything uncorroborated, as
 * deep as the confirmations by the heads that they have themselves.
 */
const corroborated = Effect.fnUntraced(function* (
  watch: WatchContext,
  provider: Provider,
  scan: Scan,
  told: ReadonlyArray<Told>,
  after: number,
  to: number
) {
  if (told.length < 2 || !(yield* CorroborationRepo.anyUncorroborated(watch.reader, watch.network, after, to)))
    return []
  const votes = new Map<string, { readonly one: DatedTransfer; count: number }>()
  for (const { reader, transfers } of told) {
    const head = reader === provider ? scan.head.number : ((yield* headOf(watch.providers, reader))?.number ?? -1)
    for (const transfer of transfers) {
      if (head - transfer.blockNumber + 1 < watch.chain.confirmations) continue
      const key = `${Ledger.keyOf(transfer)} ${transfer.blockTime}`
      const vote = votes.get(key) ?? { one: transfer, count: 0 }
      vote.count++
      votes.set(key, vote)
    }
  }
  return [...votes.values()].flatMap(({ count, one }) => (count > 1 ? [one] : []))
})

/** `waits`: for another provider. `more`: final blocks are left to be read. */
type Passed = "waits" | "more" | "done"

/** What one part of a pass has found. */
interface Part {
  readonly network: Network
  readonly missed: ReadonlyArray<DatedTransfer>
  readonly corroborated: ReadonlyArray<DatedTransfer>
  /** Its last block. */
  readonly to: number
  /** Another provider has read it too, or there is none. */
  readonly isVerified: boolean
}

const store = ({ settlement, writer, ...watch }: WatchContext, scan: Scan, part: Part) =>
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
 * The verification pass: reads blocks that have become final again, from every provider that can be used. A node that
 * answered with too few logs when they were new is not believed for ever, and the one that is asked now may be the one that
 * was asked then. One block range at a time.
 *
 * Where no other provider can be used for as long as `patient` says, the one that serves reads them again by itself, since
 * a balancer may have another node answer; that verifies nothing, and the pass is repeated once another one is back.
 */
export const verificationPass = Effect.fn("Watcher.secondPass")(function* (
  watch: WatchContext,
  provider: Provider,
  finalized: BlockHeader | undefined,
  patient: boolean,
  state: PassState = startPass()
) {
  const { network, providers, reader, watched } = watch
  const scan = yield* Ledger.scan(reader, network)
  if (scan === undefined) return "done" satisfies Passed
  const final = finalBlockOf(watch, scan.head.number, finalized?.number)
  if (final <= scan.verified) return "done" satisfies Passed
  const others = yield* providers.others(provider)
  const isSole = others.length === 0 && !isOnlyProvider(watch)
  if (isSole && patient) return "waits" satisfies Passed
  const after = isSole ? Math.max(scan.verified, state.aloneTo) : scan.verified
  if (final <= after) return "done" satisfies Passed
  // One that two others contradict still has its say about what is there, and adds nothing to it.
  const readers = [...(yield* providers.witnesses(provider)), provider]
  const believed = [...others, provider]
  const read = Effect.fnUntraced(function* (): Effect.fn.Return<Part | undefined, RpcError | StoreUnavailable> {
    const to = Math.min(final, after + Math.min(...readers.map(({ blockRange: span }) => span.blocks)))
    const verified = { network, missed: [], corroborated: [], to, isVerified: true } satisfies Part
    if (watched.size === 0) return verified
    const [last] = to === finalized?.number ? [finalized] : yield* sendBatch(provider.client, [getHeader(to)])
    const heard = yield* Effect.either(hear(watch, provider, readers, after, last, state))
    if (Either.isLeft(heard)) return isTooLarge(heard.left, after, last) ? yield* read() : yield* heard.left
    const told = heard.right
    if (told === undefined) return undefined
    const heeded = told.filter(({ reader }) => believed.includes(reader))
    const isVerified = isOnlyProvider(watch) || heeded.some(({ reader }) => reader !== provider)
    if (!isVerified && patient) return undefined
    const found = yield* missed(watch, provider, scan, heeded, state)
    if (found === undefined) return undefined
    const agreeing = yield* corroborated(watch, provider, scan, told, after, to)
    return { ...verified, missed: found, corroborated: agreeing, isVerified } satisfies Part
  })
  const part = yield* read()
  if (part === undefined) return "waits" satisfies Passed
  if (part.missed.length > 0) {
    yield* Effect.logWarning("the verification pass found what a provider had left out").pipe(
      Effect.annotateLogs({ transactions: part.missed.map(({ txHash }) => txHash).join(", ") })
    )
  }
  yield* store(watch, scan, part)
  if (part.isVerified) state.dispute = undefined
  else state.aloneTo = part.to
  const passed: Passed = part.to < final ? "more" : "done"
  return passed
})
