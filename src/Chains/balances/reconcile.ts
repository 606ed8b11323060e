/**
 * Balance reconciliation: compares the native balances of watched addresses at one block with the ledger, and
 * attributes each discrepancy to transactions. This finds coins that contracts moved, which no log shows. It bisects
 * the blocks between two known balances, then reads or traces the transactions of the block found.
 *
 * Nothing is stored here: the watcher's balance rounds and `searchBalances` call it, and `commitBalances` stores.
 */
import { Array as Arr, Effect } from "effect"
import { sum } from "../../Domain/Amount.ts"
import type { Network } from "../../Domain/Chain.ts"
import { nativeToken } from "../../Domain/Currency.ts"
import type { BlockRef } from "../../Domain/Receipt.ts"
import type { ChainSettings } from "../../Settings.ts"
import type { DatedTransfer, ReceiptKey } from "../ledger/LedgerRepo.ts"
import { readPackedBalances } from "../rpc/capabilities.ts"
import { getHeader, sendBatch } from "../rpc/methods.ts"
import { otherBlock, providerTrouble, type RpcError } from "../rpc/RpcError.ts"
import { type BalanceChange, unattributed } from "./attribution.ts"
import { incomeOfBlock, incomeOfBlocks, TraceBudget, type TraceSources } from "./blockIncome.ts"
import {
  type BalancePoint,
  type BalanceQuery,
  creditsWithin,
  discrepancy,
  expectedAt,
  isReconciled,
  isUnattributed,
  midpoint,
  type UnattributedDoubt
} from "./discrepancy.ts"
import { pastOf, pointAt, type Sources, type StateProviders, statesOf, withOtherNonce } from "./historicalStates.ts"

/** Addresses whose history is searched concurrently. */
const searchesAtOnce = 4
/**
 * Maximum states that a round reads to bisect the history of one address. A payer, or a lying provider, can show income
 * in every block: the rest stays unattributed, and is searched for again later.
 */
const statesPerAddress = 256

/** The providers that a reconciliation reads from. */
export interface ReconcileDeps extends StateProviders {
  readonly chain: ChainSettings
}

/** A balance point of an address, to be stored. */
export interface BalanceRow extends BalancePoint {
  /** Lower case. */
  readonly address: string
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
  /** Unattributed receipts that attributed ones replace. */
  readonly replaced: ReadonlyArray<Pick<ReceiptKey, "address" | "blockHash">>
  /** Nothing else here is about these addresses, unless `givenUp`. */
  readonly failed: ReadonlyArray<FailedAddress>
}

interface Finding extends Pick<Reconciliation, "transfers" | "rows">, Partial<Pick<Reconciliation, "replaced">> {
  /** What was skipped below the floor, wei. */
  readonly skipped?: bigint
}
const nothing: Finding = { transfers: [], rows: [] }
const combined = (findings: ReadonlyArray<Finding>) => ({
  transfers: findings.flatMap(({ transfers }) => transfers),
  rows: findings.flatMap(({ rows }) => rows),
  replaced: findings.flatMap(({ replaced = [] }) => replaced),
  skipped: sum(findings.map(({ skipped = 0n }) => skipped))
})

interface Round extends ReconcileDeps, TraceSources, Sources {
  /** States read to bisect, by address. */
  readonly statesRead: Map<string, number>
}

/** Unattributed income of an address in blocks above `after` up to `end`, if the amount is above zero. */
const unattributedIn = ({ chain }: Round, address: string, after: number, end: BlockRef, amount = 0n) =>
  unattributed({ address, currency: nativeToken(chain.chain) }, after + 1, end, amount)

/**
 * Finds the income of an address between two points by bisection: until what is left is below the floor, or one block, or no node
 * has the states in between.
 *
 * @param prunedTo no provider has the state of this block, nor of the blocks between `lo` and it
 */
const search = (
  round: Round,
  query: Pick<BalanceQuery, "address" | "credits" | "floor">,
  lo: BalancePoint,
  hi: BalancePoint,
  prunedTo = lo.number
): Effect.Effect<Finding, RpcError> =>
  Effect.gen(function* () {
    const { address, credits, floor } = query
    if (hi.number <= lo.number || isReconciled(lo, hi, credits)) return nothing
    const more = discrepancy(lo, hi, credits)
    if (lo.nonce === hi.nonce && more > 0n && more < floor) return { ...nothing, skipped: more }
    const statesRead = round.statesRead.get(address) ?? 0
    const isSpent = statesRead >= statesPerAddress
    const number = isSpent ? undefined : midpoint(lo.number, hi.number, prunedTo)
    if (number === undefined) {
      const change: BalanceChange = {
        address,
        currency: nativeToken(round.chain.chain),
        difference: hi.balance - lo.balance,
        credits: creditsWithin(credits, lo.number, hi.number)
      }
      const transfers = yield* hi.number - lo.number === 1
        ? incomeOfBlock(round, change, hi.number)
        : incomeOfBlocks(round, change, lo, hi, isSpent ? 0 : undefined)
      return { transfers, rows: [lo, hi].map((point) => ({ ...point, address })) }
    }
    round.statesRead.set(address, statesRead + 1)
    const mid = yield* pointAt(round, address, number)
    if (mid === undefined) return yield* search(round, query, lo, hi, number)
    return combined([yield* search(round, query, lo, mid, prunedTo), yield* search(round, query, mid, hi)])
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

/** The income since the last balance point, on the chain that the payment is for; what was skipped as one unattributed receipt. */
const incomeOf = Effect.fnUntraced(function* (round: Round, query: BalanceQuery, hi: BalancePoint) {
  const { address, credits, known } = query
  if (hi.number <= known.number || isReconciled(known, hi, credits)) return nothing
  const { rows, skipped, transfers } = yield* search(round, query, yield* startOf(round, query, hi), hi)
  const rest = unattributedIn(round, address, known.number, round.at, skipped)
  return { transfers: [...transfers, ...rest], rows: [...rows, { ...hi, address }] } satisfies Finding
})

/** Searches again for the transactions of an unattributed receipt, which less than its amount never replaces. */
const attributeAgain = Effect.fnUntraced(function* (
  round: Round,
  { address, floor }: BalanceQuery,
  { credit, hi, lo, others }: UnattributedDoubt
) {
  const start = yield* pastOf(round, address, lo)
  const { rows, skipped, transfers } = yield* search(round, { address, credits: others, floor }, start, hi)
  if (transfers.every(isUnattributed)) return nothing
  const [end] = yield* sendBatch(round.provider.client, [getHeader(hi.number)])
  const all = [...transfers, ...unattributedIn(round, address, start.number, end, skipped)]
  if (sum(all.map(({ amount }) => amount)) < credit.amount) return nothing
  return { transfers: all, rows, replaced: [{ address, blockHash: credit.blockHash }] } satisfies Finding
})

/** The income of an address on a chain that its payment is not for: one unattributed amount, without a search. */
const incomeElsewhere = Effect.fnUntraced(function* (
  round: Round,
  { address, credits, known }: BalanceQuery,
  { balance, number }: BalancePoint
) {
  if (number <= known.number) return nothing
  // Coins from before the payment do not belong to it.
  const since = yield* pastOf(round, address, known)
  const amount = balance - expectedAt(since, credits, number)
  return {
    transfers: unattributedIn(round, address, since.number, round.at, amount),
    rows: [{ address, number, balance, nonce: since.nonce }]
  } satisfies Finding
})

/** The whole discrepancy of an address as one unattributed receipt, where the search has failed repeatedly. */
const unattributedIncome = (round: Round, { address, credits, known }: BalanceQuery, hi: BalancePoint): Finding => {
  const amount = discrepancy(known, hi, credits)
  if (amount <= 0n || hi.number <= known.number) return nothing
  const transfers = unattributedIn(round, address, known.number, round.at, amount)
  return { transfers, rows: [{ ...hi, address }] }
}

/** Whether a balance differs by the floor or more, which smaller amounts may add up to, or the nonce is compared too. */
const hasDiscrepancy = ({ credits, floor, known, withNonce }: BalanceQuery, balance: bigint, number: number) => {
  const difference = balance - expectedAt(known, credits, number)
  return difference < 0n || (difference > 0n && (withNonce || difference >= floor))
}

/** An error that concerns one address or block only, not the whole provider. */
const isAddressError = ({ reason }: RpcError): boolean => !providerTrouble.has(reason)

/**
 * Compares the balances of the addresses at the block `at` with the ledger, and attributes each discrepancy to
 * transactions. While nothing has changed, this takes one call per thousand addresses. Income is the difference of two
 * balances plus what the address's own transactions spent, so that the owner may collect the coins at any time. Where
 * no provider shows the transaction, the receipt is `unattributed`.
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
  const round: Round = { ...deps, at, hashes: new Map(), traceBudget: new TraceBudget(), statesRead: new Map() }
  const { client } = deps.provider
  const addresses = queries.map(({ address }) => address)
  const read = Arr.zip(queries, yield* readPackedBalances(client, addresses, at))
  const [same, changed] = Arr.partition(read, ([query, balance]) => hasDiscrepancy(query, balance, at.number))
  const sent = yield* withOtherNonce(client, at, same)
  const failed: Array<FailedAddress> = []
  const compared = yield* Effect.forEach(
    yield* statesOf(client, at, [...changed, ...sent]),
    ([query, { dispute, point }]) => {
      const { address, own } = query
      const search = own ? incomeOf(round, query, point) : incomeElsewhere(round, query, point)
      return Effect.catchIf(dispute ?? search, isAddressError, (error) => {
        const givenUp = failedBefore.has(address)
        failed.push({ address, error, givenUp })
        return Effect.succeed(givenUp ? unattributedIncome(round, query, point) : nothing)
      })
    },
    { concurrency: searchesAtOnce }
  )
  const retried = yield* Effect.forEach(
    queries.flatMap((query) => query.doubts.map((doubt) => attributeAgain(round, query, doubt))),
    // On an error the receipt stays unattributed until it is due again.
    (again) => Effect.catchIf(again, isAddressError, () => Effect.succeed(nothing)),
    { concurrency: searchesAtOnce }
  )
  const { replaced, rows, transfers } = combined([...compared, ...retried])
  if (rows.length > 0 || failed.length > 0) {
    // Some blocks were read by number.
    const [header] = yield* sendBatch(client, [getHeader(at.number)])
    if (header.hash !== at.hash) return yield* otherBlock(client, at, header.hash)
  }
  const { chain, mode } = deps.chain
  return { network: { chain, mode }, at, transfers, rows, replaced, failed } satisfies Reconciliation
})
