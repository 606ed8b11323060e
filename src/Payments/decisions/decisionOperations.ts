/** What an operator decides on exceptions: money that fits no payment. */
import { Effect, Schema } from "effect"
import { BaseUnits } from "../../Domain/Amount.ts"
import {
  AlreadyDecided,
  DecisionInvalid,
  MoneyNotConfirmed,
  NothingToDecide,
  notePattern,
  type PaymentException,
  RefundUnclear,
  TransactionNotProven
} from "../../Domain/Exception.ts"
import { OperatorException } from "../../Domain/ExceptionObject.ts"
import { must } from "../../lib/annotations.ts"
import { HashField, limitField, maybe, NotFound, otherwise } from "../../Operations/inputFields.ts"
import { withFlag } from "../../Operations/inputText.ts"
import { lazily, operation } from "../../Operations/operation.ts"
import type { Made } from "../operatorDecisions.ts"
import { DecisionView } from "../operatorViews.ts"
import type { Returned } from "./resolve.ts"

const lists = lazily(() => import("../ExceptionListRepo.ts"))
const decisions = lazily(() => import("./resolve.ts"))
const views = lazily(() => import("../paymentHistory.ts"))
const objects = lazily(() => import("../../Domain/ExceptionObject.ts"))
const settings = lazily(() => import("../../Settings.ts"))
const sql = lazily(() => import("../../Sql.ts"))

const isException = (id: string): boolean => id.startsWith("exc_")

const notFound = (id: string) =>
  new NotFound({
    message: `There is no ${isException(id) ? "exception" : "payment"} ${id}: tilld payments list and exceptions show the ids`
  })

const orNotFound = <A>(id: string, decided: A | undefined) =>
  decided === undefined ? notFound(id) : Effect.succeed(decided)

/**
 * `notedTransactions`: how many transactions that its address has sent tilld has noted. `kept`: base units of its currency there
 * that count for the payment. `undecidable`: why it is neither decided on nor sent back yet, and whether --uncorroborated waives
 * that.
 */
const OpenException = Schema.Struct({
  ...OperatorException.fields,
  ...{ notedTransactions: Schema.Number, kept: Schema.String },
  undecidable: maybe(Schema.Struct({ message: Schema.String, isWaivable: Schema.Boolean }))
})

export const listExceptions = operation({
  name: "payments exceptions",
  summary: "Show the money that needs a decision, found_late and reorged first, then the oldest",
  needs: "store",
  input: {
    limit: limitField(100),
    payment: withFlag(maybe(Schema.String), { about: "Only those of this payment, pay_…", value: "ID" }),
    after: withFlag(maybe(Schema.String), { about: "The page after the exception with this ID", value: "ID" })
  },
  output: Schema.Array(OpenException),
  refusals: [NotFound],
  run: Effect.fnUntraced(function* (filter) {
    const payments = yield* lazily(() => import("../PaymentsRepo.ts"))
    const exceptions = yield* lazily(() => import("../ExceptionsRepo.ts"))
    const { open } = yield* lists
    const { operatorException } = yield* objects
    const { Reader } = yield* sql
    const reader = yield* Reader
    const { after, payment } = filter
    // An empty list for an unknown id would read as: no exception is open.
    if (payment && !(yield* payments.byId(reader, payment))) return yield* notFound(payment)
    if (after && !(yield* exceptions.byId(reader, after))) return yield* notFound(after)
    const { transactionsOf } = yield* lazily(() => import("../addresses/CollectedRepo.ts"))
    const { keptBeside } = yield* lazily(() => import("../addresses/ReceivedRepo.ts"))
    const { whyExceptionUndecidable } = yield* lazily(() => import("../undecidable.ts"))
    const { Settings } = yield* settings
    const { chains } = yield* Settings
    const found = yield* open(reader, filter)
    const kept = yield* keptBeside(reader, found)
    const noted = yield* transactionsOf(reader, found.map(operatorException))
    return yield* Effect.forEach(
      found,
      Effect.fnUntraced(function* (one) {
        const undecidable = yield* whyExceptionUndecidable(reader, chains, one)
        const exception = operatorException(one)
        const more = { notedTransactions: noted(exception), kept: `${kept(one)}` }
        return { ...exception, ...more, ...(undecidable && { undecidable }) }
      }),
      { concurrency: 1 }
    )
  })
})

const id = withFlag(Schema.String, {
  about: "pay_…, or exc_… for that exception alone, as tilld payments exceptions shows them",
  value: "ID",
  isArgument: true
})

const note = withFlag(
  maybe(must("have 1 to 500 characters, without control characters", Schema.String.pipe(Schema.pattern(notePattern)))),
  { about: "Kept with the decision; the merchant sees it" }
)

const uncorroborated = withFlag(
  otherwise(Schema.Boolean, () => false),
  { about: "Also what no second provider has: look in a block explorer before" }
)

/** Names the option that a decision lacks. */
const namingOption = <A, E, R>(decision: Effect.Effect<A, E | DecisionInvalid, R>) =>
  Effect.mapError(decision, (error) => {
    if (!(error instanceof DecisionInvalid)) return error
    const { field, message } = error
    return new DecisionInvalid({ field, message: `--${field === "txHash" ? "tx" : field} ${message}` })
  })

export const acceptMoney = operation({
  name: "payments accept",
  summary:
    "Take what has come, however little, as the payment: it becomes confirmed, and its exceptions are closed; or take the money of one exception alone",
  needs: "chains",
  input: {
    id,
    txHash: withFlag(maybe(HashField), {
      about: "The transaction that paid, where tilld does not know it",
      name: "tx",
      value: "HASH"
    }),
    note,
    uncorroborated
  },
  output: DecisionView,
  refusals: [NotFound, NothingToDecide, TransactionNotProven, AlreadyDecided, DecisionInvalid, MoneyNotConfirmed],
  audit: ({ id, note, txHash: tx, uncorroborated }) => ({
    id,
    tx,
    note,
    ...(uncorroborated ? { uncorroborated } : {})
  }),
  run: Effect.fnUntraced(function* ({ id, txHash, ...detail }, _, add) {
    const { accept } = yield* lazily(() => import("../operatorDecisions.ts"))
    const { acceptException, auditedAs } = yield* decisions
    const { decisionView } = yield* views
    const { Settings } = yield* settings
    const terms = yield* Settings
    const onMade = (made: Made) => add(auditedAs(made))
    if (!isException(id)) {
      const accepted = yield* orNotFound(id, yield* accept(id, txHash, detail, () => onMade("repeated")))
      return decisionView(accepted, terms)
    }
    const decision = acceptException(id, undefined, { txHash, ...detail }, (_, made) => Effect.sync(() => onMade(made)))
    const { exception, payment } = yield* orNotFound(id, yield* namingOption(decision))
    return decisionView({ payment, exceptions: [exception] }, terms)
  })
})

/** With the exceptions that the refund is noted with, and their amounts. */
const RefundView = Schema.Struct({ ...DecisionView.fields, closed: Schema.Array(OperatorException) })
export type RefundView = typeof RefundView.Type

export const noteRefund = operation({
  name: "payments refunded",
  summary:
    "Note that money was sent back: of the exceptions named, of what counts for an open payment, of a payment's only exception, or of one alone",
  needs: "store",
  input: {
    id,
    exceptions: withFlag(
      otherwise(Schema.Array(Schema.String), () => []),
      {
        about: "An exception whose money you sent back; may be repeated. Needed where several are open",
        name: "exception",
        value: "EXC_ID"
      }
    ),
    counted: withFlag(
      otherwise(Schema.Boolean, () => false),
      {
        about:
          "Of the money that counts for the open payment, and of no exception. Needed where it has open exceptions too"
      }
    ),
    amount: withFlag(maybe(must("be a whole number of base units, 1 or more", BaseUnits)), {
      about:
        "How much you sent back of the one exception, or of an open payment's money, in base units, as --json shows them; the rest stays. Needed where more may come",
      value: "AMOUNT"
    }),
    txHash: withFlag(maybe(HashField), {
      about: "The transaction that sent it back, which is noted as you name it",
      name: "tx",
      value: "HASH"
    }),
    note,
    uncorroborated
  },
  output: RefundView,
  refusals: [NotFound, NothingToDecide, RefundUnclear, AlreadyDecided, DecisionInvalid, MoneyNotConfirmed],
  audit: ({ amount, counted, exceptions, id, note, txHash: tx, uncorroborated }) => ({
    ...{ id, exceptions, amount, tx, note },
    ...(counted ? { counted } : {}),
    ...(uncorroborated ? { uncorroborated } : {})
  }),
  run: Effect.fnUntraced(function* ({ counted, exceptions, id, note, txHash, uncorroborated, ...sent }, _, add) {
    const { refunded } = yield* lazily(() => import("../refunds.ts"))
    const { auditedAs, closedBy, refundException } = yield* decisions
    const { decisionView } = yield* views
    const { operatorException } = yield* objects
    const { Settings } = yield* settings
    const amount = sent.amount === undefined ? undefined : BigInt(sent.amount)
    const detail = { txHash, note, uncorroborated }
    const onClosed = (closed: ReadonlyArray<PaymentException>, made: Made) => add(auditedAs(made, closed))
    if (!isException(id)) {
      const noted = refunded(id, { exceptions, amount, counted, detail, onClosed })
      const result = yield* orNotFound(id, yield* namingOption(noted))
      return { ...decisionView(result, yield* Settings), closed: result.closed.map(operatorException) }
    }
    if (counted) {
      return yield* new RefundUnclear({
        message: `--counted is for what counts for a payment, and ${id} is an exception: nothing was closed`
      })
    }
    if (exceptions.some((named) => named !== id)) {
      return yield* new RefundUnclear({
        message: `--exception names those of a payment, and ${id} is one alone: nothing was closed`
      })
    }
    const onReturned = (result: Returned, made: Made) => Effect.sync(() => onClosed([closedBy(result)], made))
    const decision = refundException(id, undefined, amount, detail, onReturned)
    const result = yield* orNotFound(id, yield* namingOption(decision))
    const view = decisionView({ payment: result.payment, exceptions: [result.exception] }, yield* Settings)
    return { ...view, closed: [operatorException(closedBy(result))] }
  })
})
