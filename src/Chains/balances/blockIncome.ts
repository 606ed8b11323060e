import { Array as Arr, Effect, Predicate } from "effect"
import { nativeToken } from "../../Domain/Currency.ts"
import type { BlockRef } from "../../Domain/Receipt.ts"
import type { DatedTransfer } from "../ledger/LedgerRepo.ts"
import { getTransactionOutcome, type TransactionOutcome } from "../rpc/balanceMethods.ts"
import { isCapabilityRefused } from "../rpc/capabilities.ts"
import { getFullBlock, getHeader, sendBatch } from "../rpc/methods.ts"
import type { RpcClient } from "../rpc/Rpc.ts"
import { inconsistent } from "../rpc/RpcError.ts"
import {
  type Attribution,
  attribute,
  type BalanceChange,
  concerns,
  type PlacedTransaction,
  unattributed
} from "./attribution.ts"
import { type BalanceCredit, type BalancePoint, discrepancy } from "./discrepancy.ts"
import type { ReconcileDeps } from "./reconcile.ts"
import { type BlockCache, checkNamed, type TraceBudget, traceBlock, transactionsOf } from "./traceBlock.ts"

/** Blocks that are read for their transactions where no node has the state between two points. */
const maxBlocksRead = 500
/** Full blocks in one batch. */
const blocksPerBatch = 10
/** Receipts in one batch; providers allow from 100 calls up. */
const receiptsPerBatch = 50
/** Blocks that are kept for the other addresses that the same transaction may have paid. */
const blocksKept = 4

/** What is read, for whom, and what is known of it. */
export interface BlockInterval {
  readonly address: string
  readonly lo: BalancePoint
  readonly hi: BalancePoint
  /** The address's receipts between the two. */
  readonly credits: ReadonlyArray<BalanceCredit>
}

const changeOf = (deps: ReconcileDeps, { address, credits, hi, lo }: BlockInterval): BalanceChange => ({
  address,
  currency: nativeToken(deps.chain.chain),
  difference: hi.balance - lo.balance,
  credits
})

const fullBlocks = Effect.fnUntraced(function* (client: RpcClient, cache: BlockCache, numbers: ReadonlyArray<number>) {
  const cached = numbers.flatMap((number) => cache.get(number) ?? [])
  if (cached.length === numbers.length) return cached
  const blocks = yield* sendBatch(client, numbers.map(getFullBlock))
  for (const block of blocks.slice(-blocksKept)) cache.set(block.header.number, block)
  for (const oldest of Array.from(cache.keys()).slice(0, -blocksKept)) cache.delete(oldest)
  return blocks
})

/** Whether a transaction of a block sends from, pays or names an address. */
export const isNamedBy = (address: string, transaction: unknown): boolean =>
  Predicate.isRecord(transaction) &&
  concerns(address, {
    from: String(transaction.from).toLowerCase(),
    to: String(transaction.to).toLowerCase(),
    input: String(transaction.input)
  })

/** What became of transactions, which are in the blocks that they name. */
export const outcomesOf = Effect.fnUntraced(function* (
  client: RpcClient,
  transactions: ReadonlyArray<PlacedTransaction>
) {
  const outcomes = new Map<string, TransactionOutcome>()
  for (const part of Arr.chunksOf(transactions, receiptsPerBatch)) {
    const found = yield* sendBatch(
      client,
      part.map(({ hash }) => getTransactionOutcome(hash))
    )
    for (const [transaction, outcome] of Arr.zip(part, found)) {
      if (outcome.hash !== transaction.hash || outcome.blockHash !== transaction.blockHash) {
        const detail = `${transaction.hash} is in block ${outcome.blockHash}`
        return yield* inconsistent(client, "eth_getTransactionReceipt", detail)
      }
      outcomes.set(outcome.hash, outcome)
    }
  }
  return outcomes
})

const withRest = (
  change: BalanceChange,
  since: number,
  block: BlockRef,
  { rest, transfers }: Attribution
): ReadonlyArray<DatedTransfer> => (rest > 0n ? [...transfers, unattributed(change, since, block, rest)] : transfers)

const creditOf = (transfer: DatedTransfer): BalanceCredit => ({
  number: transfer.blockNumber,
  blockHash: transfer.blockHash,
  position: transfer.position,
  txHash: transfer.txHash,
  amount: transfer.amount
})

/** What brought the money of one block, whose state before and after is known. */
export const incomeOfBlock = Effect.fn("Oracle.ofBlock")(function* (
  deps: ReconcileDeps,
  looking: TraceBudget,
  interval: BlockInterval
) {
  const { client } = deps.provider
  const change = changeOf(deps, interval)
  const [block] = yield* fullBlocks(client, looking.blocks, [interval.hi.number])
  if (block === undefined) return []
  const { hash, number, time } = block.header
  const transactions = yield* transactionsOf(client, block, (one) => isNamedBy(change.address, one))
  const named = attribute(change, transactions, yield* outcomesOf(client, transactions))
  const told = yield* checkNamed(deps, looking, change, named)
  if (told.rest <= 0n) return told.transfers
  const credits = [...change.credits, ...told.transfers.map((one) => creditOf(one))]
  const inside = yield* traceBlock(deps, looking, { ...change, credits }, block, told.rest)
  return withRest(
    change,
    number,
    { hash, number, time },
    {
      transfers: [...told.transfers, ...inside.transfers],
      rest: inside.rest
    }
  )
})

/**
 * What brought the money of blocks whose states nobody has any more: their transactions tell, if they are not too many.
 * What they do not tell of is kept with the last of the blocks.
 */
export const incomeOfBlocks = Effect.fn("Oracle.ofBlocks")(function* (
  deps: ReconcileDeps,
  looking: TraceBudget,
  interval: BlockInterval
) {
  const { hi, lo } = interval
  const { client } = deps.provider
  const change = changeOf(deps, interval)
  const [{ hash, number, time }] = yield* sendBatch(client, [getHeader(hi.number)])
  const last: BlockRef = { hash, number, time }
  const since = lo.number + 1
  const unread: Attribution = { transfers: [], rest: discrepancy(lo, hi, interval.credits) }
  if (hi.number - lo.number > maxBlocksRead) return withRest(change, since, last, unread)

  const read = Effect.gen(function* () {
    const transactions: Array<PlacedTransaction> = []
    for (const numbers of Arr.chunksOf(Arr.range(lo.number + 1, hi.number), blocksPerBatch)) {
      for (const block of yield* fullBlocks(client, new Map(), numbers)) {
        transactions.push(...(yield* transactionsOf(client, block, (one) => isNamedBy(change.address, one))))
      }
    }
    const named = attribute(change, transactions, yield* outcomesOf(client, transactions))
    return yield* checkNamed(deps, looking, change, named)
  })
  // A node that keeps no old states may keep no old blocks either: nor may its answer hold up all other payments.
  const found = yield* Effect.catchIf(
    read,
    (error) => isCapabilityRefused(error) && error.reason !== "inconsistent",
    () => Effect.succeed(unread)
  )
  return withRest(change, since, last, found)
})
