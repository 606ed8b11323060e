/** What an operator decides on money: that it is accepted, or goes back. */
import { Effect, Schema } from "effect"
import { mustExist } from "../../Auth/accountOperations.ts"
import { UnknownAccount } from "../../Domain/Account.ts"
import { BaseUnits } from "../../Domain/Amount.ts"
import { ChainName, chainNames, Mode } from "../../Domain/Chain.ts"
import {
  AlreadyDecided,
  DecisionInvalid,
  MoneyNotConfirmed,
  NothingToDecide,
  notePattern,
  OperatorException,
  operatorException,
  TransactionNotProven
} from "../../Domain/Exception.ts"
import {
  type Refund,
  RefundObject,
  RefundSettled,
  RefundStatus,
  RefundUnderWay,
  refundObject
} from "../../Domain/Refund.ts"
import { alternatives, must } from "../../lib/annotations.ts"
import { defaultPageSize } from "../../lib/parameters.ts"
import {
  AccountField,
  HashField,
  limitField,
  ModeField,
  maybe,
  NotFound,
  otherwise,
  pageFields
} from "../../Operations/inputFields.ts"
import { operation, withFlag } from "../../Operations/operation.ts"
import { Settings } from "../../Settings.ts"
import { Reader } from "../../Sql/Db.ts"
import * as ExceptionsRepo from "../ExceptionsRepo.ts"
import * as PaymentsRepo from "../PaymentsRepo.ts"
import { DecisionView, decisionView } from "../paymentHistory.ts"
import * as RefundsRepo from "../RefundsRepo.ts"
import { whyExceptionUndecidable } from "../undecidable.ts"
import { accept } from "./accept.ts"
import { dropRefund, nameRefund, noteRefund } from "./refund.ts"

const nounOf = (id: string) => (id.startsWith("exc_") ? "exception" : id.startsWith("ref_") ? "refund" : "payment")

const notFound = (id: string) =>
  new NotFound({
    message: `There is no ${nounOf(id)} ${id}: tilld payments list, exceptions and refunds show the ids`
  })

const orNotFound = <A>(id: string, decided: A | undefined) =>
  decided === undefined ? notFound(id) : Effect.succeed(decided)

/** `undecidable`: why it is neither decided on nor sent back yet, and whether --uncorroborated waives that. */
const OpenException = Schema.Struct({
  ...OperatorException.fields,
  undecidable: maybe(Schema.Struct({ message: Schema.String, isWaivable: Schema.Boolean }))
})

export const listExceptions = operation({
  name: "payments exceptions",
  summary: "Show the money that needs a decision, found_late and reorged first, then the oldest",
  input: {
    limit: limitField(100),
    payment: withFlag(maybe(Schema.String), { about: "Only those of this payment, pay_…", value: "ID" }),
    after: withFlag(maybe(Schema.String), { about: "The page after the exception with this ID", value: "ID" })
  },
  output: Schema.Array(OpenException),
  refusals: [NotFound],
  run: Effect.fnUntraced(function* (filter) {
    const reader = yield* Reader
    const { after, payment } = filter
    // An empty list for an unknown id would read as: no exception is open.
    if (payment && !(yield* PaymentsRepo.byId(reader, payment))) return yield* notFound(payment)
    if (after && !(yield* ExceptionsRepo.byId(reader, after))) return yield* notFound(after)
    return yield* Effect.forEach(
      yield* ExceptionsRepo.open(reader, filter),
      Effect.fnUntraced(function* (one) {
        const undecidable = yield* whyExceptionUndecidable(reader, one)
        return { ...operatorException(one), ...(undecidable && { undecidable }) }
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
  refusals: [
    NotFound,
    NothingToDecide,
    TransactionNotProven,
    AlreadyDecided,
    DecisionInvalid,
    MoneyNotConfirmed,
    RefundUnderWay
  ],
  audit: ({ id, note, txHash: tx, uncorroborated }) => ({
    id,
    tx,
    note,
    ...(uncorroborated ? { uncorroborated } : {})
  }),
  run: Effect.fnUntraced(function* ({ id, ...named }, _, add) {
    const decision = accept(id, undefined, named, (_, made) =>
      Effect.sync(() => made === "repeated" && add({ repeated: true }))
    )
    const accepted = yield* orNotFound(id, yield* namingOption(decision))
    return yield* decisionView(accepted, yield* Settings)
  })
})

/** `merchantRef`: of its payment, unless the database has lost that. */
const OperatorRefund = Schema.Struct({ ...RefundObject.fields, mode: Mode, merchantRef: maybe(Schema.String) })

const RefundView = Schema.Struct({ ...DecisionView.fields, refund: OperatorRefund })
export type RefundView = typeof RefundView.Type

export const refundMoney = operation({
  name: "payments refunded",
  summary:
    "Record that money goes back: of a payment, what is open first, then what counts; or of one exception. Or name the transaction of a refund",
  input: {
    id: withFlag(Schema.String, {
      about: "pay_…, exc_… for that exception alone, or ref_… for a refund that was recorded without its transaction",
      value: "ID",
      isArgument: true
    }),
    amount: withFlag(maybe(must("be a whole number of base units, 1 or more", BaseUnits)), {
      about: "How much, in base units, as --json shows them; otherwise all of the exception",
      value: "AMOUNT"
    }),
    currency: withFlag(maybe(Schema.String), {
      about: "Which of a payment's money; otherwise its own",
      value: "TOKEN"
    }),
    chain: withFlag(maybe(must(`be one of ${chainNames.join(", ")}`, ChainName)), {
      about: "On which chain the money is; otherwise the payment's"
    }),
    to: withFlag(
      maybe(
        must("be an address: 0x and 40 hexadecimal digits", Schema.String.pipe(Schema.pattern(/^0x[0-9a-fA-F]{40}$/)))
      ),
      { about: "Who gets it: tilld sweep plan --refund sends it there", value: "ADDRESS" }
    ),
    txHash: withFlag(maybe(HashField), {
      about: "The transaction that sends it, which is looked up on the chain",
      name: "tx",
      value: "HASH"
    }),
    note,
    uncorroborated
  },
  output: RefundView,
  refusals: [
    NotFound,
    NothingToDecide,
    AlreadyDecided,
    DecisionInvalid,
    MoneyNotConfirmed,
    RefundUnderWay,
    RefundSettled
  ],
  audit: ({ amount, chain, currency, id, note, to, txHash: tx, uncorroborated }) => ({
    ...{ id, amount, chain, currency, to, tx, note },
    ...(uncorroborated ? { uncorroborated } : {})
  }),
  run: Effect.fnUntraced(function* ({ id, ...request }, _, add) {
    const terms = yield* Settings
    if (id.startsWith("ref_")) {
      const { txHash } = request
      if (txHash === undefined) return yield* new DecisionInvalid({ field: "txHash", message: "--tx must be given" })
      const refund = yield* orNotFound(id, yield* nameRefund(id, undefined, txHash))
      const subject = { payment: yield* paymentOf(refund), exception: undefined }
      return { ...(yield* decisionView(subject, terms)), refund: yield* operatorRefund(refund) }
    }
    const amount = request.amount === undefined ? undefined : BigInt(request.amount)
    const noted = noteRefund(id, undefined, { ...request, amount, to: request.to?.toLowerCase() }, ({ refund }, made) =>
      Effect.sync(() => add({ refund: refund.id, ...(made === "repeated" ? { made } : {}) }))
    )
    const result = yield* orNotFound(id, yield* namingOption(noted))
    return { ...(yield* decisionView(result, terms)), refund: yield* operatorRefund(result.refund) }
  })
})

/** The payment of a refund, unless the database has lost it. */
const paymentOf = Effect.fnUntraced(function* ({ payment }: Refund) {
  return payment === undefined ? undefined : yield* PaymentsRepo.byId(yield* Reader, payment)
})

const operatorRefund = Effect.fnUntraced(function* (refund: Refund) {
  const payment = yield* paymentOf(refund)
  return { ...refundObject(refund), mode: refund.mode, ...(payment && { merchantRef: payment.merchantRef }) }
})

export const listRefunds = operation({
  name: "refunds list",
  summary: "Show refunds, newest first",
  input: {
    account: AccountField,
    mode: ModeField,
    status: withFlag(maybe(must(`be ${alternatives(RefundStatus.literals)}`, RefundStatus)), {
      about: "Only those in this state"
    }),
    payment: withFlag(maybe(Schema.String), { about: "Only those of this payment, pay_…", value: "ID" }),
    ...pageFields("refunds", defaultPageSize)
  },
  output: Schema.Array(OperatorRefund),
  refusals: [UnknownAccount, NotFound],
  run: Effect.fnUntraced(function* ({ account, after, mode, ...filter }) {
    yield* mustExist(account)
    const reader = yield* Reader
    const last = after === undefined ? undefined : yield* RefundsRepo.byId(reader, after)
    if (after !== undefined && last === undefined) return yield* notFound(after)
    const listed = yield* RefundsRepo.list(reader, { account, mode }, { ...filter, after: last })
    return yield* Effect.forEach(listed, operatorRefund)
  })
})

export const dropUnmade = operation({
  name: "refunds drop",
  summary: "Drop a refund that was not made: its money is open again, or counts again",
  input: { id: withFlag(Schema.String, { about: "The refund, ref_…", value: "ID", isArgument: true }) },
  output: OperatorRefund,
  refusals: [NotFound, RefundUnderWay, RefundSettled],
  audit: ({ id }) => ({ id }),
  run: Effect.fnUntraced(function* ({ id }) {
    return yield* operatorRefund(yield* orNotFound(id, yield* dropRefund(id, undefined)))
  })
})
