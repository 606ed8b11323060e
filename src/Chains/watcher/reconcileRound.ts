import { Effect, Either } from "effect"
import type { BlockRef } from "../../Domain/Receipt.ts"
import { type Checked, commitBalances } from "../balances/commitBalances.ts"
import type { BalanceQuery } from "../balances/discrepancy.ts"
import { type FailedAddress, reconcileBalances } from "../balances/reconcile.ts"
import { withoutDenied } from "../corroboration/corroborateBalances.ts"
import type { Provider } from "../providers/Providers.ts"
import { providerTrouble } from "../rpc/RpcError.ts"
import { isOnlyProvider, type WatchContext } from "../scan/WatchContext.ts"

/** Rounds that an address may fail in until it holds up the others no longer. */
const failingRounds = 3

/** Reads balances from one provider, and from another one what the first cannot tell of. */
const readBoth = Effect.fnUntraced(function* (
  { chain, providers }: WatchContext,
  provider: Provider,
  head: BlockRef,
  asked: ReadonlyArray<BalanceQuery>,
  hopeless: ReadonlySet<string>
) {
  const other = yield* providers.other(provider)
  if (other === undefined) return yield* reconcileBalances({ provider, others: [], chain }, head, asked, hopeless)
  const second = (part: ReadonlyArray<BalanceQuery>) =>
    reconcileBalances({ provider: other, others: [provider], chain }, head, part, hopeless)
  const first = yield* reconcileBalances({ provider, others: [other], chain }, head, asked).pipe(
    // What this one refuses for good may be all that keeps payments from ending.
    Effect.catchIf(
      ({ reason }) => !providerTrouble.has(reason),
      () => second(asked)
    )
  )
  if (first.failed.length === 0) return first
  const left = new Set(first.failed.map(({ address }) => address))
  // What has been told of is not asked about again: a part that stays unattributed would be added twice.
  const isTold = (address: string, blockHash: string) =>
    first.replaced.some((one) => one.address === address && one.blockHash === blockHash)
  const untold = asked
    .filter(({ address }) => left.has(address))
    .map((one) => ({ ...one, doubts: one.doubts.filter(({ credit }) => !isTold(one.address, credit.blockHash)) }))
  const again = yield* second(untold).pipe(
    Effect.tapError((error) => (providerTrouble.has(error.reason) ? providers.failed(other, error) : Effect.void)),
    // One that tells of nothing at all keeps nobody from being given up.
    Effect.orElse(() => reconcileBalances({ provider, others: [other], chain }, head, untold, hopeless)),
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

/** How many rounds running each address has failed in. */
type Failures = Map<string, number>

/** Counts who has failed, and tells the log of it. */
const noteFailed = (failures: Failures, asked: ReadonlyArray<BalanceQuery>, failed: ReadonlyArray<FailedAddress>) => {
  const now = new Set(failed.map(({ address }) => address))
  for (const { address } of asked) if (!now.has(address)) failures.delete(address)
  return Effect.forEach(
    failed,
    ({ address, error, givenUp }) => {
      const rounds = (failures.get(address) ?? 0) + 1
      failures.set(address, rounds)
      const logged = Effect.annotateLogs({ address, reason: error.message })
      if (rounds === 1) return Effect.logWarning("what came to an address cannot be told").pipe(logged)
      return givenUp && rounds === failingRounds
        ? Effect.logError("what came to an address cannot be told, and is kept as unattributed").pipe(logged)
        : Effect.void
    },
    { concurrency: 1, discard: true }
  )
}

/**
 * Compares what addresses hold at the scanned head with the ledger, and stores what came, but for what another provider
 * denies.
 */
export const compareBalances = Effect.fn("Watcher.compareBalances")(function* (
  watch: WatchContext,
  { disputed, failures }: { readonly failures: Failures; readonly disputed: Set<string> },
  provider: Provider,
  head: BlockRef,
  asked: ReadonlyArray<BalanceQuery>,
  of: Checked["of"]
) {
  const { settlement, writer } = watch
  const hopeless = new Set(Array.from(failures).flatMap(([one, rounds]) => (rounds >= failingRounds - 1 ? [one] : [])))
  const told = yield* readBoth(watch, provider, head, asked, hopeless)
  const reading = yield* withoutDenied(watch, provider, told, disputed)
  yield* noteFailed(failures, asked, reading.failed)
  yield* writer.write(commitBalances(settlement, { ...reading, of, corroborated: isOnlyProvider(watch) }))
})
