/**
 * Sends what was signed, waits until the chain's confirmations bury it, and accounts for every unit. Only the signed bytes are
 * sent, whose nonces are used once: killed at any point and started again, nothing is sent twice.
 */
import { Clock, Duration, Effect, Either } from "effect"
import { minedTransaction } from "../Chains/providers/minedTransaction.ts"
import { getTransactionCount } from "../Chains/rpc/balanceMethods.ts"
import { sendBatch, sendInBatches } from "../Chains/rpc/methods.ts"
import { getPricedHead, type PricedHead, sendRawTransaction } from "../Chains/rpc/sendingMethods.ts"
import { chainTraits } from "../Domain/Chain.ts"
import { type ChainAccess, reading } from "./access.ts"
import { collectRefusal } from "./CollectRefused.ts"
import { type Journal, type JournalLine, openJournal } from "./journal.ts"
import type { Plan } from "./Plan.ts"
import { gwei } from "./planText.ts"
import { accountFor, type SweepResult } from "./reconcile.ts"
import type { Signed } from "./Signed.ts"
import { addressesOf, checkStanding, findMined, type MinedAt } from "./standing.ts"
import { type Ready, verifySigned } from "./verifySigned.ts"

/** Transactions of one sender under way at once: nodes keep sixteen for certain (geth: txpool.accountslots). */
const mostUnderWay = 16
/** Rounds in which a nonce must be seen used by something else: nodes behind a balancer differ for a moment. */
const roundsToLose = 3

/** A transaction, and where it is. */
interface Progress {
  readonly ready: Ready
  readonly place: number
  /** The step that was sent last; undefined before the first. */
  step: number | undefined
  /** Unix milliseconds. */
  sentAt: number
  mined: MinedAt | undefined
  state: "open" | "confirmed" | "lost"
  /** Rounds in which its nonce was used, and no variant of it was in a block. */
  missedRounds: number
}

export interface BroadcastRequest {
  readonly signed: Signed
  readonly journalPath: string
  /** How long a transaction may be under way before a higher fee replaces it; otherwise five blocks, or half a minute. */
  readonly patience?: Duration.Duration | undefined
  readonly onProgress: (text: string) => Effect.Effect<void>
}

interface Run {
  readonly access: ChainAccess
  readonly plan: Plan
  readonly journal: Journal
  readonly all: ReadonlyArray<Progress>
  readonly patience: number
  readonly onProgress: BroadcastRequest["onProgress"]
}

const note = (
  { journal }: Run,
  event: Exclude<JournalLine["event"], "begun" | "finished">,
  { place, ready, step = 0 }: Progress,
  hash = ready.hashes[step] ?? ""
) => journal.add({ event, place, step, hash })

const usualPatience = ({ chain }: ChainAccess): Duration.Duration =>
  Duration.seconds(Math.max(30, 5 * chainTraits[chain.chain].blockSeconds))

/** The lowest step that a block with this base fee takes; the last where none does. */
const stepFor = ({ fees }: Plan, { baseFee }: PricedHead): number => {
  const step = fees.findIndex(({ most, tip }) => BigInt(most) >= baseFee + BigInt(tip))
  return step === -1 ? fees.length - 1 : step
}

/** Hands transactions in, to each provider: one alone might keep them to itself. Those that one has already are no news. */
const send = Effect.fnUntraced(function* (run: Run, some: ReadonlyArray<Progress>) {
  if (some.length === 0) return
  const calls = some.map(({ ready, step = 0 }) => sendRawTransaction(ready.raws[step] ?? ""))
  const replies = yield* Effect.forEach(
    run.access.providers.all,
    ({ client }) => Effect.either(client.sendEach(calls)),
    { concurrency: "unbounded" }
  )
  for (const [i, { ready }] of some.entries()) {
    const own = replies.map((reply) => (Either.isLeft(reply) ? reply : (reply.right[i] ?? reply)))
    const errors = own.flatMap((reply) => (Either.isLeft(reply) ? [reply.left] : []))
    const [error] = errors
    if (error === undefined || errors.length < own.length || /known|already|imported/i.test(error.detail)) continue
    yield* run.onProgress(`a transaction of ${ready.from} was not taken (${error.detail}); it is tried again`)
  }
})

/** Sends variants, each noted first: what may have been sent is never unknown. */
const sendNoted = Effect.fnUntraced(function* (
  run: Run,
  some: ReadonlyArray<Progress>,
  step: (one: Progress) => number
) {
  const now = yield* Clock.currentTimeMillis
  for (const one of some) {
    one.step = step(one)
    one.sentAt = now
    yield* note(run, "sending", one)
  }
  yield* send(run, some)
})

/** Looks where everything is that was sent and is not confirmed. */
const observe = Effect.fnUntraced(function* (run: Run, some: ReadonlyArray<Progress>) {
  const found = yield* reading(run.access, (client) =>
    findMined(
      client,
      some.map(({ ready }) => ready)
    )
  )
  for (const [i, one] of some.entries()) {
    const mined = found[i]
    if (mined !== undefined && mined.blockHash !== one.mined?.blockHash) {
      yield* note(run, "mined", one, mined.hash)
    }
    if (mined === undefined && one.mined !== undefined) {
      yield* note(run, "fell out", one, one.mined.hash)
      yield* run.onProgress(`a reorg took the transaction ${one.mined.hash} out of its block; it is sent again`)
      one.state = "open"
      // Nodes may have dropped with it what waited for it: everything that is in no block is due at once.
      for (const other of run.all) other.sentAt = 0
    }
    one.mined = mined
    if (mined !== undefined) one.missedRounds = 0
  }
})

/** Those that are deep enough, with the evidence that the watcher asks for too: two providers, where there are two. */
const confirm = Effect.fnUntraced(function* (run: Run, head: PricedHead) {
  const { chain, providers } = run.access
  const deep = run.all.filter(
    ({ mined, state }) =>
      state === "open" && mined !== undefined && head.number - mined.blockNumber + 1 >= chain.confirmations
  )
  const confirmOne = Effect.fnUntraced(function* (one: Progress) {
    if (one.mined === undefined) return
    const shown = yield* Effect.either(minedTransaction(providers, one.mined.hash))
    if (Either.isLeft(shown) || (shown.right?.confirmations ?? 0) < chain.confirmations) return
    one.state = "confirmed"
    yield* note(run, "confirmed", one, one.mined.hash)
  })
  yield* Effect.forEach(deep, confirmOne, { concurrency: 4, discard: true })
})

/** Those whose nonce something else has used, and those that waited for one of them. */
const lose = Effect.fnUntraced(function* (run: Run) {
  const waiting = run.all.filter(
    ({ mined, state, step }) => state === "open" && step !== undefined && mined === undefined
  )
  const senders = [...new Set(waiting.map(({ ready }) => ready.from))]
  const counts = yield* reading(run.access, (client) => sendInBatches(client, senders.map(getTransactionCount)))
  for (const one of waiting) {
    const count = counts[senders.indexOf(one.ready.from)] ?? 0
    one.missedRounds = count > (one.ready.variants[0]?.nonce ?? 0) ? one.missedRounds + 1 : 0
  }
  for (const one of run.all) {
    const bringer = one.ready.after === undefined ? undefined : run.all[one.ready.after]
    const isLost = one.missedRounds >= roundsToLose || (bringer?.state === "lost" && one.mined === undefined)
    if (!isLost || one.state === "lost") continue
    one.state = "lost"
    yield* note(run, "lost", one)
    yield* run.onProgress(
      `${one.ready.from} has sent another transaction with the nonce that was signed: this one is given up`
    )
  }
})

/** Whether the gas that a transaction gets from the sponsor is there. */
const isFunded = ({ all }: Run, { ready: { after } }: Progress): boolean =>
  after === undefined || all[after]?.mined !== undefined

/** Those that can be sent now for the first time, in their order. */
const sendable = (run: Run): ReadonlyArray<Progress> => {
  const { all } = run
  const underWay = new Map<string, number>()
  const blocked = new Set<string>()
  for (const { mined, ready, state, step } of all) {
    if (state === "open" && step !== undefined && mined === undefined) {
      underWay.set(ready.from, (underWay.get(ready.from) ?? 0) + 1)
    }
  }
  return all.filter((one) => {
    const { mined, ready, state, step } = one
    if (state !== "open" || mined !== undefined || step !== undefined) return false
    const many = underWay.get(ready.from) ?? 0
    // A later nonce of the same sender would only wait.
    if (blocked.has(ready.from) || many >= mostUnderWay || !isFunded(run, one)) {
      blocked.add(ready.from)
      return false
    }
    underWay.set(ready.from, many + 1)
    return true
  })
}

/** Those that have been under way for too long. */
const overdue = (run: Run, now: number): ReadonlyArray<Progress> =>
  run.all.filter((one) => {
    const isUnderWay = one.state === "open" && one.step !== undefined && one.mined === undefined
    return isUnderWay && now - one.sentAt >= run.patience && isFunded(run, one)
  })

const progressOf = ({ all }: Run): string => {
  const [sent, mined, confirmed] = [
    all.filter(({ mined, step }) => step !== undefined || mined !== undefined).length,
    all.filter(({ mined }) => mined !== undefined).length,
    all.filter(({ state }) => state === "confirmed").length
  ]
  return `${sent} of ${all.length} transactions sent, ${mined} in a block, ${confirmed} confirmed`
}

const isOver = ({ all }: Run): boolean => all.every(({ state }) => state !== "open")

/** One look at the chain, and what follows from it. True once everything is confirmed or given up. */
const round = Effect.fnUntraced(function* (run: Run) {
  const [head] = yield* reading(run.access, (client) => sendBatch(client, [getPricedHead]))
  yield* observe(
    run,
    run.all.filter(({ mined, state, step }) => state === "open" && (step !== undefined || mined !== undefined))
  )
  yield* confirm(run, head)
  // What was confirmed first may have fallen out since.
  if (isOver(run)) {
    yield* observe(
      run,
      run.all.filter(({ state }) => state === "confirmed")
    )
    if (isOver(run)) return true
  }
  yield* lose(run)
  const lowest = stepFor(run.plan, head)
  const last = run.plan.fees.length - 1
  const due = overdue(run, yield* Clock.currentTimeMillis)
  yield* sendNoted(run, due, ({ sentAt, step = 0 }) =>
    sentAt === 0 ? step : Math.min(last, Math.max(step + 1, lowest))
  )
  if (due.some(({ step }) => step === last) && BigInt(run.plan.fees[last]?.most ?? 0) < head.baseFee) {
    yield* run.onProgress(
      `a unit of gas costs ${gwei(head.baseFee)} gwei, more than was signed: waiting until it is cheaper`
    )
  }
  yield* sendNoted(run, sendable(run), () => lowest)
  return false
})

const pursue = Effect.fn("Collect.pursue")(function* (run: Run) {
  let shown = ""
  while (true) {
    // A provider that fails for a while ends nothing: what was sent is under way.
    const over = yield* Effect.catchAll(round(run), ({ message }) => Effect.as(run.onProgress(message), false))
    const text = progressOf(run)
    if (text !== shown) yield* run.onProgress(text)
    shown = text
    if (over) return
    yield* Effect.sleep(run.access.chain.pollInterval)
  }
})

const begun = (journal: Journal) => {
  const [first] = journal.entries
  return first?.event === "begun" ? first : undefined
}

/** The result that an earlier run ended with. */
const finishedBefore = ({ entries }: Journal): SweepResult | undefined => {
  const last = entries.at(-1)
  return last?.event === "finished" ? (last.result as SweepResult) : undefined
}

/** Sends a signed plan to its end. The result is in the journal once `record` has succeeded; it is given again then. */
export const broadcast = Effect.fn("Collect.broadcast")(function* <E, R>(
  access: ChainAccess,
  { journalPath, onProgress, patience = usualPatience(access), signed }: BroadcastRequest,
  record: (result: SweepResult) => Effect.Effect<void, E, R>
) {
  const { plan } = signed
  const ready = yield* verifySigned(signed)
  const journal = yield* openJournal(journalPath)
  const start = begun(journal)
  if (start !== undefined && start.checksum !== signed.checksum) {
    return yield* collectRefusal(
      `${journalPath} is the journal of another signed file: move it away, or name the right file.`
    )
  }
  const finished = finishedBefore(journal)
  if (finished !== undefined) return { result: finished, wasFinished: true }
  const { head, holdings, mined } = yield* checkStanding(access, plan, ready, start !== undefined)
  const before =
    start?.before ??
    Object.fromEntries(
      addressesOf(plan).map((address) => [
        address,
        Object.fromEntries(
          Array.from(holdings, ([currency, of]) => [currency, of.get(address)] as const).flatMap(
            ([currency, amount]) => (amount === undefined ? [] : [[currency, `${amount}`] as const])
          )
        )
      ])
    )
  const block = start?.block ?? head.number
  if (start === undefined) yield* journal.add({ event: "begun", checksum: signed.checksum, block, before })
  const sent = new Map(
    journal.entries.flatMap((entry) => (entry.event === "sending" ? [[entry.place, entry.step] as const] : []))
  )
  const all = ready.map(
    (one, place): Progress => ({
      ...{ ready: one, place, step: sent.get(place), sentAt: 0, mined: mined[place], state: "open", missedRounds: 0 }
    })
  )
  const run: Run = { access, plan, journal, all, patience: Duration.toMillis(patience), onProgress }
  yield* pursue(run)
  yield* onProgress("adding everything up")
  const result = yield* accountFor(access, plan, all, { block, before })
  yield* record(result)
  if (result.differences.length === 0) yield* journal.add({ event: "finished", result })
  return { result, wasFinished: false }
}, Effect.scoped)
