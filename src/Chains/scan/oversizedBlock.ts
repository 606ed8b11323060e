import { Array as Arr, Effect, Either } from "effect"
import type { BlockRef } from "../../Domain/Receipt.ts"
import { eventLoopTurn } from "../../Sql/eventLoopTurn.ts"
import type { Transfer } from "../ledger/Transfer.ts"
import { refusals } from "../providers/BlockRange.ts"
import {
  badResponse,
  getBlockLogs,
  getBlockTransactions,
  type LogFilter,
  sendBatch,
  type TransactionList
} from "../rpc/methods.ts"
import type { CallResult } from "../rpc/Rpc.ts"
import { inconsistent, RpcError, type RpcReason } from "../rpc/RpcError.ts"
import { getBlockReceipts, getLoggedReceipt, type LoggedReceipt } from "../rpc/transactionMethods.ts"
import { addLogs, bloomBytes, isWithin } from "./bloom.ts"
import { maxReceivers, type ScanSource, transferFilter, truncationOf } from "./ScanSource.ts"
import { strayBlock, transfersAmong } from "./transfers.ts"

/**
 * Reads the token transfers of one block whose logs a provider refuses in one response, or may have truncated: in parts
 * within the provider's limits, complete or not at all. All parts name the block by hash, so none is of another block.
 *
 * The ways, in the order of cost. By contract: a handful of calls. By receivers: one call per 500 watched addresses,
 * with a filter of 34 kB, and more where these are refused. The block's receipts: one call, but a response of megabytes
 * that not every provider serves. The receipt of each transaction: one call each, always served.
 */

/** Filters by receivers in one batch, some 170 kB. */
const filtersPerBatch = 5
/** With more filters the block's receipts cost less: from 10,000 watched addresses on. */
const mostFilters = 20
/** Most calls by receivers, with refused filters halved, before the receipts are tried. */
const mostCalls = 40
/** Receipts in one batch. */
const receiptsPerBatch = 50
/** Logs hashed in one turn of the event loop: some two milliseconds. */
const logsPerTurn = 100

/** Errors after which no other way is tried. */
const finalErrors: ReadonlySet<RpcReason> = new Set(["unreachable", "rate_limited"])

type Transfers = ReadonlyArray<Transfer>

/** The block that is read, by number and hash. */
type Named = Pick<BlockRef, "number" | "hash">

/** Transfers to watched addresses among logs of the block. */
const ours = (
  { client, contracts, watched }: ScanSource,
  { hash }: Named,
  method: string,
  logs: ReadonlyArray<unknown>
): Effect.Effect<Transfers, RpcError> => {
  const stray = strayBlock(logs, new Set([hash]))
  if (stray !== undefined) return inconsistent(client, method, `a log of block ${stray} came for ${hash}`)
  const failed = (detail: string) => badResponse(client, { method, params: [hash] }, detail)
  return Effect.mapError(transfersAmong(logs, contracts, watched), failed)
}

/** The transfers of each filter, in one batch; left: the provider refuses it, or may have truncated the response. */
const partsOf = Effect.fnUntraced(function* (source: ScanSource, block: Named, filters: ReadonlyArray<LogFilter>) {
  const { client } = source
  const calls = filters.map((filter) => getBlockLogs(block.hash, filter))
  const replies = yield* client.sendEach(calls.map(({ method, params }) => ({ method, params }))).pipe(
    Effect.catchIf(
      ({ reason }) => refusals.has(reason),
      (error) => Effect.succeed(calls.map((): CallResult => Either.left(error)))
    )
  )
  const parts: Array<Either.Either<Transfers, RpcError>> = []
  for (const [call, reply] of Arr.zip(calls, replies)) {
    if (Either.isLeft(reply)) {
      parts.push(refusals.has(reply.left.reason) ? Either.left(reply.left) : yield* reply.left)
      continue
    }
    const logs = call.decode(reply.right)
    if (Either.isLeft(logs)) return yield* badResponse(client, call, logs.left)
    const truncation = truncationOf(client, logs.right)
    parts.push(truncation ? Either.left(truncation) : Either.right(yield* ours(source, block, call.method, logs.right)))
  }
  return parts
})

/**
 * Transfers by each contract, and the contracts with too many. One per call: each may reach the limit of a response.
 */
const byContract = Effect.fnUntraced(function* (source: ScanSource, block: Named) {
  const transfers: Array<Transfer> = []
  const left: Array<string> = []
  for (const contract of source.contracts.keys()) {
    const [part] = yield* partsOf(source, block, [transferFilter([contract], source.watched)])
    if (part !== undefined && Either.isRight(part)) transfers.push(...part.right)
    else left.push(contract)
  }
  return { transfers, left }
})

/** Transfers by some contracts. Receivers with too many transfers for one response are halved. */
const byReceivers = Effect.fnUntraced(function* (source: ScanSource, block: Named, contracts: ReadonlyArray<string>) {
  const transfers: Array<Transfer> = []
  const { size } = source.watched
  const left: Array<ReadonlyArray<string>> = Arr.chunksOf(source.watched, Math.min(maxReceivers, Math.ceil(size / 2)))
  let calls = 0
  while (left.length > 0) {
    const parts = left.splice(0, filtersPerBatch)
    calls += parts.length
    const filters = parts.map((part) => transferFilter(contracts, part))
    for (const [part, response] of Arr.zip(parts, yield* partsOf(source, block, filters))) {
      if (Either.isRight(response)) transfers.push(...response.right)
      else if (part.length === 1 || calls >= mostCalls) return yield* response.left
      else left.push(...Arr.chunksOf(part, Math.ceil(part.length / 2)))
    }
  }
  return transfers
})

/** Transfers of one receipt, whose logs must explain its whole bloom; adds their bits to those of the block. */
const ofReceipt = Effect.fnUntraced(function* (
  source: ScanSource,
  block: Named,
  { blockHash, logs, logsBloom, transactionHash }: LoggedReceipt,
  bits: Uint8Array
) {
  const method = "eth_getBlockReceipts"
  const failed = (detail: string) => inconsistent(source.client, method, `the receipt of ${transactionHash} ${detail}`)
  if (blockHash !== block.hash) return yield* failed(`is of block ${blockHash}`)
  const transfers = yield* ours(source, block, method, logs)
  if (transfers.some(({ txHash }) => txHash !== transactionHash)) return yield* failed("has logs of another one")
  const own = new Uint8Array(bloomBytes)
  for (const part of Arr.chunksOf(logs, logsPerTurn)) {
    addLogs(own, part)
    // Some thousand logs set every bit: more of them change nothing.
    if (own.every((byte) => byte === 0xff)) break
    yield* eventLoopTurn
  }
  if (typeof logsBloom === "string" && !isWithin(logsBloom, own)) return yield* failed("lacks logs")
  for (const [i, byte] of own.entries()) bits[i] = (bits[i] ?? 0) | byte
  return transfers
})

/** Transfers of all of a block's transactions, from pages of receipts. */
const fromReceipts = Effect.fnUntraced(function* (
  source: ScanSource,
  block: Named,
  { logsBloom, transactions }: TransactionList,
  pages: Iterable<Effect.Effect<ReadonlyArray<LoggedReceipt>, RpcError>>
) {
  const failed = (detail: string) =>
    inconsistent(source.client, "eth_getBlockReceipts", `block ${block.number} ${detail}`)
  const transfers: Array<Transfer> = []
  const seen = new Set<string>()
  const bits = new Uint8Array(bloomBytes)
  for (const page of pages) {
    for (const receipt of yield* page) {
      if (seen.has(receipt.transactionHash)) return yield* failed(`has ${receipt.transactionHash} twice`)
      seen.add(receipt.transactionHash)
      transfers.push(...(yield* ofReceipt(source, block, receipt, bits)))
    }
  }
  const missing = transactions.find((hash) => !seen.has(hash))
  if (missing !== undefined) return yield* failed(`came without the receipt of ${missing}`)
  if (logsBloom !== undefined && !isWithin(logsBloom, bits)) return yield* failed("has logs that no receipt has")
  return transfers
})

const byReceipts = Effect.fnUntraced(function* (source: ScanSource, block: Named) {
  const calls = [getBlockReceipts(block.number), getBlockTransactions(block.hash)] as const
  const [receipts, list] = yield* sendBatch(source.client, calls)
  return yield* fromReceipts(source, block, list, [Effect.succeed(receipts)])
})

const byTransactions = Effect.fnUntraced(function* (source: ScanSource, block: Named) {
  const [list] = yield* sendBatch(source.client, [getBlockTransactions(block.hash)])
  const pages = Arr.chunksOf(list.transactions.map(getLoggedReceipt), receiptsPerBatch)
  const reads = pages.map((page) => sendBatch(source.client, page))
  return yield* fromReceipts(source, block, list, reads)
})

/**
 * All token transfers to watched addresses in one block. Fails with `refused`, naming the block, when every way fails.
 *
 * @param refusal why the block's logs could not be read in one response
 */
export const readOversizedBlock = Effect.fn("Scan.readOversizedBlock")(function* (
  source: ScanSource,
  block: Named,
  refusal: RpcError
) {
  const { client, contracts, watched } = source
  const errors = [refusal]
  /** Undefined where a way fails and another one may be tried. */
  const attempt = <A>(way: Effect.Effect<A, RpcError>) =>
    Effect.catchIf(
      way,
      ({ reason }) => !finalErrors.has(reason),
      (error) => Effect.sync(() => void errors.push(error))
    )
  const readRest = Effect.fnUntraced(function* (left: ReadonlyArray<string>) {
    if (left.length === 0) return []
    const isCheap = watched.size <= mostFilters * maxReceivers
    return isCheap ? yield* attempt(byReceivers(source, block, left)) : undefined
  })
  const first = contracts.size > 1 ? yield* attempt(byContract(source, block)) : undefined
  const rest = yield* readRest(first?.left ?? [...contracts.keys()])
  const transfers =
    rest === undefined
      ? ((yield* attempt(byReceipts(source, block))) ?? (yield* attempt(byTransactions(source, block))))
      : [...(first?.transfers ?? []), ...rest]
  if (transfers !== undefined) {
    yield* Effect.logDebug("the logs of a block were read in parts").pipe(
      Effect.annotateLogs({ number: block.number, host: client.host, reason: refusal.message })
    )
    return transfers
  }
  return yield* new RpcError({
    host: client.host,
    method: `every way to read the logs of block ${block.number}`,
    reason: "refused",
    detail: errors.map(({ detail, method, reason }) => `${method} (${reason}): ${detail}`).join("; "),
    retryAfter: refusal.retryAfter
  })
})
