import { sum } from "../../Domain/Amount.ts"
import type { BlockRef } from "../../Domain/Receipt.ts"
import type { DatedTransfer } from "../ledger/LedgerRepo.ts"
import type { Move, Transaction, TransactionOutcome } from "../rpc/balanceMethods.ts"
import type { BalanceCredit } from "./discrepancy.ts"

/** Gas that a transaction takes which runs no code. */
const plainTransfer = 21_000n

/** A transaction with its block. */
export interface PlacedTransaction extends Transaction {
  readonly block: BlockRef
}

/** A change of balance to be told apart: of one address, between two points. */
export interface BalanceChange {
  /** Lower case. */
  readonly address: string
  readonly currency: string
  /** Wei, what the address holds more, or less, than before. */
  readonly difference: bigint
  /** Its receipts between the two points. */
  readonly credits: ReadonlyArray<BalanceCredit>
}

export interface Attribution {
  readonly transfers: ReadonlyArray<DatedTransfer>
  /** Wei that came and belongs to no transaction yet; not above zero when there is none. */
  readonly rest: bigint
}

const receipt = (
  { address, currency }: BalanceChange,
  { block, hash }: PlacedTransaction,
  position: string,
  amount: bigint
): DatedTransfer => ({
  blockNumber: block.number,
  blockHash: block.hash,
  blockTime: block.time,
  txHash: hash,
  position,
  address,
  currency,
  amount
})

/** Money that came with block number `since` or a later one, at the latest with `block`, and nobody can tell how. */
export const unattributed = (
  { address, currency }: BalanceChange,
  since: number,
  block: BlockRef,
  amount: bigint
): DatedTransfer => ({
  blockNumber: block.number,
  blockHash: block.hash,
  blockTime: block.time,
  txHash: undefined,
  position: "unattributed",
  address,
  currency,
  amount,
  since
})

/** Whether an address sends a transaction, is paid by it, or is named in its calldata. */
export const concerns = (address: string, { from, input, to }: Pick<Transaction, "from" | "to" | "input">): boolean =>
  from === address || to === address || names(address, input)

const names = (address: string, input: string): boolean => input.toLowerCase().includes(address.slice(2))

/** What an address's own transactions took from it. What it sends to itself stays. */
export const spent = (
  address: string,
  transactions: ReadonlyArray<Transaction>,
  outcomes: ReadonlyMap<string, TransactionOutcome>
): bigint =>
  sum(
    transactions
      .filter(({ from }) => from === address)
      .map(({ hash, to, value }) => {
        const outcome = outcomes.get(hash)
        if (outcome === undefined) return 0n
        return outcome.fee + (outcome.succeeded && to !== address ? value : 0n)
      })
  )

/**
 * Tells by which transactions money came: those that pay the address themselves, then, for what is left, the one that
 * names it in its calldata. Receipts that are in the ledger are not given again.
 *
 * @param transactions at least all that concern the address, of all blocks between the two points
 * @param outcomes of those that concern it
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
    .map((transaction) => receipt(change, transaction, `tx:${transaction.transactionIndex}`, transaction.value))
    .filter(({ blockHash, position }) => !known.has(`${blockHash} ${position}`))
  const came = difference + spent(address, transactions, outcomes)
  const rest = came - sum(credits.map(({ amount }) => amount)) - sum(direct.map(({ amount }) => amount))

  const named = candidates(change, succeeded).filter(({ input }) => names(address, input))
  const [only, second] = named
  return rest > 0n && only !== undefined && second === undefined
    ? { transfers: [...direct, receipt(change, only, `call:${only.hash}`, rest)], rest: 0n }
    : { transfers: direct, rest }
}

/**
 * The transactions that may have brought money from inside a contract, the likeliest first. One that the ledger names
 * already has brought what it could, and one to the address itself runs no contract.
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
  const carrying = possible.filter(({ input, value }) => value > 0n && !names(address, input))
  const chosen = new Set([...naming, ...carrying])
  return [...chosen, ...possible.filter((transaction) => !chosen.has(transaction))]
}

/** What transactions brought by what they moved: one receipt each. What an address sends to itself is none. */
export const traced = (
  change: BalanceChange,
  moves: ReadonlyArray<readonly [PlacedTransaction, ReadonlyArray<Move>]>
): ReadonlyArray<DatedTransfer> =>
  moves.flatMap(([transaction, made]) => {
    const amount = sum(
      made.filter(({ from, to }) => to === change.address && from !== change.address).map((move) => move.amount)
    )
    return amount > 0n ? [receipt(change, transaction, `call:${transaction.hash}`, amount)] : []
  })
