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
  getTransactionReceipt,
  type LogFilter,
  sendBatch
} from "../rpc/methods.ts"
import type { RpcClient } from "../rpc/Rpc.ts"
import { inconsistent, type RpcError } from "../rpc/RpcError.ts"
import { promises } from "./bloom.ts"
import { readOversizedBlock } from "./oversizedBlock.ts"
import { cutAnswer, mayBeCut, needsParts, receiversOf, type ScanSource, transferFilter } from "./ScanSource.ts"
import { nativeTransfers, strayBlock, tokenTransfers } from "./transfers.ts"

/** Full blocks in one batch: of Ethereum's, some three megabytes. */
const blocksPerBatch = 10
/** Batches of blocks under way at once. */
const batchesAtOnce = 2
/** Headers or receipts in one batch; providers allow from 100 calls up. */
const smallPerBatch = 50

/** A range of blocks that was read whole. */
export interface ReadRange {
  /** The last block of the range. */
  readonly end: BlockRef
  readonly transfers: ReadonlyArray<DatedTransfer>
  /** Nobody was watched for, so that nothing was read. */
  readonly unwatched: boolean
}

/** While few addresses are watched, the provider picks their logs out. */
const filterOf = (source: ScanSource): LogFilter => transferFilter(source.contracts.keys(), receiversOf(source))

const inBatches = <A>(calls: ReadonlyArray<A>, size: number) => Arr.chunksOf(calls, size)

/** A block's header and the coins that its transactions send to watched addresses; the transactions are let go. */
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

/** Of transfers by a transaction's own value, those whose transaction succeeded. */
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
        if (receipt.status) kept.push(transfer)
      }
    }
    return kept
  })

/** The headers of the blocks that `transfers` are in, `known` ones apart. */
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

/** Gives each transfer its block's time, by the block's own word; a transfer of another branch fails the range. */
const date = (client: RpcClient, transfers: ReadonlyArray<Transfer>, headers: ReadonlyArray<BlockHeader>) => {
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

/** The token transfers in the answer; what is wrong with it fails the range. */
const decodeTokens = ({ contracts, watched }: ScanSource, client: RpcClient, logs: ReadonlyArray<unknown>) =>
  Either.match(tokenTransfers(logs, contracts, watched), {
    onLeft: (detail) => badResponse(client, { method: "eth_getLogs", params: [] }, detail),
    onRight: Effect.succeed
  })

/** What a provider tells of single blocks. */
const readAlone = (source: ScanSource, client: RpcClient, filter: LogFilter, blocks: ReadonlyArray<BlockHeader>) =>
  Effect.gen(function* () {
    const alone = yield* sendBatch(
      client,
      blocks.map(({ hash }) => getBlockLogs(hash, filter))
    )
    const hidden = blocks.find((_, i) => (alone[i]?.length ?? 0) > 0)
    // The provider contradicts itself.
    if (hidden !== undefined && client === source.client) {
      return yield* inconsistent(client, "eth_getLogs", `the logs of block ${hidden.number} were left out`)
    }
    const stray = strayBlock(alone.flat(), new Set(blocks.map(({ hash }) => hash)))
    if (stray !== undefined) {
      return yield* inconsistent(
        client,
        "eth_getLogs",
        `logs of block ${stray} came for one that was asked for by its hash`
      )
    }
    return yield* decodeTokens(source, client, alone.flat())
  })

/**
 * The transfers of blocks whose bloom promises a log of ours where the answer has none: another provider is asked for them
 * at once, the same one only where there is no other. A node behind a balancer answers a range that it does not have with
 * an empty list, and a false one leaves out what it wants. Fails where the same provider tells otherwise than before.
 */
const doubtSilence = (
  source: ScanSource,
  filter: LogFilter,
  logs: ReadonlyArray<unknown>,
  headers: ReadonlyArray<BlockHeader>
) =>
  Effect.gen(function* () {
    const speaking = new Set(logs.map(blockHashOf))
    const doubtful = headers.filter(
      ({ hash, logsBloom }) => !speaking.has(hash) && logsBloom !== undefined && promises(logsBloom, filter)
    )
    if (doubtful.length === 0) return []
    const other = yield* source.other ?? Effect.succeed(undefined)
    const found = yield* Effect.forEach(
      inBatches(doubtful, smallPerBatch),
      (part) => {
        const same = readAlone(source, source.client, filter, part)
        return other === undefined ? same : Effect.orElse(readAlone(source, other, filter, part), () => same)
      },
      { concurrency: 1 }
    )
    return found.flat()
  })

/**
 * Logs, with what was asked for together with them; of a single block whose logs the provider does not give in one
 * answer, all transfers instead.
 *
 * @param whole the logs and the rest, in one batch
 * @param rest the rest alone
 */
const orInParts = <A>(
  source: ScanSource,
  after: BlockRef,
  last: BlockRef,
  whole: Effect.Effect<readonly [ReadonlyArray<unknown>, ReadonlyArray<A>], RpcError>,
  rest: Effect.Effect<ReadonlyArray<A>, RpcError>
) =>
  whole.pipe(
    Effect.flatMap(([logs, answers]) =>
      mayBeCut(logs) ? cutAnswer(source.client, logs) : Effect.succeed({ logs, answers, parts: undefined })
    ),
    Effect.catchIf(
      (error) => needsParts(source, after, last, error),
      (error) =>
        Effect.gen(function* () {
          const answers = yield* rest
          return { logs: [], answers, parts: yield* readOversizedBlock(source, last, error) }
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
  const { answers, logs, parts } = yield* orInParts(source, after, last, whole, sendBatch(client, firstBlocks))
  const read = (found: ReadonlyArray<FullBlock>) =>
    Effect.forEach(found, (block) => readBlock(source, block), { concurrency: 1 })
  const first = yield* read(answers)
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
  const hidden = contracts.size > 0 && parts === undefined ? yield* doubtSilence(source, filter, logs, headers) : []
  const tokens = [...hidden, ...(parts ?? (yield* decodeTokens(source, client, logs)))]
  const native = yield* succeeded(
    client,
    all.flatMap((block) => block.transfers)
  )
  return yield* date(client, [...tokens, ...native], headers)
})

const readLogs = Effect.fnUntraced(function* (source: ScanSource, after: BlockRef, last: BlockRef) {
  const { client, contracts } = source
  if (contracts.size === 0) return []
  const filter = filterOf(source)
  // In one batch: the node that answers for the logs has the block that ends them.
  const whole = Effect.map(
    sendBatch(client, [getLogs(after.number + 1, last.number, filter), getHeader(last.number)]),
    ([logs, header]) => [logs, [header]] as const
  )
  const alone = sendBatch(client, [getHeader(last.number)])
  const { answers, logs, parts } = yield* orInParts<BlockHeader>(source, after, last, whole, alone)
  const [end] = answers
  if (end?.hash !== last.hash) {
    return yield* inconsistent(
      client,
      "eth_getBlockByNumber",
      `block ${last.number} was ${last.hash} and is ${end?.hash}`
    )
  }
  const hidden = parts === undefined ? yield* doubtSilence(source, filter, logs, [end]) : []
  const tokens = [...hidden, ...(parts ?? (yield* decodeTokens(source, client, logs)))]
  const outside = tokens.find(({ blockNumber }) => blockNumber <= after.number || blockNumber > last.number)
  if (outside !== undefined) {
    return yield* inconsistent(client, "eth_getLogs", `a log of block ${outside.blockNumber} came for another range`)
  }
  return yield* date(client, tokens, yield* headersOf(client, tokens, [end]))
})

/**
 * Reads every block above `after` up to `last`, which the node has: the tokens' logs in one call, and on some chains the
 * blocks with their transactions. Fails as a whole when anything is missing or does not belong to one branch of the
 * chain.
 *
 * `last` was read before the logs are. So whatever becomes of the chain meanwhile, either the logs are of its branch, or
 * its hash is no longer the chain's at the next look, and the range is read again.
 */
export const readRange = Effect.fn("Chains.readRange")(function* (source: ScanSource, after: BlockRef, last: BlockRef) {
  const read = chainTraits[source.chain.chain].readsFullBlocks ? readFullBlocks : readLogs
  const range: ReadRange = {
    end: { number: last.number, hash: last.hash, time: last.time },
    transfers: yield* read(source, after, last),
    unwatched: false
  }
  return range
})

/** The token transfers of blocks that are known to be final; whose blocks they are is checked by their headers. */
export const readTokenTransfers = readLogs
