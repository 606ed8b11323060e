/**
 * Reads a range of blocks from one provider, complete or not at all: the configured tokens' Transfer logs and, on
 * ethereum, the blocks with their transactions. Checks that everything is of one branch of the chain, that blocks are
 * linked, that no log is missing which a block's bloom promises, and that transactions succeeded.
 *
 * The watcher's ticks, `tilld rescan` and the verification pass call it. Nothing is stored here.
 */
import { Array as Arr, Effect, Either, Predicate } from "effect"
import { chainTraits } from "../../Domain/Chain.ts"
import { nativeToken } from "../../Domain/Currency.ts"
import type { BlockRef } from "../../Domain/Receipt.ts"
import type { DatedTransfer } from "../ledger/LedgerRepo.ts"
import type { Transfer } from "../ledger/Transfer.ts"
import {
  type BlockHeader,
  badResponse,
  type FullBlock,
  getBlockLogs,
  getFullBlock,
  getHeader,
  getLogs,
  type LogFilter,
  sendBatch
} from "../rpc/methods.ts"
import type { RpcClient } from "../rpc/Rpc.ts"
import { inconsistent, type RpcError } from "../rpc/RpcError.ts"
import { getTransactionReceipt, hasSucceeded } from "../rpc/transactionMethods.ts"
import { mayContain } from "./bloom.ts"
import { readOversizedBlock } from "./oversizedBlock.ts"
import {
  mayBeTruncated,
  needsParts,
  receiversOf,
  type ScanSource,
  transferFilter,
  truncatedError
} from "./ScanSource.ts"
import { nativeTransfers, strayBlock, tokenTransfers } from "./transfers.ts"

/** Full blocks in one batch: of Ethereum's, some three megabytes. */
const blocksPerBatch = 10
/** Concurrent batches. */
const batchesAtOnce = 2
/** Headers or receipts in one batch; providers allow from 100 calls up. */
const smallPerBatch = 50

/** A range of blocks that was read completely. */
export interface ReadRange {
  /** The last block of the range. */
  readonly end: BlockRef
  readonly transfers: ReadonlyArray<DatedTransfer>
  /** No address was watched, so nothing was read. */
  readonly unwatched: boolean
}

/** While few addresses are watched, the provider filters by receiver. */
const filterOf = (source: ScanSource): LogFilter => transferFilter(source.contracts.keys(), receiversOf(source))

const inBatches = <A>(calls: ReadonlyArray<A>, size: number) => Arr.chunksOf(calls, size)

/** A block's header and the native transfers to watched addresses; the rest of the block is not kept in memory. */
const readBlock = ({ chain, client, watched }: ScanSource, block: FullBlock) =>
  Either.match(nativeTransfers(block, nativeToken(chain.chain), watched), {
    onLeft: (detail) => badResponse(client, getFullBlock(block.header.number), detail),
    onRight: (transfers) => Effect.succeed({ header: block.header, transfers })
  })

/** Fails unless each block is the parent of the next, from `after` on, up to `last`. */
const checkLinks = (client: RpcClient, after: BlockRef, headers: ReadonlyArray<BlockHeader>, last: BlockRef) =>
  Effect.gen(function* () {
    let parent: BlockRef = after
    for (const header of headers) {
      if (header.parentHash !== parent.hash) {
        return yield* inconsistent(
          client,
          "eth_getBlockByNumber",
          `block ${header.number} does not follow ${parent.hash}`
        )
      }
      parent = header
    }
    if (parent.hash !== last.hash) {
      return yield* inconsistent(
        client,
        "eth_getBlockByNumber",
        `block ${last.number} was ${last.hash} and is ${parent.hash}`
      )
    }
  })

/** The native transfers whose transactions succeeded. */
const succeeded = (client: RpcClient, transfers: ReadonlyArray<Transfer>) =>
  Effect.gen(function* () {
    const kept: Array<Transfer> = []
    for (const part of inBatches(transfers, smallPerBatch)) {
      const receipts = yield* sendBatch(
        client,
        part.map((transfer) => getTransactionReceipt(transfer.txHash))
      )
      for (const [transfer, receipt] of Arr.zip(part, receipts)) {
        if (receipt.blockHash !== transfer.blockHash || receipt.transactionHash !== transfer.txHash) {
          return yield* inconsistent(
            client,
            "eth_getTransactionReceipt",
            `${transfer.txHash} is in block ${receipt.blockHash}`
          )
        }
        if (hasSucceeded(receipt)) kept.push(transfer)
      }
    }
    return kept
  })

/** The headers of the blocks that `transfers` are in: the `known` ones, and the others by calls. */
const headersOf = (client: RpcClient, transfers: ReadonlyArray<Transfer>, known: ReadonlyArray<BlockHeader>) =>
  Effect.gen(function* () {
    const there = new Set(known.map((header) => header.number))
    const missing = [...new Set(transfers.map((transfer) => transfer.blockNumber))].filter((n) => !there.has(n))
    const found = yield* Effect.forEach(
      inBatches(missing, smallPerBatch),
      (part) => sendBatch(client, part.map(getHeader)),
      {
        concurrency: batchesAtOnce
      }
    )
    return [...known, ...found.flat()]
  })

/** Adds the block time to each transfer, from the block's header; fails when a transfer is of another branch. */
const withTimes = (client: RpcClient, transfers: ReadonlyArray<Transfer>, headers: ReadonlyArray<BlockHeader>) => {
  const byHash = new Map(headers.map((header) => [header.hash, header]))
  return Effect.forEach(
    transfers,
    (transfer) => {
      const header = byHash.get(transfer.blockHash)
      return header !== undefined && header.number === transfer.blockNumber
        ? Effect.succeed<DatedTransfer>({ ...transfer, blockTime: header.time })
        : inconsistent(client, "eth_getLogs", `a log is in block ${transfer.blockHash}, which the chain does not have`)
    },
    { concurrency: 1 }
  )
}

const blockHashOf = (log: unknown): unknown => (Predicate.isRecord(log) ? log.blockHash : undefined)

/** The token transfers among the logs; fails when a log is malformed. */
const decodeTokens = ({ contracts, watched }: ScanSource, client: RpcClient, logs: ReadonlyArray<unknown>) =>
  Either.match(tokenTransfers(logs, contracts, watched), {
    onLeft: (detail) => badResponse(client, { method: "eth_getLogs", params: [] }, detail),
    onRight: Effect.succeed
  })

/** The token transfers of single blocks, read by block hash; `client` may be another provider than the source's. */
const readSingleBlocks = (
  source: ScanSource,
  client: RpcClient,
  filter: LogFilter,
  blocks: ReadonlyArray<BlockHeader>
) =>
  Effect.gen(function* () {
    const single = yield* sendBatch(
      client,
      blocks.map(({ hash }) => getBlockLogs(hash, filter))
    )
    const hidden = blocks.find((_, i) => (single[i]?.length ?? 0) > 0)
    // The provider contradicts itself.
    if (hidden !== undefined && client === source.client) {
      return yield* inconsistent(client, "eth_getLogs", `the logs of block ${hidden.number} were left out`)
    }
    const stray = strayBlock(single.flat(), new Set(blocks.map(({ hash }) => hash)))
    if (stray !== undefined) {
      return yield* inconsistent(
        client,
        "eth_getLogs",
        `logs of block ${stray} came for one that was asked for by its hash`
      )
    }
    return yield* decodeTokens(source, client, single.flat())
  })

/**
 * The transfers of blocks whose bloom promises a matching log where the response has none. They are read from another
 * provider, and from the same one only where there is no other or it fails. A node behind a load balancer returns an
 * empty list for a range that it does not have yet, and a dishonest provider omits logs. Fails as `inconsistent` where
 * the same provider now returns logs that it left out before.
 */
const checkMissingLogs = (
  source: ScanSource,
  filter: LogFilter,
  logs: ReadonlyArray<unknown>,
  headers: ReadonlyArray<BlockHeader>
) =>
  Effect.gen(function* () {
    const withLogs = new Set(logs.map(blockHashOf))
    const doubtful = headers.filter(
      ({ hash, logsBloom }) => !withLogs.has(hash) && logsBloom !== undefined && mayContain(logsBloom, filter)
    )
    if (doubtful.length === 0) return []
    const other = yield* source.other ?? Effect.succeed(undefined)
    const found = yield* Effect.forEach(
      inBatches(doubtful, smallPerBatch),
      (part) => {
        const same = readSingleBlocks(source, source.client, filter, part)
        return other === undefined ? same : Effect.orElse(readSingleBlocks(source, other, filter, part), () => same)
      },
      { concurrency: 1 }
    )
    return found.flat()
  })

/**
 * Logs, with the results of the calls in the same batch. Where the provider refuses the logs of a single block in one
 * response, the block's transfers are read in parts instead (`parts`, and no `logs`).
 *
 * @param whole the logs and the other results, in one batch
 * @param rest the other results alone
 */
const orInParts = <A>(
  source: ScanSource,
  after: BlockRef,
  last: BlockRef,
  whole: Effect.Effect<readonly [ReadonlyArray<unknown>, ReadonlyArray<A>], RpcError>,
  rest: Effect.Effect<ReadonlyArray<A>, RpcError>
) =>
  whole.pipe(
    Effect.flatMap(([logs, results]) =>
      mayBeTruncated(logs) ? truncatedError(source.client, logs) : Effect.succeed({ logs, results, parts: undefined })
    ),
    Effect.catchIf(
      (error) => needsParts(source, after, last, error),
      (error) =>
        Effect.gen(function* () {
          const results = yield* rest
          return { logs: [], results, parts: yield* readOversizedBlock(source, last, error) }
        })
    )
  )

const readFullBlocks = Effect.fnUntraced(function* (source: ScanSource, after: BlockRef, last: BlockRef) {
  const { client, contracts } = source
  const filter = filterOf(source)
  const numbers = Arr.range(after.number + 1, last.number)
  const firstBlocks = numbers.slice(0, blocksPerBatch).map(getFullBlock)
  // An empty list of contracts would ask for every contract's logs.
  const logsCall = contracts.size > 0 ? getLogs(after.number + 1, last.number, filter) : undefined
  const whole = Effect.map(
    sendBatch(client, [logsCall, ...firstBlocks]),
    ([logs = [], ...blocks]) => [logs, blocks] as const
  )
  const { results, logs, parts } = yield* orInParts(source, after, last, whole, sendBatch(client, firstBlocks))
  const read = (found: ReadonlyArray<FullBlock>) =>
    Effect.forEach(found, (block) => readBlock(source, block), { concurrency: 1 })
  const first = yield* read(results)
  const rest = yield* Effect.forEach(
    inBatches(numbers.slice(blocksPerBatch), blocksPerBatch),
    (part) => Effect.flatMap(sendBatch(client, part.map(getFullBlock)), read),
    { concurrency: batchesAtOnce }
  )
  const all = [...first, ...rest.flat()]
  const headers = all.map((block) => block.header)
  yield* checkLinks(client, after, headers, last)

  const stray = strayBlock(logs, new Set(headers.map((header) => header.hash)))
  if (stray !== undefined) {
    return yield* inconsistent(client, "eth_getLogs", `logs of block ${stray} came for a range that does not have it`)
  }
  const hidden = contracts.size > 0 && parts === undefined ? yield* checkMissingLogs(source, filter, logs, headers) : []
  const tokens = [...hidden, ...(parts ?? (yield* decodeTokens(source, client, logs)))]
  const native = yield* succeeded(
    client,
    all.flatMap((block) => block.transfers)
  )
  return yield* withTimes(client, [...tokens, ...native], headers)
})

const readLogs = Effect.fnUntraced(function* (source: ScanSource, after: BlockRef, last: BlockRef) {
  const { client, contracts } = source
  if (contracts.size === 0) return []
  const filter = filterOf(source)
  // In one batch: the node that returns the logs has the last block of the range.
  const whole = Effect.map(
    sendBatch(client, [getLogs(after.number + 1, last.number, filter), getHeader(last.number)]),
    ([logs, header]) => [logs, [header]] as const
  )
  const headerAlone = sendBatch(client, [getHeader(last.number)])
  const { results, logs, parts } = yield* orInParts<BlockHeader>(source, after, last, whole, headerAlone)
  const [end] = results
  if (end?.hash !== last.hash) {
    return yield* inconsistent(
      client,
      "eth_getBlockByNumber",
      `block ${last.number} was ${last.hash} and is ${end?.hash}`
    )
  }
  const hidden = parts === undefined ? yield* checkMissingLogs(source, filter, logs, [end]) : []
  const tokens = [...hidden, ...(parts ?? (yield* decodeTokens(source, client, logs)))]
  const outside = tokens.find(({ blockNumber }) => blockNumber <= after.number || blockNumber > last.number)
  if (outside !== undefined) {
    return yield* inconsistent(client, "eth_getLogs", `a log of block ${outside.blockNumber} came for another range`)
  }
  return yield* withTimes(client, tokens, yield* headersOf(client, tokens, [end]))
})

/**
 * Reads every block above `after` up to `last`, which the node has: the tokens' logs in one call, and on ethereum the
 * blocks with their transactions. Fails as a whole when anything is missing or of another branch.
 *
 * `last` was read before the logs. So if a reorg happens meanwhile, either the logs are of the branch of `last`, or the
 * next tick finds that `last` is orphaned, and the range is read again.
 */
export const readRange = Effect.fn("Scan.readRange")(function* (source: ScanSource, after: BlockRef, last: BlockRef) {
  const read = chainTraits[source.chain.chain].readsFullBlocks ? readFullBlocks : readLogs
  const range: ReadRange = {
    end: { number: last.number, hash: last.hash, time: last.time },
    transfers: yield* read(source, after, last),
    unwatched: false
  }
  return range
})

/** The token transfers of final blocks, each checked against its block's header; without native transfers. */
export const readTokenTransfers = readLogs
