/**
 * The income of an address in one block, or in a few blocks whose states all providers have pruned: reads the
 * transactions that name the address, their receipts and, where needed, traces, and attributes the change of balance to
 * them. What is left becomes an unattributed receipt. The bisection of `reconcile.ts` calls it.
 */
import { Array as Arr, Effect, Predicate } from "effect"
import { nativeToken } from "../../Domain/Currency.ts"
import type { BlockRef } from "../../Domain/Receipt.ts"
import type { DatedTransfer } from "../ledger/LedgerRepo.ts"
import { isCapabilityRefused } from "../rpc/capabilities.ts"
import { getFullBlock, getHeader, sendBatch } from "../rpc/methods.ts"
import type { RpcClient } from "../rpc/Rpc.ts"
import { inconsistent } from "../rpc/RpcError.ts"
import { getTransactionOutcome, type TransactionOutcome } from "../rpc/transactionMethods.ts"
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

/** Most blocks that are read for their transactions where no provider has the states between two points. */
const maxBlocksRead = 500
/** Full blocks in one batch. */
const blocksPerBatch = 10
/** Receipts in one batch; providers allow from 100 calls up. */
const receiptsPerBatch = 50
/** Blocks in the cache, for other addresses that the same transaction may have paid. */
const blocksCached = 4

/** An address and the two balance points between which its income is searched. */
export interface BlockInterval {
  readonly address: string
  readonly lo: BalancePoint
  readonly hi: BalancePoint
  /** The address's receipts between the two points. */
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
  for (const block of blocks.slice(-blocksCached)) cache.set(block.header.number, block)
  for (const oldest of Array.from(cache.keys()).slice(0, -blocksCached)) cache.delete(oldest)
  return blocks
})

/** Whether a transaction, as the node returns it, is sent by an address, pays it, or names it in its calldata. */
export const isNamedBy = (address: string, transaction: unknown): boolean =>
  Predicate.isRecord(transaction) &&
  concerns(address, {
    from: String(transaction.from).toLowerCase(),
    to: String(transaction.to).toLowerCase(),
    input: String(transaction.input)
  })

/** Outcomes of transactions by hash. Fails as `inconsistent` when a transaction is in another block than it says. */
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

/** The income of an address in one block, with the states before and after it known. */
export const incomeOfBlock = Effect.fn("Balances.incomeOfBlock")(function* (
  deps: ReconcileDeps,
  traceBudget: TraceBudget,
  interval: BlockInterval
) {
  const { client } = deps.provider
  const change = changeOf(deps, interval)
  const [block] = yield* fullBlocks(client, traceBudget.blocks, [interval.hi.number])
  if (block === undefined) return []
  const { hash, number, time } = block.header
  const transactions = yield* transactionsOf(client, block, (one) => isNamedBy(change.address, one))
  const named = attribute(change, transactions, yield* outcomesOf(client, transactions))
  const attributed = yield* checkNamed(deps, traceBudget, change, named)
  if (attributed.rest <= 0n) return attributed.transfers
  const credits = [...change.credits, ...attributed.transfers.map((one) => creditOf(one))]
  const inside = yield* traceBlock(deps, traceBudget, { ...change, credits }, block, attributed.rest)
  return withRest(
    change,
    number,
    { hash, number, time },
    {
      transfers: [...attributed.transfers, ...inside.transfers],
      rest: inside.rest
    }
  )
})

/**
 * The income of an address in blocks whose states are not read: attributed by their transactions, if there are no more
 * than `maxBlocks` blocks. The rest is unattributed in the last of the blocks.
 */
export const incomeOfBlocks = Effect.fn("Balances.incomeOfBlocks")(function* (
  deps: ReconcileDeps,
  traceBudget: TraceBudget,
  interval: BlockInterval,
  maxBlocks = maxBlocksRead
) {
  const { hi, lo } = interval
  const { client } = deps.provider
  const change = changeOf(deps, interval)
  const [{ hash, number, time }] = yield* sendBatch(client, [getHeader(hi.number)])
  const last: BlockRef = { hash, number, time }
  const since = lo.number + 1
  const unread: Attribution = { transfers: [], rest: discrepancy(lo, hi, interval.credits) }
  if (hi.number - lo.number > maxBlocks) return withRest(change, since, last, unread)

  const read = Effect.gen(function* () {
    const transactions: Array<PlacedTransaction> = []
    for (const numbers of Arr.chunksOf(Arr.range(lo.number + 1, hi.number), blocksPerBatch)) {
      for (const block of yield* fullBlocks(client, new Map(), numbers)) {
        transactions.push(...(yield* transactionsOf(client, block, (one) => isNamedBy(change.address, one))))
      }
    }
    const named = attribute(change, transactions, yield* outcomesOf(client, transactions))
    return yield* checkNamed(deps, traceBudget, change, named)
  })
  // A node that prunes states may prune blocks, too. This error must not hold up all other payments.
  const found = yield* Effect.catchIf(
    read,
    (error) => isCapabilityRefused(error) && error.reason !== "inconsistent",
    () => Effect.succeed(unread)
  )
  return withRest(change, since, last, found)
})
