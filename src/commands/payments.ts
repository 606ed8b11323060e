import { Args, Command, Options } from "@effect/cli"
import { Effect, Option } from "effect"
import {
  AbandonPayments,
  AcceptPayment,
  type AcceptView,
  type DecisionView,
  type ExceptionView,
  ListExceptions,
  ListPayments,
  type PaymentView,
  RefundedPayment,
  type RefundView,
  ShowPayment,
  type Story
} from "../Control/paymentRequests.ts"
import { chainNames, modes } from "../Domain/Chain.ts"
import { PaymentCurrency } from "../Domain/Currency.ts"
import { notePattern } from "../Domain/Exception.ts"
import { PaymentStatus } from "../Domain/Payment.ts"
import { type ShowAmount, withAmounts } from "./amounts.ts"
import { cancel } from "./cancelPayment.ts"
import { common } from "./commonOptions.ts"
import { attemptLine } from "./deliveries.ts"
import { evidenceOf } from "./evidence.ts"
import { table } from "./Output.ts"
import { account, after, chain, limit, limitOf, mode, moreOf, pageOf, refuse } from "./options.ts"
import { printResult } from "./result.ts"

const shownIn = (payment: PaymentView, show: ShowAmount, amount: string | undefined): string | undefined =>
  amount === undefined ? undefined : show(payment, { ...payment, amount })

const list = Command.make(
  "list",
  {
    ...common,
    account,
    mode: mode.pipe(Options.optional),
    status: Options.choice("status", PaymentStatus.literals).pipe(
      Options.withDescription("Only payments in this state; otherwise all"),
      Options.optional
    ),
    chain: Options.choice("chain", chainNames).pipe(
      Options.withDescription("Only payments on this chain; otherwise on all"),
      Options.optional
    ),
    after: after("payments"),
    limit
  },
  (options) =>
    printResult(
      options,
      "payments list",
      new ListPayments({
        account: options.account,
        modes: Option.match(options.mode, { onNone: () => modes, onSome: (only) => [only] }),
        ...pageOf(options),
        ...Option.match(options.status, { onNone: () => ({}), onSome: (status) => ({ status }) }),
        ...Option.match(options.chain, { onNone: () => ({}), onSome: (chain) => ({ chain }) })
      }),
      withAmounts(options, (listed, show) =>
        table(
          ["ID", "MODE", "STATUS", "REASON", "CHAIN", "AMOUNT", "RECEIVED", "CREATED", "REFERENCE"],
          listed.map((payment) => [
            payment.id,
            payment.mode,
            payment.status,
            payment.failureReason ?? "",
            payment.chain,
            show(payment, payment),
            shownIn(payment, show, payment.amountReceived) ?? "",
            payment.createdAt,
            payment.merchantRef
          ])
        )
      ),
      moreOf(options)
    )
).pipe(Command.withDescription("Show payments, newest first"))

const title = (text: string, lines: ReadonlyArray<string>) =>
  lines.length === 0 ? [`${text}: none`] : [`${text}:`, ...lines.map((line) => `  ${line}`)]

const transactionOf = ({ dust, txHash = "transaction unknown" }: ExceptionView): string =>
  dust === true ? "many small transfers" : txHash

const sentBackOf = (exception: ExceptionView, show: ShowAmount): string | undefined =>
  exception.sentBack === undefined ? undefined : show(exception, { ...exception, amount: exception.sentBack })

const renderException = (exception: ExceptionView, show: ShowAmount): string =>
  `${exception.openedAt}  ${exception.status}  ${exception.kind}  ${show(exception, exception)}  ` +
  `${exception.chain}  ${transactionOf(exception)}  ${exception.id}` +
  (exception.uncorroborated === true ? "  not yet corroborated: no second provider has it" : "") +
  (exception.from === undefined ? "" : `  from ${exception.from}`) +
  (exception.path === undefined ? "" : `  at ${exception.path}`) +
  (exception.sentBack === undefined ? "" : `  after ${sentBackOf(exception, show)} that were sent back`) +
  (exception.resolutionTxHash === undefined ? "" : `  by ${exception.resolutionTxHash}`) +
  (exception.note === undefined ? "" : `  (${exception.note})`)

const renderDust = (sum: Story["dust"][number], amount: string): string =>
  `${sum.transfers} small transfers, ${sum.kind}  ${amount}  ${sum.chain}  ` +
  `up to block ${sum.newestBlock}${sum.corroborated ? "" : "  no second provider has them yet"}`

const renderStory = (story: Story, show: ShowAmount): string => {
  const { deliveries, dust, events, exceptions, payment, receipts, transitions } = story
  const { mode } = payment
  const amounts: Readonly<Record<string, string | undefined>> = {
    amount: show(payment, payment),
    amountReceived: shownIn(payment, show, payment.amountReceived),
    amountRemaining: shownIn(payment, show, payment.amountRemaining)
  }
  return [
    ...Object.entries(payment).map(
      ([key, value]) => `${key}: ${amounts[key] ?? (typeof value === "string" ? value : JSON.stringify(value))}`
    ),
    ...title("receipts", [
      ...(story.olderReceipts === 0 ? [] : [`${story.olderReceipts} older ones: --limit shows more`]),
      ...receipts.map(
        (receipt) =>
          `${receipt.blockTime}  ${show({ ...receipt, mode }, receipt)}  ${receipt.txHash ?? "transaction unknown"}  ` +
          `block ${receipt.blockNumber}${evidenceOf(receipt)}`
      )
    ]),
    ...(dust.length === 0
      ? []
      : title(
          "dust",
          dust.map((sum) => renderDust(sum, show({ ...sum, mode }, sum)))
        )),
    ...title("exceptions", [
      ...exceptions.map((exception) => renderException(exception, show)),
      ...(story.moreExceptions ? ["and more: --limit shows them"] : [])
    ]),
    ...title(
      "transitions",
      transitions.map(({ at, from, to }) => `${at}  ${from} -> ${to}`)
    ),
    ...title(
      "events",
      events.map(({ createdAt, id, kind }) => `${createdAt}  ${kind}  ${id}`)
    ),
    ...title(
      "deliveries",
      deliveries.flatMap((delivery) => [
        `${delivery.status}  ${delivery.id}  ${delivery.kind}  ${delivery.url}` +
          (delivery.nextAttemptAt === undefined ? "" : `  next ${delivery.nextAttemptAt}`),
        ...delivery.attempts.map((attempt) => `  ${attemptLine(attempt)}`)
      ])
    )
  ].join("\n")
}

const shownPayment = Args.text({ name: "PAYMENT" }).pipe(
  Args.withDescription(
    "Its id, pay_…, its address, the hash of a transaction that paid it, or the merchant's reference"
  )
)

const show = Command.make("show", { ...common, of: shownPayment, limit: limitOf(200) }, (options) =>
  printResult(
    options,
    "payments show",
    new ShowPayment({ of: options.of, limit: options.limit }),
    withAmounts(options, renderStory)
  )
).pipe(
  Command.withDescription(
    "Show a payment's history: receipts, exceptions, transitions, events, deliveries and attempts"
  )
)

const renderOpen = (open: ReadonlyArray<ExceptionView>, show: ShowAmount): string =>
  table(
    ["ID", "OPENED", "KIND", "PAYMENT", "MODE", "CHAIN", "AMOUNT", "SENT BACK", "TRANSACTION", "FROM", "ADDRESS"],
    open.map((exception) => [
      exception.id,
      exception.openedAt,
      exception.kind,
      exception.payment ?? "lost",
      exception.mode,
      exception.chain,
      show(exception, exception),
      sentBackOf(exception, show) ?? "",
      exception.dust === true
        ? "dust"
        : `${exception.txHash ?? "unknown"}${exception.uncorroborated === true ? " (not yet corroborated)" : ""}`,
      exception.from ?? "",
      exception.address
    ])
  )

const exceptions = Command.make(
  "exceptions",
  {
    ...common,
    limit: limitOf(100),
    payment: Options.text("payment").pipe(
      Options.withPseudoName("ID"),
      Options.withDescription("Only those of this payment, pay_…"),
      Options.optional
    ),
    after: Options.text("after").pipe(
      Options.withPseudoName("ID"),
      Options.withDescription("The page after the exception with this ID"),
      Options.optional
    )
  },
  (options) =>
    printResult(
      options,
      "payments exceptions",
      new ListExceptions({
        limit: options.limit,
        ...Option.match(options.payment, { onNone: () => ({}), onSome: (payment) => ({ payment }) }),
        ...Option.match(options.after, { onNone: () => ({}), onSome: (after) => ({ after }) })
      }),
      withAmounts(options, (open, show) =>
        open.length < options.limit
          ? renderOpen(open, show)
          : `${renderOpen(open, show)}\nThere may be more: --after ${open.at(-1)?.id}`
      )
    )
).pipe(Command.withDescription("Show the money that needs a decision, found_late and reorged first, then the oldest"))

const decidable = Args.text({ name: "ID" }).pipe(
  Args.withDescription("pay_…, or exc_… for that exception alone, as tilld payments exceptions shows them")
)

const transaction = (description: string) =>
  Options.text("tx").pipe(
    Options.withPseudoName("HASH"),
    Options.withDescription(description),
    Options.mapEffect((hash) =>
      /^0x[0-9a-fA-F]{64}$/.test(hash)
        ? Effect.succeed(hash.toLowerCase())
        : refuse("--tx must be a transaction's hash: 0x and 64 hexadecimal digits")
    ),
    Options.optional
  )

const note = Options.text("note").pipe(
  Options.withPseudoName("TEXT"),
  Options.withDescription("Kept with the decision; the merchant sees it"),
  Options.mapEffect((text) =>
    notePattern.test(text)
      ? Effect.succeed(text)
      : refuse("--note must have 1 to 500 characters, without control characters")
  ),
  Options.optional
)

/** What a decision names, as the requests take it. */
const named = (options: { readonly tx: Option.Option<string>; readonly note: Option.Option<string> }) => ({
  ...Option.match(options.tx, { onNone: () => ({}), onSome: (tx) => ({ tx }) }),
  ...Option.match(options.note, { onNone: () => ({}), onSome: (note) => ({ note }) })
})

const renderDecision = ({ exceptions, payment }: DecisionView, show: ShowAmount): string =>
  [
    ...(payment === undefined ? [] : [`${payment.id} is ${payment.status}`]),
    ...title(
      "exceptions",
      exceptions.map((exception) => renderException(exception, show))
    )
  ].join("\n")

const renderAccepted = ({ denied = [], ...decision }: AcceptView, show: ShowAmount): string =>
  [
    renderDecision(decision, show),
    ...denied.map(
      ({ host, txHash = "coin without a transaction" }) =>
        `${host} denies ${txHash}: look for it in a block explorer before you deliver`
    )
  ].join("\n")

const accept = Command.make(
  "accept",
  {
    ...common,
    id: decidable,
    tx: transaction("The transaction that paid, where tilld does not know it"),
    note
  },
  (options) =>
    printResult(
      options,
      "payments accept",
      new AcceptPayment({ id: options.id, ...named(options) }),
      withAmounts(options, renderAccepted)
    )
).pipe(
  Command.withDescription(
    "Take what has come, however little, as the payment: it becomes confirmed, and its exceptions are closed; or take the money of one exception alone"
  )
)

const renderRefund = ({ closed, ...decision }: RefundView, show: ShowAmount): string =>
  [
    ...title(
      "sent back",
      closed.map((one) => [one.id, one.kind, show(one, one), transactionOf(one)].join("  "))
    ),
    renderDecision(decision, show)
  ].join("\n")

const refunded = Command.make(
  "refunded",
  {
    ...common,
    id: decidable,
    exceptions: Options.text("exception").pipe(
      Options.withPseudoName("EXC_ID"),
      Options.withDescription("An exception whose money you sent back; may be repeated. Needed where several are open"),
      Options.repeated
    ),
    counted: Options.boolean("counted").pipe(
      Options.withDescription(
        "Of the money that counts for the open payment, and of no exception. Needed where it has open exceptions too"
      )
    ),
    amount: Options.text("amount").pipe(
      Options.withPseudoName("AMOUNT"),
      Options.withDescription(
        "How much you sent back of the one exception, or of an open payment's money, in base units, as --json shows them; the rest stays. Needed where more may come"
      ),
      Options.mapEffect((amount) =>
        /^[1-9][0-9]{0,77}$/.test(amount)
          ? Effect.succeed(amount)
          : refuse("--amount must be a whole number of base units, 1 or more")
      ),
      Options.optional
    ),
    tx: transaction("The transaction that sent it back, which is noted as you name it"),
    note
  },
  (options) =>
    printResult(
      options,
      "payments refunded",
      new RefundedPayment({
        id: options.id,
        exceptions: options.exceptions,
        ...(options.counted ? { counted: true } : {}),
        ...named(options),
        ...Option.match(options.amount, { onNone: () => ({}), onSome: (amount) => ({ amount }) })
      }),
      withAmounts(options, renderRefund)
    )
).pipe(
  Command.withDescription(
    "Note that money was sent back: of the exceptions named, of what counts for an open payment, of a payment's only exception, or of one alone"
  )
)

const abandon = Command.make(
  "abandon",
  {
    ...common,
    chain,
    mode,
    token: Options.choice("token", PaymentCurrency.literals).pipe(
      Options.withDescription("Only payments that ask for this; otherwise all"),
      Options.optional
    )
  },
  ({ chain, mode, token, ...options }) =>
    printResult(
      options,
      "payments abandon",
      new AbandonPayments({
        chain,
        mode,
        ...Option.match(token, { onNone: () => ({}), onSome: (token) => ({ token }) })
      }),
      ({ abandoned, givenUp, token }) =>
        `${abandoned} open ${token === undefined ? "" : `${token} `}payments on ${chain}.${mode} have failed` +
        (givenUp === 0 ? "" : `\n${givenUp} transfers there that no second provider has count no more`)
    )
).pipe(
  Command.withDescription(
    "Let every open payment on a chain, or in a token there, fail, and give up what no second provider has on the chain, so that the configuration can drop it"
  )
)

/** `tilld payments`: looks at payments, and decides on their exceptions. */
export const paymentsCommand = Command.make("payments").pipe(
  Command.withDescription("Payments"),
  Command.withSubcommands([list, show, cancel, exceptions, accept, refunded, abandon])
)
