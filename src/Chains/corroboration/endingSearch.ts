import { Array as Arr, Clock, Duration, Effect, Either } from "effect"
import { nativeToken } from "../../Domain/Currency.ts"
import type { PaymentId } from "../../Domain/Ids.ts"
import type { BlockRef } from "../../Domain/Receipt.ts"
import { type StoreUnavailable, Tx } from "../../Sql.ts"
import * as Balances from "../balances/BalancesRepo.ts"
import { keepIncome } from "../balances/commitBalances.ts"
import * as Incomes from "../balances/IncomeRepo.ts"
import type { SearchedIncome } from "../balances/searchBalances.ts"
import { Backoff } from "../evidence/Backoff.ts"
import { Ballot, quorum, reached, yes } from "../evidence/Ballot.ts"
import type { DatedTransfer } from "../ledger/LedgerRepo.ts"
import * as Ledger from "../ledger/LedgerRepo.ts"
import { inTime, type Provider } from "../providers/Providers.ts"
import { type BlockHeader, findHeader, sendBatch } from "../rpc/methods.ts"
import { providerTrouble, type RpcError, type RpcReason } from "../rpc/RpcError.ts"
import type { WatchContext } from "../scan/WatchContext.ts"
import { wrongBlock } from "./blockDispute.ts"
import * as Searches from "./SearchesRepo.ts"
import * as SecondEvidenceRepo from "./SecondEvidenceRepo.ts"
import { type SearchEvidence, type SearchPage, searchProvider } from "./searchProvider.ts"
import { SearchBallot } from "./secondEvidence.ts"
import { finalBlockOf } from "./verificationPass.ts"

/**
 * The search before a payment ends. That no money came must be corroborated as money is: before a payment expires,
 * fails or is undone by a reorg, two providers are searched for money to its address. Money that is found is stored and
 * keeps the payment open; otherwise the payment is marked as searched, and settlement may end it.
 *
 * The watcher's maintenance runs it on every tick; a payment that stays open is searched for less and less often. While
 * no other provider responds, the serving one decides alone after `payments.sole_provider_patience`.
 */

/** Payments in one search: as many receivers as providers accept in one log filter. */
const paymentsPerSearch = 500
/** Maximum block ranges that a search reads from one provider; the verification pass first reads the blocks below. */
const maxRanges = 16
/**
 * Maximum wait until a payment that stays open is searched for again; the first is one poll interval. A search costs
 * tens of calls at two providers, and one that invents money for each search must not use up the others' rate limits.
 */
const longestWait = Duration.toMillis("1 minute")
/**
 * How many searches in a row may find new money for a payment and make it wait for the next search, which follows at once.
 * Without a limit, a provider that invents tiny transfers for each search could keep the payment open forever. Receipts that
 * corroboration asks about one by one keep it open by themselves.
 */
const maxFindings = 3

const waitsForTimes =
  "payments wait before they end: two providers disagree about block times, or about coins without a transaction. Remedy: add another provider to rpc_urls"

/** Errors of a provider that does not have the blocks that were read, or not yet. */
const otherBlocksErrors: ReadonlySet<RpcReason> = new Set(["inconsistent", "missing", "state", "behind"])

const noIncome: SearchedIncome = { transfers: [], compared: [] }

/** The result of searching one or two providers. */
interface Found extends SearchedIncome {
  /** Transfers that both found. */
  readonly alike: ReadonlyArray<DatedTransfer>
  /** Addresses to which the second provider found other coins than the first. */
  readonly disputed: ReadonlySet<string>
}

/** The decision about receipts that a single provider had reported. */
interface Decided extends Pick<SearchBallot, "corroborated"> {
  /** Keys of receipts whose block times are corroborated, but not that the money came. */
  readonly unshown: ReadonlySet<string>
  readonly isSole: boolean
}

/** The payments that searches have left open: when each is searched for again, and how often new money was found. */
class Searching extends Backoff<PaymentId> {
  readonly #findings = new Map<PaymentId, number>()

  mayFind(payment: PaymentId): boolean {
    return (this.#findings.get(payment) ?? 0) < maxFindings
  }

  found(payment: PaymentId): void {
    if (this.mayFind(payment)) this.shorten(payment)
    this.#findings.set(payment, (this.#findings.get(payment) ?? 0) + 1)
  }

  ended(payment: PaymentId): void {
    this.forget(payment)
    this.#findings.delete(payment)
  }

  /** Searches that are no longer due start over. */
  retain(due: ReadonlyArray<Searches.DuePayment>, now: number): void {
    const payments = new Set(due.map(({ payment }) => payment))
    for (const payment of this.#findings.keys()) {
      if (!payments.has(payment) && this.isDue(payment, now)) this.ended(payment)
    }
  }
}

/** Merges what two providers found: each transfer once, and the coins of an address from the first that found any. */
const merge = (first: SearchedIncome, second: SearchedIncome): Found => {
  const keys = new Set(first.transfers.map(Ledger.keyOf))
  const isLog = ({ position }: DatedTransfer) => position.startsWith("log:")
  const withCoins = new Set(first.transfers.filter((transfer) => !isLog(transfer)).map(({ address }) => address))
  const [added, alike] = Arr.partition(second.transfers, (transfer) => keys.has(Ledger.keyOf(transfer)))
  const [kept, disputed] = Arr.partition(added, (transfer) => !isLog(transfer) && withCoins.has(transfer.address))
  return {
    transfers: [...first.transfers, ...kept],
    compared: [...first.compared, ...second.compared.filter(({ address }) => !withCoins.has(address))],
    alike,
    disputed: new Set(disputed.map(({ address }) => address))
  }
}

/**
 * Stores what was found, marks payments as searched and settles them, in one transaction. Returns the addresses with
 * money that the ledger did not know. `head` and `settled` are still the ledger's: only this watcher moves them.
 */
const store = (
  watch: WatchContext,
  head: BlockRef,
  due: ReadonlyArray<Searches.DuePayment>,
  { alike, compared, disputed, transfers }: Found,
  { isSole, unshown, corroborated }: Decided,
  settled: BlockRef,
  searches: Searching
) =>
  watch.writer.write(
    Effect.gen(function* () {
      const { network, settlement } = watch
      const tx = yield* Tx
      const counted = yield* Ledger.countedKeys(tx, network, transfers)
      const unknown = transfers.filter(
        (transfer) => transfer.txHash === undefined || !counted.has(Ledger.keyOf(transfer))
      )
      // First decide on the existing receipts: the income stored below may replace them.
      const decided = [
        ...(yield* SecondEvidenceRepo.reinstate(network, alike)),
        ...(yield* SecondEvidenceRepo.corroborateOthers(network, corroborated, unshown, isSole))
      ]
      for (const { address, replaced } of compared) {
        yield* Balances.forget(network, address)
        for (const blockHash of replaced) yield* Balances.dropUnattributed(network, address, blockHash)
      }
      const coin = nativeToken(network.chain)
      for (const transfer of unknown) {
        // A reconciliation at a later block may already have stored the same money as unattributed.
        if (transfer.currency === coin) yield* Incomes.takeFromUnattributed(network, transfer, settled.number)
      }
      const touched = [...decided, ...(yield* keepIncome(network, unknown, false))]
      // New money is corroborated from the next tick on: a single provider must not decide how a payment ends.
      const counting = yield* Ledger.countedKeys(tx, network, unknown)
      const paid = new Set(
        unknown.filter((transfer) => counting.has(Ledger.keyOf(transfer))).map(({ address }) => address)
      )
      const asked = due.map(({ payment }) => payment)
      const waits = (one: Searches.DuePayment) =>
        disputed.has(one.address) || (paid.has(one.address) && searches.mayFind(one.payment))
      const [kept, waiting] = Arr.partition(due, waits)
      const searched = kept.map(({ payment }) => payment)
      yield* Searches.keep(network, searched, settled.number)
      tx.afterCommit(() => {
        for (const payment of searched) searches.ended(payment)
        for (const { payment } of waiting) searches.found(payment)
      })
      // Settle the searched payments too: money that they lost to a reorg was seen earlier, and waited for this search.
      yield* settlement.settle({ network, head }, new Set([...touched, ...asked]))
      return paid
    })
  )

const warnOf = (addresses: ReadonlySet<string>) =>
  addresses.size === 0
    ? Effect.void
    : Effect.logWarning(
        "before payments ended, another provider reported money that the serving one had left out"
      ).pipe(Effect.annotateLogs({ addresses: [...addresses].join(", ") }))

/** A provider with its head number. */
interface ProviderHead {
  readonly provider: Provider
  readonly head: number
}

/** Searches for money of payments that are about to end. */
export interface EndingSearch {
  /**
   * Searches for the payments that are due with the chain read up to `head`, and notes why some cannot end yet.
   */
  readonly run: (provider: Provider, head: BlockRef) => Effect.Effect<void, RpcError | StoreUnavailable>
}

/**
 * Makes the search of a network. Providers are asked for token logs to the addresses that end and for their balances,
 * on the branch that was read. The serving provider is searched too: the other one may have read the blocks in the
 * first place, and then the two together make the quorum.
 */
export const makeEndingSearch = (watch: WatchContext): EndingSearch => {
  const { chain, heads, network, providers, reader } = watch
  const searches = new Searching(Math.max(1, Duration.toMillis(chain.pollInterval)), longestWait)
  /** How many other providers there were at the last search. */
  let othersBefore = 0

  /** The payments to search for with the chain read up to `head`, and the newest block with all its confirmations. */
  const dueAt = Effect.fnUntraced(function* (head: BlockRef, waiting: ReadonlyArray<PaymentId>) {
    const scan = yield* Ledger.scan(reader, network)
    const settled = yield* Ledger.newestBlockAt(reader, network, head.number - chain.confirmations + 1)
    if (scan === undefined || settled === undefined) return undefined
    const final = finalBlockOf(watch, head.number, scan.finalized)
    const due = yield* Searches.due(reader, network, settled, scan.checked, final, waiting, paymentsPerSearch)
    return due.length === 0 ? undefined : { due, settled, scan }
  })

  /**
   * A provider with other blocks than those that were read has responded: one of the two is on a branch of its own, and
   * that may be the serving one. Only a stalled provider counts as silent.
   */
  const failedBy = Effect.fnUntraced(function* (other: Provider, error: RpcError, settled: BlockRef) {
    if (!otherBlocksErrors.has(error.reason)) {
      if (providerTrouble.has(error.reason)) yield* providers.failed(other, error)
    } else if (!(yield* heads.isStalled(other, settled.number))) yield* providers.answered(other)
  })

  /** Heads of the providers that respond, without providers that have stalled below the block `number`. */
  const headsOf = Effect.fnUntraced(function* (all: ReadonlyArray<Provider>, number: number) {
    const found = yield* Effect.forEach(all, (provider) => heads.of(provider), { concurrency: all.length })
    return yield* Effect.filter(
      Arr.zip(all, found).flatMap(([provider, head]) => (head === undefined ? [] : [{ provider, head: head.number }])),
      ({ head, provider }) =>
        head >= number ? Effect.succeed(true) : Effect.negate(heads.isStalled(provider, number)),
      { concurrency: 1 }
    )
  })

  /**
   * Searches two providers whose own heads confirm the settled block, and further ones while these leave something
   * undecided. The serving provider may be one of the two: which provider read the blocks is not known. `reason`: why
   * the last of the other providers gave no evidence.
   */
  const searchProviders = Effect.fnUntraced(function* (
    serving: Provider,
    others: ReadonlyArray<Provider>,
    heads: ReadonlyArray<ProviderHead>,
    page: SearchPage,
    verified: number
  ) {
    const { after, settled, undated } = page
    const evidence: Array<SearchEvidence> = []
    const ballot = new SearchBallot(undated)
    let reason = "no other provider responds"
    for (const { head, provider } of heads) {
      if (ballot.isDecided) break
      if (head < settled.number + chain.confirmations - 1) continue
      // A sole provider is not held to this: the verification pass does not advance while it is alone.
      if (others.length > 0 && (settled.number - after) / provider.blockRange.blocks > maxRanges) {
        reason = `the verification pass has only reached block ${verified}`
        continue
      }
      const helping = [...others, serving].filter((one) => one !== provider)
      const search = searchProvider(watch, helping, provider, page)
      const inTurn = Effect.catchTag(inTime(provider, "eth_getLogs", search), "RpcError", (error) =>
        Effect.succeed({ error })
      )
      const result = yield* provider === serving ? search : inTurn
      if ("transfers" in result) {
        evidence.push(result)
        ballot.add(provider, result)
        yield* providers.answered(provider)
      } else {
        reason = result.error.summary
        yield* failedBy(provider, result.error, settled)
      }
    }
    return { ballot, evidence, reason }
  })

  /** Searches for the payments of a page, and stores what was found. Returns why some of them stay open. */
  const searchPage = Effect.fnUntraced(function* (
    provider: Provider,
    others: ReadonlyArray<Provider>,
    heads: ReadonlyArray<ProviderHead>,
    { due, scan, settled }: NonNullable<Effect.Effect.Success<ReturnType<typeof dueAt>>>
  ) {
    // Below `verified`, the verification pass has already read the blocks from another provider.
    const after = Math.max(scan.verified, Math.min(...due.map(({ createdHead }) => createdHead ?? 0)))
    const asked = yield* SecondEvidenceRepo.undated(reader, network, settled.number, due)
    const page = { due, undated: asked, after, settled }
    const { ballot, evidence, reason } = yield* searchProviders(provider, others, heads, page, scan.verified)
    const { corroborated, undated, unshown } = ballot
    const [first = noIncome, second = noIncome] = evidence
    const found = merge(first, second)
    if (ballot.hasQuorum) {
      const dated = due.filter(({ payment }) => !undated.has(payment))
      const decided = { corroborated, unshown, isSole: false }
      yield* warnOf(yield* store(watch, scan.head, dated, found, decided, settled, searches))
      return undated.size === 0 ? undefined : waitsForTimes
    }
    if (evidence.length === 0) return `payments wait for a provider before they end: ${reason}`
    if (!providers.decidesAlone(provider)) {
      return `payments wait for another provider before they end: ${reason}. Remedy: add another provider to rpc_urls`
    }
    const bySole = { corroborated, unshown, isSole: true }
    yield* warnOf(yield* store(watch, scan.head, due, found, bySole, settled, searches))
    return undefined
  })

  const run = Effect.fn("EndingSearch.run")(function* (provider: Provider, head: BlockRef) {
    if (providers.all.length < 2) return
    const note = (reason: string | undefined) => watch.troubles.note("ends of payments", reason)
    const now = yield* Clock.currentTimeMillis
    const isWaiting = searches.waiting(now).length > 0
    if (isWaiting && (yield* providers.others(provider)).length > othersBefore) searches.endAll()
    const waiting = searches.waiting(now)
    const claimed = yield* dueAt(head, waiting)
    searches.retain(claimed?.due ?? [], now)
    // Those that wait for their next search cannot end for the reason that was noted.
    if (claimed === undefined) {
      if (waiting.length === 0) note(undefined)
      return
    }
    const others = yield* providers.others(provider)
    othersBefore = others.length
    // A head that a single provider claims proves no depth: payments are due by the second highest head.
    const heads = yield* headsOf([...others, provider], claimed.settled.number + chain.confirmations - 1)
    const second = reached(heads, ({ head }) => head)
    const sharedHead = Math.min(head.number, second?.head ?? head.number)
    const shared = { ...head, number: sharedHead }
    const dated = sharedHead === head.number ? claimed : yield* dueAt(shared, waiting)
    if (dated === undefined) {
      for (const one of heads) yield* providers.answered(one.provider)
      note(
        `payments wait before they end: the head of ${second?.provider.client.host} is still block ${sharedHead}, not ${head.number}. Remedy: check that node; it gets a cooldown once its head has stood still for a minute`
      )
      return
    }
    const asked = heads.map(({ provider }) => provider)
    const { isDisputed, time } = yield* corroborateTime(watch, asked, dated.settled)
    if (isDisputed) {
      for (const { payment } of dated.due) searches.lengthen(payment, now)
      return void note(waitsForTimes)
    }
    const page = time === dated.settled.time ? dated : yield* dueAt(shared, waiting)
    if (page === undefined) return
    for (const { payment } of page.due) searches.lengthen(payment, now)
    const reason = yield* searchPage(provider, others, heads, page)
    if (reason !== undefined || waiting.length === 0) note(reason)
  })

  return { run }
}

/**
 * The time of a stored block, as a quorum of the providers has it. One provider alone has reported the stored time, and
 * payments end by it: where a quorum says otherwise, its time replaces the stored one, and providers of another one are
 * contradicted. Without a quorum the stored time stays: `isDisputed` where two have the block, with different times.
 */
export const corroborateTime = Effect.fn("Watcher.corroborateTime")(function* (
  { network, providers, writer }: WatchContext,
  asked: ReadonlyArray<Provider>,
  block: BlockRef
) {
  const ballot = new Ballot<BlockRef, BlockHeader, Provider>(
    (one, other) => one.hash === other.hash && one.time === other.time
  )
  for (const provider of asked) {
    // A failed one has no vote. The next step asks it too, and handles its failure.
    const look = yield* Effect.either(sendBatch(provider.client, [findHeader(block.number)]))
    const header = Either.isRight(look) ? look.right[0] : undefined
    if (header === undefined) continue
    ballot.vote(block, provider, yes(header))
  }
  const { agreed, claims, outcome } = ballot.tally(block)
  const found = agreed[0]?.value
  if (outcome !== "shown" || found === undefined) {
    const having = claims.filter(({ value }) => value.hash === block.hash)
    return { time: block.time, isDisputed: having.length >= quorum }
  }
  const { hash, time } = found
  for (const { by, value } of claims) {
    if (value.hash !== hash) {
      // A branch that two others do not have is left once another one serves.
      yield* providers.failed(by, wrongBlock(by, block.number, value.hash, hash))
    } else if (value.time !== time) {
      const detail = `block ${block.number} has the time ${value.time} by it, and ${time} by two others`
      yield* providers.contradicted(by, detail)
    }
  }
  if (hash !== block.hash) return { time: block.time, isDisputed: true }
  if (time === block.time) return { time, isDisputed: false }
  yield* Effect.logError("a provider reported a false block time, which the time by two others replaces").pipe(
    Effect.annotateLogs({ number: block.number, hash: block.hash, reported: block.time, time })
  )
  yield* writer.write(Ledger.setBlockTime(network, { ...block, time }))
  return { time, isDisputed: false }
})
