import { Array as Arr, Clock, Duration, Effect, Either } from "effect"
import type { BlockRef } from "../../Domain/Receipt.ts"
import { iso } from "../../lib/moment.ts"
import { type StoreUnavailable, Tx } from "../../Sql.ts"
import { Backoff } from "../evidence/Backoff.ts"
import { Ballot, quorum, unanimous, type Vote } from "../evidence/Ballot.ts"
import * as Ledger from "../ledger/LedgerRepo.ts"
import { inTime, type Provider } from "../providers/Providers.ts"
import { providerTrouble } from "../rpc/RpcError.ts"
import { isOnlyProvider, type WatchContext } from "../scan/WatchContext.ts"
import type { Uncorroborated } from "./CorroborationRepo.ts"
import * as CorroborationRepo from "./CorroborationRepo.ts"
import { Contradictions } from "./contradictions.ts"
import { type ReceiptFacts, type ReceiptTally, receiptEvidenceOf } from "./receiptEvidence.ts"

/** Receipts that one tick reads from the ledger: this many of the newest, of the older ones in turn, and of stray ones in turn. */
const pageSize = 500
/** Transactions that one tick asks about: this many of the newest, of the older ones, and of stray ones. */
const transactionsPerPart = 100

const byTransaction = (receipts: ReadonlyArray<Uncorroborated>) =>
  Object.values(Arr.groupBy(receipts, (receipt) => receipt.txHash))

/** Some transactions of a page, and the receipt after which the next turn goes on; undefined where it begins again. */
const turnOf = (page: ReadonlyArray<Uncorroborated>, isOpen: (receipt: Uncorroborated) => boolean) => {
  const due = byTransaction(page.filter(isOpen)).slice(0, transactionsPerPart)
  const isCut = due.length === transactionsPerPart
  return { due, next: isCut ? due.at(-1)?.[0] : page.length < pageSize ? undefined : page.at(-1) }
}

/**
 * Selects the receipts that `corroborate.ts` asks about in one tick, in blocks up to `upTo` and where `isOpen`: the
 * newest, which are mostly real; older ones in turn, so that however many newer receipts a provider invents, every real
 * receipt gets its turn; and stray ones in turn, so that a flood of them delays no payment. `any`: the ledger has uncorroborated
 * receipts at all.
 */
const makeDueReceipts = ({ network, reader }: Pick<WatchContext, "network" | "reader">) => {
  /** The last older receipt, and the last stray one, that had its turn. */
  let older: Uncorroborated | undefined
  let stray: Uncorroborated | undefined

  return Effect.fnUntraced(function* (upTo: number, isOpen: (receipt: Uncorroborated) => boolean) {
    const pageOf = (listed: "own" | "stray", after?: Uncorroborated) =>
      CorroborationRepo.uncorroborated(reader, network, listed, upTo, pageSize, after)
    const newest = yield* pageOf("own")
    const last = newest.length < pageSize ? undefined : newest.at(-1)
    const from = older !== undefined && last !== undefined && !CorroborationRepo.isNewer(older, last) ? older : last
    const olderTurn = turnOf(last === undefined ? [] : yield* pageOf("own", from), isOpen)
    const strayPage = yield* pageOf("stray", stray)
    const strayTurn = turnOf(strayPage, isOpen)
    older = olderTurn.next
    stray = strayTurn.next
    const due = byTransaction(newest.filter(isOpen))
    const isWhole = due.length + olderTurn.due.length <= 2 * transactionsPerPart
    // Where all receipts are on the first page, its oldest are the older part.
    const rest = olderTurn.due.length > 0 ? olderTurn.due : due.slice(transactionsPerPart).slice(-transactionsPerPart)
    const own = isWhole ? [...due, ...olderTurn.due] : [...due.slice(0, transactionsPerPart), ...rest]
    return { any: newest.length + strayPage.length > 0, asked: [...own, ...strayTurn.due].flat() }
  })
}

/**
 * Corroboration: before a receipt counts, a quorum of two providers must have it. The watcher runs the corroborator on
 * every tick. It asks all usable providers about receipts that have their confirmations, counts their answers
 * (`Ballot.ts`), stores the verdict and settles the payments concerned.
 *
 * The provider that reported a receipt cannot be the only one to confirm it. A sole provider decides only after
 * `payments.sole_provider_patience`, and never against the denial of another provider.
 */

/** Transactions in one batch, with up to three calls each; providers allow batches of 100 calls or more. */
const transactionsPerBatch = 32
/** A confirmed receipt that is still not corroborated this long after it was first seen is overdue. */
const overdueAfter = Duration.toMillis("10 minutes")
/** Maximum wait until a receipt is asked about again; the first is one poll interval. */
const longestWait = Duration.toMillis("10 minutes")
/** Maximum number of transactions in one log line. */
const transactionsPerLog = 10

const decidesAlone = (since: number, waited: number) =>
  `one provider decides alone: no other provider has responded since ${iso(since)}; payments that waited for one: ${waited}. Remedy: add another provider to rpc_urls`
const waitsForOthers = (count: number) =>
  `no other provider responds: payments wait for one (${count}), each for payments.sole_provider_patience at most. Remedy: add another provider to rpc_urls`
const allContradicted =
  "each provider denies what another one has reported: what they do not agree on waits. Remedy: check the transactions in a block explorer, and put another provider in the place of the one that is wrong"
export const waitsForSecond = "receipts wait for a second provider to corroborate them"
const overdueReason = ({ owner, txHash }: CorroborationRepo.NamedReceipt) =>
  `${waitsForSecond}, such as ${txHash} of ${owner}. Remedy: check their transactions in a block explorer, and add another provider to rpc_urls`
const denial = ({ host, owner, txHash }: CorroborationRepo.Denial) =>
  `${host} denies receipts that another provider reported, such as ${txHash} of ${owner}; their payments wait, and tilld payments show names them. Remedy: check their transactions in a block explorer, and add another provider to rpc_urls`

const transactionsOf = (receipts: ReadonlyArray<Uncorroborated>): string =>
  receipts
    .slice(0, transactionsPerLog)
    .map(({ txHash }) => txHash)
    .join(", ")

/** The verdict of one round. Receipts in none of the lists stay open. */
interface Verdict {
  /** With the block time of the quorum, Unix seconds, and the sender that it agrees on. */
  readonly corroborated: ReadonlyArray<
    readonly [Uncorroborated, { readonly blockTime: number | undefined; readonly sender: string | undefined }]
  >
  readonly refuted: ReadonlyArray<Uncorroborated>
  /** With the host of the first provider that lacks it. */
  readonly denied: ReadonlyArray<readonly [Uncorroborated, string]>
  /** Overdue, and no other provider is able to check it. */
  readonly unverifiable: ReadonlyArray<Uncorroborated>
}

/** Stores the verdict and settles the payments concerned, in one transaction. */
const store = (
  { network, settlement, writer }: WatchContext,
  { corroborated, denied, refuted, unverifiable }: Verdict
) =>
  writer.write(
    Effect.gen(function* () {
      const touched = new Set<Ledger.Touched>()
      for (const [receipt, known] of corroborated) {
        touched.add(yield* CorroborationRepo.setCorroborated(network, receipt, known))
      }
      for (const [receipt, host] of denied) touched.add(yield* CorroborationRepo.setDenied(network, receipt, host))
      for (const receipt of unverifiable) touched.add(yield* CorroborationRepo.setUnverifiable(network, receipt))
      for (const receipt of refuted) touched.add(yield* CorroborationRepo.refute(network, receipt))
      // The stored head is the one to settle by: only this watcher moves it.
      const scan = yield* Ledger.scan(yield* Tx, network)
      // A payment confirms, and its exceptions open, by corroborated money only.
      if (scan !== undefined) yield* settlement.settle({ network, head: scan.head }, touched)
    })
  )

/**
 * Asks one provider about the receipts, batch by batch, and stops at the first batch that fails. `answered`: no batch
 * failed. `beyond`: the head that the provider needs before it can judge all receipts; undefined where it is there.
 */
const askProvider = Effect.fnUntraced(function* (
  watch: WatchContext,
  provider: Provider,
  receipts: ReadonlyArray<Uncorroborated>
) {
  const asked: Array<Uncorroborated> = []
  const answers = new Map<Uncorroborated, Vote<ReceiptFacts>>()
  let beyond: number | undefined
  let answered = true
  for (const part of Arr.chunksOf(Object.values(Arr.groupBy(receipts, ({ txHash }) => txHash)), transactionsPerBatch)) {
    const all = part.flat()
    const found = yield* inTime(provider, "eth_getTransactionReceipt", receiptEvidenceOf(provider, watch, all)).pipe(
      Effect.map(Either.right),
      Effect.catchTag("RpcError", (error) => Effect.succeed(Either.left(error)))
    )
    // A receipt that gets an unusable response counts as asked: it backs off, and does not block the others every tick.
    if (Either.isRight(found) || !providerTrouble.has(found.left.reason)) asked.push(...all)
    if (Either.isLeft(found)) {
      yield* watch.providers.failed(provider, found.left)
      answered = false
      break
    }
    for (const [receipt, answer] of found.right.answers) answers.set(receipt, answer)
    const deep = Math.max(...all.map(({ blockNumber }) => blockNumber)) + watch.chain.confirmations - 1
    if (found.right.head < deep) beyond = Math.max(beyond ?? 0, deep)
  }
  return { asked, answers, beyond, answered }
})

/** Another provider than the serving one, from which most receipts were read, has the receipt or denies it. */
const isJudgedBeside = (serving: Provider, { claims, denials }: ReceiptTally): boolean =>
  [...claims.map(({ by }) => by), ...denials].some((by) => by !== serving)

/** The agreed values: the block time, and the sender where it is the same. */
const factsOf = ({ agreed }: ReceiptTally) => ({
  blockTime: agreed[0]?.value.time,
  sender: unanimous(agreed.map(({ value }) => value.sender))
})

/**
 * Asks the other providers about the receipts, and the serving provider last. The serving one is asked only where its
 * evidence can still decide. Quorum of two: the provider that reported a receipt cannot be the only one to confirm it,
 * also after another provider has taken over serving.
 */
const askProviders = Effect.fnUntraced(function* (
  watch: WatchContext,
  others: ReadonlyArray<Provider>,
  serving: Provider,
  receipts: ReadonlyArray<Uncorroborated>,
  mayDecideAlone: (receipt: Uncorroborated) => boolean
) {
  // Providers that report different block times do not corroborate each other.
  const ballot = new Ballot<Uncorroborated, ReceiptFacts, Provider>((one, other) => one.time === other.time)
  const all = new Set<Uncorroborated>()
  for (const provider of [...others, serving]) {
    const serves = provider === serving
    const open = receipts.filter((receipt) => {
      const { agreed, denials, outcome } = ballot.tally(receipt)
      const isClose = agreed.length === quorum - 1 || denials.length > 0
      return outcome !== "shown" && (!serves || isClose || mayDecideAlone(receipt))
    })
    if (open.length === 0) continue
    const { answered, answers, asked, beyond } = yield* askProvider(watch, provider, open)
    // Payments would wait forever for a node that no longer follows the chain: it does not count as responding.
    const stalled = !serves && beyond !== undefined && (yield* watch.heads.isStalled(provider, beyond))
    if (answered && !stalled) yield* watch.providers.answered(provider)
    for (const receipt of asked) all.add(receipt)
    for (const [receipt, answer] of answers) ballot.vote(receipt, provider, answer)
  }
  return { ballot, asked: all }
})

/** Corroborates the receipts of one network. */
export interface Corroborator {
  /**
   * Asks providers about the receipts that are due, with the chain read up to `head`, and notes what keeps them undecided.
   */
  readonly run: (provider: Provider, head: BlockRef) => Effect.Effect<void, StoreUnavailable>
}

/**
 * Makes the corroborator of a network. A receipt with all its confirmations is corroborated once two providers have it,
 * each with that depth below its own head. A receipt that two providers deny is refuted and no longer counts. While no
 * other provider responds for `sole_provider_patience`, the serving one decides alone on receipts that no provider has
 * denied.
 *
 * The wait before a receipt is asked about again doubles each time, so that receipts that no provider will ever
 * corroborate cost little and delay no others. A provider whose reports others deny stops serving.
 */
export const makeCorroborator = (watch: WatchContext): Corroborator => {
  const { chain, network, providers, reader } = watch
  const backoff = new Backoff<string>(Math.max(1, Duration.toMillis(chain.pollInterval)), longestWait)
  const dueReceipts = makeDueReceipts(watch)
  const contradictions = new Contradictions(providers.all)
  /** How many payments waited at most since another provider last responded. */
  let waited = 0
  let wasAlone = false

  /** Ends the silence of another provider that has the head. */
  const noteIfBack = (other: Provider, { number }: BlockRef) =>
    Effect.flatMap(watch.heads.isStalled(other, number), (stalled) =>
      stalled ? Effect.void : providers.answered(other)
    )

  const run = Effect.fn("Corroborator.run")(function* (provider: Provider, head: BlockRef) {
    // A chain's only provider corroborates what was reported while more providers were configured.
    const isSingle = isOnlyProvider(watch)
    const settledAt = head.number - chain.confirmations + 1
    const now = yield* Clock.currentTimeMillis
    const others = yield* providers.witnesses(provider)
    if (others.length > 0) waited = 0
    const isAlone = providers.decidesAlone(provider)
    // Receipts that wait for another provider no longer do.
    if (isAlone && !wasAlone) backoff.endAll()
    wasAlone = isAlone
    // Asked again each time: once asked again, the others have been silent for longer.
    const mayDecideAlone = ({ isDenied }: Uncorroborated) => !isDenied && (isSingle || providers.decidesAlone(provider))
    const isOverdue = ({ seenAt }: Uncorroborated) => seenAt <= now - overdueAfter
    // One list for all providers: a provider that is not asked must not be taken for silent.
    const { any, asked: due } = yield* dueReceipts(
      settledAt,
      (receipt) => backoff.isDue(Ledger.keyOf(receipt), now) && (others.length > 0 || mayDecideAlone(receipt))
    )
    if (!any) {
      if (isAlone) yield* Effect.forEach(others, (other) => noteIfBack(other, head), { discard: true })
      return undefined
    }
    const { ballot, asked } = yield* askProviders(watch, others, provider, due, mayDecideAlone)
    const [judged, replaced] = Arr.partition(
      due.map((receipt) => [receipt, ballot.tally(receipt)] as const),
      // The provider that the receipt's block was read from has another one there now.
      ([receipt, { elsewhere }]) => elsewhere.includes(provider) && !backoff.has(Ledger.keyOf(receipt))
    )
    const placeOf = ({ blockHash, txHash }: Uncorroborated) => `${blockHash} ${txHash}`
    // As when it is stored, a denial counts against the whole transaction.
    const denied = new Set(judged.flatMap(([receipt, { denials }]) => (denials.length > 0 ? [placeOf(receipt)] : [])))
    const isDecidedAlone = (receipt: Uncorroborated, tally: ReceiptTally) =>
      !isJudgedBeside(provider, tally) && !denied.has(placeOf(receipt)) && mayDecideAlone(receipt)
    const isCorroborated = (receipt: Uncorroborated, tally: ReceiptTally) =>
      tally.outcome === "shown" || (tally.claims.length > 0 && isDecidedAlone(receipt, tally))
    const [open, corroborated] = Arr.partition(judged, ([receipt, tally]) => isCorroborated(receipt, tally))
    const verdict: Verdict = {
      corroborated: corroborated.map(([receipt, tally]) => [receipt, factsOf(tally)] as const),
      refuted: open.flatMap(([receipt, { denials, outcome }]) =>
        outcome === "denied" || (isSingle && denials.length > 0) ? [receipt] : []
      ),
      denied: open.flatMap(([receipt, { denials }]) =>
        denials.slice(0, receipt.deniedBy === undefined ? 1 : 0).map(({ client }) => [receipt, client.host] as const)
      ),
      unverifiable: open.flatMap(([receipt, tally]) =>
        !receipt.unverifiable &&
        receipt.deniedBy === undefined &&
        isOverdue(receipt) &&
        tally.unable.some((by) => by !== provider) &&
        tally.denials.length === 0 &&
        !isJudgedBeside(provider, tally)
          ? [receipt]
          : []
      )
    }
    const alone = isSingle ? [] : corroborated.filter(([, { outcome }]) => outcome !== "shown")
    if (Object.values(verdict).some((list) => list.length > 0)) yield* store(watch, verdict)
    if (alone.length > 0) {
      yield* Effect.logWarning("one provider alone decided that receipts count: no other provider responded").pipe(
        Effect.annotateLogs({
          provider: provider.client.host,
          transactions: transactionsOf(alone.map(([receipt]) => receipt))
        })
      )
    }
    if (verdict.refuted.length > 0) {
      yield* Effect.logError("receipts that one provider reported are refuted by two others and do not count").pipe(
        Effect.annotateLogs({ transactions: transactionsOf(verdict.refuted) })
      )
    }
    for (const contradicted of contradictions.find(judged, providers.all.length === 2, now)) {
      yield* providers.contradicted(contradicted.provider, contradicted.detail)
    }

    for (const receipt of [...corroborated.map(([receipt]) => receipt), ...verdict.refuted]) {
      backoff.forget(Ledger.keyOf(receipt))
    }
    // The serving provider has probably seen a reorg, which the next tick finds. The second time it counts as a denial.
    const waiting = open.filter(([receipt, { outcome }]) => outcome === "open" && asked.has(receipt))
    for (const [receipt] of [...replaced, ...waiting]) backoff.lengthen(Ledger.keyOf(receipt), now)
    const overdue = yield* CorroborationRepo.anyOverdue(reader, network, settledAt, now - overdueAfter)
    const denials = yield* CorroborationRepo.denials(reader, network, settledAt)
    const isSilent = others.length === 0 && !isSingle && !providers.decidesAlone(provider)
    const held = isSilent ? yield* CorroborationRepo.countWaiting(reader, network, settledAt) : 0
    waited = Math.max(waited, held)
    return [...denials.map(denial), overdue && overdueReason(overdue), isSilent ? waitsForOthers(held) : undefined]
      .filter((reason) => reason !== undefined)
      .join("; ")
  })

  return {
    run: (provider, head) =>
      Effect.gen(function* () {
        const reason = yield* run(provider, head)
        const since = providers.aloneSince(yield* Clock.currentTimeMillis)
        const state = providers.areAllContradicted() ? allContradicted : since && decidesAlone(since, waited)
        const all = [state, reason].filter(Boolean).join("; ")
        const isNew = watch.troubles.note("receipts", all || undefined)
        if (isNew && (reason?.includes(waitsForSecond) || state === allContradicted)) yield* Effect.logWarning(all)
      })
  }
}
