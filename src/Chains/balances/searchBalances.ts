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
import { type BalanceQuery, isUnattributed, type Watched } from "./discrepancy.ts"
import { pointAt, type Sources } from "./historicalStates.ts"
import { reconcileBalances } from "./reconcile.ts"

/** Income that a provider's balances show beyond the ledger. */
export interface SearchedIncome {
  readonly transfers: ReadonlyArray<DatedTransfer>
  /**
   * The addresses, lower case, whose stored balance points the provider denies, reconciled again from the creation of
   * their payments. `replaced`: block hashes of their unattributed receipts, which resulted from those points.
   */
  readonly compared: ReadonlyArray<{ readonly address: string; readonly replaced: ReadonlyArray<string> }>
}

/** Whether the provider has another state at the stored balance point. A pruned state is not a denial. */
const denies = Effect.fnUntraced(function* (sources: Sources, { address, known }: BalanceQuery) {
  const found = known.assumed ? undefined : yield* pointAt(sources, address, known.number)
  return found !== undefined && (found.balance !== known.balance || found.nonce !== known.nonce)
})

const total = (receipts: ReadonlyArray<Pick<DatedTransfer, "amount">>) => sum(receipts.map(({ amount }) => amount))

/**
 * Reconciles the addresses at `settled` by one provider's balances, with what the ledger has up to there. A stored
 * point that the provider denies may be false, reported to hide money: the address is then reconciled from the creation
 * of its payment. Unattributed receipts from such points are replaced only by at least their amount.
 *
 * @param others providers for states that `provider` does not have
 */
export const searchBalances = Effect.fn("Balances.searchBalances")(function* (
  { chain, network, reader }: WatchContext,
  others: ReadonlyArray<Provider>,
  provider: Provider,
  due: ReadonlyArray<Watched>,
  settled: BlockRef
) {
  const stored = yield* Balances.knownUpTo(reader, network, due, settled.number)
  const own = { provider, others: [], at: settled, hashes: new Map<number, string>() }
  const denied = yield* Effect.filter(stored, (one) => denies(own, one))
  const recompared = new Set(denied.map(({ address }) => address))
  const again = due.filter(({ address }) => recompared.has(address))
  const fromCreation = yield* Balances.sinceCreation(reader, network, again, settled.number)
  const asked = [
    ...stored.filter(({ address }) => !recompared.has(address)),
    ...fromCreation.map((one) => ({ ...one, credits: one.credits.filter((credit) => !isUnattributed(credit)) }))
  ]
  const { failed, transfers } = yield* reconcileBalances({ provider, others, chain }, settled, asked)
  const [first] = failed
  if (first !== undefined) return yield* first.error
  const compared = fromCreation.flatMap(({ address, credits }) => {
    const found = transfers.filter((transfer) => transfer.address === address)
    const unattributed = credits.filter(isUnattributed)
    if (found.length === 0 || total(found) < total(unattributed)) return []
    return [{ address, replaced: unattributed.map(({ blockHash }) => blockHash) }]
  })
  const kept = new Set(compared.map(({ address }) => address))
  return {
    transfers: transfers.filter(({ address }) => !recompared.has(address) || kept.has(address)),
    compared
  } satisfies SearchedIncome
})
