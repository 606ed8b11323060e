/**
 * The search of one provider's balances for income that the ledger lacks, up to a given block. Before payments end,
 * corroboration runs it with a second provider: a provider that hides coins would otherwise let a paid payment expire.
 */
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

/** An address whose stored balance points the provider denies, reconciled again from the creation of its payment. */
export interface ComparedAddress {
  /** Lower case. */
  readonly address: string
  /** Block hashes of its unattributed receipts, which resulted from those points. */
  readonly replaced: ReadonlyArray<string>
}

/** Income that a provider's balances show beyond the ledger. */
export interface SearchedIncome {
  readonly transfers: ReadonlyArray<DatedTransfer>
  readonly compared: ReadonlyArray<ComparedAddress>
}

/** Whether the provider has another state at the stored balance point. A pruned state is no denial. */
const denies = (sources: Parameters<typeof pointAt>[0], { address, known }: BalanceQuery) =>
  known.assumed
    ? Effect.succeed(false)
    : Effect.map(
        pointAt(sources, address, known.number),
        (found) => found !== undefined && (found.balance !== known.balance || found.nonce !== known.nonce)
      )

/** Whether income was found, and no less than the unattributed receipts that it replaces. */
const isReplacing = (
  address: string,
  credits: ReadonlyArray<BalanceCredit>,
  transfers: ReadonlyArray<DatedTransfer>
) => {
  const found = transfers.filter((one) => one.address === address)
  const unattributed = credits.filter(({ txHash }) => txHash === undefined)
  return found.length > 0 && sum(found.map(({ amount }) => amount)) >= sum(unattributed.map(({ amount }) => amount))
}

/**
 * Reconciles the addresses at `settled` by one provider's balances, with what the ledger has up to there. A stored
 * point that the provider denies may be false, reported to hide money: the address is then reconciled from the creation
 * of its payment. Unattributed receipts from such points are replaced only by at least their amount.
 *
 * @param others providers for states that `provider` does not have
 */
export const searchBalances = Effect.fn("Balances.searchBalances")(function* (
  watch: WatchContext,
  others: ReadonlyArray<Provider>,
  provider: Provider,
  due: ReadonlyArray<Watched>,
  settled: BlockRef
) {
  const stored = yield* Balances.knownUpTo(watch.reader, watch.network, due, settled.number)
  const own = { provider, others: [], at: settled, hashes: new Map<number, string>() }
  const denied = yield* Effect.filter(stored, (one) => denies(own, one))
  const recompared = new Set(denied.map(({ address }) => address))
  const fromCreation = yield* Balances.sinceCreation(
    watch.reader,
    watch.network,
    due.filter(({ address }) => recompared.has(address)),
    settled.number
  )
  const asked = [
    ...stored.filter(({ address }) => !recompared.has(address)),
    ...fromCreation.map((one) => ({ ...one, credits: one.credits.filter(({ txHash }) => txHash !== undefined) }))
  ]
  const { failed, transfers } = yield* reconcileBalances({ provider, others, chain: watch.chain }, settled, asked)
  const [first] = failed
  if (first !== undefined) return yield* first.error
  const replacing = fromCreation.filter(({ address, credits }) => isReplacing(address, credits, transfers))
  const replaced = new Set(replacing.map(({ address }) => address))
  return {
    transfers: transfers.filter(({ address }) => !recompared.has(address) || replaced.has(address)),
    compared: replacing.map(
      ({ address, credits }): ComparedAddress => ({
        address,
        replaced: credits.flatMap(({ blockHash, txHash }) => (txHash === undefined ? [blockHash] : []))
      })
    )
  } satisfies SearchedIncome
})
