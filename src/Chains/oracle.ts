import { Array as Arr, Effect } from "effect"
import { sum } from "../Domain/Amount.ts"
import type { Network } from "../Domain/Chain.ts"
import { nativeToken } from "../Domain/Currency.ts"
import type { BlockRef } from "../Domain/Receipt.ts"
import type { ChainSettings } from "../Settings.ts"
import { unattributed } from "./attribution.ts"
import { balanceAt, nonceAt } from "./balanceCalls.ts"
import { type Asked, type Credit, type Doubt, expectedAt, explained, middle, type Point, within } from "./balances.ts"
import { type BlockCache, ofBlock, ofBlocks } from "./blockMoney.ts"
import { ask, getHeader } from "./calls.ts"
import type { DatedTransfer } from "./LedgerRepo.ts"
import { readPacked } from "./packedBalances.ts"
import { type RpcClient, RpcError } from "./Rpc.ts"

/** Addresses in one batch, two calls each; providers allow from 100 calls up. */
const statesPerBatch = 45
/** Addresses whose history is searched at once. */
const searchesAtOnce = 4
/** How far back every node has states. */
const recent = 128

/** As far as the oracle needs to know a provider. */
interface Asking {
  readonly client: RpcClient
}

export interface OracleDeps {
  readonly provider: Asking
  /** Other healthy ones, for states and traces that the first does not have. */
  readonly others: ReadonlyArray<Asking>
  readonly chain: ChainSettings
}

/** A point of an address, to be kept. */
export interface BalanceRow extends Point {
  readonly address: string
}

/** An unattributed receipt that others have taken the place of. */
export interface Replaced {
  readonly address: string
  readonly blockHash: string
}

/** What a round has found; nothing of it is stored yet. */
export interface BalanceReading {
  readonly network: Network
  readonly at: BlockRef
  readonly transfers: ReadonlyArray<DatedTransfer>
  readonly rows: ReadonlyArray<BalanceRow>
  readonly replaced: ReadonlyArray<Replaced>
}

type Finding = Pick<BalanceReading, "transfers" | "rows" | "replaced">
const nothing: Finding = { transfers: [], rows: [], replaced: [] }
const together = (findings: ReadonlyArray<Finding>): Finding => ({
  transfers: findings.flatMap(({ transfers }) => transfers),
  rows: findings.flatMap(({ rows }) => rows),
  replaced: findings.flatMap(({ replaced }) => replaced)
})

interface Round extends OracleDeps {
  readonly at: BlockRef
  readonly blocks: BlockCache
}

/** Whether a node says that it has no such state, `depth` blocks back. Old nodes have words of their own for it. */
const isGone = ({ reason }: RpcError, depth: number): boolean =>
  reason === "state" ||
  reason === "refused" ||
  reason === "unsupported" ||
  (depth > recent && (reason === "missing" || reason === "garbage"))

/** What an address held after a block of the chain; undefined where no provider has that state any more. */
const pointAt = Effect.fnUntraced(function* (round: Round, address: string, number: number) {
  const read = ({ client }: Asking) =>
    Effect.map(
      ask(client, [balanceAt(address, number), nonceAt(address, number)]),
      ([balance, nonce]): Point => ({ number, balance, nonce })
    )
  const first = yield* Effect.catchIf(
    read(round.provider),
    (error) => isGone(error, round.at.number - number),
    () => Effect.succeed(undefined)
  )
  if (first !== undefined) return first
  for (const other of round.others) {
    const found = yield* Effect.option(read(other))
    if (found._tag === "Some") return found.value
  }
  return undefined
})

/**
 * What came between two points, block by block where states are to be had: halves of the interval, until nothing is left
 * to be told or one block is.
 *
 * @param gone nobody has the state of this block, nor of those between it and `lo`
 */
const search = (
  round: Round,
  address: string,
  lo: Point,
  hi: Point,
  receipts: ReadonlyArray<Credit>,
  gone = lo.number
): Effect.Effect<Finding, RpcError> =>
  Effect.gen(function* () {
    if (hi.number <= lo.number || explained(lo, hi, receipts)) return nothing
    const number = middle(lo.number, hi.number, gone)
    if (number === undefined) {
      const interval = { address, lo, hi, credits: within(receipts, lo.number, hi.number) }
      const single = hi.number - lo.number === 1
      const transfers = yield* single ? ofBlock(round, round.blocks, interval) : ofBlocks(round, interval)
      return {
        transfers,
        rows: [
          { ...lo, address },
          { ...hi, address }
        ],
        replaced: []
      }
    }
    const mid = yield* pointAt(round, address, number)
    if (mid === undefined) return yield* search(round, address, lo, hi, receipts, number)
    return together([
      yield* search(round, address, lo, mid, receipts, gone),
      yield* search(round, address, mid, hi, receipts)
    ])
  })

/** Where to search from, for what has led to `hi`. */
const startOf = Effect.fnUntraced(function* (round: Round, asked: Asked, hi: Point) {
  const { address, comparedTo, credits, known } = asked
  if (hi.nonce === known.nonce && comparedTo > known.number) {
    const compared = { number: comparedTo, balance: expectedAt(known, credits, comparedTo), nonce: known.nonce }
    const found = yield* pointAt(round, address, comparedTo)
    // Else whoever answered then was wrong, and nothing is certain but the point before.
    if (found === undefined || found.balance === compared.balance) return compared
  }
  // Below zero transactions nobody can be: what has been assumed of the past is asked only where it matters.
  return (known.assumed ? yield* pointAt(round, address, known.number) : undefined) ?? known
})

/** What came to an address of this chain since its balance was last compared. */
const examine = Effect.fnUntraced(function* (round: Round, asked: Asked, hi: Point) {
  const { address, credits, known } = asked
  if (hi.number <= known.number || explained(known, hi, credits)) return nothing
  const found = yield* search(round, address, yield* startOf(round, asked, hi), hi, credits)
  return { ...found, rows: [...found.rows, { ...hi, address }] } satisfies Finding
})

/** Looks again for the transactions of an unattributed receipt. Nothing less than its amount takes its place. */
const retry = Effect.fnUntraced(function* (round: Round, address: string, { credit, hi, lo, others }: Doubt) {
  const start = (lo.assumed ? yield* pointAt(round, address, lo.number) : undefined) ?? lo
  const found = yield* search(round, address, start, hi, others)
  const attributed = found.transfers.some(({ txHash }) => txHash !== undefined)
  return attributed && sum(found.transfers.map(({ amount }) => amount)) >= credit.amount
    ? ({ ...found, replaced: [{ address, blockHash: credit.blockHash }] } satisfies Finding)
    : nothing
})

/** On a chain that the payment is not meant for, that something came is all that is wanted. */
const notice = (round: Round, { address, credits, known }: Asked, balance: bigint): Finding => {
  const { at, chain } = round
  const difference = balance - expectedAt(known, credits, at.number)
  if (difference === 0n || at.number <= known.number) return nothing
  const change = { address, currency: nativeToken(chain.chain), difference, credits }
  return {
    transfers: difference > 0n ? [unattributed(change, at, difference)] : [],
    rows: [{ address, number: at.number, balance, nonce: known.nonce }],
    replaced: []
  }
}

const inconsistent = ({ host }: RpcClient, method: string, detail: string) =>
  new RpcError({ host, method, reason: "inconsistent", detail })

/**
 * The nonces of addresses whose balances are not what was expected, by address. The balances are asked for again by the
 * other way to ask, and must be the same: a stale or an empty answer would be kept, and turn into money that came once
 * the right one is back.
 */
const noncesOf = Effect.fnUntraced(function* (
  client: RpcClient,
  at: BlockRef,
  changed: ReadonlyArray<readonly [Asked, bigint]>
) {
  const nonces = new Map<string, number>()
  for (const part of Arr.chunksOf(changed, statesPerBatch)) {
    const states = yield* ask(
      client,
      part.flatMap(([{ address }]) => [balanceAt(address, at), nonceAt(address, at)])
    )
    for (const [i, [{ address }, balance]] of part.entries()) {
      if (states[2 * i] !== balance) {
        const detail = `the balance of ${address} in block ${at.number} is ${balance} in one answer and ${states[2 * i]} in the next`
        return yield* inconsistent(client, "eth_getBalance", detail)
      }
      nonces.set(address, Number(states[2 * i + 1]))
    }
  }
  return nonces
})

/** Fails unless the chain still has the block that the round began with: by their numbers, blocks of it were read. */
const checkBranch = Effect.fnUntraced(function* ({ at, provider: { client } }: Round) {
  const [header] = yield* ask(client, [getHeader(at.number)])
  if (header.hash === at.hash) return
  const detail = `block ${at.number} was ${at.hash} and is ${header.hash}`
  return yield* inconsistent(client, "eth_getBlockByNumber", detail)
})

/**
 * One round at the block `at`, the scanned head: compares what the addresses hold with what the ledger says, and looks
 * for what brought the rest. While nothing has changed that takes one call a thousand addresses. It stores nothing.
 *
 * Money that came is the difference of two balances and what the address's own transactions took, so that the owner may
 * collect at any time. Where nobody can tell the transaction, the receipt is `unattributed`.
 */
export const readBalances = Effect.fn("Oracle.readBalances")(function* (
  deps: OracleDeps,
  at: BlockRef,
  asked: ReadonlyArray<Asked>
) {
  const round: Round = { ...deps, at, blocks: new Map() }
  const { client } = deps.provider
  const balances = yield* readPacked(
    client,
    asked.map(({ address }) => address),
    at
  )
  const read = Arr.zip(asked, balances)
  const changed = read.filter(
    ([one, balance]) => one.withNonce || balance !== expectedAt(one.known, one.credits, at.number)
  )
  const nonces = yield* noncesOf(client, at, changed)
  const foreign = changed.filter(([one]) => !one.own).map(([one, balance]) => notice(round, one, balance))
  const own = yield* Effect.forEach(
    changed.filter(([one]) => one.own),
    ([one, balance]) =>
      examine(round, one, { number: at.number, balance, nonce: nonces.get(one.address) ?? one.known.nonce }),
    { concurrency: searchesAtOnce }
  )
  const again = yield* Effect.forEach(
    asked.flatMap(({ address, doubts }) => doubts.map((doubt) => ({ address, doubt }))),
    ({ address, doubt }) => retry(round, address, doubt),
    { concurrency: searchesAtOnce }
  )
  const found = together([...foreign, ...own, ...again])
  if (found.rows.length > 0) yield* checkBranch(round)
  const reading: BalanceReading = {
    network: { chain: deps.chain.chain, mode: deps.chain.mode },
    at,
    ...found
  }
  return reading
})
