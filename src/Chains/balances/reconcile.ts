import { Array as Arr, Effect } from "effect"
import { sum } from "../../Domain/Amount.ts"
import type { Network } from "../../Domain/Chain.ts"
import { nativeToken } from "../../Domain/Currency.ts"
import type { BlockRef } from "../../Domain/Receipt.ts"
import type { ChainSettings } from "../../Settings.ts"
import type { DatedTransfer } from "../ledger/LedgerRepo.ts"
import { readPackedBalances } from "../rpc/capabilities.ts"
import { getHeader, sendBatch } from "../rpc/methods.ts"
import { inconsistent, providerTrouble, type RpcError } from "../rpc/RpcError.ts"
import { unattributed } from "./attribution.ts"
import { incomeOfBlock, incomeOfBlocks } from "./blockIncome.ts"
import {
  type BalanceCredit,
  type BalancePoint,
  type BalanceQuery,
  creditsWithin,
  discrepancy,
  expectedAt,
  isReconciled,
  midpoint,
  type UnattributedDoubt
} from "./discrepancy.ts"
import { pastOf, pointAt, type StateProvider, statesOf } from "./historicalStates.ts"
import { makeTraceBudget, type TraceBudget } from "./traceBlock.ts"

/** Addresses whose history is searched at once. */
const searchesAtOnce = 4

export interface ReconcileDeps {
  readonly provider: StateProvider
  /** Other healthy ones, for states and traces that the first does not have. */
  readonly others: ReadonlyArray<StateProvider>
  readonly chain: ChainSettings
}

/** A point of an address, to be kept. */
export interface BalanceRow extends BalancePoint {
  readonly address: string
}

/** An unattributed receipt that others have taken the place of. */
export interface Replaced {
  readonly address: string
  readonly blockHash: string
}

/** An address of which it could not be found out what came. */
export interface FailedAddress {
  readonly address: string
  readonly error: RpcError
  /** It has failed so often that it holds up the round no longer: what it holds more is kept as unattributed. */
  readonly givenUp: boolean
}

/** What a round has found; nothing of it is stored yet. */
export interface Reconciliation {
  readonly network: Network
  readonly at: BlockRef
  readonly transfers: ReadonlyArray<DatedTransfer>
  readonly rows: ReadonlyArray<BalanceRow>
  readonly replaced: ReadonlyArray<Replaced>
  /** Left out of all this, but for what was given up. */
  readonly failed: ReadonlyArray<FailedAddress>
}

type Finding = Pick<Reconciliation, "transfers" | "rows" | "replaced">
const nothing: Finding = { transfers: [], rows: [], replaced: [] }
const together = (findings: ReadonlyArray<Finding>): Finding => ({
  transfers: findings.flatMap(({ transfers }) => transfers),
  rows: findings.flatMap(({ rows }) => rows),
  replaced: findings.flatMap(({ replaced }) => replaced)
})

interface Round extends ReconcileDeps {
  readonly at: BlockRef
  readonly hashes: Map<number, string>
  readonly looking: TraceBudget
}

/** What is too little to be looked for, and how much of that there was. */
interface Dust {
  readonly floor: bigint
  found: bigint
}

/**
 * What came between two points, block by block where states are to be had: halves of the interval, until nothing is left
 * to be told but `dust`, or one block is.
 *
 * @param gone nobody has the state of this block, nor of those between it and `lo`
 */
const search = (
  round: Round,
  address: string,
  lo: BalancePoint,
  hi: BalancePoint,
  receipts: ReadonlyArray<BalanceCredit>,
  dust: Dust,
  gone = lo.number
): Effect.Effect<Finding, RpcError> =>
  Effect.gen(function* () {
    if (hi.number <= lo.number || isReconciled(lo, hi, receipts)) return nothing
    const more = discrepancy(lo, hi, receipts)
    if (lo.nonce === hi.nonce && more > 0n && more < dust.floor) {
      dust.found += more
      return nothing
    }
    const number = midpoint(lo.number, hi.number, gone)
    if (number === undefined) {
      const interval = { address, lo, hi, credits: creditsWithin(receipts, lo.number, hi.number) }
      const single = hi.number - lo.number === 1
      const transfers = yield* single
        ? incomeOfBlock(round, round.looking, interval)
        : incomeOfBlocks(round, round.looking, interval)
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
    if (mid === undefined) return yield* search(round, address, lo, hi, receipts, dust, number)
    return together([
      yield* search(round, address, lo, mid, receipts, dust, gone),
      yield* search(round, address, mid, hi, receipts, dust)
    ])
  })

/** Where to search from, for what has led to `hi`. */
const startOf = Effect.fnUntraced(function* (round: Round, asked: BalanceQuery, hi: BalancePoint) {
  const { address, comparedTo, credits, known } = asked
  if (hi.nonce === known.nonce && comparedTo > known.number) {
    const compared = { number: comparedTo, balance: expectedAt(known, credits, comparedTo), nonce: known.nonce }
    const found = yield* pointAt(round, address, comparedTo)
    // Else whoever answered then was wrong, and nothing is certain but the point before.
    if (found === undefined || found.balance === compared.balance) return compared
  }
  // Below zero transactions nobody can be: what has been assumed of the past is asked only where it matters.
  return yield* pastOf(round, address, known)
})

/** All the dust of an interval, as one amount that came by the end of it. */
const ofDust = (
  { chain }: Round,
  { address, credits }: Pick<BalanceQuery, "address" | "credits">,
  start: number,
  end: BlockRef,
  { found }: Dust
): ReadonlyArray<DatedTransfer> =>
  found === 0n
    ? []
    : [unattributed({ address, currency: nativeToken(chain.chain), difference: found, credits }, start + 1, end, found)]

/** What came to an address of this chain since its balance was last compared. */
const examine = Effect.fnUntraced(function* (round: Round, asked: BalanceQuery, hi: BalancePoint) {
  const { address, credits, known } = asked
  if (hi.number <= known.number || isReconciled(known, hi, credits)) return nothing
  const dust: Dust = { floor: asked.floor, found: 0n }
  const found = yield* search(round, address, yield* startOf(round, asked, hi), hi, credits, dust)
  const transfers = [...found.transfers, ...ofDust(round, asked, known.number, round.at, dust)]
  return { ...found, transfers, rows: [...found.rows, { ...hi, address }] } satisfies Finding
})

/** Looks again for the transactions of an unattributed receipt. Nothing less than its amount takes its place. */
const retry = Effect.fnUntraced(function* (round: Round, { address, floor }: BalanceQuery, doubt: UnattributedDoubt) {
  const { credit, hi, lo, others } = doubt
  const start = yield* pastOf(round, address, lo)
  const dust: Dust = { floor, found: 0n }
  const searched = yield* search(round, address, start, hi, others, dust)
  const attributed = searched.transfers.some(({ txHash }) => txHash !== undefined)
  if (!attributed) return nothing
  const [end] = yield* sendBatch(round.provider.client, [getHeader(hi.number)])
  const rest = ofDust(round, { address, credits: others }, start.number, end, dust)
  const found = { ...searched, transfers: [...searched.transfers, ...rest] }
  return sum(found.transfers.map(({ amount }) => amount)) >= credit.amount
    ? ({ ...found, replaced: [{ address, blockHash: credit.blockHash }] } satisfies Finding)
    : nothing
})

/** On a chain that the payment is not meant for, that something came since it was made is all that is wanted. */
const notice = Effect.fnUntraced(function* (round: Round, { address, credits, known }: BalanceQuery, balance: bigint) {
  const { at, chain } = round
  if (at.number <= known.number) return nothing
  // What was there before the payment is none of its money.
  const since = yield* pastOf(round, address, known)
  const difference = balance - expectedAt(since, credits, at.number)
  const change = { address, currency: nativeToken(chain.chain), difference, credits }
  return {
    transfers: difference > 0n ? [unattributed(change, since.number + 1, at, difference)] : [],
    rows: [{ address, number: at.number, balance, nonce: since.nonce }],
    replaced: []
  } satisfies Finding
})

/** What an address holds more, where it could not be found out how it came. */
const unfollowed = (round: Round, { address, credits, known }: BalanceQuery, hi: BalancePoint): Finding => {
  const amount = discrepancy(known, hi, credits)
  if (amount <= 0n || hi.number <= known.number) return nothing
  const change = { address, currency: nativeToken(round.chain.chain), difference: amount, credits }
  return {
    transfers: [unattributed(change, known.number + 1, round.at, amount)],
    rows: [{ ...hi, address }],
    replaced: []
  }
}

/** Whether what an address holds is not what is expected, by more than dust: that waits until it has come to more. */
const isWorthALook = ({ credits, floor, known }: BalanceQuery, balance: bigint, number: number): boolean => {
  const difference = balance - expectedAt(known, credits, number)
  return difference < 0n || (difference > 0n && difference >= floor)
}

/** An error that the next address need not meet. */
const isOfOne = ({ reason }: RpcError): boolean => !providerTrouble.has(reason)

/** Fails unless the chain still has the block that the round began with: by their numbers, blocks of it were read. */
const checkBranch = Effect.fnUntraced(function* ({ at, provider: { client } }: Round) {
  const [header] = yield* sendBatch(client, [getHeader(at.number)])
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
 *
 * An error about one address leaves that one out, and fails no other.
 *
 * @param hopeless addresses that have failed before: if they do again, what they hold more is unattributed
 */
export const reconcileBalances = Effect.fn("Oracle.readBalances")(function* (
  deps: ReconcileDeps,
  at: BlockRef,
  asked: ReadonlyArray<BalanceQuery>,
  hopeless: ReadonlySet<string> = new Set()
) {
  const round: Round = { ...deps, at, hashes: new Map(), looking: makeTraceBudget() }
  const { client } = deps.provider
  const balances = yield* readPackedBalances(
    client,
    asked.map(({ address }) => address),
    at
  )
  const read = Arr.zip(asked, balances)
  const changed = read.filter(([one, balance]) => one.withNonce || isWorthALook(one, balance, at.number))
  const failed: Array<FailedAddress> = []
  const told = yield* Effect.forEach(
    yield* statesOf(client, at, changed),
    ([one, { dispute, point }]) => {
      const { address, own } = one
      const search = own ? examine(round, one, point) : notice(round, one, point.balance)
      return Effect.catchIf(dispute ?? search, isOfOne, (error) => {
        const givenUp = hopeless.has(address)
        failed.push({ address, error, givenUp })
        return Effect.succeed(givenUp ? unfollowed(round, one, point) : nothing)
      })
    },
    { concurrency: searchesAtOnce }
  )
  const again = yield* Effect.forEach(
    asked.flatMap((one) => one.doubts.map((doubt) => ({ one, doubt }))),
    ({ doubt, one }) =>
      // The receipt stays what it is, and is tried again when it is due again.
      Effect.catchIf(retry(round, one, doubt), isOfOne, () => Effect.succeed(nothing)),
    { concurrency: searchesAtOnce }
  )
  const found = together([...told, ...again])
  if (found.rows.length > 0 || failed.length > 0) yield* checkBranch(round)
  const reading: Reconciliation = {
    network: { chain: deps.chain.chain, mode: deps.chain.mode },
    at,
    ...found,
    failed
  }
  return reading
})
