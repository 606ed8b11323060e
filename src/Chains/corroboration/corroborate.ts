import { Array as Arr, Clock, Duration, Effect, Either } from "effect"
import type { BlockRef } from "../../Domain/Receipt.ts"
import { type StoreUnavailable, Tx } from "../../Sql.ts"
import * as Ledger from "../ledger/LedgerRepo.ts"
import type { Provider } from "../providers/Providers.ts"
import { type IsStalled, makeIsStalled } from "../providers/stalledHead.ts"
import { providerTrouble } from "../rpc/RpcError.ts"
import { decidesAsSoleProvider, isOnlyProvider, type WatchContext } from "../scan/WatchContext.ts"
import { AskBackoff } from "./AskBackoff.ts"
import type { Uncorroborated } from "./CorroborationRepo.ts"
import * as AgreementRepo from "./CorroborationRepo.ts"
import { Contradictions } from "./contradictions.ts"
import { makeDueReceipts } from "./dueReceipts.ts"
import { type DatedReceipt, QuorumCount, quorum } from "./QuorumCount.ts"
import { receiptEvidenceOf } from "./receiptEvidence.ts"

/** Transactions in one batch, of up to three calls each; providers allow from 100 calls up. */
const transactionsPerBatch = 32
/** A receipt with all its confirmations that has been seen for this long should have been corroborated. */
const patience = Duration.toMillis("10 minutes")
/** Transactions that one warning names. */
const named = 10

export const decidesAlone = "one provider decides alone: no other one answers. Remedy: add another provider to rpc_urls"
export const waitsForOthers =
  "no other provider answers: payments wait for one, up to payments.sole_provider_patience. Remedy: add another provider to rpc_urls"
export const waitsForSecond =
  "receipts wait for a second provider to corroborate them: the log names them. Remedy: hold their transactions against a block explorer, and add a third provider to rpc_urls"
const denial = ({ host, owner, txHash }: AgreementRepo.Denial) =>
  `${host} denies receipts that another provider reported, such as ${txHash} of ${owner}, and their payments wait: tilld payments show names them. Remedy: hold their transactions against a block explorer, and add a third provider to rpc_urls`

/** What follows from the votes. */
interface Verdict {
  readonly corroborated: ReadonlyArray<readonly [Uncorroborated, number | undefined]>
  readonly refuted: ReadonlyArray<Uncorroborated>
  /** To be stored: the first host that lacks it. */
  readonly denied: ReadonlyArray<readonly [Uncorroborated, string]>
  /** No other provider has been able to tell, for long. */
  readonly unverifiable: ReadonlyArray<Uncorroborated>
}

/** Stores the verdict, and settles what follows. */
const keep = (
  { network, settlement, writer }: WatchContext,
  { corroborated, denied, refuted, unverifiable }: Verdict
) =>
  writer.write(
    Effect.gen(function* () {
      const touched = new Set<Ledger.Touched>()
      for (const [receipt, time] of corroborated) {
        for (const payment of yield* AgreementRepo.setCorroborated(network, receipt, time)) touched.add(payment)
      }
      for (const [receipt, host] of denied) touched.add(yield* AgreementRepo.setDenied(network, receipt, host))
      for (const receipt of unverifiable) touched.add(yield* AgreementRepo.setUnverifiable(network, receipt))
      for (const receipt of refuted) touched.add(yield* AgreementRepo.refute(network, receipt))
      // What has been read since is the watcher's own doing: nobody else moves the head.
      const scan = yield* Ledger.scan(yield* Tx, network)
      // Only corroborated money confirms a payment, and opens its exceptions.
      if (scan !== undefined) yield* settlement.settle({ network, head: scan.head }, touched)
    })
  )

/** Asks one provider about the receipts, a batch after the other, until one fails. Gives whether none has. */
const askAbout = Effect.fnUntraced(function* (
  watch: WatchContext,
  provider: Provider,
  receipts: ReadonlyArray<Uncorroborated>
) {
  const asked: Array<Uncorroborated> = []
  const has: Array<DatedReceipt> = []
  const lacks: Array<Uncorroborated> = []
  const unable: Array<Uncorroborated> = []
  const replaced: Array<Uncorroborated> = []
  /** The head at which all of them have their confirmations, where its own is below. */
  let beyond: number | undefined
  let answered = true
  for (const part of Arr.chunksOf(Object.values(Arr.groupBy(receipts, ({ txHash }) => txHash)), transactionsPerBatch)) {
    const all = part.flat()
    const found = yield* receiptEvidenceOf(provider, watch, all).pipe(
      Effect.map(Either.right),
      Effect.catchTag("RpcError", (error) => Effect.succeed(Either.left(error)))
    )
    // A bad answer to one of them must not be what every tick begins with.
    if (Either.isRight(found) || !providerTrouble.has(found.left.reason)) asked.push(...all)
    if (Either.isLeft(found)) {
      yield* watch.providers.failed(provider, found.left)
      answered = false
      break
    }
    const { times } = found.right
    for (const receipt of found.right.has) {
      const time = times.get(receipt.blockHash)
      if (time !== undefined) has.push([receipt, time])
    }
    lacks.push(...found.right.lacks)
    replaced.push(...found.right.lacks.filter(({ blockHash }) => !times.has(blockHash)))
    unable.push(...found.right.unable)
    const deep = Math.max(...all.map(({ blockNumber }) => blockNumber)) + watch.chain.confirmations - 1
    if (found.right.head < deep) beyond = Math.max(beyond ?? 0, deep)
  }
  return { asked, has, lacks, unable, replaced, beyond, answered }
})

/**
 * Asks the providers about the receipts, the one that serves last. The provider that reported a receipt cannot be the only
 * one to corroborate it, be it by now another one that serves.
 */
const hearAll = Effect.fnUntraced(function* (
  watch: WatchContext,
  others: ReadonlyArray<Provider>,
  serving: Provider,
  receipts: ReadonlyArray<Uncorroborated>,
  isLone: (receipt: Uncorroborated) => boolean,
  standsStill: IsStalled
) {
  const votes = new QuorumCount()
  for (const provider of [...others, serving]) {
    const serves = provider === serving
    const open = receipts.filter((receipt) => {
      const missing = quorum - votes.has(receipt)
      return missing > 0 && (!serves || missing === 1 || votes.lacks(receipt).length > 0 || isLone(receipt))
    })
    if (open.length === 0) continue
    const { answered, beyond, ...answer } = yield* askAbout(watch, provider, open)
    // A node that no longer follows the chain would be waited for without end.
    const isStill = !serves && beyond !== undefined && (yield* standsStill(provider, beyond))
    if (answered && !isStill) yield* watch.providers.answered(provider)
    votes.add(provider, serves, answer)
  }
  return votes
})

/** Asks other providers about the receipts that one has reported. */
export interface Corroborator {
  /** Asks what is due, with the chain read up to `head`. Gives what is not as it should be. */
  readonly run: (provider: Provider, head: BlockRef) => Effect.Effect<string | undefined, StoreUnavailable>
}

/**
 * Corroborates receipts that have their confirmations: two providers must have each, as deep by their own heads. What two
 * of them deny counts no more. While no other provider answers, the one that serves decides alone, after
 * `sole_provider_patience`, on what nobody has denied.
 *
 * Each is asked about again after twice the time of before: what nobody will ever corroborate costs little and holds up
 * nothing. A provider that reports what others deny serves no more.
 */
export const makeCorroborator = (watch: WatchContext): Corroborator => {
  const { chain, network, providers, reader } = watch
  const waits = new AskBackoff(Math.max(1, Duration.toMillis(chain.pollInterval)))
  const standsStill = makeIsStalled(providers)
  const questions = makeDueReceipts(watch)
  const contradictions = new Contradictions(providers.all)
  /** When one provider last decided alone, Unix milliseconds. */
  let decidedAloneAt: number | undefined

  const warn = (late: ReadonlyArray<Uncorroborated>) =>
    late.length === 0
      ? Effect.void
      : Effect.logWarning("receipts have had their confirmations for long, and are not corroborated").pipe(
          Effect.annotateLogs({
            count: late.length,
            denied: [...new Set(late.flatMap(({ deniedBy }) => deniedBy ?? []))].join(", "),
            transactions: late
              .slice(0, named)
              .map(({ txHash }) => txHash)
              .join(", ")
          })
        )

  const run = Effect.fn("Watcher.agree")(function* (provider: Provider, head: BlockRef) {
    // Of receipts that were reported while there were more of them.
    const isSingle = isOnlyProvider(watch)
    const settledAt = head.number - chain.confirmations + 1
    const now = yield* Clock.currentTimeMillis
    const others = yield* providers.witnesses(provider)
    const isLone = ({ isDenied, seenAt }: Uncorroborated) =>
      !isDenied && (isSingle || decidesAsSoleProvider(watch, provider, seenAt, now))
    const isOverdue = ({ seenAt }: Uncorroborated) => seenAt <= now - patience
    // All providers are asked about the same: who is not asked has not been silent.
    const { any, asked: due } = yield* questions(
      settledAt,
      (receipt) => waits.isDue(receipt, now) && (others.length > 0 || isLone(receipt))
    )
    if (!any) return undefined
    const votes = yield* hearAll(watch, others, provider, due, isLone, standsStill)
    const [clear, replaced] = Arr.partition(due, (one) => votes.isReplaced(one) && waits.get(one) === undefined)
    const isCorroborated = (one: Uncorroborated) =>
      votes.has(one) >= quorum || (votes.has(one) > 0 && !votes.isHeard(one) && isLone(one))
    const isRefuted = (one: Uncorroborated) => !isCorroborated(one) && votes.lacks(one).length >= quorum
    const verdict: Verdict = {
      corroborated: clear.filter(isCorroborated).map((one) => [one, votes.timeOf(one)] as const),
      refuted: clear.filter(isRefuted),
      denied: clear.flatMap((one) => {
        const [by] = votes.lacks(one)
        return by === undefined || one.deniedBy !== undefined || isCorroborated(one)
          ? []
          : [[one, by.client.host] as const]
      }),
      unverifiable: clear.filter(
        (one) => !one.unverifiable && one.deniedBy === undefined && isOverdue(one) && votes.isUnverifiable(one)
      )
    }
    if (!isSingle && verdict.corroborated.some(([one]) => votes.has(one) < quorum)) decidedAloneAt = now
    if (Object.values(verdict).some((list) => list.length > 0)) yield* keep(watch, verdict)
    if (verdict.refuted.length > 0) {
      yield* Effect.logError("two providers deny receipts that one has reported: they do not count").pipe(
        Effect.annotateLogs({
          transactions: verdict.refuted
            .slice(0, named)
            .map(({ txHash }) => txHash)
            .join(", ")
        })
      )
    }
    for (const one of contradictions.find(clear, votes, others.length === 1, now)) {
      yield* providers.contradicted(one.provider, one.detail)
    }

    const left: Array<Uncorroborated> = []
    for (const receipt of clear) {
      if (isCorroborated(receipt) || isRefuted(receipt)) waits.forget(receipt)
      else if (votes.isAsked(receipt)) left.push(receipt)
    }
    // A reorg since it was read, most likely, which the next tick finds: asked once more, it is a denial.
    for (const receipt of replaced) waits.lengthen(receipt, now, false)
    yield* warn(left.filter((receipt) => isOverdue(receipt) && waits.get(receipt)?.warned !== true))
    for (const receipt of left) {
      waits.lengthen(receipt, now, isOverdue(receipt) || waits.get(receipt)?.warned === true)
    }
    const overdue = yield* AgreementRepo.anyOverdue(reader, network, settledAt, now - patience)
    const denied = yield* AgreementRepo.anyDenied(reader, network, settledAt)
    const alone = decidesAsSoleProvider(watch, provider, 0, now) ? decidesAlone : waitsForOthers
    return [
      denied === undefined ? undefined : denial(denied),
      overdue ? waitsForSecond : undefined,
      others.length > 0 || isSingle ? undefined : alone
    ]
      .filter((reason) => reason !== undefined)
      .join("; ")
  })

  /** Until another provider testifies, that one has decided alone stays to be seen. */
  const told = (provider: Provider, reason: string | undefined) =>
    Effect.map(Clock.currentTimeMillis, (now) => {
      const isTold = decidedAloneAt !== undefined && providers.silentSince(provider, now) < decidedAloneAt
      return reason || (isTold ? decidesAlone : undefined)
    })

  return { run: (provider, head) => Effect.flatMap(run(provider, head), (reason) => told(provider, reason)) }
}
