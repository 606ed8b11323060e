/**
 * Decisions on one exception alone, by its id: its money is accepted, or was sent back. Accepting confirms a payment that is
 * not confirmed yet, with the money of this exception; the other exceptions stay as they are. Everything that a decision
 * changes is one transaction, with its events. The same decision again gives the same result. Called by the HTTP handlers,
 * for the exceptions of their key's owner, and by `tilld payments accept` and `refunded`, for all.
 */
import { Clock, Effect } from "effect"
import { Settlement } from "../../Chains/ledger/SettlementTag.ts"
import { WatchedAddresses } from "../../Chains/ledger/WatchedAddresses.ts"
import type { Owner } from "../../Domain/Account.ts"
import {
  AlreadyDecided,
  DecisionInvalid,
  type ExceptionContent,
  mostRefunds,
  NothingToDecide,
  type PaymentException
} from "../../Domain/Exception.ts"
import { exceptionId } from "../../Domain/Ids.ts"
import type { Payment } from "../../Domain/Payment.ts"
import { Outbox } from "../../Events/Outbox.ts"
import { iso } from "../../lib/moment.ts"
import { Settings } from "../../Settings.ts"
import { type Db, Reader, Tx, Writer } from "../../Sql.ts"
import * as Exceptions from "../ExceptionsRepo.ts"
import { credited, withoutApart } from "../exceptionContents.ts"
import { confirmedBy, type Made, prove, refuseOthers } from "../operatorDecisions.ts"
import * as Repo from "../PaymentsRepo.ts"
import * as Receipts from "../ReceiptsRepo.ts"
import { counted } from "../statusMachine.ts"
import { receiptsLeft, storeTransitions } from "../storeTransitions.ts"
import { refuseUndecidable, type Waived, whyExceptionUndecidable, whyUndecidable } from "../undecidable.ts"

// The partial refunds of an exception: which part a refund is, and its amount.

/** The refunded amount of an open exception. */
const returnedOf = (exception: PaymentException, amount: bigint | undefined) => {
  const invalid = (message: string) => new DecisionInvalid({ field: "amount", message })
  if (exception.kind === "reorged") {
    return new NothingToDecide({
      message: `There is no money of ${exception.id} to send back, since a reorg took it: accept it, to do without that money`
    })
  }
  if (amount === undefined) return Effect.succeed(exception.amount)
  if (exception.refunds.length >= mostRefunds && amount < exception.amount) {
    return invalid(`must be all that is open: ${mostRefunds} parts of ${exception.id} were sent back`)
  }
  return amount > exception.amount
    ? invalid(`must be at most ${exception.amount}, which is what is open of ${exception.id}`)
    : Effect.succeed(amount)
}

/** Whether this part was recorded as refunded before; fails where the transaction sent another part. */
const wasReturned = (
  { id, refunds, status }: PaymentException,
  amount: bigint | undefined,
  txHash: string | undefined
) => {
  const noted = txHash === undefined ? undefined : refunds.find((refund) => refund.txHash === txHash)
  if (noted === undefined) return Effect.succeed(false)
  return noted.amount === amount || (amount === undefined && status === "refunded")
    ? Effect.succeed(true)
    : new AlreadyDecided({
        message: `${txHash} is noted already, as a refund of ${id}: name the transaction of what else was sent back`
      })
}

/**
 * The part, recorded without its transaction, that this one completes; undefined where it is another part. The same
 * amount again is taken for the recorded part: an exception must not count as refunded twice.
 */
const partNamed = (
  { id, refunds, status }: PaymentException,
  amount: bigint | undefined,
  txHash: string | undefined
) => {
  const unnamed = txHash === undefined ? [] : refunds.filter((refund) => refund.txHash === undefined)
  if (amount !== undefined) return Effect.succeed(unnamed.find((refund) => refund.amount === amount))
  const [part, another] = status === "refunded" ? unnamed : []
  return another === undefined
    ? Effect.succeed(part)
    : new DecisionInvalid({
        field: "amount",
        message: `must be given: ${unnamed.length} parts of ${id} are noted without their transactions`
      })
}

/** The input of a decision; the hash in lower case. */
export type Named = Exceptions.DecisionDetail

/** An exception after a decision, and its payment, which is undefined where a lost copy of the database had it. */
export interface Resolved {
  readonly exception: PaymentException
  readonly payment: Payment | undefined
}

/** The exception of that id; with an owner, only of that owner. */
const find = (db: Db, id: string, owner: Owner | undefined) =>
  Effect.map(Exceptions.byId(db, id), (found) =>
    owner === undefined || (found?.account === owner.account && found.mode === owner.mode) ? found : undefined
  )

const decidedAlready = ({ closedAt, decisionTx, id, status }: PaymentException) => {
  const at = closedAt === undefined ? "" : ` at ${iso(closedAt)}`
  const by = decisionTx === undefined ? "" : `, with the transaction ${decisionTx}`
  return new AlreadyDecided({
    message:
      status === "gone"
        ? `${id} is gone${at}: a reorg took its money back, or it turned out to be something else, so that there is nothing to decide`
        : `${id} was ${status}${at}${by}, and a decision stays as it is: the open exceptions are what is left to decide`
  })
}

const openedAgain = (id: string) =>
  new AlreadyDecided({ message: `${id} was accepted, and more money has opened it again at this moment: decide again` })

/** The transaction that brought its money; undefined where that is not known, and where a reorg has taken the money. */
const broughtBy = ({ kind, txHash }: PaymentException): string | undefined => (kind === "reorged" ? undefined : txHash)

/** Whether the exception was closed by this decision; fails where it was closed by another one. */
const wasMade = (exception: PaymentException, outcome: "accepted" | "refunded", { txHash }: Named) => {
  const { decisionTx, status } = exception
  if (status === "open") return Effect.succeed(false)
  const own = outcome === "accepted" ? broughtBy(exception) : undefined
  const isSame = status === outcome && (txHash === undefined || txHash === decisionTx || txHash === own)
  return isSame ? Effect.succeed(true) : decidedAlready(exception)
}

/** What the audit log adds to the request of a decision: what it closed, or that it is not the first. */
export const auditedAs = (made: Made, closed: ReadonlyArray<PaymentException> = []) => {
  if (made !== "decided") return { [made]: true }
  return closed.length === 0 ? {} : { closed: closed.map((one) => `${one.id}: ${one.amount} ${one.currency}`) }
}

/** An effect committed with a decision: its failure rolls the decision back. */
type AlsoCommit<Result, E> = ((result: Result, made: Made) => Effect.Effect<void, E, Tx>) | undefined

/** The stored state now. */
const storedNow = Effect.fnUntraced(function* (before: PaymentException) {
  const tx = yield* Tx
  const payment = before.payment === undefined ? undefined : yield* Repo.byId(tx, before.payment)
  return { exception: (yield* Exceptions.byId(tx, before.id)) ?? before, payment } satisfies Resolved
})

/** Proves the named transaction of money whose transaction is not known. */
const proveNamed = Effect.fnUntraced(function* (
  exception: PaymentException,
  named: string | undefined,
  waived: Waived
) {
  const { chain, id, kind, mode, payment } = exception
  const known = broughtBy(exception)
  if (named === undefined || named === known) return
  if (known !== undefined) {
    const message = `must be ${known}, which brought the money of ${id}, or be left out`
    return yield* new DecisionInvalid({ field: "txHash", message })
  }
  const reader = yield* Reader
  const receipts = payment === undefined ? [] : yield* Receipts.ofTransaction(reader, payment, named)
  const its = receipts.filter((receipt) => receipt.chain === chain)
  const { chains } = yield* Settings
  if (its.length > 0) return yield* refuseUndecidable(whyUndecidable(reader, chains, named, its, waived))
  const blockNumber = yield* prove({ chain, mode }, named)
  // One transaction pays many by moving coins inside contracts, and what came in that way may be unattributed.
  if (payment !== undefined && kind !== "unattributed") {
    yield* refuseOthers({ id: payment }, { chain, mode }, blockNumber, named)
  }
})

/** The payment as it is once the money of one exception is accepted, which is closed already. */
const acceptedFor = Effect.fnUntraced(function* (
  payment: Payment,
  exception: PaymentException,
  { txHash: named, uncorroborated }: Named,
  at: number
) {
  const tx = yield* Tx
  const { chains } = yield* Settings
  const open = (yield* Exceptions.ofPayment(tx, payment.id)).filter(({ status }) => status === "open")
  const onTime = counted(payment, yield* receiptsLeft(payment))
  if (payment.status === "confirmed") return credited(payment, onTime, [exception], open)
  const txHash = broughtBy(exception) ?? named
  if (txHash === undefined) {
    const message = `must be given: the transaction that paid ${payment.id} is not known`
    return yield* new DecisionInvalid({ field: "txHash", message })
  }
  // The other money of an open payment counts as received from then on.
  const { receipts } = withoutApart(payment, onTime, open)
  const waived = { uncorroborated, isProven: named !== undefined }
  yield* refuseUndecidable(whyUndecidable(tx, chains, `what counts for ${payment.id}`, receipts, waived))
  return confirmedBy(payment, receipts, txHash, at)
})

/** Whether an opened exception stands for money of an accepted one: the excess over the payment's amount. */
const isSurplusOf = (accepted: PaymentException, opened: ExceptionContent): boolean =>
  opened.kind === "overpaid" &&
  opened.chain === accepted.chain &&
  opened.currency === accepted.currency &&
  opened.txHash === accepted.txHash

const acceptOpen = Effect.fnUntraced(function* (
  exception: PaymentException,
  named: Named,
  outbox: Outbox["Type"],
  matchSet: WatchedAddresses["Type"]
) {
  const tx = yield* Tx
  const now = yield* Clock.currentTimeMillis
  const { address, id, kind } = exception
  yield* Exceptions.close(id, "accepted", now, broughtBy(exception) === undefined ? named : { note: named.note })
  const payment = exception.payment && (yield* Repo.byId(tx, exception.payment))
  if (payment === undefined) return
  // Money orphaned by a reorg confirms nothing: accepting it means to waive it, unless another transaction has paid.
  const isMoney = kind !== "reorged" || named.txHash !== undefined
  const accepted = isMoney ? yield* acceptedFor(payment, exception, named, now) : payment
  const confirms = accepted.status !== payment.status
  const steps = accepted === payment ? [] : [{ payment: accepted, announced: confirms, isDecision: true }]
  const decide = (opened: ReadonlyArray<ExceptionContent>) =>
    Effect.forEach(
      opened.filter((one) => isSurplusOf(exception, one)),
      ({ key }) => Exceptions.close(exceptionId(address, key), "accepted", now),
      { concurrency: 1, discard: true }
    )
  yield* storeTransitions(outbox, { payment, steps, receiptsChanged: true, decide }, now)
  // Its address is watched for late money again: the watch since its first end may be over.
  if (confirms) tx.afterCommit(() => matchSet.add(payment.mode, payment.address))
})

/**
 * Accepts the money of an exception. Undefined where there is no such exception.
 *
 * @param owner only exceptions of this owner; undefined: of all
 * @param named its `txHash` is required where the payment is to be confirmed and the exception has none
 */
export const acceptException = <E = never>(
  id: string,
  owner: Owner | undefined,
  named: Named,
  alsoCommit?: AlsoCommit<Resolved, E>
) =>
  Effect.gen(function* () {
    const reader = yield* Reader
    const writer = yield* Writer
    const outbox = yield* Outbox
    const matchSet = yield* WatchedAddresses
    const settings = yield* Settings
    const seen = yield* find(reader, id, owner)
    if (seen === undefined) return undefined
    const isRepeated = yield* wasMade(seen, "accepted", named)
    const { txHash, uncorroborated } = named
    if (!isRepeated) yield* proveNamed(seen, txHash, { uncorroborated })
    return yield* writer.write(
      Effect.gen(function* () {
        const exception = (yield* find(yield* Tx, id, owner)) ?? seen
        const made: Made = (yield* wasMade(exception, "accepted", named)) ? "repeated" : "decided"
        if (made === "decided") {
          // No transaction was proven for it.
          if (isRepeated) return yield* openedAgain(id)
          const waived = { uncorroborated, isProven: txHash !== undefined }
          yield* refuseUndecidable(whyExceptionUndecidable(yield* Tx, settings.chains, exception, waived))
          yield* acceptOpen(exception, named, outbox, matchSet)
        }
        const result = yield* storedNow(exception)
        if (alsoCommit !== undefined) yield* alsoCommit(result, made)
        return result
      }).pipe(Effect.provideService(Settings, settings))
    )
  }).pipe(Effect.withSpan("Payments.acceptException"))

/** A refund, with its amount in base units. */
export interface Returned extends Resolved {
  readonly amount: bigint
}

/** The refunded part of an exception. */
export const closedBy = ({ amount, exception }: Returned): PaymentException => ({ ...exception, amount })

/**
 * Records a refund of an exception's money, with its transaction, which is not checked. Undefined where there is no
 * such exception.
 *
 * @param amount base units; undefined: all of it
 */
export const refundException = <E = never>(
  id: string,
  owner: Owner | undefined,
  amount: bigint | undefined,
  named: Named,
  alsoCommit?: AlsoCommit<Returned, E>
) =>
  Effect.gen(function* () {
    const { uncorroborated } = named
    const reader = yield* Reader
    const writer = yield* Writer
    const settlement = yield* Settlement
    const { chains } = yield* Settings
    const seen = yield* find(reader, id, owner)
    if (seen === undefined) return undefined

    const noteReturned = Effect.fnUntraced(function* (exception: PaymentException) {
      const now = yield* Clock.currentTimeMillis
      const returned = yield* returnedOf(exception, amount)
      yield* refuseUndecidable(whyExceptionUndecidable(yield* Tx, chains, exception, { uncorroborated }))
      yield* Exceptions.sendBack(exception, returned, now, named)
      const payment = exception.payment && (yield* Repo.byId(yield* Tx, exception.payment))
      if (payment !== undefined) yield* settlement.sentBack(payment)
      return returned
    })

    /** The decision. If it names the transaction of a part recorded without one, it adds that. */
    const madeOf = Effect.fnUntraced(function* (exception: PaymentException) {
      if (yield* wasReturned(exception, amount, named.txHash)) return "repeated"
      const part = yield* partNamed(exception, amount, named.txHash)
      if (part === undefined || named.txHash === undefined) {
        return (yield* wasMade(exception, "refunded", named)) ? "repeated" : "decided"
      }
      yield* Exceptions.nameRefund(exception, part, named.txHash)
      return "completed"
    })

    return yield* writer.write(
      Effect.gen(function* () {
        const exception = (yield* find(yield* Tx, id, owner)) ?? seen
        const made = yield* madeOf(exception)
        const returned = made === "decided" ? yield* noteReturned(exception) : (amount ?? exception.amount)
        const result: Returned = { ...(yield* storedNow(exception)), amount: returned }
        if (alsoCommit !== undefined) yield* alsoCommit(result, made)
        return result
      })
    )
  }).pipe(Effect.withSpan("Payments.refundException"))
