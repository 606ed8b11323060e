import { Command } from "@effect/cli"
import { cancelOpenInvoice, listInvoices, type OperatorInvoice, showInvoice } from "../Invoices/invoiceOperations.ts"
import { table } from "./Output.ts"
import { commandOf, moreAfter } from "./operationCommand.ts"

const priceOf = ({ price }: OperatorInvoice): string => `${price.amount} ${price.currency}`

/** What the customer chose, as `USDC on base`. */
const choiceOf = ({ payment, payments }: OperatorInvoice): string => {
  const chosen = payments.find(({ id }) => id === payment)
  return chosen === undefined ? "" : `${chosen.currency} on ${chosen.chain}`
}

const described = (invoice: OperatorInvoice): string =>
  [
    `id: ${invoice.id}`,
    `account: ${invoice.account}, ${invoice.mode}`,
    `reference: ${invoice.merchantRef ?? "none"}`,
    `price: ${priceOf(invoice)}`,
    `status: ${invoice.status}`,
    `created: ${invoice.createdAt}`,
    `expires: ${invoice.expiresAt}`,
    `page: ${invoice.checkoutUrl}`,
    `may be paid in: ${invoice.currencies.join(", ")}`,
    invoice.payments.length === 0 ? "payments: none, nobody has chosen" : "payments, oldest first:",
    ...invoice.payments.map(
      ({ chain, currency, failureReason, id, status }) =>
        `  ${id}  ${currency} on ${chain}  ${[status, failureReason].filter(Boolean).join(", ")}`
    )
  ].join("\n")

const list = commandOf(listInvoices, {
  print: (invoices) =>
    table(
      ["ID", "MODE", "STATUS", "PRICE", "PAID IN", "CREATED", "REFERENCE"],
      invoices.map((invoice) => [
        invoice.id,
        invoice.mode,
        invoice.status,
        priceOf(invoice),
        choiceOf(invoice),
        invoice.createdAt,
        invoice.merchantRef ?? ""
      ])
    ),
  explain: moreAfter
})

const show = commandOf(showInvoice, { print: described })
const cancel = commandOf(cancelOpenInvoice, { print: ({ id, status }) => `${id} is ${status}` })

/** `tilld invoices`: prices that customers choose how to pay. */
export const invoicesCommand = Command.make("invoices").pipe(
  Command.withDescription("Look at invoices, and cancel them"),
  Command.withSubcommands([list, show, cancel])
)
