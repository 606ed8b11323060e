import { Array as Arr, Effect, Either } from "effect"
import type { BlockRef } from "../../Domain/Receipt.ts"
import type { DatedTransfer } from "../ledger/LedgerRepo.ts"
import { decodeTransaction, type Move, simulateBlock, traceTransaction } from "../rpc/balanceMethods.ts"
import { type Capability, mayBeCapable, noteCapability } from "../rpc/capabilities.ts"
import { badResponse, type FullBlock, getFullBlock, sendBatch } from "../rpc/methods.ts"
import type { RpcClient } from "../rpc/Rpc.ts"
import type { RpcError } from "../rpc/RpcError.ts"
import { type Attribution, type BalanceChange, candidates, type PlacedTransaction, traced } from "./attribution.ts"
import { receivedBy } from "./internalTransfers.ts"
import type { ReconcileDeps } from "./reconcile.ts"

// What the transactions of a block moved inside contracts, by their traces or by running the block again.

/** Traces in one batch: a node runs each transaction again. */
const tracesPerBatch = 10
/**
 * Transactions that are traced in one block, and in one round. A transfer that nothing tells of is cheap to make, and each
 * trace is a whole transaction run again; of the others nobody can tell, then.
 */
const tracesPerBlock = 100
const tracesPerRound = 300
/** Full blocks, the newest few. */
export type BlockCache = Map<number, FullBlock>

/** What the searches of one round share. */
export interface TraceBudget {
  readonly blocks: BlockCache
  /** How many transactions have been traced, by the hash of their block. */
  readonly traced: Map<string, number>
}

export const makeTraceBudget = (): TraceBudget => ({ blocks: new Map(), traced: new Map() })

/** Of what may still be traced in a block, as many as `wanted`. They count as traced. */
const takeTraces = ({ traced }: TraceBudget, block: string, wanted: number): number => {
  const before = traced.get(block) ?? 0
  const inRound = Array.from(traced.values()).reduce((all, count) => all + count, 0)
  const taken = Math.max(0, Math.min(wanted, tracesPerBlock - before, tracesPerRound - inRound))
  traced.set(block, before + taken)
  return taken
}

/** The transactions of a block that `wanted` picks, checked. */
export const transactionsOf = (
  client: RpcClient,
  { header, transactions }: FullBlock,
  wanted: (one: unknown) => boolean
) =>
  Effect.forEach(
    transactions.filter(wanted),
    (one) => {
      const decoded = decodeTransaction(one)
      const call = getFullBlock(header.number)
      if (Either.isLeft(decoded)) return badResponse(client, call, decoded.left)
      return decoded.right.blockHash === header.hash
        ? Effect.succeed<PlacedTransaction>({
            ...decoded.right,
            block: { number: header.number, hash: header.hash, time: header.time }
          })
        : badResponse(client, call, `transaction ${decoded.right.hash} names another block`)
    },
    { concurrency: 1 }
  )

/** Traces one after the other, until what is looked for is found, or as many as may be. */
const trace = Effect.fnUntraced(function* (
  client: RpcClient,
  change: BalanceChange,
  transactions: ReadonlyArray<PlacedTransaction>,
  wanted: bigint,
  take: (wanted: number) => number
) {
  const found: Array<DatedTransfer> = []
  let rest = wanted
  for (const likely of Arr.chunksOf(candidates(change, transactions), tracesPerBatch)) {
    const part = likely.slice(0, take(likely.length))
    if (part.length === 0) break
    const moves = yield* sendBatch(
      client,
      part.map(({ hash }) => traceTransaction(hash))
    )
    const brought = traced(change, Arr.zip(part, moves))
    found.push(...brought)
    for (const { amount } of brought) rest -= amount
    if (rest <= 0n) break
  }
  return { transfers: found, rest } satisfies Attribution
})

/** Runs the block again. It is believed only where the sum is right: fees and the clock are not quite the same. */
const simulate = Effect.fnUntraced(function* (
  client: RpcClient,
  change: BalanceChange,
  block: BlockRef,
  transactions: ReadonlyArray<PlacedTransaction>,
  wanted: bigint
) {
  const [moves] = yield* sendBatch(client, [simulateBlock(block, transactions)])
  const possible = new Set(candidates(change, transactions))
  const found: ReadonlyArray<readonly [PlacedTransaction, ReadonlyArray<Move>]> = Arr.zip(transactions, moves)
  const transfers = traced(
    change,
    found.filter(([transaction]) => possible.has(transaction))
  )
  const rest = transfers.reduce((left, { amount }) => left - amount, wanted)
  return (rest === 0n ? { transfers, rest } : { transfers: [], rest: wanted }) satisfies Attribution
})

/** One way to look into a block with one provider; undefined where it cannot. */
export const tryCapability = <A>(client: RpcClient, ability: Capability, look: Effect.Effect<A, RpcError>) =>
  Effect.gen(function* () {
    if (!(yield* mayBeCapable(client, ability))) return undefined
    const found = yield* Effect.either(look)
    if (Either.isRight(found)) {
      yield* noteCapability(client, ability, true)
      return found.right
    }
    const { reason } = found.left
    if (reason === "refused" || reason === "unsupported") yield* noteCapability(client, ability, false)
    return undefined
  })

/** Looks into the transactions of one block for what they moved, with whichever provider can. */
export const traceBlock = Effect.fnUntraced(function* (
  deps: ReconcileDeps,
  looking: TraceBudget,
  change: BalanceChange,
  block: FullBlock,
  wanted: bigint
) {
  const { hash, number, time } = block.header
  // Chains have kinds of transactions of their own, and one that cannot be read brought nothing to be told here.
  const transactions = yield* transactionsOf(deps.provider.client, block, (one) =>
    Either.isRight(decodeTransaction(one))
  )
  const take = (count: number) => takeTraces(looking, hash, count)
  for (const { client } of [deps.provider, ...deps.others]) {
    const found =
      (yield* tryCapability(client, "trace", trace(client, change, transactions, wanted, take))) ??
      (yield* tryCapability(client, "simulate", simulate(client, change, { hash, number, time }, transactions, wanted)))
    if (found !== undefined && found.transfers.length > 0) return found
  }
  return { transfers: [], rest: wanted } satisfies Attribution
})

/**
 * The same attribution, of which a transaction that names the address brings no more than its trace shows: other money of
 * the same blocks may have come without a name. Where nobody traces, or a trace shows nothing, it stands.
 */
export const checkNamed = Effect.fnUntraced(function* (
  deps: ReconcileDeps,
  looking: TraceBudget,
  { address }: BalanceChange,
  told: Attribution
) {
  const named = told.transfers.find(({ position }) => position.startsWith("call:"))
  if (named?.txHash === undefined || takeTraces(looking, named.blockHash, 1) === 0) return told
  for (const { client } of [deps.provider, ...deps.others]) {
    const moves = yield* tryCapability(client, "trace", sendBatch(client, [traceTransaction(named.txHash)]))
    const got = moves === undefined ? 0n : receivedBy(address, moves[0])
    if (got >= named.amount) return told
    if (got > 0n) {
      const others = told.transfers.filter((one) => one !== named)
      return { transfers: [...others, { ...named, amount: got }], rest: named.amount - got } satisfies Attribution
    }
  }
  return told
})
