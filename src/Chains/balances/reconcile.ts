/**
 * Balance reconciliation: reads the native balances of watched addresses at one block, compares them with what the
 * ledger has, and attributes each discrepancy to the transactions that caused it. This finds coins that contracts
 * moved, which no log shows. It bisects the blocks between two known balances, then reads or traces the transactions of
 * the block found.
 *
 * Nothing is stored here: the watcher's balance rounds and `searchBalances` call it, and `commitBalances` stores the
 * result of a round.
 */
import { Array as Arr, Effect, Either } from "effect"
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
import { pastOf, pointAt, type StateProvider, statesOf, withOtherNonce } from "./historicalStates.ts"
import { makeTraceBudget, type TraceBudget } from "./traceBlock.ts"

/** Addresses whose history is searched concurrently. */
const searchesAtOnce = 4
/**
 * Most states that a round reads to bisect the history of one address. A payer, or a provider that lies, can show income
 * in every block: what is left stays unattributed, and is searched for again later.
 */
const statesPerAddress = 256

/** The providers that a reconciliation reads from. */
export interface ReconcileDeps {
  /** Reads the balances, and everything else that it has. */
  readonly provider: StateProvider
  /** Other healthy providers, for states and traces that `provider` does not have. */
  readonly others: ReadonlyArray<StateProvider>
  readonly chain: ChainSettings
}

/** A balance point of an address, to be stored. */
export interface BalanceRow extends BalancePoint {
  /** Lower case. */
  readonly address: string
}

/** An unattributed receipt that attributed ones replace. */
export interface ReplacedReceipt {
  readonly address: string
  readonly blockHash: string
}

/** An address whose reconciliation failed. */
export interface FailedAddress {
  readonly address: string
  readonly error: RpcError
  /** It failed in earlier rounds too and no longer blocks this one: its discrepancy is an unattributed receipt. */
  readonly givenUp: boolean
}

/** The result of one reconciliation, not stored yet. */
export interface Reconciliation {
  readonly network: Network
  /** The block of the balances. */
  readonly at: BlockRef
  readonly transfers: ReadonlyArray<DatedTransfer>
  /** Points that later reconciliations start from. */
  readonly rows: ReadonlyArray<BalanceRow>
  readonly replaced: ReadonlyArray<ReplacedReceipt>
  /** Nothing else here is about these addresses, unless `givenUp`. */
  readonly failed: ReadonlyArray<FailedAddress>
}

type Finding = Pick<Reconciliation, "transfers" | "rows" | "replaced">
const nothing: Finding = { transfers: [], rows: [], replaced: [] }
const combined = (findings: ReadonlyArray<Finding>): Finding => ({
  transfers: findings.flatMap(({ transfers }) => transfers),
  rows: findings.flatMap(({ rows }) => rows),
  replaced: findings.flatMap(({ replaced }) => replaced)
})

interface Round extends ReconcileDeps {
  readonly at: BlockRef
  readonly hashes: Map<number, string>
  readonly traceBudget: TraceBudget
  /** States read to bisect, by address. */
  readonly statesRead: Map<string, number>
}

/** Amounts too small to search for, wei. */
interface Dust {
  /** Smaller amounts are dust. */
  readonly floor: bigint
  /** The dust skipped so far. */
  found: bigint
}

/**
 * Finds the income between two points by bisection: until what is left is `dust`, or one block, or no node has the
 * states in between.
 *
 * @param prunedTo no provider has the state of this block, nor of the blocks between `lo` and it
 */
const search = (
  round: Round,
  address: string,
  lo: BalancePoint,
  hi: BalancePoint,
  receipts: ReadonlyArray<BalanceCredit>,
  dust: Dust,
  prunedTo = lo.number
): Effect.Effect<Finding, RpcError> =>
  Effect.gen(function* () {
    if (hi.number <= lo.number || isReconciled(lo, hi, receipts)) return nothing
    const more = discrepancy(lo, hi, receipts)
    if (lo.nonce === hi.nonce && more > 0n && more < dust.floor) {
      dust.found += more
      return nothing
    }
    const statesRead = round.statesRead.get(address) ?? 0
    const isSpent = statesRead >= statesPerAddress
    const number = isSpent ? undefined : midpoint(lo.number, hi.number, prunedTo)
    if (number === undefined) {
      const interval = { address, lo, hi, credits: creditsWithin(receipts, lo.number, hi.number) }
      const single = hi.number - lo.number === 1
      const transfers = yield* single
        ? incomeOfBlock(round, round.traceBudget, interval)
        : incomeOfBlocks(round, round.traceBudget, interval, isSpent ? 0 : undefined)
      return {
        transfers,
        rows: [
          { ...lo, address },
          { ...hi, address }
        ],
        replaced: []
      }
    }
    round.statesRead.set(address, statesRead + 1)
    const mid = yield* pointAt(round, address, number)
    if (mid === undefined) return yield* search(round, address, lo, hi, receipts, dust, number)
    return combined([
      yield* search(round, address, lo, mid, receipts, dust, prunedTo),
      yield* search(round, address, mid, hi, receipts, dust)
    ])
  })

/** The point to search from, for the discrepancy at `hi`. */
const startOf = Effect.fnUntraced(function* (round: Round, query: BalanceQuery, hi: BalancePoint) {
  const { address, comparedTo, credits, known } = query
  if (hi.nonce === known.nonce && comparedTo > known.number) {
    const compared = { number: comparedTo, balance: expectedAt(known, credits, comparedTo), nonce: known.nonce }
    const found = yield* pointAt(round, address, comparedTo)
    // Otherwise the earlier comparison was wrong, and only the stored point is reliable.
    if (found === undefined || found.balance === compared.balance) return compared
  }
  // An assumed point is read from the chain only here: an address without a discrepancy never needs it.
  return yield* pastOf(round, address, known)
})

/** All the dust of an interval, as one unattributed receipt at its end. */
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

/** The income of an address since its last balance point, on the chain that its payment is for. */
const incomeOf = Effect.fnUntraced(function* (round: Round, query: BalanceQuery, hi: BalancePoint) {
  const { address, credits, known } = query
  if (hi.number <= known.number || isReconciled(known, hi, credits)) return nothing
  const dust: Dust = { floor: query.floor, found: 0n }
  const found = yield* search(round, address, yield* startOf(round, query, hi), hi, credits, dust)
  const transfers = [...found.transfers, ...ofDust(round, query, known.number, round.at, dust)]
  return { ...found, transfers, rows: [...found.rows, { ...hi, address }] } satisfies Finding
})

/** Searches again for the transactions of an unattributed receipt, which less than its amount never replaces. */
const attributeAgain = Effect.fnUntraced(function* (
  round: Round,
  { address, floor }: BalanceQuery,
  doubt: UnattributedDoubt
) {
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

/** The income of an address on a chain that its payment is not for: one unattributed amount, without a search. */
const incomeElsewhere = Effect.fnUntraced(function* (
  round: Round,
  { address, credits, known }: BalanceQuery,
  balance: bigint
) {
  const { at, chain } = round
  if (at.number <= known.number) return nothing
  // Coins from before the payment do not belong to it.
  const since = yield* pastOf(round, address, known)
  const difference = balance - expectedAt(since, credits, at.number)
  const change = { address, currency: nativeToken(chain.chain), difference, credits }
  return {
    transfers: difference > 0n ? [unattributed(change, since.number + 1, at, difference)] : [],
    rows: [{ address, number: at.number, balance, nonce: since.nonce }],
    replaced: []
  } satisfies Finding
})

/** The whole discrepancy of an address as one unattributed receipt, where the search has failed repeatedly. */
const unattributedIncome = (round: Round, { address, credits, known }: BalanceQuery, hi: BalancePoint): Finding => {
  const amount = discrepancy(known, hi, credits)
  if (amount <= 0n || hi.number <= known.number) return nothing
  const change = { address, currency: nativeToken(round.chain.chain), difference: amount, credits }
  return {
    transfers: [unattributed(change, known.number + 1, round.at, amount)],
    rows: [{ ...hi, address }],
    replaced: []
  }
}

/**
 * Whether a balance differs from the expected one by more than dust. Dust waits until it adds up to more, or the nonce is
 * compared too.
 */
const hasDiscrepancy = ({ credits, floor, known, withNonce }: BalanceQuery, balance: bigint, number: number) => {
  const difference = balance - expectedAt(known, credits, number)
  return difference < 0n || (difference > 0n && (withNonce || difference >= floor))
}

/** An error that concerns one address or block only, not the whole provider. */
const isAddressError = ({ reason }: RpcError): boolean => !providerTrouble.has(reason)

/** Fails unless `at` is still canonical for the provider: some blocks were read by number. */
const checkBranch = Effect.fnUntraced(function* ({ at, provider: { client } }: Round) {
  const [header] = yield* sendBatch(client, [getHeader(at.number)])
  if (header.hash === at.hash) return
  const detail = `block ${at.number} was ${at.hash} and is ${header.hash}`
  return yield* inconsistent(client, "eth_getBlockByNumber", detail)
})

/**
 * Compares the balances of the addresses at the block `at` with the ledger, and attributes each discrepancy to
 * transactions. While nothing has changed, this takes one call per thousand addresses. It stores nothing.
 *
 * Income is the difference of two balances plus what the address's own transactions spent, so that the owner may
 * collect the coins at any time. Where no provider shows the transaction, the receipt is `unattributed`.
 *
 * An error that concerns one address puts it into `failed`. Fails with an error that concerns the provider as a whole,
 * and as `inconsistent` when `at` is no longer canonical.
 *
 * @param failedBefore addresses that failed in earlier rounds: if they fail again, their discrepancy is unattributed
 */
export const reconcileBalances = Effect.fn("Balances.reconcile")(function* (
  deps: ReconcileDeps,
  at: BlockRef,
  queries: ReadonlyArray<BalanceQuery>,
  failedBefore: ReadonlySet<string> = new Set()
) {
  const round: Round = { ...deps, at, hashes: new Map(), traceBudget: makeTraceBudget(), statesRead: new Map() }
  const { client } = deps.provider
  const balances = yield* readPackedBalances(
    client,
    queries.map(({ address }) => address),
    at
  )
  const read = Arr.zip(queries, balances)
  const [changed, same] = Arr.partitionMap(read, (one) =>
    hasDiscrepancy(one[0], one[1], at.number) ? Either.left(one) : Either.right(one)
  )
  const sent = yield* withOtherNonce(client, at, same)
  const failed: Array<FailedAddress> = []
  const compared = yield* Effect.forEach(
    yield* statesOf(client, at, [...changed, ...sent]),
    ([query, { dispute, point }]) => {
      const { address, own } = query
      const search = own ? incomeOf(round, query, point) : incomeElsewhere(round, query, point.balance)
      return Effect.catchIf(dispute ?? search, isAddressError, (error) => {
        const givenUp = failedBefore.has(address)
        failed.push({ address, error, givenUp })
        return Effect.succeed(givenUp ? unattributedIncome(round, query, point) : nothing)
      })
    },
    { concurrency: searchesAtOnce }
  )
  const retried = yield* Effect.forEach(
    queries.flatMap((query) => query.doubts.map((doubt) => ({ query, doubt }))),
    ({ doubt, query }) =>
      // On an error the receipt stays unattributed until it is due again.
      Effect.catchIf(attributeAgain(round, query, doubt), isAddressError, () => Effect.succeed(nothing)),
    { concurrency: searchesAtOnce }
  )
  const found = combined([...compared, ...retried])
  if (found.rows.length > 0 || failed.length > 0) yield* checkBranch(round)
  const reading: Reconciliation = {
    network: { chain: deps.chain.chain, mode: deps.chain.mode },
    at,
    ...found,
    failed
  }
  return reading
})
