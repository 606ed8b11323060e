/** Reads an invoice as plugins see it, and tells their endpoints of its changes. */
import { Effect, Layer } from "effect"
import { formatUnits, parseUnits } from "viem"
import { decimalsOf } from "../Domain/Currency.ts"
import { eventId } from "../Domain/Ids.ts"
import { choiceName, type InvoiceWithPayments } from "../Domain/Invoice.ts"
import { decimalsOfPayment, isEnded, type Payment } from "../Domain/Payment.ts"
import { storeIdOf } from "../Domain/Plugin.ts"
import { type PluginEvent, PluginEvents } from "../Events/Outbox.ts"
import * as Invoices from "../Payments/InvoicesRepo.ts"
import * as Payments from "../Payments/PaymentsRepo.ts"
import { shownMoney } from "../Payments/shownMoney.ts"
import { Settings, type SettingsShape } from "../Settings.ts"
import { type Db, Tx } from "../Sql.ts"
import { messagesOf, type PluginMessage, toldAfter } from "./messages.ts"
import * as Repo from "./PluginInvoicesRepo.ts"
import { type Money, type PluginStanding, type PluginTransfer, paidOf, pluginStandingOf } from "./status.ts"

/** How plugins name a token on a network: `USDC-BASE`. */
export const methodOf = (chosen: Parameters<typeof choiceName>[0]): string => choiceName(chosen).toUpperCase()

const unixSeconds = (millis: number): number => Math.floor(millis / 1000)

/** An invoice that a plugin made, with what it asked for and how it stands. */
export interface ReadInvoice extends InvoiceWithPayments {
  readonly plugin: Repo.PluginInvoice
  readonly standing: PluginStanding
}

/** Undefined where no plugin made the invoice. */
export const readInvoice = Effect.fnUntraced(function* (db: Db, { chains }: Pick<SettingsShape, "chains">, id: string) {
  const plugin = yield* Repo.byId(db, id)
  const invoice = plugin && (yield* Invoices.byId(db, id))
  if (plugin === undefined || invoice === undefined) return undefined
  const payments = yield* Payments.ofInvoice(db, invoice.id)
  const money = new Map<string, Money>()
  for (const payment of payments) money.set(payment.id, yield* shownMoney(db, payment.id))
  const nothing: Money = { receipts: [], exceptions: [] }
  const needed = ({ chain, mode }: Payment) =>
    chains.find((one) => one.chain === chain && one.mode === mode)?.confirmations ?? Number.POSITIVE_INFINITY
  const standing = pluginStandingOf({ invoice, payments }, ({ id }) => money.get(id) ?? nothing, needed)
  return { plugin, invoice, payments, standing } satisfies ReadInvoice
})

/** A transfer as plugins see it. */
export const transferView = (payment: Payment, { amount, at, id, status }: PluginTransfer) => ({
  ...{ id, receivedDate: at, value: formatUnits(amount, decimalsOfPayment(payment)), fee: "0" },
  ...{ status, destination: payment.address }
})

/** What is paid of the price, a decimal in its currency, rounded down. */
const paidAmountOf = ({ invoice: { price }, standing }: ReadInvoice): string => {
  const decimals = decimalsOf[price.currency]
  const { payment } = standing
  const units = payment === undefined ? 0n : (parseUnits(price.amount, decimals) * paidOf(standing)) / payment.amount
  return formatUnits(units, decimals)
}

/** How long money that comes too late is still told of, seconds. */
const monitored = 86_400

/** The statuses that a person may give it now. */
export const markable = ({ invoice: { status }, standing }: ReadInvoice): ReadonlyArray<"Settled" | "Invalid"> => [
  ...(status !== "paid" && (standing.transfers.length > 0 || status === "failed") ? (["Settled"] as const) : []),
  ...(status === "open" || status === "processing" ? (["Invalid"] as const) : [])
]

/** The invoice object of this API. */
export const invoiceView = (read: ReadInvoice, publicUrl: string) => {
  const { invoice, plugin, standing } = read
  const expirationTime = unixSeconds(invoice.expiresAt)
  return {
    id: invoice.id,
    storeId: storeIdOf(invoice),
    amount: invoice.price.amount,
    paidAmount: paidAmountOf(read),
    currency: invoice.price.currency,
    type: "Standard",
    checkoutLink: `${publicUrl}/i/${invoice.id}`,
    createdTime: unixSeconds(invoice.createdAt),
    expirationTime,
    monitoringExpiration: expirationTime + monitored,
    status: standing.status,
    additionalStatus: standing.additional,
    availableStatusesForManualMarking: markable(read),
    archived: false,
    metadata: plugin.asked.metadata,
    checkout: { ...plugin.asked.checkout, paymentMethods: invoice.choices.map((choice) => choice.toUpperCase()) },
    receipt: plugin.asked.receipt
  }
}

const messageBody = (
  { invoice, plugin, standing }: ReadInvoice,
  { flags, kind, transfer }: PluginMessage,
  at: number
) => {
  const { payment } = standing
  const paid =
    payment === undefined || transfer === undefined
      ? {}
      : { paymentMethodId: methodOf(payment), payment: transferView(payment, transfer) }
  const of = { storeId: storeIdOf(invoice), invoiceId: invoice.id, metadata: plugin.asked.metadata }
  return { type: kind, timestamp: unixSeconds(at), ...of, ...flags, ...paid }
}

/** What `PluginEvents` is here. */
export const pluginEventsLayer = Layer.effect(
  PluginEvents,
  Effect.map(Settings, (settings) => ({
    awaited: (db: Db) => Repo.awaiting(db, 100),
    due: Effect.fnUntraced(function* (id, at) {
      const read = yield* readInvoice(yield* Tx, settings, id)
      if (read === undefined) return []
      const { plugin, standing } = read
      const messages = messagesOf(plugin.told, standing)
      const told = toldAfter(plugin.told, standing, messages, at)
      const isOver = standing.payment === undefined || isEnded(standing.payment.status)
      const isAwaiting = isOver && standing.transfers.some(({ status }) => status === "Processing")
      if (JSON.stringify(told) !== JSON.stringify(plugin.told)) yield* Repo.setTold(plugin.id, told, isAwaiting)
      const { account, mode } = plugin
      return messages.map((message, i): PluginEvent => {
        const ordinal = told.count - messages.length + i
        const { kind } = message
        const event = { account, mode, invoice: id, kind, body: messageBody(read, message, told.at) }
        return { ...event, id: eventId(id, kind, ordinal) }
      })
    })
  }))
)
