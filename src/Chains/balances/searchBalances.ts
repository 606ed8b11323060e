import { Effect } from "effect"
import { sum } from "../../Domain/Amount.ts"
import type { BlockRef } from "../../Domain/Receipt.ts"
import type { DatedTransfer } from "../ledger/LedgerRepo.ts"
import type { Provider } from "../providers/Providers.ts"
import type { WatchContext } from "../scan/WatchContext.ts"
import * as Balances from "./BalancesRepo.ts"
import type { Watched } from "./balanceQuery.ts"
import type { BalanceCredit, BalanceQuery } from "./discrepancy.ts"
import { pointAt } from "./historicalStates.ts"
import { reconcileBalances } from "./reconcile.ts"

/** An address whose points the provider denies, and of which it has told anew. */
export interface ComparedAddress {
  /** Lower case. */
  readonly address: string
  /** Blocks of its receipts without a transaction, which came of those points. */
  readonly replaced: ReadonlyArray<string>
}

/** What a provider's balances tell of addresses, beyond what the ledger has. */
export interface SearchedIncome {
  readonly transfers: ReadonlyArray<DatedTransfer>
  readonly compared: ReadonlyArray<ComparedAddress>
}

/** Whether the provider has another state where the address was last compared. What it has no state of, it does not deny. */
const denies = (sources: Parameters<typeof pointAt>[0], { address, known }: BalanceQuery) =>
  known.assumed
    ? Effect.succeed(false)
    : Effect.map(
        pointAt(sources, address, known.number),
        (found) => found !== undefined && (found.balance !== known.balance || found.nonce !== known.nonce)
      )

/** Whether something came, and no less than the receipts without a transaction that it takes the place of. */
const isReplacing = (
  address: string,
  credits: ReadonlyArray<BalanceCredit>,
  transfers: ReadonlyArray<DatedTransfer>
) => {
  const found = transfers.filter((one) => one.address === address)
  const untold = credits.filter(({ txHash }) => txHash === undefined)
  return found.length > 0 && sum(found.map(({ amount }) => amount)) >= sum(untold.map(({ amount }) => amount))
}

/**
 * What a provider's balances tell of the addresses at `settled`, beyond what the ledger has up to there. Points that it
 * denies may have been told to hide money: it tells of all that came since the payment was made then. Nothing less than
 * the unattributed receipts that came of such points takes their place.
 *
 * @param others may give what it has no states for
 */
export const searchBalances = Effect.fn("Watcher.searchBalances")(function* (
  watch: WatchContext,
  others: ReadonlyArray<Provider>,
  provider: Provider,
  due: ReadonlyArray<Watched>,
  settled: BlockRef
) {
  const known = yield* Balances.knownUpTo(watch.reader, watch.network, due, settled.number)
  const own = { provider, others: [], at: settled, hashes: new Map<number, string>() }
  const denied = yield* Effect.filter(known, (one) => denies(own, one))
  const again = new Set(denied.map(({ address }) => address))
  const whole = yield* Balances.sinceCreation(
    watch.reader,
    watch.network,
    due.filter(({ address }) => again.has(address)),
    settled.number
  )
  const asked = [
    ...known.filter(({ address }) => !again.has(address)),
    ...whole.map((one) => ({ ...one, credits: one.credits.filter(({ txHash }) => txHash !== undefined) }))
  ]
  const { failed, transfers } = yield* reconcileBalances({ provider, others, chain: watch.chain }, settled, asked)
  const [first] = failed
  if (first !== undefined) return yield* first.error
  const replacing = whole.filter(({ address, credits }) => isReplacing(address, credits, transfers))
  const replaced = new Set(replacing.map(({ address }) => address))
  return {
    transfers: transfers.filter(({ address }) => !again.has(address) || replaced.has(address)),
    compared: replacing.map(
      ({ address, credits }): ComparedAddress => ({
        address,
        replaced: credits.flatMap(({ blockHash, txHash }) => (txHash === undefined ? [blockHash] : []))
      })
    )
  } satisfies SearchedIncome
})
