/** What an operator does with payments: look at them, cancel one, give up those of a chain. */
import { Effect, Schema } from "effect"
import { mustExist } from "../Auth/accountOperations.ts"
import { UnknownAccount } from "../Domain/Account.ts"
import { ChainName, chainNames, Mode, modes } from "../Domain/Chain.ts"
import { PaymentCurrency } from "../Domain/Currency.ts"
import { type Payment, PaymentNotPending, PaymentStatus } from "../Domain/Payment.ts"
import { alternatives, must } from "../lib/annotations.ts"
import { defaultPageSize } from "../lib/parameters.ts"
import {
  AccountField,
  ChainField,
  limitField,
  ModeField,
  maybe,
  NotFound,
  pageFields,
  SomeMode
} from "../Operations/inputFields.ts"
import { operation, withFlag } from "../Operations/operation.ts"
import { Settings } from "../Settings.ts"
import { Reader } from "../Sql/Db.ts"
import { abandon, cancelPayment } from "./cancellation.ts"
import * as PaymentListRepo from "./PaymentListRepo.ts"
import * as PaymentsRepo from "./PaymentsRepo.ts"
import { OperatorPayment, operatorPayment, paymentHistoryOf, Story } from "./paymentHistory.ts"

/** Several payments have that reference or transaction: `message` lists them. */
export class SeveralPayments extends Schema.TaggedError<SeveralPayments>()("SeveralPayments", {
  message: Schema.String
}) {}

const noPayment = (id: string) =>
  new NotFound({
    message: id.startsWith("inv_")
      ? `No payment is chosen for ${id} yet, or there is no such invoice: open its page and choose, or see tilld invoices list`
      : `There is no payment ${id}: tilld payments list and exceptions show the ids`
  })

export const listPayments = operation({
  name: "payments list",
  summary: "Show payments, newest first",
  input: {
    account: AccountField,
    mode: SomeMode,
    status: withFlag(maybe(must(`be ${alternatives(PaymentStatus.literals)}`, PaymentStatus)), {
      about: "Only payments in this state; otherwise all"
    }),
    chain: withFlag(maybe(must(`be one of ${chainNames.join(", ")}`, ChainName)), {
      about: "Only payments on this chain; otherwise on all"
    }),
    search: withFlag(maybe(Schema.String), {
      about:
        "Only payments that this names: an id (pay_, quote_, exc_, ref_), a checkout link, an address or who paid from it, a transaction, a reference, or a value in the metadata"
    }),
    ...pageFields("payments", defaultPageSize)
  },
  output: Schema.Array(OperatorPayment),
  refusals: [UnknownAccount, NotFound],
  run: Effect.fnUntraced(function* ({ account, after, chain, limit, mode: only, search, status }) {
    yield* mustExist(account)
    const reader = yield* Reader
    const last = after === undefined ? undefined : yield* PaymentsRepo.byId(reader, after)
    if (after !== undefined && last === undefined) return yield* noPayment(after)
    const pages = yield* Effect.forEach(
      modes.filter((mode) => mode === (only ?? mode)),
      (mode) => PaymentListRepo.list(reader, { account, mode }, { status, chain, search, limit, after: last }),
      { concurrency: 1 }
    )
    const newestFirst = pages.flat().sort((a, b) => b.createdAt - a.createdAt || b.sequence - a.sequence)
    const terms = yield* Settings
    return newestFirst.slice(0, limit).map((payment) => operatorPayment(payment, terms))
  })
})

/** Payments that the message lists where several are meant. */
const mostListed = 20

const several = (of: string, payments: ReadonlyArray<Payment>) => {
  const each = payments
    .slice(0, mostListed)
    .map(({ account, id, merchantRef, mode, status }) => [id, account, mode, status, merchantRef].join("  "))
  const rest = payments.length > mostListed ? ["and more"] : []
  return new SeveralPayments({
    message: [`${of} stands for several payments: name one by its id`, ...each, ...rest].join("\n  ")
  })
}

export const showPayment = operation({
  name: "payments show",
  summary: "Show a payment's history: receipts, exceptions, transitions, events, deliveries and attempts",
  input: {
    of: withFlag(Schema.String, {
      about:
        "Its id, pay_…, or that of its invoice, quote, exception or refund, its address or checkout link, the hash of a transaction that paid it, or the merchant's reference",
      value: "PAYMENT",
      isArgument: true
    }),
    limit: limitField(200)
  },
  output: Story,
  refusals: [NotFound, SeveralPayments],
  run: Effect.fnUntraced(function* ({ limit, of }) {
    const reader = yield* Reader
    const [payment, ...others] = yield* PaymentListRepo.meantBy(reader, of, mostListed + 1)
    if (payment === undefined) return yield* noPayment(of)
    if (others.length > 0) return yield* several(of, [payment, ...others])
    return yield* paymentHistoryOf(reader, payment, limit)
  })
})

export const cancelOpenPayment = operation({
  name: "payments cancel",
  summary:
    "End an open payment now. What came for it is an exception, and so is what still comes: its address stays watched",
  input: {
    id: withFlag(Schema.String, {
      about: "The payment, pay_…, as tilld payments list shows it",
      value: "ID",
      isArgument: true
    })
  },
  output: OperatorPayment,
  refusals: [NotFound, PaymentNotPending],
  audit: ({ id }) => ({ id }),
  run: Effect.fnUntraced(function* ({ id }) {
    const cancelled = yield* cancelPayment((db) => PaymentsRepo.byId(db, id))
    return cancelled === undefined ? yield* noPayment(id) : operatorPayment(cancelled.payment, yield* Settings)
  })
})

export const abandonPayments = operation({
  name: "payments abandon",
  summary:
    "Let every open payment on a chain, or in a token there, fail, and give up what no second provider has on the chain, so that the configuration can drop it",
  input: {
    chain: ChainField,
    mode: ModeField,
    token: withFlag(maybe(must(`be ${alternatives(PaymentCurrency.literals)}`, PaymentCurrency)), {
      about: "Only payments that ask for this; otherwise all"
    })
  },
  output: Schema.Struct({
    chain: ChainName,
    mode: Mode,
    token: maybe(PaymentCurrency),
    abandoned: Schema.Int,
    givenUp: Schema.Int
  }),
  refusals: [],
  audit: (given) => ({ ...given }),
  run: Effect.fnUntraced(function* ({ chain, mode, token }) {
    return { chain, mode, ...(token === undefined ? {} : { token }), ...(yield* abandon({ chain, mode }, token)) }
  })
})
