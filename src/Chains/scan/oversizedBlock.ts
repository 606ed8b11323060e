import { Array as Arr, Effect } from "effect"
import type { BlockRef } from "../../Domain/Receipt.ts"
import { eventLoopTurn } from "../../lib/waiting.ts"
import type { Transfer } from "../ledger/Transfer.ts"
import { badResponse, getBlockTransactions, sendBatch, type TransactionList } from "../rpc/methods.ts"
import { inconsistent, RpcError, type RpcReason } from "../rpc/RpcError.ts"
import { getBlockReceipts, getLoggedReceipt, type LoggedReceipt } from "../rpc/transactionMethods.ts"
import { addLogs, bloomBytes, isWithin } from "./bloom.ts"
import type { ScanSource } from "./ScanSource.ts"
import { strayBlock, transfersAmong } from "./transfers.ts"

/**
 * Reads the token transfers of one block whose logs a provider refuses in one response, or may have truncated: from the
 * block's receipts, one call with a response of megabytes that not every provider serves, else from the receipt of each
 * transaction, which every provider serves. Complete or not at all: each receipt's logs must explain its bloom, and all
 * of them the block's. The block is named by its hash, so that no part is of another one.
 */

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

/** The bits of a block's logs, and how many were hashed since the event loop had its last turn. */
interface BlockBits {
  readonly bits: Uint8Array
  hashed: number
}

/** Transfers of one receipt, whose logs must explain its whole bloom; adds their bits to those of the block. */
const ofReceipt = Effect.fnUntraced(function* (
  source: ScanSource,
  block: Named,
  { blockHash, logs, logsBloom, transactionHash }: LoggedReceipt,
  ofBlock: BlockBits
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
    ofBlock.hashed += part.length
    if (ofBlock.hashed < logsPerTurn) continue
    ofBlock.hashed = 0
    yield* eventLoopTurn
  }
  if (typeof logsBloom === "string" && !isWithin(logsBloom, own)) return yield* failed("lacks logs")
  for (const [i, byte] of own.entries()) ofBlock.bits[i] = (ofBlock.bits[i] ?? 0) | byte
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
  const ofBlock: BlockBits = { bits: new Uint8Array(bloomBytes), hashed: 0 }
  for (const page of pages) {
    for (const receipt of yield* page) {
      if (seen.has(receipt.transactionHash)) return yield* failed(`has ${receipt.transactionHash} twice`)
      seen.add(receipt.transactionHash)
      transfers.push(...(yield* ofReceipt(source, block, receipt, ofBlock)))
    }
  }
  const missing = transactions.find((hash) => !seen.has(hash))
  if (missing !== undefined) return yield* failed(`came without the receipt of ${missing}`)
  if (logsBloom !== undefined && !isWithin(logsBloom, ofBlock.bits))
    return yield* failed("has logs that no receipt has")
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
  const { client } = source
  const errors = [refusal]
  /** Undefined where a way fails and another one may be tried. */
  const attempt = <A>(way: Effect.Effect<A, RpcError>) =>
    Effect.catchIf(
      way,
      ({ reason }) => !finalErrors.has(reason),
      (error) => Effect.sync(() => void errors.push(error))
    )
  const transfers = (yield* attempt(byReceipts(source, block))) ?? (yield* attempt(byTransactions(source, block)))
  if (transfers !== undefined) {
    yield* Effect.logDebug("the transfers of a block were read from its receipts").pipe(
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
