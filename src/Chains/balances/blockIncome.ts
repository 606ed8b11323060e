/**
 * The income of an address in one block, or in a few blocks whose states all providers have pruned: reads the
 * transactions that name the address, their receipts and, where needed, traces, and attributes the change of balance to
 * them. What is left becomes an unattributed receipt. The bisection of `reconcile.ts` calls it.
 */
import { Array as Arr, Effect, Predicate } from "effect"
import { isCapabilityRefused } from "../rpc/capabilities.ts"
import { getFullBlock, getHeader, sendBatch } from "../rpc/methods.ts"
import type { RpcClient } from "../rpc/Rpc.ts"
import { getTransactionOutcome, type TransactionOutcome, withReceipts } from "../rpc/transactionMethods.ts"
import {
  type Attribution,
  attribute,
  type BalanceChange,
  concerns,
  type PlacedTransaction,
  unattributed
} from "./attribution.ts"
import { type BalancePoint, discrepancy } from "./discrepancy.ts"
import { checkNamed, type TraceBudget, type TraceSources, traceBlock, transactionsOf } from "./traceBlock.ts"

/** Most blocks that are read for their transactions where no provider has the states between two points. */
const maxBlocksRead = 500
/** Full blocks in one batch. */
const blocksPerBatch = 10
/** Blocks in the cache, for other addresses that the same transaction may have paid. */
const blocksCached = 4

/** A block with its transactions. The last few are cached. */
const fullBlock = Effect.fnUntraced(function* (client: RpcClient, { blocks }: TraceBudget, number: number) {
  const cached = blocks.get(number)
  if (cached !== undefined) return cached
  const [block] = yield* sendBatch(client, [getFullBlock(number)])
  blocks.set(number, block)
  for (const oldest of Array.from(blocks.keys()).slice(0, -blocksCached)) blocks.delete(oldest)
  return block
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
export const outcomesOf = (client: RpcClient, transactions: ReadonlyArray<PlacedTransaction>) =>
  Effect.map(
    withReceipts(client, transactions, getTransactionOutcome),
    (found): ReadonlyMap<string, TransactionOutcome> => new Map(found.map(([{ hash }, outcome]) => [hash, outcome]))
  )

/** Attributes a change to the transactions that name the address. */
const attributed = Effect.fnUntraced(function* (
  sources: TraceSources,
  change: BalanceChange,
  transactions: ReadonlyArray<PlacedTransaction>
) {
  const outcomes = yield* outcomesOf(sources.provider.client, transactions)
  return yield* checkNamed(sources, change.address, attribute(change, transactions, outcomes))
})

/** The income of an address in the block `number`: `change` is between the states before and after it. */
export const incomeOfBlock = Effect.fn("Balances.incomeOfBlock")(function* (
  sources: TraceSources,
  change: BalanceChange,
  number: number
) {
  const { client } = sources.provider
  const block = yield* fullBlock(client, sources.traceBudget, number)
  const transactions = yield* transactionsOf(client, block, (one) => isNamedBy(change.address, one))
  const named = yield* attributed(sources, change, transactions)
  if (named.rest <= 0n) return named.transfers
  const left = { ...change, difference: named.rest, credits: [...change.credits, ...named.transfers] }
  const inside = yield* traceBlock(sources, left, block)
  return [...named.transfers, ...inside.transfers, ...unattributed(change, number, block.header, inside.rest)]
})

/**
 * The income of an address between two points whose states in between are not read: attributed by the transactions, if
 * there are no more than `maxBlocks` blocks. The rest is unattributed in the last of the blocks.
 */
export const incomeOfBlocks = Effect.fn("Balances.incomeOfBlocks")(function* (
  sources: TraceSources,
  change: BalanceChange,
  lo: BalancePoint,
  hi: BalancePoint,
  maxBlocks = maxBlocksRead
) {
  const { client } = sources.provider
  const [last] = yield* sendBatch(client, [getHeader(hi.number)])
  const unread: Attribution = { transfers: [], rest: discrepancy(lo, hi, change.credits) }
  const read = Effect.gen(function* () {
    const transactions: Array<PlacedTransaction> = []
    const calls = Arr.range(lo.number + 1, hi.number).map(getFullBlock)
    for (const part of Arr.chunksOf(calls, blocksPerBatch)) {
      for (const block of yield* sendBatch(client, part)) {
        transactions.push(...(yield* transactionsOf(client, block, (one) => isNamedBy(change.address, one))))
      }
    }
    return yield* attributed(sources, change, transactions)
  })
  // A node that prunes states may prune blocks, too. This error must not hold up all other payments.
  const readable = Effect.catchIf(
    read,
    (error) => isCapabilityRefused(error) && error.reason !== "inconsistent",
    () => Effect.succeed(unread)
  )
  const { rest, transfers } = hi.number - lo.number > maxBlocks ? unread : yield* readable
  return [...transfers, ...unattributed(change, lo.number + 1, last, rest)]
})
