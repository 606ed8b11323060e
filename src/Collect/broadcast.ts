/**
 * Sends what was signed, waits until the chain's confirmations bury it, and accounts for every unit. Only the signed bytes are
 * sent, whose nonces are used once: killed at any point and started again, nothing is sent twice.
 */
import { Array as Arr, Clock, Duration, Effect, Either } from "effect"
import { type ChainAccess, reading, readingBy, readPricedHead } from "../Chains/providers/chainAccess.ts"
import { minedTransaction } from "../Chains/providers/minedTransaction.ts"
import { getTransactionCount, nonceAt } from "../Chains/rpc/balanceMethods.ts"
import { getHead, sendBatch, sendInBatches } from "../Chains/rpc/methods.ts"
import { type PricedHead, sendRawTransaction } from "../Chains/rpc/sendingMethods.ts"
import { chainTraits } from "../Domain/Chain.ts"
import type { RefundId } from "../Domain/Ids.ts"
import type { PlannedRefund } from "./candidates.ts"
import { gwei } from "./fees.ts"
import { type Journal, type JournalLine, openJournal } from "./journal.ts"
import { collectRefusal, type Plan, type PlannedMove, receiverOf } from "./Plan.ts"
import { accountFor, type Beginning, type Pursued } from "./reconcile.ts"
import { type Ready, type Signed, verifySigned, withoutMoves } from "./Signed.ts"
import { checkStanding, findMined, foreignProblem, type HeldBack, type MinedAt } from "./standing.ts"

/** Transactions of one sender under way at once: nodes keep sixteen for certain (geth: txpool.accountslots). */
const mostUnderWay = 16

/** A transaction, and where it is. */
interface Progress extends Pursued {
  readonly place: number
  step: number | undefined
  /** Unix milliseconds. */
  sentAt: number
  mined: MinedAt | undefined
  state: "open" | "confirmed" | "lost"
}

export interface BroadcastRequest {
  readonly signed: Signed
  /** The extended public key of the configured wallet that it has to be of. */
  readonly xpub: string
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
  /** What was said and would be said in each round. */
  readonly told: Set<string>
}

const tellOnce = ({ onProgress, told }: Run, text: string) => {
  if (told.has(text)) return Effect.void
  told.add(text)
  return onProgress(text)
}

const note = (
  { journal }: Run,
  event: Exclude<JournalLine["event"], "accounted" | "begun" | "finished">,
  { place, ready, step = 0 }: Progress,
  hash = ready.hashes[step] ?? ""
) => journal.add({ event, place, step, hash })

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

/** Looks where everything is that was sent and is not confirmed: what one provider hides another one may show. */
const observe = Effect.fnUntraced(function* (run: Run, head: PricedHead, some: ReadonlyArray<Progress>) {
  const wanted = some.map(({ ready }) => ready)
  const answers = yield* readingBy(run.access, {}, (client) => findMined(client, wanted))
  for (const [i, one] of some.entries()) {
    // Of what two have confirmed, one alone shows nothing else.
    const isOpen = one.state !== "confirmed"
    const shown = answers.flatMap((found) => found[i] ?? []).filter(({ hash }) => isOpen || hash === one.mined?.hash)
    const mined = shown.find(({ blockNumber }) => blockNumber <= head.number + run.access.chain.confirmations)
    const [far] = mined === undefined ? shown : []
    const doubt = `a provider has ${far?.hash} in block ${far?.blockNumber}, and the head is ${head.number}: it is not believed`
    if (far !== undefined) yield* tellOnce(run, doubt)
    if (mined !== undefined && mined.blockHash !== one.mined?.blockHash) yield* note(run, "mined", one, mined.hash)
    if (mined === undefined && one.mined !== undefined) {
      yield* note(run, "fell out", one, one.mined.hash)
      const then = one.isWithheld ? "is not sent again: it is no longer owed" : "is sent again"
      yield* run.onProgress(`a reorg took the transaction ${one.mined.hash} out of its block; it ${then}`)
      one.state = one.isWithheld ? "lost" : "open"
      // Nodes may have dropped with it what waited for it: everything that is in no block is due at once.
      for (const other of run.all) other.sentAt = 0
    }
    one.mined = mined
    // One that was given up by mistake.
    if (mined !== undefined && one.state === "lost") one.state = "open"
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
    if (Either.isLeft(shown)) yield* tellOnce(run, `${one.mined.hash} waits: ${shown.left.message}`)
    if (Either.isLeft(shown) || (shown.right?.confirmations ?? 0) < chain.confirmations) return
    one.state = "confirmed"
    yield* note(run, "confirmed", one, one.mined.hash)
  })
  yield* Effect.forEach(deep, confirmOne, { concurrency: 4, discard: true })
})

/** Those of which every provider says that something else has used their nonce, as deep as what counts as confirmed. */
const replaced = Effect.fnUntraced(function* (run: Run, some: ReadonlyArray<Progress>) {
  const { chain, providers } = run.access
  const many = { many: providers.all.length, mustBeTwo: true }
  const answers = yield* readingBy(run.access, many, (client) =>
    Effect.gen(function* () {
      const [head] = yield* sendBatch(client, [getHead])
      const at = Math.max(0, head.number - chain.confirmations + 1)
      const wanted = some.map(({ ready }) => ready)
      const calls = wanted.map(({ from }) => nonceAt(from, at))
      const nonces = yield* sendInBatches(client, calls)
      const found = yield* findMined(client, wanted)
      return wanted.map(({ variants }, i) => found[i] === undefined && (nonces[i] ?? 0) > variants[0].nonce)
    })
  )
  return some.filter((_, i) => answers.every((answer) => answer[i] === true))
})

/** Gives up those whose nonce something else has used, and those that waited for one of them. */
const lose = Effect.fnUntraced(function* (run: Run) {
  const waiting = run.all.filter(
    ({ mined, state, step }) => state === "open" && step !== undefined && mined === undefined
  )
  const calls = waiting.map(({ ready }) => getTransactionCount(ready.from))
  const counts = yield* reading(run.access, (client) => sendInBatches(client, calls))
  const suspects = waiting.filter(({ ready }, i) => (counts[i] ?? 0) > ready.variants[0].nonce)
  const asked = suspects.length === 0 ? Either.right([]) : yield* Effect.either(replaced(run, suspects))
  if (Either.isLeft(asked)) yield* tellOnce(run, asked.left.message)
  const gone = Either.getOrElse(asked, (): ReadonlyArray<Progress> => [])
  for (const one of run.all) {
    const bringer = one.ready.after === undefined ? undefined : run.all[one.ready.after]
    const isGone = gone.includes(one)
    if (one.state === "lost" || !(isGone || (bringer?.state === "lost" && one.mined === undefined))) continue
    one.state = "lost"
    yield* note(run, "lost", one)
    const why = isGone ? "has sent another transaction with the nonce that was signed" : "gets no gas from the sponsor"
    yield* run.onProgress(`${one.ready.from} ${why}: this one is given up`)
  }
})

/** Whether the gas that a transaction gets from the sponsor is there. */
const isFunded = ({ all }: Run, { ready: { after } }: Progress): boolean =>
  after === undefined || all[after]?.mined !== undefined

/** Those that can be sent now for the first time. Of one sender in their order: a later nonce would only wait. */
const sendable = (run: Run): ReadonlyArray<Progress> =>
  Object.values(Arr.groupBy(run.all, ({ ready }) => ready.from)).flatMap((own) => {
    const open = own.filter(({ mined, state }) => state === "open" && mined === undefined)
    const [unsent, underWay] = Arr.partition(open, ({ step }) => step !== undefined)
    const free = Math.max(0, mostUnderWay - underWay.length)
    return Arr.takeWhile(unsent, (one) => isFunded(run, one)).slice(0, free)
  })

/** Those that have been under way for too long. */
const overdue = (run: Run, now: number): ReadonlyArray<Progress> =>
  run.all.filter((one) => {
    const isUnderWay = one.state === "open" && one.step !== undefined && one.mined === undefined
    return isUnderWay && Math.abs(now - one.sentAt) >= run.patience && isFunded(run, one)
  })

const progressOf = ({ all }: Run): string => {
  const count = (fits: (one: Progress) => boolean) => all.filter(fits).length
  const sent = count(({ mined, step }) => step !== undefined || mined !== undefined)
  const [mined, confirmed] = [count(({ mined }) => mined !== undefined), count(({ state }) => state === "confirmed")]
  return `${sent} of ${all.length} transactions sent, ${mined} in a block, ${confirmed} confirmed`
}

const isOver = ({ all }: Run): boolean => all.every(({ state }) => state !== "open")

/** One look at the chain, and what follows from it. True once everything is confirmed or given up. */
const round = Effect.fnUntraced(function* (run: Run) {
  const head = yield* readPricedHead(run.access)
  const known = run.all.filter(
    ({ mined, state, step }) => state === "open" && (step !== undefined || mined !== undefined)
  )
  yield* observe(run, head, known)
  yield* confirm(run, head)
  // What was confirmed first may have fallen out since, and what was given up may be there.
  if (isOver(run)) {
    yield* observe(run, head, run.all)
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

/** Goes on until everything is added up. What is missing then may have fallen out of its block: it is looked for again. */
const pursue = Effect.fn("Collect.pursue")(function* (run: Run, beginning: Beginning) {
  let shown = ""
  const step = Effect.gen(function* () {
    const over = yield* round(run)
    const text = progressOf(run)
    if (text !== shown) yield* run.onProgress(text)
    shown = text
    if (!over) return undefined
    yield* tellOnce(run, "adding everything up")
    return yield* accountFor(run.access, run.plan, run.all, beginning)
  })
  while (true) {
    // A provider that fails for a while ends nothing: what was sent is under way.
    const again = ({ message }: { readonly message: string }) => Effect.as(run.onProgress(message), undefined)
    const result = yield* Effect.catchTags(step, { RpcError: again, WrongChain: again })
    if (result !== undefined) return result
    yield* Effect.sleep(run.access.chain.pollInterval)
  }
})

/** Whether each transaction is not sent, or not again: of moves that are not due, or waiting for the nonce of such a one. */
const withheld = (ready: ReadonlyArray<Ready>, paid: ReadonlySet<number>, due: ReadonlyArray<boolean>) => {
  const senders = new Set<string>()
  return ready.map(({ from, moves }, at) => {
    if (paid.has(at)) return false
    if (!moves.every((place) => due[place])) senders.add(from)
    return senders.has(from)
  })
}

/** The transfer of a plan that pays a refund. */
export interface PayingMove extends Pick<PlannedMove, "amount" | "exception" | "way"> {
  readonly refund: RefundId
  readonly place: number
  readonly to: string
}

/** The transfers of a plan that pay refunds, of those that are meant. */
export const payingTransfers = (plan: Plan, isMeant: (place: number) => boolean): ReadonlyArray<PayingMove> =>
  plan.moves.flatMap((move, place) => {
    const { amount, exception, refund, way } = move
    return refund === undefined || !isMeant(place)
      ? []
      : [{ refund, place, way, amount, to: receiverOf(plan, move), ...(exception === undefined ? {} : { exception }) }]
  })

/**
 * Sends a signed plan to its end. Its account is in the journal when it returns, and is given again once nothing is left to do.
 * What was begun goes on, whatever has happened since, without refunds that are no longer owed and authorizations that have ended.
 *
 * @param check before anything is sent: fails where it is not to be. Gives which of the refunds that are not paid yet are not owed,
 *   and why, and what has to stay at the addresses where nothing was begun
 * @param begin records the refunds that are sent from now on; fails where one is not owed, and then nothing is sent
 */
export const broadcast = Effect.fn("Collect.broadcast")(function* <E, R, E2, R2>(
  access: ChainAccess,
  { journalPath, onProgress, patience, signed, xpub }: BroadcastRequest,
  check: (
    unpaid: ReadonlyArray<PlannedRefund>,
    wasBegun: boolean
  ) => Effect.Effect<{ readonly notOwed: ReadonlyMap<string, string>; readonly held: HeldBack }, E, R>,
  begin: (refunds: ReadonlyArray<PayingMove>, wasSent: boolean) => Effect.Effect<unknown, E2, R2>
) {
  const { plan } = signed
  const whole = yield* verifySigned(signed)
  const journal = yield* openJournal(journalPath)
  const start = journal.entries.find((entry) => entry.event === "begun")
  if (start?.checksum !== signed.checksum && journal.entries.length > 0) {
    return yield* collectRefusal(
      `${journalPath} is the journal of another signed file: move it away, or name the right file.`
    )
  }
  const last = journal.entries.at(-1)
  if (last?.event === "finished") return { result: last.result, wasFinished: true }
  const foreign = foreignProblem(access, plan, xpub)
  if (foreign !== undefined) return yield* collectRefusal(foreign)
  const begun = start && (yield* withoutMoves(signed, whole, start.left))
  const sent = new Map<number, number>()
  const paid = new Set<number>()
  for (const entry of journal.entries) {
    if (entry.event === "sending") sent.set(entry.place, entry.step)
    if (entry.event === "confirmed") paid.add(entry.place)
    if (entry.event === "fell out") paid.delete(entry.place)
  }
  const unpaid = () => {
    const places = (begun ?? whole).flatMap(({ moves }, at) => (paid.has(at) ? [] : moves))
    const moves = places.flatMap((place) => plan.moves[place] ?? [])
    return moves.flatMap(({ address, amount, exception, index, refund: id, token: currency = plan.coin }) =>
      id === undefined ? [] : [{ id, of: exception ?? id, exception, address, index, currency, amount: BigInt(amount) }]
    )
  }
  if (begun !== undefined && unpaid().length > 0) {
    // A refund that one provider alone shows may not be paid.
    const seen = yield* readingBy(access, { mustBeTwo: true }, (client) => findMined(client, begun))
    for (const at of begun.keys()) if (seen.every((found) => found[at] !== undefined)) paid.add(at)
  }
  const { held, notOwed } = yield* check(unpaid(), start !== undefined)
  const { before, block, lacking } = start
    ? { ...start, lacking: new Map<string, string>() }
    : yield* checkStanding(access, plan, whole, held)
  const reasons = plan.moves.map((move) => notOwed.get(move.refund ?? "") ?? lacking.get(move.address.toLowerCase()))
  const left = start?.left ?? reasons.flatMap((why, place) => (why === undefined ? [] : [place]))
  if (left.length === plan.moves.length) {
    return yield* collectRefusal(`${reasons[0]}. Nothing was sent: make a new plan`)
  }
  for (const why of new Set(reasons)) {
    if (why !== undefined) yield* onProgress(`${why}. ${start ? "What sends it is not sent again" : "It is left out"}`)
  }
  const ready = begun ?? (yield* withoutMoves(signed, whole, left))
  const isEnded = start !== undefined && (yield* readPricedHead(access)).time >= plan.validBefore
  const due = plan.moves.map(
    ({ way }, place) => !(reasons[place] || left.includes(place) || (isEnded && way === "authorization"))
  )
  const stays = withheld(ready, paid, due)
  const beginning = { checksum: signed.checksum, left, block, before }
  const wasSent = start !== undefined
  // Recorded before anything is sent: from then on no other decision is made on their money.
  yield* begin(
    payingTransfers(plan, (place) => due[place] === true || (wasSent && !reasons[place])),
    wasSent
  )
  if (!wasSent) yield* journal.add({ event: "begun", ...beginning })
  const all = ready.map((ready, place): Progress => {
    const isWithheld = stays[place] === true
    const state = isWithheld ? "lost" : "open"
    return { ready, place, step: sent.get(place), sentAt: 0, mined: undefined, isWithheld, state }
  })
  const usual = Duration.seconds(Math.max(30, 5 * chainTraits[access.chain.chain].blockSeconds))
  const toWait = Duration.toMillis(patience ?? usual)
  const run: Run = { access, plan, journal, all, patience: toWait, onProgress, told: new Set() }
  const result = yield* pursue(run, beginning)
  yield* journal.add({ event: result.differences.length === 0 ? "finished" : "accounted", result })
  return { result, wasFinished: false }
}, Effect.scoped)
