import { Command } from "@effect/cli"
import { Effect } from "effect"
import { listTokens } from "../Chains/repairOperations.ts"
import { decimalsOn, formatAmount, type NamedNetwork } from "../Domain/Currency.ts"
import type { OperatorException } from "../Domain/Exception.ts"
import {
  acceptMoney,
  dropUnmade,
  listExceptions,
  listRefunds,
  type RefundView,
  refundMoney
} from "../Payments/decisions/decisionOperations.ts"
import { type DecisionView, type Story, whyUncounted } from "../Payments/paymentHistory.ts"
import { abandonPayments, cancelOpenPayment, listPayments, showPayment } from "../Payments/paymentOperations.ts"
import { ask, type ControlTarget } from "./askDaemon.ts"
import { table } from "./Output.ts"
import { commandOf, moreAfter } from "./operationCommand.ts"
import { attemptLine } from "./webhooks.ts"

/** What has an amount of base units: a receipt, an exception, a credit. */
interface Amount {
  readonly currency: string
  readonly amount: string
}

/** Words an amount on a network for people, see `formatAmount`. */
type ShowAmount = (network: NamedNetwork, amount: Amount) => string

/**
 * How amounts are shown: with the decimals of the configuration, which only the daemon may be able to read. In base units
 * where the daemon is of a version that does not tell them: wrong decimals would be worse.
 */
export const amountsAt = Effect.fn("commands.amountsAt")(function* (place: ControlTarget) {
  const networks = yield* "socket" in place
    ? Effect.orElseSucceed(ask(place, listTokens, {}), () => undefined)
    : Effect.succeed(place.chains)
  const show: ShowAmount = (network, { amount, currency }) =>
    formatAmount(amount, currency, networks && decimalsOn(networks, network, currency))
  return show
})

/** Words a result that has amounts. */
const withAmounts =
  <A>(render: (result: A, show: ShowAmount) => string) =>
  (result: A, _: unknown, place: ControlTarget) =>
    Effect.map(amountsAt(place), (show) => render(result, show))

/** Why a receipt does not count, or what is missing until it is corroborated; empty for one that is. */
const evidenceOf = (receipt: Story["receipts"][number]): string => {
  const { canonical, corroborated, deniedBy, unverifiable } = receipt
  if (!canonical) return `  does not count: ${whyUncounted(receipt)}`
  if (corroborated) return ""
  if (deniedBy !== undefined) return `  ${deniedBy} denies it, and no second provider has it`
  return unverifiable === true
    ? "  no second provider has the states or the trace that would show it"
    : "  no second provider has it yet"
}

/** Another amount of what a payment asks for, or an exception has. */
const shownIn = (of: NamedNetwork & Amount, show: ShowAmount, amount: string | undefined): string | undefined =>
  amount === undefined ? undefined : show(of, { ...of, amount })

const list = commandOf(listPayments, {
  print: withAmounts((listed, show) =>
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
  explain: moreAfter
})

const title = (text: string, lines: ReadonlyArray<string>) =>
  lines.length === 0 ? [`${text}: none`] : [`${text}:`, ...lines.map((line) => `  ${line}`)]

const sentBackOf = (exception: OperatorException, show: ShowAmount): string | undefined =>
  shownIn(exception, show, exception.amountRefunded)

const renderException = (exception: OperatorException, show: ShowAmount): string =>
  `${exception.detectedAt}  ${exception.resolution ?? "open"}  ${exception.kind}  ${show(exception, exception)}  ` +
  `${exception.chain}  ${exception.txHash ?? "transaction unknown"}  ${exception.id}` +
  (exception.uncorroborated === true ? "  not yet corroborated: no second provider has it" : "") +
  (exception.from === undefined ? "" : `  from ${exception.from}`) +
  (exception.path === undefined ? "" : `  at ${exception.path}`) +
  (exception.amountRefunded === undefined ? "" : `  after ${sentBackOf(exception, show)} that were sent back`) +
  (exception.resolutionTxHash === undefined ? "" : `  by ${exception.resolutionTxHash}`) +
  (exception.note === undefined ? "" : `  (${exception.note})`)

const amountFields = new Set(["amount", "amountReceived", "amountRemaining", "received", "refunded", "kept"])

const renderStory = (story: Story, show: ShowAmount): string => {
  const { deliveries, events, exceptions, payment, receipts, totals, transitions } = story
  const { mode } = payment
  return [
    ...Object.entries(payment).map(([key, value]) => {
      const text = typeof value === "string" ? value : JSON.stringify(value)
      return `${key}: ${amountFields.has(key) ? shownIn(payment, show, text) : text}`
    }),
    ...title("receipts", [
      ...(story.olderReceipts === 0 ? [] : [`${story.olderReceipts} older ones: --limit shows more`]),
      ...receipts.map(
        (receipt) =>
          `${receipt.blockTime}  ${show({ ...receipt, mode }, receipt)}  ${receipt.txHash ?? "transaction unknown"}  ` +
          `block ${receipt.blockNumber}${evidenceOf(receipt)}`
      )
    ]),
    ...(totals.length === 0
      ? []
      : title(
          "not credited, too small or too many",
          totals.map((one) => `${one.transfers} transfers  ${show({ ...one, mode }, one)}  ${one.chain}`)
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

const show = commandOf(showPayment, { print: withAmounts(renderStory) })

const cancel = commandOf(cancelOpenPayment, { print: ({ id, status }) => `${id} is ${status}: it was cancelled` })

const renderOpen = (open: ReadonlyArray<OperatorException>, show: ShowAmount): string =>
  table(
    [
      ...["ID", "OPENED", "KIND", "PAYMENT", "REFERENCE", "MODE", "CHAIN", "AMOUNT"],
      ...["SENT BACK", "TRANSACTION", "FROM", "ADDRESS"]
    ],
    open.map((exception) => [
      exception.id,
      exception.detectedAt,
      exception.kind,
      exception.payment ?? "lost",
      exception.merchantRef ?? "",
      exception.mode,
      exception.chain,
      show(exception, exception),
      sentBackOf(exception, show) ?? "",
      `${exception.txHash ?? "unknown"}${exception.uncorroborated === true ? " (not yet corroborated)" : ""}`,
      exception.from ?? "",
      exception.address
    ])
  )

const exceptions = commandOf(listExceptions, { print: withAmounts(renderOpen), explain: moreAfter })

const renderDecision = ({ exceptions, payment }: DecisionView, show: ShowAmount): string =>
  [
    ...(payment === undefined ? [] : [`${payment.id} is ${payment.status}`]),
    ...title(
      "exceptions",
      exceptions.map((exception) => renderException(exception, show))
    )
  ].join("\n")

const accept = commandOf(acceptMoney, { print: withAmounts(renderDecision) })

const refundLine = (refund: RefundView["refund"], show: ShowAmount): string =>
  [refund.createdAt, refund.status, refund.id, show(refund, refund), refund.chain, refund.payment ?? "payment lost"]
    .concat(refund.merchantRef ?? [], refund.txHash ?? "no transaction", refund.to ?? [])
    .concat(refund.problem ?? [], refund.reason ?? [])
    .join("  ")

const renderRefund = ({ refund, ...decision }: RefundView, show: ShowAmount): string =>
  [`refund: ${refundLine(refund, show)}`, renderDecision(decision, show)].join("\n")

const refunded = commandOf(refundMoney, { print: withAmounts(renderRefund) })

const allRefunds = commandOf(listRefunds, {
  print: withAmounts((listed, show) => listed.map((refund) => refundLine(refund, show)).join("\n")),
  explain: moreAfter
})
const drop = commandOf(dropUnmade, { print: withAmounts(refundLine) })

/** `tilld refunds`: what goes back to customers. */
export const refundsCommand = Command.make("refunds").pipe(
  Command.withDescription("Refunds"),
  Command.withSubcommands([allRefunds, drop])
)

const abandon = commandOf(abandonPayments, {
  print: ({ abandoned, chain, givenUp, mode, token }) =>
    `${abandoned} open ${token === undefined ? "" : `${token} `}payments on ${chain}.${mode} have failed` +
    (givenUp === 0 ? "" : `\n${givenUp} transfers there that no second provider has count no more`)
})

/** `tilld payments`: looks at payments, and decides on their exceptions. */
export const paymentsCommand = Command.make("payments").pipe(
  Command.withDescription("Payments"),
  Command.withSubcommands([list, show, cancel, exceptions, accept, refunded, abandon])
)
