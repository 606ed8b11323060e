import { Array as Arr, Effect, Either } from "effect"
import { nativeToken } from "../Domain/Currency.ts"
import type { BlockRef } from "../Domain/Receipt.ts"
import type { ChainSettings } from "../Settings.ts"
import type { AddressSet } from "./AddressSet.ts"
import {
  ask,
  badAnswer,
  type FullBlock,
  getFullBlock,
  getHeader,
  getLogs,
  getTransactionReceipt,
  type Header
} from "./calls.ts"
import type { DatedTransfer } from "./LedgerRepo.ts"
import { type RpcClient, RpcError } from "./Rpc.ts"
import {
  type Contracts,
  contractsOf,
  nativeTransfers,
  strayBlock,
  type Transfer,
  tokenTransfers,
  transferTopic
} from "./transfers.ts"

/** Full blocks in one batch: of Ethereum's, some three megabytes. */
const blocksPerBatch = 10
/** Batches of blocks under way at once. */
const batchesAtOnce = 2
/** Receipts in one batch; providers allow from 100 calls up. */
const receiptsPerBatch = 50
/** While no more addresses than this are watched, the provider picks their logs out. Longer lists are refused by some. */
const maxAddressTopics = 500

/** What to read a chain for. */
export interface Source {
  readonly client: RpcClient
  readonly chain: ChainSettings
  readonly contracts: Contracts
  readonly watched: AddressSet
}

export const makeSource = (client: RpcClient, chain: ChainSettings, watched: AddressSet): Source => ({
  client,
  chain,
  contracts: contractsOf(chain),
  watched
})

/** A range of blocks that was read whole. */
export interface Range {
  /** The last block of the range. */
  readonly end: BlockRef
  readonly transfers: ReadonlyArray<DatedTransfer>
  /** The newest block with the chain's confirmations once `end` is the head; undefined on a chain shorter than that. */
  readonly settled: BlockRef | undefined
}

const logsOf = ({ contracts, watched }: Source, fromBlock: number, toBlock: number) => {
  const receivers =
    watched.size <= maxAddressTopics
      ? [null, Array.from(watched, (address) => `0x${address.slice(2).padStart(64, "0")}`)]
      : []
  return getLogs({ fromBlock, toBlock, address: [...contracts.keys()], topics: [transferTopic, ...receivers] })
}

/** What a block holds for us; its transactions are let go. */
const readBlock = ({ chain, client, watched }: Source, block: FullBlock) =>
  Either.match(nativeTransfers(block, nativeToken(chain.chain), watched), {
    onLeft: (detail) => badAnswer(client, getFullBlock(block.header.number), detail),
    onRight: (transfers) => Effect.succeed({ header: block.header, transfers })
  })

const moved = (client: RpcClient, method: string, detail: string) =>
  new RpcError({ host: client.host, method, reason: "inconsistent", detail })

/** Fails unless each block is the parent of the next, from `after` on. */
const checkLinks = (client: RpcClient, after: BlockRef, headers: ReadonlyArray<Header>) =>
  Effect.gen(function* () {
    let parent: BlockRef = after
    for (const header of headers) {
      if (header.parentHash !== parent.hash) {
        return yield* moved(client, "eth_getBlockByNumber", `block ${header.number} does not follow ${parent.hash}`)
      }
      parent = header
    }
    return parent
  })

/** Of transfers by a transaction's own value, those whose transaction succeeded. */
const succeeded = (client: RpcClient, transfers: ReadonlyArray<Transfer>) =>
  Effect.gen(function* () {
    const kept: Array<Transfer> = []
    for (const part of Arr.chunksOf(transfers, receiptsPerBatch)) {
      const receipts = yield* ask(
        client,
        part.map((transfer) => getTransactionReceipt(transfer.txHash))
      )
      for (const [transfer, receipt] of Arr.zip(part, receipts)) {
        if (receipt.blockHash !== transfer.blockHash || receipt.transactionHash !== transfer.txHash) {
          return yield* moved(
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

/** Gives each transfer its block's time, by the block's own word; a transfer of another branch fails the range. */
const date = (client: RpcClient, transfers: ReadonlyArray<Transfer>, headers: ReadonlyArray<Header>) => {
  const byHash = new Map(headers.map((header) => [header.hash, header]))
  return Effect.forEach(
    transfers,
    (transfer) => {
      const header = byHash.get(transfer.blockHash)
      return header !== undefined && header.number === transfer.blockNumber
        ? Effect.succeed<DatedTransfer>({ ...transfer, blockTime: header.time })
        : moved(client, "eth_getLogs", `a log is in block ${transfer.blockHash}, which the chain does not have`)
    },
    { concurrency: 1 }
  )
}

/**
 * Reads every block above `after` up to `last`, which the node has: the tokens' logs in one call, and the blocks with
 * their transactions. Fails as a whole when anything is missing or does not belong to one branch of the chain.
 *
 * `last` was read before the logs are. So whatever becomes of the chain meanwhile, either the logs are of its branch, or
 * its hash is no longer the chain's at the next look, and the range is read again.
 */
export const readRange = Effect.fn("Chains.readRange")(function* (source: Source, after: BlockRef, last: BlockRef) {
  const { chain, client, contracts, watched } = source
  const numbers = Arr.range(after.number + 1, last.number)
  const settledAt = last.number - chain.confirmations + 1
  const getLogsOfRange = logsOf(source, after.number + 1, last.number)

  const [logs = [], olderSettled, ...blocks] = yield* ask(client, [
    // An empty list of contracts would ask for every contract's logs.
    contracts.size > 0 ? getLogsOfRange : undefined,
    settledAt >= 0 && settledAt <= after.number ? getHeader(settledAt) : undefined,
    ...numbers.slice(0, blocksPerBatch).map(getFullBlock)
  ])
  const first = yield* Effect.forEach(blocks, (block) => readBlock(source, block), { concurrency: 1 })
  const rest = yield* Effect.forEach(
    Arr.chunksOf(numbers.slice(blocksPerBatch), blocksPerBatch),
    (part) =>
      Effect.flatMap(ask(client, part.map(getFullBlock)), (found) =>
        Effect.forEach(found, (block) => readBlock(source, block), { concurrency: 1 })
      ),
    { concurrency: batchesAtOnce }
  )
  const read = [...first, ...rest.flat()]
  const headers = read.map((block) => block.header)
  const end = yield* checkLinks(client, after, headers)
  if (end.hash !== last.hash) {
    return yield* moved(client, "eth_getBlockByNumber", `block ${last.number} was ${last.hash} and is ${end.hash}`)
  }

  const stray = strayBlock(logs, new Set(headers.map((header) => header.hash)))
  if (stray !== undefined) {
    return yield* moved(client, "eth_getLogs", `logs of block ${stray} came for a range that does not have it`)
  }
  const tokens = yield* Either.match(tokenTransfers(logs, contracts, watched), {
    onLeft: (detail) => badAnswer(client, getLogsOfRange, detail),
    onRight: Effect.succeed
  })
  const native = yield* succeeded(
    client,
    read.flatMap((block) => block.transfers)
  )
  const range: Range = {
    end: { number: end.number, hash: end.hash, time: end.time },
    transfers: yield* date(client, [...tokens, ...native], headers),
    settled: olderSettled ?? headers.find((header) => header.number === settledAt)
  }
  return range
})
