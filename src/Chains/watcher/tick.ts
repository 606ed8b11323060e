/**
 * One tick of a watcher: one look at the chain's head and one step towards it. A tick starts the scan, reads the next
 * range of blocks, or replaces the blocks that a reorg orphaned; a step is stored whole in one transaction, or not at
 * all. `Watcher` calls it until the head is reached, then at its poll interval.
 */
import { Array as Arr, Duration, Effect, Either } from "effect"
import type { Network } from "../../Domain/Chain.ts"
import type { BlockRef, Scan } from "../../Domain/Receipt.ts"
import type { ChainSettings } from "../../Settings.ts"
import { type Db, Tx } from "../../Sql.ts"
import * as Balances from "../balances/BalancesRepo.ts"
import { reconcileBalances } from "../balances/reconcile.ts"
import type { AddressSet } from "../ledger/AddressSet.ts"
import * as Ledger from "../ledger/LedgerRepo.ts"
import type { Settlement } from "../ledger/SettlementTag.ts"
import * as Watched from "../ledger/WatchedAddressesRepo.ts"
import { rangeErrors } from "../providers/BlockRange.ts"
import type { Provider } from "../providers/Providers.ts"
import { behind, isAnswer } from "../providers/providerHealth.ts"
import { type BlockHeader, findHeader, getChainId, getHead, getHeader, sendBatch } from "../rpc/methods.ts"
import type { RpcClient } from "../rpc/Rpc.ts"
import { inconsistent, RpcError } from "../rpc/RpcError.ts"
import { commonAncestor } from "../scan/commonAncestor.ts"
import { type ReadRange, readRange } from "../scan/readRange.ts"
import { isOnlyProvider, sourceOf, type WatchContext } from "../scan/WatchContext.ts"

/** How far a block's time may lag behind this machine's clock, milliseconds. */
const clockTolerance = Duration.toMillis("10 minutes")
/** Distance of the first probe, in blocks; each further one goes twice as deep. */
const firstDistance = 64

/**
 * The newest block, up to `from`, that is older than `time`, Unix seconds; the chain's first block where none is. Takes
 * at most two calls for each doubling of the distance. Fails where the node does not have a block on the way.
 */
export const newestBefore = Effect.fn("Scan.newestBefore")(function* (client: RpcClient, from: BlockRef, time: number) {
  let below = from
  let above = from
  for (let distance = firstDistance; below.time >= time; distance *= 2) {
    if (below.number === 0) return below
    above = below
    const [deeper] = yield* sendBatch(client, [getHeader(Math.max(0, from.number - distance))])
    below = deeper
  }
  while (above.number - below.number > 1) {
    const [middle] = yield* sendBatch(client, [getHeader(Math.floor((below.number + above.number) / 2))])
    if (middle.time < time) below = middle
    else above = middle
  }
  return below
})

const why =
  "payments were made before the chain's first head was known, and reading has to start below them: a provider that keeps such blocks helps, or a start_block"

/**
 * Number of the block above which scanning starts where no start_block is configured: below the head by the
 * confirmations, and below every block that may have money of payments created while no provider responded.
 */
export const latestStart = Effect.fn("Scan.latestStart")(function* (
  chain: ChainSettings,
  client: RpcClient,
  reader: Db,
  watched: AddressSet,
  head: BlockRef
) {
  const start = Math.max(head.number - chain.confirmations, 0)
  const oldest = yield* Watched.oldestUnplaced(reader, chain, watched)
  if (oldest === undefined) return start
  // A start that is too high is stored and hides everything below it, so a node that lacks old blocks must not set it.
  const before = yield* Effect.mapError(
    newestBefore(client, head, Math.floor((oldest - clockTolerance) / 1000)),
    (error) => new RpcError({ ...error, detail: `${error.detail}; ${why}` })
  )
  return Math.min(start, before.number)
})

/** The result of a tick's reading, and the block that it extends. */
export interface TickReading extends ReadRange {
  readonly network: Network
  /** The stored head that the tick started from. */
  readonly from: BlockRef
  /** The common ancestor, when `from` is no longer on the chain. */
  readonly ancestor: BlockRef | undefined
  /** The receipts need no second provider. */
  readonly corroborated: boolean
  /** No address was watched: a verification pass could find nothing. */
  readonly unwatched: boolean
}

/**
 * Stores a reading, and settles the payments that it changes, in one transaction: a receipt that is on the old branch
 * and on the new one changes nothing. Returns false, and stores nothing, when the stored head is no longer the one that
 * the reading started from.
 */
export const commitReading = (settlement: Settlement["Type"], reading: TickReading) =>
  Effect.gen(function* () {
    const { corroborated, ancestor, end, from, network, transfers, unwatched } = reading
    const tx = yield* Tx
    const scan = yield* Ledger.scan(tx, network)
    if (scan?.head.number !== from.number || scan.head.hash !== from.hash) return false

    const touched = new Set<Ledger.Touched>()
    if (ancestor !== undefined) {
      for (const payment of yield* Ledger.orphanAbove(network, ancestor)) touched.add(payment)
      yield* Watched.lowerTo(network, ancestor.number)
      yield* Ledger.keepBlocks(network, [ancestor])
    }
    for (const payment of yield* Ledger.keepReceipts(network, transfers, corroborated)) touched.add(payment)
    const paidIn = transfers.map(
      (transfer): BlockRef => ({ number: transfer.blockNumber, hash: transfer.blockHash, time: transfer.blockTime })
    )
    yield* Ledger.keepBlocks(network, [...new Map(paidIn.map((block) => [block.number, block])).values(), end])
    yield* Ledger.moveScan(network, end)
    if (unwatched) yield* Ledger.moveVerified(network, end.number)
    yield* settlement.settle({ network, head: end }, touched)
    return true
  })

/**
 * Stores where reading starts; payments made before count transfers above it. `head`: the chain's, which may be far above.
 * `genesis`: the hash of block 0, if known.
 */
export const commitStart = (
  network: Network,
  checkpoint: BlockRef,
  head: Pick<BlockRef, "time">,
  genesis: string | undefined,
  chainId?: number
) =>
  Effect.gen(function* () {
    yield* Ledger.startScan(network, checkpoint, genesis, chainId)
    yield* Ledger.keepBlocks(network, [checkpoint])
    yield* Watched.startAt(network, checkpoint.number)
    // A new database may have skipped them while this machine's clock was at an old time.
    yield* Watched.redateGaps(network.mode, head.time * 1000)
  })

/**
 * `CaughtUp`: the chain's head has been read. `More`: tick again at once. `Waiting`: nothing can be read yet, and why.
 * `Behind`: this provider lacks a block that has been read already.
 */
type Step =
  | { readonly _tag: "CaughtUp"; readonly scanned: number; readonly head: BlockRef }
  | { readonly _tag: "More"; readonly scanned: number }
  | { readonly _tag: "Waiting"; readonly scanned: number | undefined; readonly reason: string }
  | { readonly _tag: "Behind"; readonly scanned: number; readonly error: RpcError }

/** The result of a tick. */
export type TickOutcome = Step & {
  /** Number of the chain's head. */
  readonly newest: number
  /** Why this machine's clock is wrong, where it is. */
  readonly clock: string | undefined
}

/** Stores where reading starts, at the first head that is seen. */
const begin = Effect.fn("Watcher.begin")(function* (watch: WatchContext, provider: Provider, head: BlockHeader) {
  const { chain, network, providers, reader, writer } = watch
  const { client } = provider
  const { startBlock } = chain
  const configured = startBlock === "latest" ? undefined : Math.max(startBlock - 1, 0)
  const waiting = (reason: string) => ({ _tag: "Waiting", scanned: undefined, reason }) satisfies Step
  if (configured !== undefined && configured > head.number) {
    return waiting(`start_block ${startBlock} is above the chain's head ${head.number}`)
  }
  const corroborated = yield* providers.agree(provider)
  if ("doubt" in corroborated) return waiting(corroborated.doubt)
  yield* watch.heads.checkPlausible(provider, head)
  const startBy = ({ client }: Provider, head: BlockRef) => latestStart(chain, client, reader, watch.watched, head)
  const others = configured === undefined ? yield* providers.answering(provider) : []
  // The lowest: wrong block times must not hide what was paid below. Silence counts: it is not waited for without end.
  const lower = yield* Effect.forEach(others, (one) =>
    Effect.flatMap(sendBatch(one.client, [getHead]), ([theirs]) => startBy(one, theirs)).pipe(
      Effect.tapErrorTag("RpcError", (error) => providers.failed(one, error)),
      Effect.either
    )
  )
  const hasAnswer = lower.some((one) => Either.isRight(one) || (one.left._tag === "RpcError" && isAnswer(one.left)))
  const isAlone = !hasAnswer && !isOnlyProvider(watch) && !providers.decidesAlone(provider)
  if (
    configured === undefined &&
    isAlone &&
    (yield* Watched.oldestUnplaced(reader, chain, watch.watched)) !== undefined
  ) {
    return waiting(
      "payments were made before the chain's first head was known, and no other provider answers how far back to read: one is waited for as long as payments.sole_provider_patience says"
    )
  }
  const start = configured ?? Math.min(yield* startBy(provider, head), ...Arr.getRights(lower))
  // In one batch with the head, so that both are of the same chain and branch.
  const [checkpoint, again] = yield* sendBatch(client, [getHeader(start), getHeader(head.number)])
  if (again.hash !== head.hash) {
    const detail = `block ${head.number} was ${head.hash} and is ${again.hash}`
    return yield* inconsistent(client, "eth_getBlockByNumber", detail)
  }
  // Stored for good, and maybe by one provider's word: a single garbled answer must not decide which chain this is.
  const confirmed = yield* providers.agree(provider)
  if ("doubt" in confirmed) return waiting(confirmed.doubt)
  if (confirmed.genesis !== corroborated.genesis) {
    const detail = `its first block was ${corroborated.genesis} and is ${confirmed.genesis}`
    return yield* inconsistent(client, "eth_getBlockByNumber", detail)
  }
  yield* writer.write(commitStart(network, checkpoint, head, corroborated.genesis, chain.chainId))
  providers.began(corroborated.genesis)
  yield* Effect.logInfo("first head: reading starts").pipe(
    Effect.annotateLogs({ number: checkpoint.number, hash: checkpoint.hash, head: head.number })
  )
  return { _tag: "More", scanned: checkpoint.number } satisfies Step
})

/** A reorg of up to this many blocks is read in one range where possible, however small the block range has become. */
const oneReorg = 32

/** Reads the blocks after `after`: one block range, and at least up to `reorgedTo`. */
const read = Effect.fnUntraced(function* (
  watch: WatchContext,
  provider: Provider,
  after: BlockRef,
  head: BlockHeader,
  reorgedTo: number
): Effect.fn.Return<ReadRange, RpcError> {
  yield* watch.heads.checkPlausible(provider, head, after)
  // An address is watched before it is given out, so no block up to this head can pay an address that is added later.
  if (watch.watched.size === 0) return { end: head, transfers: [], unwatched: true } satisfies ReadRange
  const { client, blockRange } = provider
  const blocks = Math.max(blockRange.blocks, Math.min(reorgedTo - after.number, oneReorg))
  const to = Math.min(head.number, after.number + blocks)
  // The head was read in one batch with the block at `after`. So is any other end: both are of one branch.
  const [last, below] = to === head.number ? [head] : yield* sendBatch(client, [getHeader(to), getHeader(after.number)])
  if (below !== undefined && below.hash !== after.hash) {
    const detail = `block ${after.number} was ${after.hash} and is ${below.hash}`
    return yield* inconsistent(client, "eth_getBlockByNumber", detail)
  }
  return yield* readRange(sourceOf(watch, provider), after, last).pipe(
    Effect.tapBoth({
      onFailure: (error) => Effect.sync(() => blockRange.failed(error, last.number - after.number)),
      onSuccess: ({ end }) => Effect.sync(() => blockRange.succeeded(end.number - after.number))
    }),
    Effect.catchIf(
      ({ reason }) => reorgedTo > after.number && rangeErrors.has(reason),
      // With a limit below the reorg's depth, the whole range would be refused permanently.
      () => read(watch, provider, after, head, to > reorgedTo ? reorgedTo : after.number)
    )
  )
})

/**
 * Native transfers that a reorg orphaned and the new branch has again, up to `end`, where only balances show them. They
 * are found now, so that one transaction stores both and the payment does not lose them in between.
 */
const replacedIncome = Effect.fnUntraced(function* (
  watch: WatchContext,
  provider: Provider,
  ancestor: BlockRef,
  end: BlockRef
) {
  const queries = yield* Balances.orphanedQueries(watch.reader, watch.network, ancestor.number)
  if (queries.length === 0) return []
  return yield* reconcileBalances({ provider, others: [], chain: watch.chain }, end, queries).pipe(
    Effect.map(({ transfers }) => transfers.filter(({ txHash }) => txHash !== undefined)),
    Effect.catchTag("RpcError", (error) =>
      // The next comparison of balances finds them.
      Effect.as(
        Effect.logDebug("balances after a reorg could not be read").pipe(
          Effect.annotateLogs({ reason: error.message })
        ),
        []
      )
    )
  )
})

/** One commit from the scanned head towards the chain's. `atLast` is the chain's block at the scanned head's number. */
const readOn = Effect.fnUntraced(function* (
  watch: WatchContext,
  provider: Provider,
  scan: Scan,
  head: BlockHeader,
  atLast: BlockHeader | BlockRef | undefined
) {
  const from = scan.head
  const replacement = atLast?.hash === from.hash ? undefined : atLast
  if (replacement === undefined && head.number === from.number) {
    return { _tag: "CaughtUp", scanned: from.number, head: from } satisfies Step
  }
  const ancestor = replacement && (yield* commonAncestor(watch, provider, scan, replacement))
  const after = ancestor ?? from
  if (after.number === head.number) {
    // The reorg goes below the first stored block, and the chain has no block above it yet.
    const reason = `block ${head.number} was replaced and none has followed yet`
    return { _tag: "Waiting", scanned: from.number, reason } satisfies Step
  }
  const range = yield* read(watch, provider, after, head, ancestor === undefined ? after.number : from.number)
  const balanceTransfers = ancestor === undefined ? [] : yield* replacedIncome(watch, provider, ancestor, range.end)
  const stored = yield* watch.writer.write(
    commitReading(watch.settlement, {
      ...range,
      transfers: [...range.transfers, ...balanceTransfers].map((one) => ({ ...one, reportedBy: provider.client.host })),
      network: watch.network,
      from,
      ancestor,
      corroborated: isOnlyProvider(watch)
    })
  )
  if (!stored) return { _tag: "More", scanned: from.number } satisfies Step
  yield* Effect.logDebug("blocks were read").pipe(
    Effect.annotateLogs({
      number: range.end.number,
      hash: range.end.hash,
      head: head.number,
      receipts: range.transfers.length
    })
  )
  const { end } = range
  const scanned = end.number
  return (scanned === head.number ? { _tag: "CaughtUp", scanned, head: end } : { _tag: "More", scanned }) satisfies Step
})

/** The chain's head if it is the block `last` or its child, which the parent hash proves; else undefined. */
const findNext = Effect.fnUntraced(function* (client: Provider["client"], last: BlockRef) {
  const [head] = yield* sendBatch(client, [getHead])
  const isSame = head.number === last.number && head.hash === last.hash
  const isChild = head.number === last.number + 1 && head.parentHash === last.hash
  return isSame || isChild ? head : undefined
})

/**
 * Notes how far the clock is behind the chain's, for payments made from now on. Payments made between the start of the
 * process and this first look get that much more time.
 */
const noteClock = Effect.fnUntraced(function* ({ headClock, network, writer }: WatchContext, time: number) {
  const clock = yield* Effect.clock
  const now = clock.unsafeCurrentTimeMillis()
  const note = () => headClock.note(network, time, clock)
  if (headClock.behind(network, clock) !== undefined || time * 1000 <= now) return note()
  const extend = Watched.extend(network, headClock.lastPayment, time * 1000, now)
  yield* writer.write(
    Effect.zipRight(
      extend,
      Effect.map(Tx, (tx) => tx.afterCommit(note))
    )
  )
})

/**
 * One look at the chain, and one step towards its head.
 *
 * The look is one batch: the head, and the header at the last scanned block's number, whose hash must be the stored
 * one. While no address is watched the header is left out, since no reorg can matter.
 *
 * @param oneAhead the head is likely to be the last scanned block or its child: its own hash or its parent's proves
 * that the scanned block is still on the chain, with half the calls. Otherwise the whole look follows.
 */
export const tick = Effect.fn("Watcher.tick")(function* (watch: WatchContext, provider: Provider, oneAhead = false) {
  const { watched } = watch
  const { client } = provider
  const scan = yield* Ledger.scan(watch.reader, watch.network)
  const watching = scan !== undefined && watched.size > 0
  const next = watching && oneAhead ? yield* findNext(client, scan.head) : undefined
  const look = sendBatch(client, [
    getHead,
    watching ? findHeader(scan.head.number) : undefined,
    // Without a stored block to compare with, another chain's head would be taken for this one's.
    watching ? undefined : getChainId
  ])
  const [head, atLast, chainId] = next === undefined ? yield* look : [next, scan?.head, undefined]
  if (chainId !== undefined && chainId !== watch.chain.chainId) yield* watch.providers.verify(provider)
  const { time, wrong } = yield* watch.headClock.check(watch.network, watch.heads, provider, head.time)
  yield* noteClock(watch, time)
  const step: Step = yield* Effect.gen(function* () {
    if (scan === undefined) return yield* begin(watch, provider, head)
    const { number } = scan.head
    // An address was added after the batch was built: the last scanned block must be compared first.
    if (!watching && watched.size > 0) return { _tag: "More", scanned: number } as const
    const isBelow = head.number < number || (watching && atLast === undefined)
    if (isBelow && watching && (yield* watch.heads.areBelow(provider, head, scan.head))) {
      return yield* readOn(watch, provider, scan, head, head)
    }
    if (isBelow) {
      // The node still syncs, or a balancer picked another one. A reorg counts once its branch is as long.
      const error = behind(provider, `its head is ${head.number}, and ${number}, which it lacks, has been read`)
      return { _tag: "Behind", scanned: number, error } as const
    }
    return yield* readOn(watch, provider, scan, head, atLast)
  })
  return { ...step, newest: head.number, clock: wrong } satisfies TickOutcome
})
