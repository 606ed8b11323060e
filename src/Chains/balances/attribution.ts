/**
 * Attribution, pure functions: which transactions of a block explain a change of an address's balance. First those that
 * pay the address by their value, then one that names it in its calldata, then internal transfers from traces. What no
 * transaction explains becomes an `unattributed` receipt. `blockIncome.ts` calls it.
 *
 * Positions of receipts: `tx:<index>` for a transaction's value, `call:<hash>` for internal transfers.
 */
import { sum } from "../../Domain/Amount.ts"
import type { BlockRef } from "../../Domain/Receipt.ts"
import type { DatedTransfer } from "../ledger/LedgerRepo.ts"
import type { Move } from "../rpc/balanceMethods.ts"
import type { Transaction, TransactionOutcome } from "../rpc/transactionMethods.ts"
import type { BalanceCredit } from "./discrepancy.ts"

/** Gas of a transaction that runs no code. */
export const plainTransfer = 21_000n

/** A transaction with its block. */
export interface PlacedTransaction extends Transaction {
  readonly block: BlockRef
}

/** A change of one address's balance between two points, to be attributed. */
export interface BalanceChange {
  /** Lower case. */
  readonly address: string
  readonly currency: string
  /** Wei; below zero when the address holds less than before. */
  readonly difference: bigint
  /** Its receipts between the two points. */
  readonly credits: ReadonlyArray<BalanceCredit>
}

/** The attributed part of a change, and what is left of it. */
export interface Attribution {
  readonly transfers: ReadonlyArray<DatedTransfer>
  /** Wei of income without a transaction yet; zero or below when there is none. */
  readonly rest: bigint
}

type Receiver = Pick<BalanceChange, "address" | "currency">
type Source = Pick<PlacedTransaction, "block" | "hash">

const receipt = (
  { address, currency }: Receiver,
  { block, hash: txHash }: { readonly block: BlockRef; readonly hash: string | undefined },
  position: string,
  amount: bigint
): DatedTransfer => {
  const at = { blockNumber: block.number, blockHash: block.hash, blockTime: block.time }
  return { ...at, txHash, position, address, currency, amount }
}

/** The receipt of an amount that came in a block from `since` up to `block` by an unknown transaction; none of 0. */
export const unattributed = (
  receiver: Receiver,
  since: number,
  block: BlockRef,
  amount: bigint
): ReadonlyArray<DatedTransfer> =>
  amount > 0n ? [{ ...receipt(receiver, { block, hash: undefined }, "unattributed", amount), since }] : []

/** Whether an address (lower case) sends a transaction, is its target, or is named in its calldata. */
export const concerns = (address: string, { from, input, to }: Pick<Transaction, "from" | "to" | "input">): boolean =>
  from === address || to === address || names(address, input)

const names = (address: string, input: string): boolean => input.toLowerCase().includes(address.slice(2))

/** Wei that an address's own transactions spent, fees included. What it sends to itself stays. */
export const spent = (
  address: string,
  transactions: ReadonlyArray<Transaction>,
  outcomes: ReadonlyMap<string, TransactionOutcome>
): bigint =>
  sum(
    transactions.map(({ from, hash, to, value }) => {
      const outcome = outcomes.get(hash)
      if (from !== address || outcome === undefined) return 0n
      return outcome.fee + (outcome.succeeded && to !== address ? value : 0n)
    })
  )

/**
 * Attributes a change to transactions: to those that pay the address by their value and, for the rest, to the only one
 * that names it in its calldata. Receipts that the ledger has are not returned again.
 *
 * @param transactions at least all that concern the address, of all blocks between the two points
 * @param outcomes by transaction hash, of those that concern the address
 */
export const attribute = (
  change: BalanceChange,
  transactions: ReadonlyArray<PlacedTransaction>,
  outcomes: ReadonlyMap<string, TransactionOutcome>
): Attribution => {
  const { address, credits, difference } = change
  const known = new Set(credits.map((credit) => `${credit.blockHash} ${credit.position}`))
  const succeeded = transactions.filter(({ hash }) => outcomes.get(hash)?.succeeded === true)
  const direct = succeeded
    .filter(({ from, to, value }) => to === address && from !== address && value > 0n)
    .map((transaction) => ({
      ...receipt(change, transaction, `tx:${transaction.transactionIndex}`, transaction.value),
      sender: transaction.from
    }))
    .filter(({ blockHash, position }) => !known.has(`${blockHash} ${position}`))
  const income = difference + spent(address, transactions, outcomes)
  const rest = income - sum(credits.map(({ amount }) => amount)) - sum(direct.map(({ amount }) => amount))

  const [named, another] = candidates(change, succeeded).filter(({ input }) => names(address, input))
  return rest > 0n && named !== undefined && another === undefined
    ? { transfers: [...direct, receipt(change, named, `call:${named.hash}`, rest)], rest: 0n }
    : { transfers: direct, rest }
}

/**
 * The transactions that may contain an internal transfer to the address, the likeliest first. Left out are transactions
 * whose internal transfers the ledger has, and those sent to the address itself, which runs no code.
 */
export const candidates = (
  { address, credits }: BalanceChange,
  transactions: ReadonlyArray<PlacedTransaction>
): ReadonlyArray<PlacedTransaction> => {
  const known = new Set(credits.map(({ position }) => position))
  const possible = transactions.filter(
    ({ gas, hash, to }) => to !== address && gas > plainTransfer && !known.has(`call:${hash}`)
  )
  const naming = possible.filter(({ input }) => names(address, input))
  const withValue = possible.filter(({ input, value }) => value > 0n && !names(address, input))
  const chosen = new Set([...naming, ...withValue])
  return [...chosen, ...possible.filter((transaction) => !chosen.has(transaction))]
}

/** Wei that an address received by moves. Transfers to itself do not count. */
export const receivedBy = (address: string, moves: ReadonlyArray<Move>): bigint =>
  sum(moves.filter(({ from, to }) => to === address && from !== address).map((move) => move.amount))

/** The income of an address by internal transfers: one receipt per transaction. */
export const traced = (
  receiver: Receiver,
  moves: ReadonlyArray<readonly [Source, ReadonlyArray<Move>]>
): ReadonlyArray<DatedTransfer> =>
  moves.flatMap(([source, internal]) => {
    const amount = receivedBy(receiver.address, internal)
    return amount > 0n ? [receipt(receiver, source, `call:${source.hash}`, amount)] : []
  })
