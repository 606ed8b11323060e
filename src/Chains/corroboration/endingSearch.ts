import { Array as Arr, Clock, Duration, Effect } from "effect"
import { nativeToken } from "../../Domain/Currency.ts"
import type { BlockRef } from "../../Domain/Receipt.ts"
import type { SettingsShape } from "../../Settings.ts"
import { type StoreUnavailable, Tx } from "../../Sql.ts"
import * as Balances from "../balances/BalancesRepo.ts"
import { keepIncome } from "../balances/commitBalances.ts"
import * as Incomes from "../balances/IncomeRepo.ts"
import type { SearchedIncome } from "../balances/searchBalances.ts"
import type { DatedTransfer } from "../ledger/LedgerRepo.ts"
import * as Ledger from "../ledger/LedgerRepo.ts"
import { headOf } from "../providers/headOf.ts"
import type { Provider } from "../providers/Providers.ts"
import { makeIsStalled } from "../providers/stalledHead.ts"
import { providerTrouble, type RpcError, type RpcReason } from "../rpc/RpcError.ts"
import { decidesAsSoleProvider, type WatchContext } from "../scan/WatchContext.ts"
import * as AgreementRepo from "./CorroborationRepo.ts"
import { quorum } from "./QuorumCount.ts"
import { RepeatedFindings } from "./RepeatedFindings.ts"
import * as Searches from "./SearchesRepo.ts"
import * as VouchingRepo from "./SecondEvidenceRepo.ts"
import { type SearchEvidence, type SearchPage, searchProvider } from "./searchProvider.ts"
import {
  corroboratedByTwo,
  deniedByTwo,
  isDustDecided,
  type SecondEvidence,
  singleSourcedOf,
  undatedAmong,
  unshownAmong
} from "./secondEvidence.ts"
import { finalBlockOf } from "./verificationPass.ts"

/** Payments that are asked about at once: so many receivers a provider picks out of the logs. */
const atOnce = 500
/** Block ranges that one search may take; what is below is the verification pass's to read first. */
const maxRanges = 16

const waitsForTimes =
  "payments wait before they end: two providers tell otherwise of coins without a transaction, or of the times of their blocks. Remedy: add a third provider to rpc_urls"

/** What a provider answers that has other blocks than those that were read, or not yet. */
const ofOtherBlocks: ReadonlySet<RpcReason> = new Set(["inconsistent", "missing", "state", "behind"])

const silence: SearchedIncome = { transfers: [], compared: [] }

/** What a search has found: all of it, and what two providers told of alike. */
interface Found extends SearchedIncome {
  readonly alike: ReadonlyArray<DatedTransfer>
  /** Addresses of which the second one tells other coins than the first. */
  readonly disputed: ReadonlySet<string>
}

/** What counts of what one provider alone had told. */
interface Decided extends Pick<SecondEvidence, "corroborated" | "lacks"> {
  readonly unshown: ReadonlySet<string>
  readonly isSole: boolean
}

/** What two providers tell together: each transfer once, and the coins of an address by the first of them that has any. */
const together = (first: SearchedIncome, second: SearchedIncome): Found => {
  const keys = new Set(first.transfers.map(Ledger.keyOf))
  const isLog = ({ position }: DatedTransfer) => position.startsWith("log:")
  const withCoins = new Set(first.transfers.filter((one) => !isLog(one)).map(({ address }) => address))
  const [added, alike] = Arr.partition(second.transfers, (one) => keys.has(Ledger.keyOf(one)))
  const [kept, left] = Arr.partition(added, (one) => !isLog(one) && withCoins.has(one.address))
  return {
    transfers: [...first.transfers, ...kept],
    compared: [...first.compared, ...second.compared.filter(({ address }) => !withCoins.has(address))],
    alike,
    disputed: new Set(left.map(({ address }) => address))
  }
}

/**
 * Stores what was found, that it was looked for, and settles what follows. Nothing where a reorg has come between. Gives the
 * addresses that have money of which the ledger knew nothing.
 */
const store = (
  watch: WatchContext,
  due: ReadonlyArray<Searches.Due>,
  { alike, compared, disputed, transfers }: Found,
  { isSole, lacks, unshown, corroborated }: Decided,
  settled: BlockRef,
  anewCounts: RepeatedFindings
) =>
  watch.writer.write(
    Effect.gen(function* () {
      const { network, settlement } = watch
      const tx = yield* Tx
      const scan = yield* Ledger.scan(tx, network)
      const block = yield* Ledger.newestBlockAt(tx, network, settled.number)
      if (scan === undefined || block?.hash !== settled.hash) return new Set<string>()
      const counted = yield* Ledger.countedKeys(tx, network, transfers)
      const unknown = transfers.filter((one) => one.txHash === undefined || !counted.has(Ledger.keyOf(one)))
      // Before any of it is replaced by what one alone has told of now.
      const decided = [
        ...(yield* Effect.forEach(lacks, (one) => AgreementRepo.refute(network, one))),
        ...(yield* VouchingRepo.reinstate(network, alike)),
        ...(yield* VouchingRepo.corroborateOthers(network, corroborated, unshown, isSole))
      ]
      for (const { address, replaced } of compared) {
        yield* Balances.forget(network, address)
        for (const blockHash of replaced) yield* Balances.dropUnattributed(network, address, blockHash)
      }
      const coin = nativeToken(network.chain)
      for (const one of unknown) {
        // A round at a later block may have seen it already, and not how it came.
        if (one.currency === coin) yield* Incomes.takeFromUnattributed(network, one, settled.number)
      }
      const touched = [...decided, ...(yield* keepIncome(network, unknown, false))]
      // Who else has what was not in the ledger before is asked with the next tick: nothing ends by one provider's dust.
      const counting = yield* Ledger.countedKeys(tx, network, unknown)
      const paid = new Set(unknown.filter((one) => counting.has(Ledger.keyOf(one))).map(({ address }) => address))
      // What is there in the place of what two deny is told with the next tick, too.
      const anew = new Set([...paid, ...lacks.map(({ address }) => address)])
      const asked = due.map(({ payment }) => payment)
      const waits = ({ address, payment }: Searches.Due) =>
        disputed.has(address) || (anew.has(address) && anewCounts.mayWait(payment))
      const [kept, waiting] = Arr.partition(due, waits)
      const searched = kept.map(({ payment }) => payment)
      yield* Searches.keep(network, searched, settled.number)
      tx.afterCommit(() => {
        for (const { payment } of waiting) anewCounts.waits(payment)
      })
      // Those asked about too: what a reorg took from them has been looked at before, and waited for this.
      yield* settlement.settle({ network, head: scan.head }, new Set([...touched, ...asked]))
      return paid
    })
  )

const warnOf = (addresses: ReadonlySet<string>) =>
  addresses.size === 0
    ? Effect.void
    : Effect.logWarning("before payments ended, another provider told of money that the serving one had left out").pipe(
        Effect.annotateLogs({ addresses: [...addresses].join(", ") })
      )

/** A provider with the number of its head. */
interface Headed {
  readonly one: Provider
  readonly head: number
}

/** Asks another provider before payments end. */
export interface Search {
  /** Does what is due with the chain read up to `head`. Gives what keeps payments from their end. */
  readonly run: (provider: Provider, head: BlockRef) => Effect.Effect<string | undefined, RpcError | StoreUnavailable>
}

/**
 * Silence needs a quorum as money does: before a payment expires, fails, or is undone by a reorg, another provider is asked
 * for logs by receiver and for the balances of the addresses that end, on the branch that was read. So is the serving one:
 * who read the blocks may have been the other one. What they tell of is stored, and keeps the payments open. While no other
 * one answers, the one that serves decides after `sole_provider_patience`.
 */
export const makeSearch = (watch: WatchContext, payments: SettingsShape["payments"]): Search => {
  const { chain, network, providers, reader } = watch
  const grace = Duration.toMillis(payments.settleGrace)
  const standsStill = makeIsStalled(providers)
  const anewCounts = new RepeatedFindings()

  const dueAt = Effect.fnUntraced(function* (head: BlockRef) {
    const scan = yield* Ledger.scan(reader, network)
    const settled = yield* Ledger.newestBlockAt(reader, network, head.number - chain.confirmations + 1)
    if (scan === undefined || settled === undefined) return undefined
    const final = finalBlockOf(watch, head.number, scan.finalized)
    const due = yield* Searches.due(reader, network, settled, scan.checked, grace, final, atOnce)
    return due.length === 0 ? undefined : { due, settled, scan }
  })

  /** One that has other blocks is not silent: one of the two is on a branch of its own, and the serving one may be that. */
  const failedBy = Effect.fnUntraced(function* (other: Provider, error: RpcError, settled: BlockRef) {
    if (!ofOtherBlocks.has(error.reason)) {
      if (providerTrouble.has(error.reason)) yield* providers.failed(other, error)
    } else if (!(yield* standsStill(other, settled.number))) yield* providers.answered(other)
  })

  /** Those that answer with their heads, but for one that no longer follows the chain to a block of the number `deep`. */
  const headsOf = Effect.fnUntraced(function* (all: ReadonlyArray<Provider>, deep: number) {
    const heads = yield* Effect.forEach(all, (one) => headOf(providers, one), { concurrency: all.length })
    return yield* Effect.filter(
      Arr.zip(all, heads).flatMap(([one, head]) => (head === undefined ? [] : [{ one, head: head.number }])),
      ({ head, one }) => (head >= deep ? Effect.succeed(true) : Effect.negate(standsStill(one, deep))),
      { concurrency: 1 }
    )
  })

  /**
   * What two tell that have come so far by their own heads, and the next one too where these differ; who read the blocks
   * first is not known, and the serving one may be among them. `reason`: why others tell nothing.
   */
  const hear = Effect.fnUntraced(function* (
    serving: Provider,
    others: ReadonlyArray<Provider>,
    heads: ReadonlyArray<Headed>,
    page: SearchPage,
    verified: number
  ) {
    const { after, settled, told: oneSided } = page
    const told: Array<SearchEvidence> = []
    let reason = "no other provider answers"
    const isDecided = () => {
      const corroborated = corroboratedByTwo(told.map((one) => one.corroborated))
      const isDated = undatedAmong(oneSided, corroborated).size === 0 && unshownAmong(oneSided, told).size === 0
      return isDated && isDustDecided(oneSided, corroborated, deniedByTwo(told))
    }
    for (const { head, one: asked } of heads) {
      if (told.length >= quorum && isDecided()) break
      if (head < settled.number + chain.confirmations - 1) continue
      // While it is the only one, the verification pass goes no further.
      if (others.length > 0 && (settled.number - after) / asked.blockRange.blocks > maxRanges) {
        reason = `the verification pass has not come further than block ${verified}`
        continue
      }
      const helping = [...others, serving].filter((one) => one !== asked)
      const answer = yield* searchProvider(watch, helping, asked, page)
      if ("transfers" in answer) {
        told.push(answer)
        yield* providers.answered(asked)
      } else {
        reason = answer.error.summary
        yield* failedBy(asked, answer.error, settled)
      }
    }
    return { told, reason }
  })

  const run = Effect.fn("Watcher.search")(function* (provider: Provider, head: BlockRef) {
    if (providers.all.length < 2) return undefined
    const claimed = yield* dueAt(head)
    if (claimed === undefined) return undefined
    const others = yield* providers.others(provider)
    // A head that one provider claims proves no depth: payments are due where two have come to it.
    const heads = yield* headsOf([...others, provider], claimed.settled.number + chain.confirmations - 1)
    const deep = Math.min(head.number, heads.map((one) => one.head).sort((a, b) => b - a)[quorum - 1] ?? head.number)
    const page = deep === head.number ? claimed : yield* dueAt({ ...head, number: deep })
    if (page === undefined) {
      for (const { one } of heads) yield* providers.answered(one)
      return `payments wait before they end: another provider's head is block ${deep}, and not ${head.number}`
    }
    const { due, scan, settled } = page
    anewCounts.retain(new Set(due.map(({ payment }) => payment)))
    // What the verification pass has read, another provider has been asked about.
    const after = Math.max(scan.verified, Math.min(...due.map(({ createdHead }) => createdHead ?? 0)))
    const oneSided = yield* singleSourcedOf(watch, due, settled)
    const { reason, told } = yield* hear(
      provider,
      others,
      heads,
      { due, told: oneSided, after, settled },
      scan.verified
    )
    const corroborated = corroboratedByTwo(told.map((one) => one.corroborated))
    const unshown = unshownAmong(oneSided, told)
    const [first = silence, second = silence] = told
    const found = together(first, second)
    if (told.length >= quorum) {
      const undated = undatedAmong(oneSided, corroborated)
      const dated = due.filter(({ payment }) => !undated.has(payment))
      const word = { corroborated, unshown, lacks: deniedByTwo(told), isSole: false }
      yield* warnOf(yield* store(watch, dated, found, word, settled, anewCounts))
      return undated.size === 0 ? undefined : waitsForTimes
    }
    const now = yield* Clock.currentTimeMillis
    const sole = due.filter(({ dueAt }) => decidesAsSoleProvider(watch, provider, dueAt + grace, now))
    if (told.length === 0) return `payments wait for a provider before they end: ${reason}`
    const bySole = { corroborated: told.flatMap((one) => one.corroborated), unshown, lacks: [], isSole: true }
    if (sole.length > 0) yield* warnOf(yield* store(watch, sole, found, bySole, settled, anewCounts))
    return sole.length === due.length ? undefined : `payments wait for another provider before they end: ${reason}`
  })

  return { run }
}
