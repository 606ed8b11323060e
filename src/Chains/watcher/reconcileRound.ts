import { Effect, Either, Schedule } from "effect"
import type { BlockRef } from "../../Domain/Receipt.ts"
import { type CheckedBalances, commitBalances } from "../balances/commitBalances.ts"
import type { BalanceQuery } from "../balances/discrepancy.ts"
import { type FailedAddress, reconcileBalances } from "../balances/reconcile.ts"
import { withoutDenied } from "../corroboration/corroborateBalances.ts"
import type { Provider } from "../providers/Providers.ts"
import { providerTrouble, type RpcError } from "../rpc/RpcError.ts"
import { isOnlyProvider, type WatchContext } from "../scan/WatchContext.ts"

/** Rounds in which an address may fail before it no longer holds up the others. */
const failingRounds = 3

/** The error of a provider that may have the newest block a moment later. */
const isLate = ({ reason }: RpcError): boolean =>
  reason === "missing" || reason === "inconsistent" || reason === "state"

/** Reconciles balances with one provider, and what fails there with another one. */
const readBoth = Effect.fnUntraced(function* (
  { chain, providers }: WatchContext,
  provider: Provider,
  head: BlockRef,
  asked: ReadonlyArray<BalanceQuery>,
  hopeless: ReadonlySet<string>,
  mayBeLate: boolean
) {
  const other = yield* providers.other(provider)
  if (other === undefined) return yield* reconcileBalances({ provider, others: [], chain }, head, asked, hopeless)
  const second = (part: ReadonlyArray<BalanceQuery>) =>
    reconcileBalances({ provider: other, others: [provider], chain }, head, part, hopeless)
  const first = yield* reconcileBalances({ provider, others: [other], chain }, head, asked).pipe(
    Effect.retry({ times: 3, schedule: Schedule.spaced("1 second"), while: (error) => mayBeLate && isLate(error) }),
    // What this provider keeps refusing would otherwise keep payments from ending.
    Effect.catchIf(
      ({ reason }) => !providerTrouble.has(reason),
      () => second(asked)
    )
  )
  if (first.failed.length === 0) return first
  const left = new Set(first.failed.map(({ address }) => address))
  // Income that is replaced already is not asked about again: a part that stays unattributed would be added twice.
  const isReplaced = (address: string, blockHash: string) =>
    first.replaced.some((one) => one.address === address && one.blockHash === blockHash)
  const unresolved = asked
    .filter(({ address }) => left.has(address))
    .map((one) => ({ ...one, doubts: one.doubts.filter(({ credit }) => !isReplaced(one.address, credit.blockHash)) }))
  const again = yield* second(unresolved).pipe(
    Effect.tapError((error) => (providerTrouble.has(error.reason) ? providers.failed(other, error) : Effect.void)),
    // Where the other provider fails as a whole, addresses are still given up after their failing rounds.
    Effect.orElse(() => reconcileBalances({ provider, others: [other], chain }, head, unresolved, hopeless)),
    Effect.either
  )
  if (Either.isLeft(again)) return first
  const { failed, replaced, rows, transfers } = again.right
  return {
    ...first,
    transfers: [...first.transfers, ...transfers],
    rows: [...first.rows, ...rows],
    replaced: [...first.replaced, ...replaced],
    failed
  }
})

/** Consecutive rounds in which each address has failed. */
type Failures = Map<string, number>

/** Counts the addresses that failed, and logs them. */
const noteFailed = (failures: Failures, asked: ReadonlyArray<BalanceQuery>, failed: ReadonlyArray<FailedAddress>) => {
  const now = new Set(failed.map(({ address }) => address))
  for (const { address } of asked) if (!now.has(address)) failures.delete(address)
  return Effect.forEach(
    failed,
    ({ address, error, givenUp }) => {
      const rounds = (failures.get(address) ?? 0) + 1
      failures.set(address, rounds)
      const logged = Effect.annotateLogs({ address, reason: error.message })
      if (rounds === 1) return Effect.logWarning("the income of an address cannot be attributed").pipe(logged)
      return givenUp && rounds === failingRounds
        ? Effect.logError("the income of an address cannot be attributed, and is stored as unattributed").pipe(logged)
        : Effect.void
    },
    { concurrency: 1, discard: true }
  )
}

/**
 * Compares the balances of addresses at the scanned head with the ledger, and stores the income found, except what
 * another provider denies.
 *
 * @param mayBeLate the provider does not serve, and may have the head a moment later: it is waited for, three seconds at most
 */
export const compareBalances = Effect.fn("Watcher.compareBalances")(function* (
  watch: WatchContext,
  { disputed, failures }: { readonly failures: Failures; readonly disputed: Set<string> },
  provider: Provider,
  head: BlockRef,
  asked: ReadonlyArray<BalanceQuery>,
  of: CheckedBalances["of"],
  mayBeLate = false
) {
  const { settlement, writer } = watch
  const hopeless = new Set(Array.from(failures).flatMap(([one, rounds]) => (rounds >= failingRounds - 1 ? [one] : [])))
  const reported = yield* readBoth(watch, provider, head, asked, hopeless, mayBeLate)
  const reading = yield* withoutDenied(watch, provider, reported, disputed)
  yield* noteFailed(failures, asked, reading.failed)
  const refuted = yield* writer.write(
    commitBalances(settlement, { ...reading, of, corroborated: isOnlyProvider(watch) })
  )
  // While it serves, no round is whole, and no payment ends.
  if (refuted === undefined || refuted.size === 0) return
  const detail = `it still shows money of ${[...refuted].join(", ")} that two others deny: its balances are not stored`
  yield* watch.providers.contradicted(provider, detail)
})
