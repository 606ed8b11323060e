/**
 * Accepting money by hand: what came for a payment, however little, late or of another kind, confirms it; or the money of one of
 * its exceptions does. What is accepted opens no exception again. Everything that a decision changes is one transaction, with its
 * events; the same decision again gives the same result. Called by the HTTP handlers, for their key's owner, and by `tilld
 * payments accept`, for all.
 *
 * A payment is accepted for a transaction that the ledger has, or for one that the operator names: a named one that the ledger
 * does not know is proven on the chain first.
 */
import { Clock, Effect } from "effect"
import { WatchedAddresses } from "../../Chains/ledger/WatchedAddresses.ts"
import { minedTransaction } from "../../Chains/providers/minedTransaction.ts"
import { Networks } from "../../Chains/providers/Networks.ts"
import type { Owner } from "../../Domain/Account.ts"
import { required } from "../../Domain/Amount.ts"
import { type Network, networkKey } from "../../Domain/Chain.ts"
import {
  AlreadyDecided,
  DecisionInvalid,
  type ExceptionContent,
  NothingToDecide,
  type PaymentException,
  TransactionNotProven
} from "../../Domain/Exception.ts"
import { exceptionId } from "../../Domain/Ids.ts"
import type { Payment } from "../../Domain/Payment.ts"
import type { Receipt } from "../../Domain/Receipt.ts"
import { isStanding, RefundUnderWay } from "../../Domain/Refund.ts"
import { Outbox } from "../../Events/Outbox.ts"
import { iso } from "../../lib/moment.ts"
import { Settings } from "../../Settings.ts"
import { type Db, Reader, Tx, Writer } from "../../Sql.ts"
import { endCancelled } from "../cancellation.ts"
import * as Exceptions from "../ExceptionsRepo.ts"
import { credited, withoutApart } from "../exceptionContents.ts"
import * as Repo from "../PaymentsRepo.ts"
import * as Receipts from "../ReceiptsRepo.ts"
import { counted, crossing, withReceived } from "../statusMachine.ts"
import { type Stand, standingOf, storeTransitions } from "../storeTransitions.ts"
import { refuseUndecidable, type Waived, whyExceptionUndecidable, whyUndecidable } from "../undecidable.ts"

/** `repeated`: the decision had been made before. */
export type Made = "decided" | "repeated"

/** The input of a decision; the hash in lower case. */
export type Named = Exceptions.DecisionDetail

/** What is decided on: a payment, or one exception, and its payment, which is undefined where a lost copy of the database had it. */
export interface Subject {
  readonly payment: Payment | undefined
  readonly exception: PaymentException | undefined
}

/** An effect committed with a decision: its failure rolls the decision back. */
export type AlsoCommit<Result, E> = ((result: Result, made: Made) => Effect.Effect<void, E, Tx>) | undefined

/** What an id means, `pay_…` or `exc_…`; with an owner, only of that owner. */
export const subjectOf = Effect.fnUntraced(function* (db: Db, id: string, owner: Owner | undefined) {
  const isOwn = (one: { readonly account: string | undefined; readonly mode: string }) =>
    owner === undefined || (one.account === owner.account && one.mode === owner.mode)
  const exception = id.startsWith("exc_") ? yield* Exceptions.byId(db, id) : undefined
  const of = exception === undefined ? id : exception.payment
  const payment = of === undefined ? undefined : yield* Repo.byId(db, of)
  const found = exception ?? payment
  return found === undefined || !isOwn(found) ? undefined : ({ payment, exception } satisfies Subject)
})

/** The transaction that brought the money of an exception. That of a reorg's exception is the one that it took. */
const broughtBy = ({ kind, txHash }: PaymentException): string | undefined => (kind === "reorged" ? undefined : txHash)

/** Why a closed exception is not decided on again. */
export const decidedAlready = ({ closedAt, decisionTx, id, refunds, status }: PaymentException) => {
  const begun = refunds.find((one) => one.status === "begun")
  if (begun !== undefined) {
    return new RefundUnderWay({
      message: `${id} is being sent back as ${begun.id}, by signed transfers: run tilld sweep broadcast to its end`
    })
  }
  const at = closedAt === undefined ? "" : ` at ${iso(closedAt)}`
  const by = decisionTx === undefined ? "" : `, with the transaction ${decisionTx}`
  return new AlreadyDecided({
    message:
      status === "gone"
        ? `${id} is gone${at}: a reorg took its money back, or it turned out to be something else, so that there is nothing to decide`
        : `${id} was ${status}${at}${by}, and a decision stays as it is: the open exceptions are what is left to decide`
  })
}

/** Whether the exception was accepted by this decision; fails where it was closed by another one. */
const wasAccepted = (exception: PaymentException, { txHash }: Named) => {
  const { decisionTx, status } = exception
  if (status === "open") return Effect.succeed(false)
  const isSame = txHash === undefined || txHash === decisionTx || txHash === broughtBy(exception)
  return status === "accepted" && isSame ? Effect.succeed(true) : decidedAlready(exception)
}

const refuse = (message: string) => new TransactionNotProven({ message })

/** Checks that a transaction succeeded in a block with enough confirmations. Gives the block's number. */
const prove = Effect.fnUntraced(function* (network: Network, hash: string) {
  const { chains } = yield* Settings
  const networks = yield* Networks
  const key = networkKey(network)
  const chain = chains.find((configured) => networkKey(configured) === key)
  if (chain === undefined)
    return yield* refuse(`chains.${key} is not configured: no provider can be asked about ${hash}`)
  const mined = yield* Effect.mapError(minedTransaction(networks.providersOf(network), hash), (error) =>
    refuse(`${key} could not be asked about ${hash}: ${error.message}`)
  )
  if (mined === undefined)
    return yield* refuse(`${key} has no transaction ${hash} in any block: check the hash, and that it is on this chain`)
  if (!mined.succeeded) return yield* refuse(`The transaction ${hash} failed in block ${mined.blockNumber} of ${key}`)
  if (mined.confirmations < chain.confirmations) {
    return yield* refuse(
      `The transaction ${hash} has ${mined.confirmations} of the ${chain.confirmations} confirmations that ${key} asks for: try again later`
    )
  }
  return mined.blockNumber
})

/** Fails where a transaction paid another payment: most likely a mistake. */
const refuseOthers = Effect.fnUntraced(function* (
  id: Payment["id"],
  network: Network,
  blockNumber: number,
  hash: string
) {
  const payee = yield* Receipts.payeeOf(yield* Reader, { id, ...network }, blockNumber, hash)
  if (payee !== undefined) {
    return yield* refuse(`${hash} paid ${payee}, and not ${id}: name the transaction that paid ${id}`)
  }
})

/**
 * Proves a named transaction that the ledger does not have: on the chain of the payment's unattributed money, else on the
 * payment's own. Without unattributed money, a transaction that paid another payment is refused: most likely a mistake.
 */
const proveOfPayment = Effect.fnUntraced(function* (payment: Payment, hash: string) {
  const receipts = yield* Receipts.ofPayment(yield* Reader, payment)
  const canonical = receipts.filter((receipt) => receipt.canonical)
  if (canonical.some((receipt) => receipt.txHash === hash)) return
  const unattributed = canonical.find((receipt) => receipt.txHash === undefined)
  const { chain, id, mode } = payment
  const blockNumber = yield* prove({ chain: unattributed?.chain ?? chain, mode }, hash)
  if (unattributed === undefined) yield* refuseOthers(id, { chain, mode }, blockNumber, hash)
})

/** The same for an exception's money whose transaction is not known. */
const proveOfException = Effect.fnUntraced(function* (
  { exception, payment }: Subject & { readonly exception: PaymentException },
  hash: string,
  waived: Waived
) {
  const { chain, id, kind, mode } = exception
  const known = broughtBy(exception)
  if (hash === known) return
  if (known !== undefined) {
    const message = `must be ${known}, which brought the money of ${id}, or be left out`
    return yield* new DecisionInvalid({ field: "txHash", message })
  }
  const reader = yield* Reader
  const receipts = payment === undefined ? [] : yield* Receipts.ofPayment(reader, payment)
  const its = receipts.filter((receipt) => receipt.canonical && receipt.chain === chain && receipt.txHash === hash)
  if (its.length > 0) return yield* refuseUndecidable(whyUndecidable(reader, hash, its, waived))
  const blockNumber = yield* prove({ chain, mode }, hash)
  // One transaction pays many by moving coins inside contracts, and what came in that way may be unattributed.
  if (payment !== undefined && kind !== "unattributed") {
    yield* refuseOthers(payment.id, { chain, mode }, blockNumber, hash)
  }
})

/** A payment that is confirmed by a decision, with these receipts. `at` in Unix milliseconds. */
const confirmedBy = (payment: Payment, paying: ReadonlyArray<Receipt>, txHash: string, at: number): Payment => ({
  ...withReceived(payment, paying),
  status: "confirmed",
  txHash,
  confirmedAt: at,
  failureReason: undefined,
  endedAt: at
})

/** What a payment that is not confirmed is accepted for: all that counts for it, or that beside the other open exceptions. */
const acceptance = Effect.fnUntraced(function* (
  payment: Payment,
  exception: PaymentException | undefined,
  { exceptions, receipts, refunds, stored }: Stand,
  { txHash: given, uncorroborated }: Named
) {
  const { id } = payment
  const open = stored.filter((one) => one.status === "open" && one.id !== exception?.id)
  const onTime = counted(payment, receipts)
  const paying = exception === undefined ? onTime : withoutApart(onTime, open).receipts
  const isGiven = (one: { readonly txHash: string | undefined }) => given !== undefined && one.txHash === given
  const its = receipts.filter((receipt) => receipt.canonical && isGiven(receipt))
  const due = exception === undefined ? exceptions() : []
  if (exception === undefined) {
    const returned = refunds.filter(isStanding).flatMap(({ parts }) => parts)
    if (paying.length === 0 && due.length === 0) {
      const reason = returned.length > 0 ? `What came for ${id} was sent back` : `No money has come for ${id}`
      return yield* new NothingToDecide({ message: `${reason}: there is nothing to accept` })
    }
    if (its.length === 0 && returned.some(isGiven)) {
      return yield* refuse(`What ${given} brought was sent back: ${id} cannot be accepted for it`)
    }
  }
  const waived = { uncorroborated, isProven: given !== undefined && (exception !== undefined || its.length === 0) }
  const decided = exception === undefined ? [...paying, ...its] : paying
  const what = exception === undefined ? `what came for ${id}` : `what counts for ${id}`
  yield* refuseUndecidable(whyUndecidable(yield* Tx, what, decided, waived))
  const hashes = paying.filter((receipt) => receipt.txHash !== undefined)
  // The transaction that would have confirmed it, else the first. An orphaned one would make the next reorg check undo it.
  const paid =
    exception === undefined
      ? (given ??
        crossing(hashes, required(payment)) ??
        hashes[0]?.txHash ??
        due.find(({ kind, txHash }) => kind !== "reorged" && txHash !== undefined)?.txHash)
      : (broughtBy(exception) ?? given)
  if (paid !== undefined) return { paying, txHash: paid }
  if (exception === undefined) return yield* refuse(`The transaction that paid ${id} is not known: name it with --tx`)
  const message = `must be given: the transaction that paid ${id} is not known`
  return yield* new DecisionInvalid({ field: "txHash", message })
})

/** Whether an opened exception stands for money that is accepted with others: the excess over the payment's amount. */
const isSurplusOf = (accepted: PaymentException | undefined, opened: ExceptionContent): boolean =>
  opened.kind === "overpaid" &&
  (accepted === undefined ||
    (opened.chain === accepted.chain && opened.currency === accepted.currency && opened.txHash === accepted.txHash))

/** Accepts, inside the transaction. Gives whether anything was left to accept. */
const acceptNow = Effect.fnUntraced(function* ({ exception, payment }: Subject, named: Named) {
  const tx = yield* Tx
  const outbox = yield* Outbox
  const matchSet = yield* WatchedAddresses
  const now = yield* Clock.currentTimeMillis
  const stand = payment && (yield* standingOf(payment))
  const open = stand?.stored.filter(({ status }) => status === "open") ?? []
  const meant = exception === undefined ? open : [exception]
  const others = open.filter((one) => !meant.some(({ id }) => id === one.id))
  const isConfirmed = payment?.status === "confirmed"
  // Money orphaned by a reorg confirms nothing: accepting it means to waive it, unless another transaction has paid.
  const confirms = !isConfirmed && (exception?.kind !== "reorged" || named.txHash !== undefined)
  const { txHash, uncorroborated } = named
  const isKnown = stand?.receipts.some((one) => one.canonical && one.txHash === txHash) ?? false
  const isProven = txHash !== undefined && (exception !== undefined || !(isConfirmed || isKnown))
  const waived = { uncorroborated, isProven }
  for (const one of meant) yield* refuseUndecidable(whyExceptionUndecidable(tx, one, waived))
  const accept = (one: PaymentException) => {
    const isNamed = exception !== undefined && broughtBy(one) === undefined
    return Exceptions.accept(one.id, now, isNamed ? named : { note: named.note })
  }
  if (payment === undefined || stand === undefined) {
    for (const one of meant) yield* accept(one)
    return true
  }
  const paid = confirms ? yield* acceptance(payment, exception, stand, named) : undefined
  for (const one of meant) yield* accept(one)
  const accepted =
    paid === undefined
      ? isConfirmed
        ? credited(payment, counted(payment, stand.receipts), meant, others)
        : payment
      : confirmedBy(payment, paid.paying, paid.txHash, now)
  const steps = accepted === payment ? [] : [{ payment: accepted, announced: confirms, isDecision: true }]
  const decide = (opened: ReadonlyArray<ExceptionContent>) =>
    Effect.forEach(
      opened.filter((one) => isSurplusOf(exception, one)),
      (one) => Exceptions.accept(exceptionId(payment.address.toLowerCase(), one.key), now, { note: named.note }),
      { concurrency: 1, discard: true }
    )
  yield* storeTransitions(outbox, { payment, steps, receiptsChanged: true, decide }, now)
  if (confirms && payment.invoice !== undefined) {
    // It is paid: no other choice of it is to be.
    const open = (yield* Repo.ofInvoice(tx, payment.invoice.id)).filter(({ status }) => status === "pending")
    for (const other of open) yield* Effect.orDie(endCancelled(outbox, other))
  }
  // Its address is watched for late money again: the watch since its first end may be over.
  if (confirms) tx.afterCommit(() => matchSet.add(payment.mode, payment.address))
  return confirms || meant.length > 0
})

/**
 * Accepts the money that came for a payment, with all its open exceptions, or the money of one exception: it confirms the
 * payment, with its event, unless that is confirmed already. Undefined where there is no such thing.
 *
 * @param id `pay_…` or `exc_…`
 * @param owner only what is this owner's; undefined: of all
 * @param named its `txHash` is required where the payment is to be confirmed and no transaction is known
 */
export const accept = <E = never>(
  id: string,
  owner: Owner | undefined,
  named: Named,
  alsoCommit?: AlsoCommit<Subject, E>
) =>
  Effect.gen(function* () {
    const services = yield* Effect.context<Settings | Outbox | WatchedAddresses>()
    const reader = yield* Reader
    const writer = yield* Writer
    const seen = yield* subjectOf(reader, id, owner)
    if (seen === undefined) return undefined
    const { txHash } = named
    const wasRepeated = seen.exception !== undefined && (yield* wasAccepted(seen.exception, named))
    if (txHash !== undefined && !wasRepeated) {
      const { exception, payment } = seen
      if (exception !== undefined) yield* proveOfException({ exception, payment }, txHash, named)
      else if (payment !== undefined && payment.status !== "confirmed") yield* proveOfPayment(payment, txHash)
    }
    return yield* writer.write(
      Effect.gen(function* () {
        const tx = yield* Tx
        const subject = (yield* subjectOf(tx, id, owner)) ?? seen
        const { exception } = subject
        const isRepeated = exception !== undefined && (yield* wasAccepted(exception, named))
        // Its transaction was not proven: it was accepted, and has been opened again since.
        if (!isRepeated && wasRepeated) {
          return yield* new AlreadyDecided({
            message: `${id} was accepted, and more money has opened it again at this moment: decide again`
          })
        }
        const made: Made = isRepeated || !(yield* acceptNow(subject, named)) ? "repeated" : "decided"
        const result: Subject = (yield* subjectOf(tx, id, owner)) ?? subject
        if (alsoCommit !== undefined) yield* alsoCommit(result, made)
        return result
      }).pipe(Effect.provide(services))
    )
  }).pipe(Effect.withSpan("Payments.accept"))
