import { Array as Arr, Effect, Either, Predicate } from "effect"
import { nativeToken } from "../Domain/Currency.ts"
import type { BlockRef } from "../Domain/Receipt.ts"
import {
  type Attribution,
  attribute,
  type Change,
  candidates,
  concerns,
  type Placed,
  traced,
  unattributed
} from "./attribution.ts"
import {
  decodeTransaction,
  getOutcome,
  type Move,
  type Outcome,
  simulateBlock,
  traceTransaction
} from "./balanceCalls.ts"
import { type Credit, type Point, unexplained } from "./balances.ts"
import { ask, badAnswer, type FullBlock, getFullBlock, getHeader } from "./calls.ts"
import type { DatedTransfer } from "./LedgerRepo.ts"
import type { OracleDeps } from "./oracle.ts"
import { type Ability, isRefusal, learn, mayBeAble } from "./packedBalances.ts"
import type { RpcClient } from "./Rpc.ts"
import { RpcError } from "./RpcError.ts"

/** Blocks that are read for their transactions where no node has the state between two points. */
const maxBlocksRead = 500
/** Full blocks in one batch. */
const blocksPerBatch = 10
/** Receipts in one batch; providers allow from 100 calls up. */
const receiptsPerBatch = 50
/** Traces in one batch: a node runs each transaction again. */
const tracesPerBatch = 10
/**
 * Transactions that are traced in one block, and in one round. A transfer that nothing tells of is cheap to make, and each
 * trace is a whole transaction run again; of the others nobody can tell, then.
 */
const tracesPerBlock = 100
const tracesPerRound = 300
/** Blocks that are kept for the other addresses that the same transaction may have paid. */
const blocksKept = 4

/** Full blocks, the newest few. */
type BlockCache = Map<number, FullBlock>

/** What the searches of one round share. */
export interface Looking {
  readonly blocks: BlockCache
  /** How many transactions have been traced, by the hash of their block. */
  readonly traced: Map<string, number>
}

export const startLooking = (): Looking => ({ blocks: new Map(), traced: new Map() })

/** Of what may still be traced in a block, as many as `wanted`. They count as traced. */
const takeTraces = ({ traced }: Looking, block: string, wanted: number): number => {
  const before = traced.get(block) ?? 0
  const inRound = Array.from(traced.values()).reduce((all, count) => all + count, 0)
  const taken = Math.max(0, Math.min(wanted, tracesPerBlock - before, tracesPerRound - inRound))
  traced.set(block, before + taken)
  return taken
}

/** What is read, for whom, and what is known of it. */
export interface Interval {
  readonly address: string
  readonly lo: Point
  readonly hi: Point
  /** The address's receipts between the two. */
  readonly credits: ReadonlyArray<Credit>
}

const changeOf = (deps: OracleDeps, { address, credits, hi, lo }: Interval): Change => ({
  address,
  currency: nativeToken(deps.chain.chain),
  difference: hi.balance - lo.balance,
  credits
})

const fullBlocks = Effect.fnUntraced(function* (client: RpcClient, cache: BlockCache, numbers: ReadonlyArray<number>) {
  const cached = numbers.flatMap((number) => cache.get(number) ?? [])
  if (cached.length === numbers.length) return cached
  const blocks = yield* ask(client, numbers.map(getFullBlock))
  for (const block of blocks.slice(-blocksKept)) cache.set(block.header.number, block)
  for (const oldest of Array.from(cache.keys()).slice(0, -blocksKept)) cache.delete(oldest)
  return blocks
})

/** Whether a transaction of a block sends from, pays or names an address. */
export const isNamed = (address: string, transaction: unknown): boolean =>
  Predicate.isRecord(transaction) &&
  concerns(address, {
    from: String(transaction.from).toLowerCase(),
    to: String(transaction.to).toLowerCase(),
    input: String(transaction.input)
  })

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
      if (Either.isLeft(decoded)) return badAnswer(client, call, decoded.left)
      return decoded.right.blockHash === header.hash
        ? Effect.succeed<Placed>({
            ...decoded.right,
            block: { number: header.number, hash: header.hash, time: header.time }
          })
        : badAnswer(client, call, `transaction ${decoded.right.hash} names another block`)
    },
    { concurrency: 1 }
  )

/** What became of transactions, which are in the blocks that they name. */
export const outcomesOf = Effect.fnUntraced(function* (client: RpcClient, transactions: ReadonlyArray<Placed>) {
  const outcomes = new Map<string, Outcome>()
  for (const part of Arr.chunksOf(transactions, receiptsPerBatch)) {
    const found = yield* ask(
      client,
      part.map(({ hash }) => getOutcome(hash))
    )
    for (const [transaction, outcome] of Arr.zip(part, found)) {
      if (outcome.hash !== transaction.hash || outcome.blockHash !== transaction.blockHash) {
        const detail = `${transaction.hash} is in block ${outcome.blockHash}`
        return yield* new RpcError({
          host: client.host,
          method: "eth_getTransactionReceipt",
          reason: "inconsistent",
          detail
        })
      }
      outcomes.set(outcome.hash, outcome)
    }
  }
  return outcomes
})

/** Traces one after the other, until what is looked for is found, or as many as may be. */
const trace = Effect.fnUntraced(function* (
  client: RpcClient,
  change: Change,
  transactions: ReadonlyArray<Placed>,
  wanted: bigint,
  take: (wanted: number) => number
) {
  const found: Array<DatedTransfer> = []
  let rest = wanted
  for (const likely of Arr.chunksOf(candidates(change, transactions), tracesPerBatch)) {
    const part = likely.slice(0, take(likely.length))
    if (part.length === 0) break
    const moves = yield* ask(
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
  change: Change,
  block: BlockRef,
  transactions: ReadonlyArray<Placed>,
  wanted: bigint
) {
  const [moves] = yield* ask(client, [simulateBlock(block, transactions)])
  const possible = new Set(candidates(change, transactions))
  const found: ReadonlyArray<readonly [Placed, ReadonlyArray<Move>]> = Arr.zip(transactions, moves)
  const transfers = traced(
    change,
    found.filter(([transaction]) => possible.has(transaction))
  )
  const rest = transfers.reduce((left, { amount }) => left - amount, wanted)
  return (rest === 0n ? { transfers, rest } : { transfers: [], rest: wanted }) satisfies Attribution
})

/** One way to look into a block with one provider; undefined where it cannot. */
export const tryAbility = <A>(client: RpcClient, ability: Ability, look: Effect.Effect<A, RpcError>) =>
  Effect.gen(function* () {
    if (!(yield* mayBeAble(client, ability))) return undefined
    const found = yield* Effect.either(look)
    if (Either.isRight(found)) {
      yield* learn(client, ability, true)
      return found.right
    }
    const { reason } = found.left
    if (reason === "refused" || reason === "unsupported") yield* learn(client, ability, false)
    return undefined
  })

/** Looks into the transactions of one block for what they moved, with whichever provider can. */
export const lookInside = Effect.fnUntraced(function* (
  deps: OracleDeps,
  looking: Looking,
  change: Change,
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
      (yield* tryAbility(client, "trace", trace(client, change, transactions, wanted, take))) ??
      (yield* tryAbility(client, "simulate", simulate(client, change, { hash, number, time }, transactions, wanted)))
    if (found !== undefined && found.transfers.length > 0) return found
  }
  return { transfers: [], rest: wanted } satisfies Attribution
})

const withRest = (
  change: Change,
  since: number,
  block: BlockRef,
  { rest, transfers }: Attribution
): ReadonlyArray<DatedTransfer> => (rest > 0n ? [...transfers, unattributed(change, since, block, rest)] : transfers)

/** What brought the money of one block, whose state before and after is known. */
export const ofBlock = Effect.fn("Oracle.ofBlock")(function* (deps: OracleDeps, looking: Looking, interval: Interval) {
  const { client } = deps.provider
  const change = changeOf(deps, interval)
  const [block] = yield* fullBlocks(client, looking.blocks, [interval.hi.number])
  if (block === undefined) return []
  const { hash, number, time } = block.header
  const transactions = yield* transactionsOf(client, block, (one) => isNamed(change.address, one))
  const told = attribute(change, transactions, yield* outcomesOf(client, transactions))
  if (told.rest <= 0n) return told.transfers
  const credits = [...change.credits, ...told.transfers.map((one) => creditOf(one))]
  const inside = yield* lookInside(deps, looking, { ...change, credits }, block, told.rest)
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

const creditOf = (transfer: DatedTransfer): Credit => ({
  number: transfer.blockNumber,
  blockHash: transfer.blockHash,
  position: transfer.position,
  txHash: transfer.txHash,
  amount: transfer.amount
})

/**
 * What brought the money of blocks whose states nobody has any more: their transactions tell, if they are not too many.
 * What they do not tell of is kept with the last of the blocks.
 */
export const ofBlocks = Effect.fn("Oracle.ofBlocks")(function* (deps: OracleDeps, interval: Interval) {
  const { hi, lo } = interval
  const { client } = deps.provider
  const change = changeOf(deps, interval)
  const [{ hash, number, time }] = yield* ask(client, [getHeader(hi.number)])
  const last: BlockRef = { hash, number, time }
  const since = lo.number + 1
  const unread: Attribution = { transfers: [], rest: unexplained(lo, hi, interval.credits) }
  if (hi.number - lo.number > maxBlocksRead) return withRest(change, since, last, unread)

  const read = Effect.gen(function* () {
    const transactions: Array<Placed> = []
    for (const numbers of Arr.chunksOf(Arr.range(lo.number + 1, hi.number), blocksPerBatch)) {
      for (const block of yield* fullBlocks(client, new Map(), numbers)) {
        transactions.push(...(yield* transactionsOf(client, block, (one) => isNamed(change.address, one))))
      }
    }
    return attribute(change, transactions, yield* outcomesOf(client, transactions))
  })
  // A node that keeps no old states may keep no old blocks either: nor may its answer hold up all other payments.
  const found = yield* Effect.catchIf(
    read,
    (error) => isRefusal(error) && error.reason !== "inconsistent",
    () => Effect.succeed(unread)
  )
  return withRest(change, since, last, found)
})
