import { Args, Command, Options } from "@effect/cli"
import { Effect, Option } from "effect"
import { chainNames, modes } from "../Domain/Chain.ts"
import { StatusFilter } from "../Domain/Payment.ts"
import { common } from "./Invocation.ts"
import { table } from "./Output.ts"
import { account, mode, refuse } from "./options.ts"
import { ListPayments, ShowPayment, type Story } from "./requests.ts"
import { printResult } from "./result.ts"

const longestPage = 1000

const list = Command.make(
  "list",
  {
    ...common,
    account,
    mode: mode.pipe(Options.optional),
    status: Options.choice("status", StatusFilter.literals).pipe(Options.optional),
    chain: Options.choice("chain", chainNames).pipe(Options.optional),
    limit: Options.integer("limit").pipe(
      Options.withDescription(`How many, 1 to ${longestPage}`),
      Options.withDefault(20),
      Options.mapEffect((limit) =>
        limit >= 1 && limit <= longestPage ? Effect.succeed(limit) : refuse(`--limit must be 1 to ${longestPage}`)
      )
    )
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
      (payments) =>
        table(
          ["ID", "MODE", "STATUS", "CHAIN", "AMOUNT", "CREATED", "REFERENCE"],
          payments.map((payment) => [
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

const renderStory = ({ deliveries, events, payment, receipts, transitions }: Story): string =>
  [
    ...Object.entries(payment).map(
      ([key, value]) => `${key}: ${typeof value === "string" ? value : JSON.stringify(value)}`
    ),
    ...title(
      "receipts",
      receipts.map(
        (receipt) =>
          `${receipt.blockTime}  ${receipt.amount} ${receipt.currency}  ${receipt.txHash}  ` +
          `block ${receipt.blockNumber}${receipt.canonical ? "" : "  gone by a reorg"}`
      )
    ),
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
        `${delivery.status}  ${delivery.event}  ${delivery.url}` +
          (delivery.nextAttemptAt === undefined ? "" : `  next ${delivery.nextAttemptAt}`),
        ...delivery.attempts.map(
          ({ endedAt, error, number, startedAt, status }) =>
            `  ${number}.  ${startedAt} to ${endedAt}  ${status ?? ""}${error === undefined ? "" : ` ${error}`}`
        )
      ])
    )
  ].join("\n")

const show = Command.make(
  "show",
  { ...common, id: Args.text({ name: "ID" }).pipe(Args.withDescription("pay_…")) },
  (options) => printResult(options, "payments show", new ShowPayment({ id: options.id }), renderStory)
).pipe(Command.withDescription("Tell a payment's whole story: receipts, transitions, events, deliveries and attempts"))

export const payments = Command.make("payments").pipe(
  Command.withDescription("Payments"),
  Command.withSubcommands([list, show])
)
