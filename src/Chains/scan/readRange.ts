/**
 * Reads a range of blocks from one provider, complete or not at all: the configured tokens' Transfer logs and, on
 * ethereum, the blocks with their transactions. Checks that everything is of one branch of the chain, that blocks are
 * linked, that no log is missing which a block's bloom promises, and that transactions succeeded.
 *
 * The watcher's ticks, `tilld rescan` and the verification pass call it. Nothing is stored here.
 */
import { Array as Arr, Effect, Predicate } from "effect"
import { chainTraits } from "../../Domain/Chain.ts"
import { nativeToken } from "../../Domain/Currency.ts"
import type { BlockRef } from "../../Domain/Receipt.ts"
import type { DatedTransfer } from "../ledger/LedgerRepo.ts"
import type { Transfer } from "../ledger/Transfer.ts"
import { refusals } from "../providers/BlockRange.ts"
import {
  type BlockHeader,
  badResponse,
  type Call,
  type FullBlock,
  getBlockLogs,
  getFullBlock,
  getHeader,
  getLogs,
  type LogFilter,
  sendBatch,
  sendInBatches
} from "../rpc/methods.ts"
import type { RpcClient } from "../rpc/Rpc.ts"
import { inconsistent, otherBlock, type RpcError } from "../rpc/RpcError.ts"
import { getTransactionReceipt, hasSucceeded, withReceipts } from "../rpc/transactionMethods.ts"
import { mayContain } from "./bloom.ts"
import { readOversizedBlock } from "./oversizedBlock.ts"
import { type ScanSource, transferFilter, truncationOf } from "./ScanSource.ts"
import { nativeTransfers, strayBlock, tokenTransfers } from "./transfers.ts"

/** Full blocks in one batch: of Ethereum's, some three megabytes. */
const blocksPerBatch = 10
/** Concurrent batches. */
const batchesAtOnce = 2
/** Headers, or the logs of single blocks, in one batch; providers allow from 100 calls up. */
const smallPerBatch = 50

/** The last block of a range of logs. Without a hash it is the one that the provider itself has at that height. */
interface LogsEnd {
  readonly number: number
  readonly hash: string | undefined
}

/** A range of blocks that was read completely. */
export interface ReadRange {
  /** The last block of the range. */
  readonly end: BlockRef
  readonly transfers: ReadonlyArray<DatedTransfer>
  /** No address was watched, so nothing was read. */
  readonly unwatched: boolean
}

/** A block's header and the native transfers to watched addresses; the rest of the block is not kept in memory. */
const readBlock = ({ chain, client, watched }: ScanSource, block: FullBlock) =>
  Effect.mapBoth(nativeTransfers(block, nativeToken(chain.chain), watched), {
    onFailure: (detail) => badResponse(client, getFullBlock(block.header.number), detail),
    onSuccess: (transfers) => ({ header: block.header, transfers })
  })

/** Fails unless each block is the parent of the next, from `after` on, up to `last`. */
const checkLinks = Effect.fnUntraced(function* (
  client: RpcClient,
  after: BlockRef,
  headers: ReadonlyArray<BlockHeader>,
  last: BlockRef
) {
  let parent = after
  for (const header of headers) {
    if (header.parentHash !== parent.hash) {
      const detail = `block ${header.number} does not follow ${parent.hash}`
      return yield* inconsistent(client, "eth_getBlockByNumber", detail)
    }
    parent = header
  }
  if (parent.hash !== last.hash) return yield* otherBlock(client, last, parent.hash)
})

/** The native transfers whose transactions succeeded. */
const succeeded = (client: RpcClient, transfers: ReadonlyArray<Transfer>) => {
  const mined = transfers.map((transfer) => ({ transfer, hash: transfer.txHash, blockHash: transfer.blockHash }))
  return Effect.map(withReceipts(client, mined, getTransactionReceipt), (found) =>
    found.flatMap(([{ transfer }, receipt]) => (hasSucceeded(receipt) ? [transfer] : []))
  )
}

/** Adds the block time to each transfer, from the block's header; fails when a transfer is of another branch. */
const withTimes = (client: RpcClient, transfers: ReadonlyArray<Transfer>, headers: ReadonlyArray<BlockHeader>) => {
  const byHash = new Map(headers.map((header) => [header.hash, header]))
  return Effect.forEach(transfers, (transfer) => {
    const header = byHash.get(transfer.blockHash)
    return header !== undefined && header.number === transfer.blockNumber
      ? Effect.succeed<DatedTransfer>({ ...transfer, blockTime: header.time })
      : inconsistent(client, "eth_getLogs", `a log is in block ${transfer.blockHash}, which the chain does not have`)
  })
}

/** The token transfers among the logs; fails when a log is malformed. */
const decodeTokens = ({ contracts, watched }: ScanSource, client: RpcClient, logs: ReadonlyArray<unknown>) =>
  Effect.mapError(tokenTransfers(logs, contracts, watched), (detail) =>
    badResponse(client, { method: "eth_getLogs", params: [] }, detail)
  )

/** The token transfers of single blocks, read by block hash; `client` may be another provider than the source's. */
const readSingleBlocks = Effect.fnUntraced(function* (
  source: ScanSource,
  client: RpcClient,
  filter: LogFilter,
  blocks: ReadonlyArray<BlockHeader>
) {
  const failed = (detail: string) => inconsistent(client, "eth_getLogs", detail)
  const calls = blocks.map(({ hash }) => getBlockLogs(hash, filter))
  // A balancer's node that does not have a block yet has no logs for its hash, and no header.
  const [, ...single] = yield* sendBatch(client, [getHeader(Math.max(...blocks.map(({ number }) => number))), ...calls])
  const hidden = blocks.find((_, i) => (single[i]?.length ?? 0) > 0)
  // The provider contradicts itself.
  if (hidden !== undefined && client === source.client) {
    return yield* failed(`the logs of block ${hidden.number} were left out`)
  }
  const stray = strayBlock(single.flat(), new Set(blocks.map(({ hash }) => hash)))
  if (stray !== undefined) return yield* failed(`logs of block ${stray} came for one that was asked for by its hash`)
  return yield* decodeTokens(source, client, single.flat())
})

/**
 * The transfers of blocks whose bloom promises a matching log where the response has none. They are read from another
 * provider, and from the same one only where there is no other or it fails. A node behind a load balancer returns an
 * empty list for a range that it does not have yet, and a dishonest provider omits logs. Fails as `inconsistent` where
 * the same provider now returns logs that it left out before.
 */
const checkMissingLogs = Effect.fnUntraced(function* (
  source: ScanSource,
  filter: LogFilter,
  logs: ReadonlyArray<unknown>,
  headers: ReadonlyArray<BlockHeader>
) {
  const withLogs = new Set(logs.map((log) => (Predicate.isRecord(log) ? log.blockHash : undefined)))
  const doubtful = headers.filter(
    ({ hash, logsBloom }) => !withLogs.has(hash) && logsBloom !== undefined && mayContain(logsBloom, filter)
  )
  if (doubtful.length === 0) return []
  const other = yield* source.other ?? Effect.succeed(undefined)
  const found = yield* Effect.forEach(Arr.chunksOf(doubtful, smallPerBatch), (part) => {
    const same = readSingleBlocks(source, source.client, filter, part)
    return other === undefined ? same : Effect.orElse(readSingleBlocks(source, other, filter, part), () => same)
  })
  return found.flat()
})

/**
 * The logs of a range, with the results of other calls in the same batch. Where the provider refuses the logs of a
 * single block in one response, the block's transfers are read from its receipts instead: then `logs` is empty.
 */
const logsWith = <A>(
  source: ScanSource,
  filter: LogFilter,
  after: number,
  last: LogsEnd,
  others: ReadonlyArray<Call<A>>
) => {
  const { client, contracts, stuck = false } = source
  /**
   * At once where the provider refused the logs. After a timeout, an HTTP error or a retry-after, only when the block
   * fails again: first it is retried, by another provider if there is one.
   */
  const needsReceipts = ({ method, reason, retryAfter }: RpcError) => {
    const isAtOnce = refusals.has(reason) && retryAfter === undefined
    const isLater = stuck && (refusals.has(reason) || reason === "timeout" || reason === "http")
    return last.number === after + 1 && method.includes("eth_getLogs") && (isAtOnce || isLater)
  }
  // An empty list of contracts would ask for every contract's logs.
  const logsCall = contracts.size > 0 ? getLogs(after + 1, last.number, filter) : undefined
  return sendBatch(client, [logsCall, ...others]).pipe(
    Effect.flatMap(
      ([logs = [], ...results]) =>
        truncationOf(client, logs) ?? Effect.succeed({ logs, results, fromReceipts: undefined })
    ),
    Effect.catchIf(needsReceipts, (error) =>
      Effect.gen(function* () {
        const results = yield* sendBatch(client, others)
        const { hash = (yield* sendBatch(client, [getHeader(last.number)]))[0].hash } = last
        return { logs: [], results, fromReceipts: yield* readOversizedBlock(source, { ...last, hash }, error) }
      })
    )
  )
}

/** The token transfers of a range, with those that its logs lack. */
const tokensOf = Effect.fnUntraced(function* (
  source: ScanSource,
  filter: LogFilter,
  {
    fromReceipts,
    logs
  }: { readonly logs: ReadonlyArray<unknown>; readonly fromReceipts: ReadonlyArray<Transfer> | undefined },
  headers: ReadonlyArray<BlockHeader>
) {
  if (fromReceipts !== undefined) return fromReceipts
  const hidden = yield* checkMissingLogs(source, filter, logs, headers)
  return [...hidden, ...(yield* decodeTokens(source, source.client, logs))]
})

const readFullBlocks = Effect.fnUntraced(function* (source: ScanSource, after: BlockRef, last: BlockRef) {
  const { client, contracts, watched } = source
  const filter = transferFilter(contracts.keys(), watched)
  const calls = Arr.range(after.number + 1, last.number).map(getFullBlock)
  const read = (found: ReadonlyArray<FullBlock>) => Effect.forEach(found, (block) => readBlock(source, block))
  const found = yield* logsWith(source, filter, after.number, last, calls.slice(0, blocksPerBatch))
  const first = yield* read(found.results)
  const rest = yield* Effect.forEach(
    Arr.chunksOf(calls.slice(blocksPerBatch), blocksPerBatch),
    (part) => Effect.flatMap(sendBatch(client, part), read),
    { concurrency: batchesAtOnce }
  )
  const blocks = [...first, ...rest.flat()]
  const headers = blocks.map(({ header }) => header)
  yield* checkLinks(client, after, headers, last)

  const stray = strayBlock(found.logs, new Set(headers.map(({ hash }) => hash)))
  if (stray !== undefined) {
    return yield* inconsistent(client, "eth_getLogs", `logs of block ${stray} came for a range that does not have it`)
  }
  const tokens = yield* tokensOf(source, filter, found, headers)
  const native = blocks.flatMap(({ transfers }) => transfers)
  return yield* withTimes(client, [...tokens, ...(yield* succeeded(client, native))], headers)
})

/**
 * The token transfers in the blocks above `after` up to `last`, each checked against its block's header, without native
 * transfers; and the header of `last`, which is not asked for where there are no tokens.
 */
export const readTokenTransfers = Effect.fnUntraced(function* (source: ScanSource, after: number, last: LogsEnd) {
  const { client, contracts, watched } = source
  if (contracts.size === 0) return { end: undefined, transfers: [] }
  const filter = transferFilter(contracts.keys(), watched)
  // In one batch: the node that returns the logs has the last block of the range.
  const found = yield* logsWith(source, filter, after, last, [getHeader(last.number)])
  const [end] = found.results
  if (end === undefined || end.hash !== (last.hash ?? end.hash)) return yield* otherBlock(client, last, end?.hash)
  const tokens = yield* tokensOf(source, filter, found, [end])
  const outside = tokens.find(({ blockNumber }) => blockNumber <= after || blockNumber > last.number)
  if (outside !== undefined) {
    return yield* inconsistent(client, "eth_getLogs", `a log of block ${outside.blockNumber} came for another range`)
  }
  const others = new Set(tokens.map(({ blockNumber }) => blockNumber))
  others.delete(end.number)
  const calls = Array.from(others, (number) => getHeader(number))
  const headers = yield* sendInBatches(client, calls, smallPerBatch, batchesAtOnce)
  return { end, transfers: yield* withTimes(client, tokens, [end, ...headers]) }
})

/**
 * Reads every block above `after` up to `last`, which the node has: the tokens' logs in one call, and on ethereum the
 * blocks with their transactions. Fails as a whole when anything is missing or of another branch.
 *
 * `last` was read before the logs. So if a reorg happens meanwhile, either the logs are of the branch of `last`, or the
 * next tick finds that `last` is orphaned, and the range is read again.
 */
export const readRange = Effect.fn("Scan.readRange")(function* (source: ScanSource, after: BlockRef, last: BlockRef) {
  const transfers = chainTraits[source.chain.chain].readsFullBlocks
    ? yield* readFullBlocks(source, after, last)
    : (yield* readTokenTransfers(source, after.number, last)).transfers
  const end: BlockRef = { number: last.number, hash: last.hash, time: last.time }
  return { end, transfers, unwatched: false } satisfies ReadRange
})
