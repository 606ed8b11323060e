/**
 * Which money is not decided on: no refund, no acceptance and no plan. Money with fewer confirmations than its chain asks for,
 * however many providers there are, since a reorg may still take it; and, where several are configured, money that no second
 * one has, since the first may have invented it. Called by every decision, and by the list of exceptions for plans.
 */
import { Array as Arr, Effect } from "effect"
import * as Ledger from "../Chains/ledger/LedgerRepo.ts"
import { networkKey } from "../Domain/Chain.ts"
import { MoneyNotConfirmed, type PaymentException } from "../Domain/Exception.ts"
import type { Receipt } from "../Domain/Receipt.ts"
import { Settings } from "../Settings.ts"
import type { Db, StoreUnavailable } from "../Sql.ts"
import * as Receipts from "./ReceiptsRepo.ts"

/** What a decision does without. */
export interface Waived {
  /** The second provider: an operator takes the word of one. */
  readonly uncorroborated?: boolean | undefined
  /** The second provider, for money without a transaction: two have the one that was named for it. */
  readonly isProven?: boolean
}

/** Why money is not decided on, with the remedy, and whether `uncorroborated` waives it. */
export interface Undecidable {
  readonly message: string
  readonly isWaivable: boolean
}

/** Why these canonical receipts, of `money`, are not decided on; undefined where they may be. */
export const whyUndecidable = Effect.fnUntraced(function* (
  db: Db,
  money: string,
  receipts: ReadonlyArray<Receipt>,
  { isProven, uncorroborated }: Waived = {}
): Effect.fn.Return<Undecidable | undefined, StoreUnavailable, Settings> {
  const { chains } = yield* Settings
  for (const [key, all] of Object.entries(Arr.groupBy(receipts, networkKey))) {
    const chain = chains.find((configured) => networkKey(configured) === key)
    // Nothing is read any more of a chain that was taken out of the configuration.
    if (chain === undefined) continue
    const head = (yield* Ledger.scan(db, chain))?.head.number ?? 0
    const depth = head - Math.max(...all.map(({ blockNumber }) => blockNumber)) + 1
    if (depth < chain.confirmations) {
      const message = `${money} has ${Math.max(depth, 0)} of the ${chain.confirmations} confirmations that ${key} asks for, and a reorg may still take it: decide once it has them`
      return { message, isWaivable: false }
    }
    const isAlone = ({ corroborated, txHash }: Receipt) => !corroborated && !(isProven && txHash === undefined)
    if (chain.rpcUrls.length > 1 && !uncorroborated && all.some(isAlone)) {
      const message = `No second provider of ${key} has ${money}, which one may have invented: decide once another has it. If none can, look in a block explorer, and have an operator decide, with --uncorroborated`
      return { message, isWaivable: true }
    }
  }
  return undefined
})

/**
 * The same for the money of an open exception. What a reorg took from a confirmed payment is no money: it may be waived. Other
 * exceptions are `gone` once a reorg has taken their money.
 */
export const whyExceptionUndecidable = Effect.fnUntraced(function* (
  db: Db,
  exception: PaymentException,
  waived?: Waived
): Effect.fn.Return<Undecidable | undefined, StoreUnavailable, Settings> {
  if (exception.kind === "reorged") return undefined
  const receipts = yield* Receipts.ofException(db, exception)
  const corroborated = receipts.filter((receipt) => receipt.corroborated)
  const decided = corroborated.length > 0 ? corroborated : receipts
  return yield* whyUndecidable(db, `the money of ${exception.id}`, decided, waived)
})

/** Fails where money is not decided on. */
export const refuseUndecidable = (why: Effect.Effect<Undecidable | undefined, StoreUnavailable, Settings>) =>
  Effect.flatMap(why, (found) =>
    found === undefined ? Effect.void : new MoneyNotConfirmed({ message: found.message })
  )
