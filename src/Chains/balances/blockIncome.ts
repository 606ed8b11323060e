/**
 * The income of an address in one block, or in a few blocks whose states all providers have pruned: reads the
 * transactions that name the address and their receipts, and attributes the change of balance to them. Coins that
 * contracts moved are found by `debug_traceTransaction` or, where no provider traces, by simulating the block again.
 * Traces are expensive for providers, so a budget bounds them per block and per round. What is left becomes an
 * unattributed receipt. The bisection of `reconcile.ts` calls it.
 */
import { Array as Arr, Effect, Either, Predicate } from "effect"
import { sum } from "../../Domain/Amount.ts"
import type { DatedTransfer } from "../ledger/LedgerRepo.ts"
import { simulateBlock, traceTransaction } from "../rpc/balanceMethods.ts"
import { type Capability, isCapabilityRefused, mayBeCapable, noteCapability } from "../rpc/capabilities.ts"
import { badResponse, type FullBlock, getFullBlock, getHeader, sendBatch } from "../rpc/methods.ts"
import type { RpcClient } from "../rpc/Rpc.ts"
import type { RpcError } from "../rpc/RpcError.ts"
import {
  decodeTransaction,
  getTransactionOutcome,
  type Transaction,
  type TransactionOutcome,
  withReceipts
} from "../rpc/transactionMethods.ts"
import {
  type Attribution,
  attribute,
  type BalanceChange,
  candidates,
  concerns,
  type PlacedTransaction,
  receivedBy,
  traced,
  unattributed
} from "./attribution.ts"
import { type BalancePoint, discrepancy } from "./discrepancy.ts"
import { isUnserved, type StateProviders } from "./historicalStates.ts"

/** Maximum blocks that are read for their transactions where no provider has the states between two points. */
const maxBlocksRead = 500
/** Full blocks in one batch. */
const blocksPerBatch = 10
/** Blocks in the cache, for other addresses that the same transaction may have paid. */
const blocksCached = 4
/** Traces in one batch: the node executes each transaction again. */
const tracesPerBatch = 10
/**
 * Maximum transactions traced in one block, and in one round. An attacker makes internal transfers cheaply, and each
 * trace executes a whole transaction. Beyond these bounds, income stays unattributed.
 */
const tracesPerBlock = 100
const tracesPerRound = 300

/** The state shared by one round's searches: full blocks, and the remaining traces. */
export class TraceBudget {
  /** By number: the last few that were read. */
  readonly blocks = new Map<number, FullBlock>()
  /** Number of transactions traced, by the hash of their block. */
  readonly #traced = new Map<string, number>()

  /** Takes up to `wanted` traces of a block; returns how many it granted. */
  take(block: string, wanted: number): number {
    const before = this.#traced.get(block) ?? 0
    const inRound = Array.from(this.#traced.values()).reduce((all, count) => all + count, 0)
    const taken = Math.max(0, Math.min(wanted, tracesPerBlock - before, tracesPerRound - inRound))
    this.#traced.set(block, before + taken)
    return taken
  }
}

/** The providers to trace with, and their budget. */
export interface TraceSources extends StateProviders {
  readonly traceBudget: TraceBudget
}

/** The transactions of a block that `wanted` picks, decoded. Fails when one is malformed or names another block. */
export const transactionsOf = (
  client: RpcClient,
  { header, transactions }: FullBlock,
  wanted: (one: unknown) => boolean
) =>
  Effect.forEach(transactions.filter(wanted), (one) => {
    const decoded = decodeTransaction(one)
    const call = getFullBlock(header.number)
    if (Either.isLeft(decoded)) return badResponse(client, call, decoded.left)
    return decoded.right.blockHash === header.hash
      ? Effect.succeed<PlacedTransaction>({ ...decoded.right, block: header })
      : badResponse(client, call, `transaction ${decoded.right.hash} names another block`)
  })

/** Runs a read that needs a capability of a provider; undefined where it fails. Records a refusal. */
export const tryCapability = <A>(client: RpcClient, capability: Capability, read: Effect.Effect<A, RpcError>) =>
  Effect.gen(function* () {
    if (!(yield* mayBeCapable(client, capability))) return undefined
    const found = yield* Effect.either(read)
    if (Either.isRight(found)) {
      yield* noteCapability(client, capability, true)
      return found.right
    }
    if (isUnserved(found.left)) yield* noteCapability(client, capability, false)
    return undefined
  })

/** The internal transfers of one block that explain a change, from the first provider that shows any. */
export const traceBlock = Effect.fnUntraced(function* (
  { others, provider, traceBudget }: TraceSources,
  change: BalanceChange,
  block: FullBlock
) {
  const { header } = block
  // Some chains have transaction types of their own: those that do not decode are left out.
  const transactions = yield* transactionsOf(provider.client, block, (one) => Either.isRight(decodeTransaction(one)))
  const possible = candidates(change, transactions)
  const attributionOf = (transfers: ReadonlyArray<DatedTransfer>): Attribution => ({
    transfers,
    rest: change.difference - sum(transfers.map(({ amount }) => amount))
  })
  /** Traces the candidates batch by batch, until they explain the change, or the budget is spent. */
  const trace = Effect.fnUntraced(function* (client: RpcClient) {
    const found: Array<DatedTransfer> = []
    for (const likely of Arr.chunksOf(possible, tracesPerBatch)) {
      const part = likely.slice(0, traceBudget.take(header.hash, likely.length))
      if (part.length === 0) break
      const calls = part.map(({ hash }) => traceTransaction(hash))
      found.push(...traced(change, Arr.zip(part, yield* sendBatch(client, calls))))
      if (attributionOf(found).rest <= 0n) break
    }
    return attributionOf(found)
  })
  /** Simulates the block. Used only where the sum is exact: fees and block time differ slightly in a simulation. */
  const simulate = Effect.fnUntraced(function* (client: RpcClient) {
    const [moves] = yield* sendBatch(client, [simulateBlock(header, transactions)])
    const isPossible = new Set(possible)
    const movesOfThem = Arr.zip(transactions, moves).filter(([transaction]) => isPossible.has(transaction))
    const found = attributionOf(traced(change, movesOfThem))
    return found.rest === 0n ? found : attributionOf([])
  })
  for (const { client } of [provider, ...others]) {
    const found =
      (yield* tryCapability(client, "trace", trace(client))) ??
      (yield* tryCapability(client, "simulate", simulate(client)))
    if (found !== undefined && found.transfers.length > 0) return found
  }
  return attributionOf([])
})

/**
 * Checks an attribution by calldata against a trace: the transaction gets no more than its trace shows, since other
 * income of the blocks may not name the address. Unchanged where no provider traces, or the trace shows none.
 */
export const checkNamed = Effect.fnUntraced(function* (
  { others, provider, traceBudget }: TraceSources,
  address: string,
  attribution: Attribution
) {
  const named = attribution.transfers.find(({ position }) => position.startsWith("call:"))
  if (named?.txHash === undefined || traceBudget.take(named.blockHash, 1) === 0) return attribution
  for (const { client } of [provider, ...others]) {
    const moves = yield* tryCapability(client, "trace", sendBatch(client, [traceTransaction(named.txHash)]))
    const amount = moves === undefined ? 0n : receivedBy(address, moves[0])
    if (amount >= named.amount) return attribution
    if (amount > 0n) {
      const transfers = attribution.transfers.map((one) => (one === named ? { ...named, amount } : one))
      return { transfers, rest: named.amount - amount } satisfies Attribution
    }
  }
  return attribution
})

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
export const outcomesOf = (client: RpcClient, transactions: ReadonlyArray<Transaction>) =>
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
