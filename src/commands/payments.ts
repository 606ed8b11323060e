import { Args, Command, Options } from "@effect/cli"
import { Effect, Option } from "effect"
import {
  AbandonPayments,
  AcceptPayment,
  type DecisionView,
  type ExceptionView,
  ListExceptions,
  ListPayments,
  RefundedPayment,
  type RefundView,
  ShowPayment,
  type Story
} from "../Control/paymentRequests.ts"
import { chainNames, modes } from "../Domain/Chain.ts"
import { StatusFilter } from "../Domain/Payment.ts"
import { common } from "./commonOptions.ts"
import { attemptLine } from "./deliveries.ts"
import { table } from "./Output.ts"
import { account, limit, limitOf, mode, refuse } from "./options.ts"
import { printResult } from "./result.ts"

const list = Command.make(
  "list",
  {
    ...common,
    account,
    mode: mode.pipe(Options.optional),
    status: Options.choice("status", StatusFilter.literals).pipe(Options.optional),
    chain: Options.choice("chain", chainNames).pipe(Options.optional),
    limit
  },
  (options) =>
    printResult(
      options,
      "payments list",
      new ListPayments({
        account: options.account,
        modes: Option.match(options.mode, { onNone: () => modes, onSome: (only) => [only] }),
        limit: options.limit,
        ...Option.match(options.status, { onNone: () => ({}), onSome: (status) => ({ status }) }),
        ...Option.match(options.chain, { onNone: () => ({}), onSome: (chain) => ({ chain }) })
      }),
      (paymentsCommand) =>
        table(
          ["ID", "MODE", "STATUS", "CHAIN", "AMOUNT", "CREATED", "REFERENCE"],
          paymentsCommand.map((payment) => [
            payment.id,
            payment.mode,
            payment.status,
            payment.chain,
            `${payment.amount} ${payment.currency}`,
            payment.createdAt,
            payment.merchantRef
          ])
        )
    )
).pipe(Command.withDescription("Show payments, newest first; amounts in base units"))

const title = (text: string, lines: ReadonlyArray<string>) =>
  lines.length === 0 ? [`${text}: none`] : [`${text}:`, ...lines.map((line) => `  ${line}`)]

const transactionOf = ({ dust, txHash = "transaction unknown" }: ExceptionView): string =>
  dust === true ? "many small transfers" : txHash

const renderException = (exception: ExceptionView): string =>
  `${exception.openedAt}  ${exception.status}  ${exception.kind}  ${exception.amount} ${exception.currency}  ` +
  `${exception.chain}  ${transactionOf(exception)}  ${exception.id}` +
  (exception.sentBack === undefined ? "" : `  after ${exception.sentBack} that were sent back`)

const renderDust = (sum: Story["dust"][number]): string =>
  `${sum.transfers} small transfers, ${sum.kind}  ${sum.amount} ${sum.currency}  ${sum.chain}  ` +
  `up to block ${sum.newestBlock}${sum.corroborated ? "" : "  no second provider has them yet"}`

const evidenceOf = ({ corroborated, deniedBy, unverifiable }: Story["receipts"][number]): string => {
  if (corroborated) return ""
  if (deniedBy !== undefined) return `  ${deniedBy} denies it, and no second provider has it`
  return unverifiable === true
    ? "  no second provider has the states or the trace that would tell of it"
    : "  no second provider has it yet"
}

const renderStory = (story: Story): string => {
  const { deliveries, dust, events, exceptions, payment, receipts, transitions } = story
  return [
    ...Object.entries(payment).map(
      ([key, value]) => `${key}: ${typeof value === "string" ? value : JSON.stringify(value)}`
    ),
    ...title("receipts", [
      ...(story.olderReceipts === 0 ? [] : [`${story.olderReceipts} older ones: --limit shows more`]),
      ...receipts.map(
        (receipt) =>
          `${receipt.blockTime}  ${receipt.amount} ${receipt.currency}  ${receipt.txHash ?? "transaction unknown"}  ` +
          `block ${receipt.blockNumber}${receipt.canonical ? "" : "  gone by a reorg"}` +
          evidenceOf(receipt)
      )
    ]),
    ...(dust.length === 0 ? [] : title("dust", dust.map(renderDust))),
    ...title("exceptions", [
      ...exceptions.map(renderException),
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

const id = Args.text({ name: "ID" }).pipe(Args.withDescription("pay_…"))

const show = Command.make("show", { ...common, id, limit: limitOf(200) }, (options) =>
  printResult(options, "payments show", new ShowPayment({ id: options.id, limit: options.limit }), renderStory)
).pipe(
  Command.withDescription(
    "Tell a payment's whole story: receipts, exceptions, transitions, events, deliveries and attempts"
  )
)

const renderOpen = (open: ReadonlyArray<ExceptionView>): string =>
  table(
    ["ID", "OPENED", "KIND", "PAYMENT", "CHAIN", "AMOUNT", "TRANSACTION", "ADDRESS"],
    open.map((exception) => [
      exception.id,
      exception.openedAt,
      exception.kind,
      exception.payment ?? "lost",
      `${exception.chain}.${exception.mode}`,
      `${exception.amount} ${exception.currency}`,
      exception.dust === true ? "dust" : (exception.txHash ?? "unknown"),
      exception.address
    ])
  )

const exceptions = Command.make(
  "exceptions",
  {
    ...common,
    limit: limitOf(100),
    payment: Options.text("payment").pipe(Options.withDescription("Only those of this payment"), Options.optional),
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
      (open) =>
        open.length < options.limit
          ? renderOpen(open)
          : `${renderOpen(open)}\nThere may be more: --after ${open.at(-1)?.id}`
    )
).pipe(
  Command.withDescription(
    "Show the money that needs a person, found_late and reorged first, then the oldest; amounts in base units"
  )
)

const decidable = Args.text({ name: "ID" }).pipe(
  Args.withDescription("pay_…, or exc_… of money whose payment is lost, as tilld payments exceptions shows them")
)

const renderDecision = ({ exceptions, payment }: DecisionView): string =>
  [
    ...(payment === undefined ? [] : [`${payment.id} is ${payment.status}`]),
    ...title("exceptions", exceptions.map(renderException))
  ].join("\n")

const accept = Command.make(
  "accept",
  {
    ...common,
    id: decidable,
    tx: Options.text("tx").pipe(
      Options.withPseudoName("HASH"),
      Options.withDescription("The transaction that paid, where tilld does not know it"),
      Options.mapEffect((hash) =>
        /^0x[0-9a-fA-F]{64}$/.test(hash)
          ? Effect.succeed(hash.toLowerCase())
          : refuse("--tx must be a transaction's hash: 0x and 64 hexadecimal digits")
      ),
      Options.optional
    )
  },
  (options) =>
    printResult(
      options,
      "payments accept",
      new AcceptPayment({
        id: options.id,
        ...Option.match(options.tx, { onNone: () => ({}), onSome: (tx) => ({ tx }) })
      }),
      renderDecision
    )
).pipe(
  Command.withDescription(
    "Take what has come, however little, as the payment: it becomes confirmed, and its exceptions are closed"
  )
)

const renderRefund = ({ closed, ...decision }: RefundView): string =>
  [
    ...title(
      "sent back",
      closed.map((one) => [one.id, one.kind, `${one.amount} ${one.currency}`, transactionOf(one)].join("  "))
    ),
    renderDecision(decision)
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
    amount: Options.text("amount").pipe(
      Options.withPseudoName("AMOUNT"),
      Options.withDescription(
        "How much of the one exception you sent back, in base units; the rest stays open. Needed where its amount may grow"
      ),
      Options.mapEffect((amount) =>
        /^[1-9][0-9]{0,77}$/.test(amount)
          ? Effect.succeed(amount)
          : refuse("--amount must be a whole number of base units, 1 or more")
      ),
      Options.optional
    )
  },
  (options) =>
    printResult(
      options,
      "payments refunded",
      new RefundedPayment({
        id: options.id,
        exceptions: options.exceptions,
        ...Option.match(options.amount, { onNone: () => ({}), onSome: (amount) => ({ amount }) })
      }),
      renderRefund
    )
).pipe(
  Command.withDescription(
    "Note that the money of a payment's exceptions was sent back: of those named, or of the only one"
  )
)

const abandon = Command.make("abandon", { ...common, chain: Options.choice("chain", chainNames), mode }, (options) =>
  printResult(
    options,
    "payments abandon",
    new AbandonPayments({ chain: options.chain, mode: options.mode }),
    ({ abandoned, chain, mode }) => `${abandoned} open payments on ${chain}.${mode} have failed`
  )
).pipe(Command.withDescription("Let every open payment on a chain fail, so that the configuration can drop it"))

export const payments = Command.make("payments").pipe(
  Command.withDescription("Payments"),
  Command.withSubcommands([list, show, exceptions, accept, refunded, abandon])
)
