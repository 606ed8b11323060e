/**
 * Refunds: money that goes back to a customer, each a row with an identity of its own, recorded before anything is sent for it.
 * tilld cannot spend: a person sends the money with another wallet and notes it here, or a signed plan sends it, whose broadcast
 * begins the refund and accounts for it. What is sent back counts no more; what is begun holds its money. Each change is one
 * transaction, with the events that follow. Called by the HTTP handlers, for their key's owner, and by commands, for all.
 */
import { Clock, Effect, Either } from "effect"
import { formatUnits } from "viem"
import { Settlement } from "../../Chains/ledger/SettlementTag.ts"
import type { Owner } from "../../Domain/Account.ts"
import type { ChainName } from "../../Domain/Chain.ts"
import { decimalsOn, type NamedNetwork } from "../../Domain/Currency.ts"
import { AlreadyDecided, DecisionInvalid, NothingToDecide, type PaymentException } from "../../Domain/Exception.ts"
import { newRefundId, type RefundId } from "../../Domain/Ids.ts"
import type { Payment } from "../../Domain/Payment.ts"
import type { Receipt } from "../../Domain/Receipt.ts"
import {
  isSentBack,
  isStanding,
  type PlannedTransfer,
  type Refund,
  type RefundPart,
  RefundSettled,
  RefundUnderWay
} from "../../Domain/Refund.ts"
import { type PricedMoment, pricesOf } from "../../Quotes/frozenRates.ts"
import { Settings } from "../../Settings.ts"
import { type Db, Tx, Writer } from "../../Sql.ts"
import * as Repo from "../PaymentsRepo.ts"
import * as Refunds from "../RefundsRepo.ts"
import type { Refundable } from "../standing.ts"
import { standingOf, syncLost } from "../storeTransitions.ts"
import { refuseUndecidable, whyExceptionUndecidable, whyUndecidable } from "../undecidable.ts"
import { type AlsoCommit, decidedAlready, type Made, type Named, type Subject, subjectOf } from "./accept.ts"
import { RefundBell } from "./RefundBell.ts"

/** Refunds of a payment at most: all are kept, and shown with it. */
export const mostRefunds = 100

/** What is to go back. */
export interface RefundRequest extends Named {
  /** Base units; undefined: all of an exception. */
  readonly amount?: bigint | undefined
  /** Of which money of a payment; its own unless given. */
  readonly chain?: ChainName | undefined
  readonly currency?: string | undefined
  /** To whom, in lower case. */
  readonly to?: string | undefined
}

/** A refund after a change, and what it is of. */
export interface Refunded extends Subject {
  readonly refund: Refund
}

const described = ({ amount, currency, id, kind, txHash = "transaction unknown" }: PaymentException): string =>
  `${id} (${kind}, ${amount} base units of ${currency}, ${txHash})`

const invalidAmount = (message: string) => new DecisionInvalid({ field: "amount", message })

/** An amount as the portal's forms and as the API take it. */
const bothUnits = Effect.fnUntraced(function* (network: NamedNetwork, currency: string, amount: bigint) {
  const decimals = decimalsOn((yield* Settings).chains, network, currency)
  if (decimals === undefined) return `${amount} base units of ${currency}`
  return `${formatUnits(amount, decimals)} ${currency} (${amount} in base units)`
})

/** Lets the payment, or the lost address, follow from its refunds as they are now. */
const settle = Effect.fnUntraced(function* ({ address, chain, mode, payment: of }: Refund) {
  const payment = of && (yield* Repo.byId(yield* Tx, of))
  if (payment !== undefined) return yield* (yield* Settlement).refundsChanged(payment)
  yield* syncLost({ chain, mode }, address, yield* Clock.currentTimeMillis)
})

const stored = Effect.fnUntraced(function* (id: RefundId) {
  const refund = yield* Refunds.byId(yield* Tx, id)
  return refund ?? (yield* Effect.dieMessage(`${id} was not stored`))
})

/** Runs in each transaction that records a refund, or changes its status or transaction. */
const statusChanged = Effect.fnUntraced(function* ({ status, txHash }: Refund) {
  if (txHash !== undefined && (status === "noted" || status === "seen")) yield* (yield* RefundBell).ring
})

/** Stores a refund with its parts. */
const recorded = Effect.fnUntraced(function* (refund: Omit<Refund, "sequence">, prices: PricedMoment["prices"]) {
  yield* Refunds.put(refund, prices)
  const after = yield* stored(refund.id)
  yield* statusChanged(after)
  return after
})

/** Changes a refund's status, and what follows from it. */
export const changed = Effect.fnUntraced(function* (refund: Refund, change: Refunds.RefundChange) {
  yield* Refunds.change(refund.id, change, yield* Clock.currentTimeMillis)
  const after = yield* stored(refund.id)
  if (after.status !== refund.status || after.txHash !== refund.txHash) yield* statusChanged(after)
  if (isStanding(refund) !== isStanding(after) || isSentBack(refund) !== isSentBack(after)) yield* settle(after)
  return after
})

/** The parts of `amount`, in order. */
const partsOf = (money: ReadonlyArray<Refundable>, amount: bigint): ReadonlyArray<Refundable> => {
  let left = amount
  return money.flatMap((one) => {
    const isAll = one.amount <= left
    const part = isAll ? one.amount : left
    left -= part
    return part > 0n ? [{ ...one, amount: part }] : []
  })
}

/** What of an open exception goes back. */
const ofException = Effect.fnUntraced(function* (exception: PaymentException, request: RefundRequest) {
  const { amount: all, block, chain, currency, id, kind, status, txHash } = exception
  if (status !== "open") return yield* decidedAlready(exception)
  if (kind === "reorged") {
    return yield* new NothingToDecide({
      message: `There is no money of ${id} to send back, since a reorg took it: accept it, to do without that money`
    })
  }
  const { amount = all, uncorroborated } = request
  if (amount > all) {
    const most = yield* bothUnits(exception, currency, all)
    return yield* invalidAmount(`must be at most ${most}, which is what is open of ${id}`)
  }
  yield* refuseUndecidable(whyExceptionUndecidable(yield* Tx, exception, { uncorroborated }))
  const part: Refundable = { exception: id, txHash, block, amount, ofConfirmed: false, receipts: [] }
  return { parts: [part], chain, currency }
})

/** Why none of the money that was meant can go back. */
const whyNothing = (of: string, money: ReadonlyArray<Receipt>, open: ReadonlyArray<PaymentException>): string => {
  if (open.length > 0) return `name what you mean by its id, ${open.map(described).join(", ")}`
  const came = new Set(money.flatMap((one) => (one.canonical ? [`${one.currency} on ${one.chain}`] : [])))
  if (came.has(of)) return "what came was sent back, or is held for a refund"
  return came.size === 0 ? "none that counts has come" : `${[...came].join(", ")} came`
}

/** What of a payment's money goes back: what is open first, then what counts. */
const ofPayment = Effect.fnUntraced(function* (payment: Payment, request: RefundRequest) {
  const { uncorroborated } = request
  const { money: came, refundable, stored } = yield* standingOf(payment)
  const open = stored.filter(({ kind, status }) => status === "open" && kind !== "reorged")
  const [only, ...others] = open
  const isUnnamed = request.chain === undefined && request.currency === undefined
  // Where nothing else can be meant, it is the only open exception.
  const isOnly = isUnnamed && others.length === 0 && refundable(payment.chain, payment.currency).length === 0
  const base = isOnly && only !== undefined ? only : payment
  const { chain = base.chain, currency = base.currency } = request
  const of = `${currency} on ${chain}`
  const money = refundable(chain, currency)
  const most = money.reduce((sum, one) => sum + one.amount, 0n)
  if (most === 0n) {
    const why = whyNothing(of, came, open)
    return yield* new NothingToDecide({ message: `No ${of} of ${payment.id} can be sent back: ${why}` })
  }
  const isAll = money.length === 1 && money[0]?.exception !== undefined
  const amount = request.amount ?? (isAll ? most : undefined)
  if (amount === undefined || amount > most) {
    const text = yield* bothUnits({ ...payment, chain }, currency, most)
    const must = amount === undefined ? "must be given, and" : "must"
    return yield* invalidAmount(`${must} be at most ${text}, which is what is left of ${of} for ${payment.id}`)
  }
  const parts = partsOf(money, amount)
  const counting = parts.filter(({ exception }) => exception === undefined).flatMap(({ receipts }) => receipts)
  const tx = yield* Tx
  yield* refuseUndecidable(whyUndecidable(tx, `what counts for ${payment.id}`, counting, { uncorroborated }))
  for (const one of open.filter(({ id }) => parts.some(({ exception }) => exception === id))) {
    yield* refuseUndecidable(whyExceptionUndecidable(tx, one, { uncorroborated }))
  }
  return { parts, chain, currency }
})

const partIn = ({ receipts: _, ...part }: Refundable): RefundPart => ({ ...part, openedAt: undefined, ofTwo: true })

/** The refunds of a subject: of its payment, or of the lost address of its exception. */
const refundsOf = Effect.fnUntraced(function* (db: Db, { exception, payment }: Subject) {
  if (payment !== undefined) return yield* Refunds.ofPayment(db, payment.id)
  return exception === undefined ? [] : yield* Refunds.ofLost(db, exception, exception.address)
})

const isOfException = (id: string) => (refund: Refund) => refund.parts.some(({ exception }) => exception === id)

/** The refund that this one repeats; fails where its transaction is noted for another amount. */
const repeatedOf = Effect.fnUntraced(function* (
  id: string,
  refunds: ReadonlyArray<Refund>,
  { exception }: Subject,
  { amount, to, txHash }: RefundRequest
) {
  if (txHash === undefined) {
    const isAll = exception?.status === "refunded" && (amount ?? exception.amount) === exception.amount
    return isAll ? refunds.filter(isOfException(exception.id)).findLast(isStanding) : undefined
  }
  // A transaction may send equal amounts to several.
  const isTo = (one: Refund) => to === undefined || one.to === undefined || one.to === to
  const same = refunds.find((one) => isStanding(one) && one.txHash === txHash && isTo(one))
  if (same === undefined) return undefined
  const isIts = exception === undefined || isOfException(exception.id)(same)
  if (isIts && (same.amount === amount || amount === undefined)) return same
  return yield* new AlreadyDecided({
    message: `${txHash} is noted already, as ${same.id} of ${id}: name the transaction of what else was sent back`
  })
})

/**
 * Records a refund that a person makes with another wallet, or that a plan is to pay: of a payment's money, or of an exception's.
 * Undefined where there is no such thing.
 *
 * @param id `pay_…` or `exc_…`
 * @param owner only what is this owner's; undefined: of all
 */
export const noteRefund = <E = never>(
  id: string,
  owner: Owner | undefined,
  request: RefundRequest,
  alsoCommit?: AlsoCommit<Refunded, E>
) =>
  Effect.gen(function* () {
    const services = yield* Effect.context<Settings | Settlement>()
    const writer = yield* Writer
    const prices = yield* pricesOf
    const { note, to, txHash } = request
    const record = Effect.fnUntraced(function* (subject: Subject) {
      const { exception, payment } = subject
      const refunds = yield* refundsOf(yield* Tx, subject)
      const repeated = yield* repeatedOf(id, refunds, subject, request)
      if (repeated !== undefined) return { refund: repeated, made: "repeated" as Made }
      if (refunds.length >= mostRefunds) {
        return yield* new AlreadyDecided({
          message: `${id} was sent back in ${mostRefunds} parts: note the rest elsewhere`
        })
      }
      const place = exception ?? (payment as Payment)
      const { chain, currency, parts } =
        exception === undefined ? yield* ofPayment(place as Payment, request) : yield* ofException(exception, request)
      const now = yield* Clock.currentTimeMillis
      const refund: Omit<Refund, "sequence"> = {
        ...{ id: newRefundId(), payment: payment?.id, account: place.account, mode: place.mode },
        address: place.address.toLowerCase(),
        ...{ chain, currency },
        amount: parts.reduce((sum, part) => sum + part.amount, 0n),
        ...{ to, txHash, note, status: "noted", from: undefined, problem: undefined, plan: undefined },
        ...{ createdAt: now, changedAt: now, parts: parts.map(partIn) }
      }
      const after = yield* recorded(refund, prices)
      yield* settle(after)
      return { refund: after, made: "decided" as Made }
    })
    return yield* writer.write(
      Effect.gen(function* () {
        const tx = yield* Tx
        const subject = yield* subjectOf(tx, id, owner)
        if (subject === undefined) return undefined
        const { made, refund } = yield* record(subject)
        const result: Refunded = { ...((yield* subjectOf(tx, id, owner)) ?? subject), refund }
        if (alsoCommit !== undefined) yield* alsoCommit(result, made)
        return result
      }).pipe(Effect.provide(services))
    )
  }).pipe(Effect.withSpan("Payments.noteRefund"))

/** Changes a refund of an owner in a transaction. Undefined where there is none. */
const changing = <A, E>(
  id: string,
  owner: Owner | undefined,
  act: (refund: Refund) => Effect.Effect<A, E, Tx | Settlement | Settings>
) =>
  Effect.gen(function* () {
    const services = yield* Effect.context<Settlement | Settings>()
    const writer = yield* Writer
    return yield* writer.write(
      Effect.gen(function* () {
        const refund = yield* Refunds.byId(yield* Tx, id)
        const isOwn = owner === undefined || (refund?.account === owner.account && refund.mode === owner.mode)
        return refund === undefined || !isOwn ? undefined : yield* act(refund)
      }).pipe(Effect.provide(services))
    )
  })

/** Names the transaction of a refund that has none, or a wrong one. */
export const nameRefund = <E = never>(
  id: string,
  owner: Owner | undefined,
  txHash: string,
  alsoCommit: (refund: Refund) => Effect.Effect<void, E, Tx> = () => Effect.void
) =>
  changing(
    id,
    owner,
    Effect.fnUntraced(function* (refund: Refund) {
      const isSame = refund.txHash === txHash && refund.status !== "failed"
      if (refund.status !== "noted" && refund.status !== "not_found" && !isSame) {
        const next = refund.status === "failed" ? ": record a new refund" : ""
        return yield* new RefundSettled({
          message: `${id} is ${refund.status}, and its transaction stays as it is${next}`
        })
      }
      const after = isSame ? refund : yield* changed(refund, { status: "noted", txHash })
      yield* alsoCommit(after)
      return after
    })
  ).pipe(Effect.withSpan("Payments.nameRefund"))

/** Drops a refund that was not made: its money is open again. One that signed transfers send may still be made: look first. */
export const dropRefund = <E = never>(
  id: string,
  owner: Owner | undefined,
  alsoCommit: (refund: Refund) => Effect.Effect<void, E, Tx> = () => Effect.void
) =>
  changing(
    id,
    owner,
    Effect.fnUntraced(function* (refund: Refund) {
      const { status } = refund
      if (status === "begun" && owner !== undefined) {
        return yield* new RefundUnderWay({ message: `${id} is being sent: the operator's broadcast accounts for it` })
      }
      if (status === "seen" || status === "final") {
        return yield* new RefundSettled({ message: `${id} is ${status}: the chain has it` })
      }
      const after =
        status === "failed" ? refund : yield* changed(refund, { status: "failed", problem: "it was dropped by hand" })
      yield* alsoCommit(after)
      return after
    })
  ).pipe(Effect.withSpan("Payments.dropRefund"))

/** A transfer of a signed plan that pays a refund; `txHash`: the transaction that has done it. */
export interface PayingTransfer extends PlannedTransfer {
  readonly txHash?: string | undefined
  readonly refund: RefundId
  /** The exception whose money it is; undefined where the refund was noted before. */
  readonly exception: string | undefined
  readonly amount: bigint
  readonly to: string
}

const beginOne = Effect.fnUntraced(function* (
  { amount, exception: of, refund: id, to, txHash: sentBy, ...plan }: PayingTransfer,
  wasSent: boolean,
  prices: PricedMoment["prices"]
) {
  const tx = yield* Tx
  const now = yield* Clock.currentTimeMillis
  const refuse = (message: string) => new RefundSettled({ message })
  const found = yield* Refunds.byId(tx, id)
  const isSamePlan = found?.plan?.digest === plan.digest && found.plan.place === plan.place
  const known = found !== undefined && isStanding(found) ? found : undefined
  if (known !== undefined && (isSamePlan || (sentBy !== undefined && known.txHash === sentBy))) return
  const sent = { ...{ id, amount, to: to.toLowerCase(), txHash: undefined, from: undefined, problem: undefined, plan } }
  const begun = { ...sent, status: "begun", changedAt: now } as const
  if (known !== undefined) {
    const { status, txHash } = known
    if (status !== "noted" || txHash !== undefined) return yield* refuse(`${id} is ${status}: it is not paid again`)
    if (known.amount !== amount) return yield* refuse(`${id} is of ${known.amount}, and the plan sends ${amount}`)
    return void (yield* recorded({ ...known, ...begun }, prices))
  }
  // It was dropped by hand, and was sent all the same.
  if (found !== undefined && wasSent && of === undefined) {
    return yield* settle(yield* recorded({ ...found, ...begun }, prices))
  }
  const subject = of === undefined ? undefined : yield* subjectOf(tx, of, undefined)
  const exception = subject?.exception
  if (exception === undefined) return yield* refuse(`There is no refund ${id} to pay`)
  const { account, address, block, chain, currency, mode, payment, status, txHash } = exception
  if (!wasSent && (status !== "open" || exception.amount < amount)) {
    if (status !== "open") return yield* decidedAlready(exception)
    return yield* refuse(`${exception.id} is of ${exception.amount}, and the plan sends ${amount}`)
  }
  const part: RefundPart = {
    ...{ exception: exception.id, txHash, block, amount, ofConfirmed: false, openedAt: undefined, ofTwo: true }
  }
  const its = { payment, account, address, chain, currency, mode, note: undefined, createdAt: now }
  yield* settle(yield* recorded({ ...its, ...begun, parts: [part] }, prices))
})

/**
 * Begins refunds before their transfers are sent: from then on their money is spoken for. Repeated by the same plan, it changes
 * nothing. Fails, with nothing begun, where one is not owed, unless something of the plan was sent before: then a restored
 * database lacks it, and it is put back. Gives those that cannot be, and why.
 */
export const beginPaying = Effect.fn("Payments.beginRefunds")(function* (
  all: ReadonlyArray<PayingTransfer>,
  wasSent: boolean
) {
  const services = yield* Effect.context<Settlement>()
  const writer = yield* Writer
  const prices = yield* pricesOf
  const begin = (one: PayingTransfer) => beginOne(one, wasSent, prices)
  const orTold = (one: PayingTransfer) =>
    Effect.map(Effect.either(begin(one)), (done) =>
      Either.isLeft(done) && done.left instanceof RefundSettled ? [{ refund: one.refund, why: done.left.message }] : []
    )
  const each = Effect.forEach(all, (one) => (wasSent ? orTold(one) : Effect.as(begin(one), [])), {
    concurrency: 1
  })
  return (yield* writer.write(Effect.provide(each, services))).flat()
})

/**
 * Accounts for refunds that a plan has begun: those that transactions have sent, and those that are not sent any more. Gives how
 * many have changed.
 */
export const accountPaying = Effect.fn("Payments.accountRefunds")(function* (
  digest: string,
  sent: ReadonlyArray<{ readonly refund: RefundId; readonly txHash: string }>,
  unsent: ReadonlyArray<RefundId>
) {
  const services = yield* Effect.context<Settlement>()
  const writer = yield* Writer
  const problem = "the broadcast gave it up: it was not sent"
  const changes: ReadonlyArray<readonly [RefundId, Omit<Refunds.RefundChange, "from">]> = [
    ...sent.map(({ refund, txHash }) => [refund, { status: "seen", txHash }] as const),
    ...unsent.map((refund) => [refund, { status: "failed", problem }] as const)
  ]
  return yield* writer.write(
    Effect.gen(function* () {
      let count = 0
      for (const [id, change] of changes) {
        const refund = yield* Refunds.byId(yield* Tx, id)
        if (refund?.plan?.digest !== digest) continue
        if (refund.status !== "begun" && !(refund.status === "failed" && change.status === "seen")) continue
        yield* changed(refund, change.status === "seen" ? { ...change, from: refund.address } : change)
        count += 1
      }
      return count
    }).pipe(Effect.provide(services))
  )
})

/** A refund of an owner; undefined where there is none. */
export const ownRefund = Effect.fnUntraced(function* (db: Db, owner: Owner, id: string) {
  const refund = yield* Refunds.byId(db, id)
  return refund?.account === owner.account && refund.mode === owner.mode ? refund : undefined
})
