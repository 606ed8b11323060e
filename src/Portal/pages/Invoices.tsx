/** Invoices: prices that customers choose how to pay. An open one can be cancelled. */
import { Effect, Either, Schema } from "effect"
import { chainTraits } from "../../Domain/Chain.ts"
import { isToken } from "../../Domain/Currency.ts"
import { type Invoice, InvoiceStatus, type InvoiceWithPayments, pageOfInvoice } from "../../Domain/Invoice.ts"
import { decimalsOfPayment, type Payment } from "../../Domain/Payment.ts"
import { Invoices } from "../../Invoices.ts"
import { audited } from "../../Operations/auditLog.ts"
import { seeOther } from "../../Pages/reply.tsx"
import { byId as quoteById } from "../../Quotes/QuotesRepo.ts"
import type { Secrets } from "../../Secrets.ts"
import { Settings } from "../../Settings.ts"
import { Reader, type Writer } from "../../Sql.ts"
import { aboutOne, actOn, confirmation, framedReply, listed } from "../answers.tsx"
import { blank, Chips, type FormState } from "../components/Form.tsx"
import { CopyText, Facts, fiatText, Money, Notice, Status, Table, Time, Unplaced } from "../components/values.tsx"
import { afterDone, formRoute, type PortalHandler, type PortalRoute, pageRoute, pathOf } from "../route.ts"
import { givenOf, mayAs, type Viewer, withQuery } from "../Viewer.ts"

const section = "/invoices"
const isStatus = Schema.is(InvoiceStatus)

const priceOf = ({ price: { amount, currency } }: Invoice): string =>
  isToken(currency) ? `${amount} ${currency}` : fiatText(amount, currency)

const assetOf = ({ chain, currency }: Pick<Payment, "chain" | "currency">): string =>
  `${currency} on ${chainTraits[chain].displayName}`

/** The payment that paid it, else that of the last choice. */
const chosenOf = ({ invoice, payments }: InvoiceWithPayments): Payment | undefined =>
  payments.find(({ status }) => status === "confirmed") ?? payments.find(({ id }) => id === invoice.payment)

const list: PortalHandler<Invoices | Secrets> = Effect.fnUntraced(function* (viewer, { query }) {
  const invoices = yield* Invoices
  const { status: wanted = "all" } = givenOf(query)
  const status = isStatus(wanted) ? wanted : undefined
  const path = pathOf(viewer, section)
  const page = yield* listed(viewer, {
    ...{ path: section, query, filters: { status }, placeOf: ({ invoice }: InvoiceWithPayments) => invoice },
    read: (after, limit) => invoices.list(viewer.owner, { status, after, limit })
  })
  return framedReply(
    viewer,
    {
      ...{ section, title: "Invoices", isLive: page.isFirst },
      action: mayAs(viewer.role, "admin") ? { href: pathOf(viewer, "/payments/new"), text: "New payment" } : undefined
    },
    <>
      <Chips
        label="Status"
        options={[["", "All"], ...InvoiceStatus.literals.map((one) => [one, one] as const)]}
        chosen={status ?? ""}
        hrefOf={(one) => withQuery(path, one === "" ? {} : { status: one })}
      />
      <Table
        caption="Invoices, newest first"
        columns={[
          { name: "Reference", cell: ({ invoice: { id, merchantRef } }) => merchantRef ?? id, wide: true },
          { name: "Price", cell: ({ invoice }) => priceOf(invoice), numeric: true },
          { name: "Status", cell: ({ invoice }) => <Status of={invoice.status} /> },
          {
            name: "Paid in",
            cell: (one) => {
              const chosen = chosenOf(one)
              return chosen === undefined ? "not chosen yet" : assetOf(chosen)
            }
          },
          { name: "Created", cell: ({ invoice }) => <Time at={invoice.createdAt} />, minor: true }
        ]}
        rows={page.rows}
        keyOf={({ invoice }) => invoice.id}
        hrefOf={({ invoice }) => `${path}/${invoice.id}`}
        empty={
          status === undefined
            ? "No invoice yet. An invoice is a price: the customer chooses token and network."
            : "No invoice has this status."
        }
      />
      {page.paging}
    </>,
    page.status
  )
})

const ofInvoice = aboutOne(section, "invoice", (viewer, id) =>
  Effect.flatMap(Invoices, (invoices) => invoices.get(viewer.owner, id))
)

const invoicePage = Effect.fnUntraced(function* (
  viewer: Viewer,
  found: InvoiceWithPayments,
  refused?: FormState,
  status = 200
) {
  const { invoice, payments } = found
  const { server } = yield* Settings
  const chosen = chosenOf(found)
  const quote = chosen?.quoteId === undefined ? undefined : yield* quoteById(yield* Reader, chosen.quoteId)
  const here = pathOf(viewer, `${section}/${invoice.id}`)
  const isOpen = invoice.status === "open" || invoice.status === "processing"
  const link = pageOfInvoice(invoice, server.publicUrl)
  return framedReply(
    viewer,
    {
      ...{ section, title: invoice.merchantRef ?? invoice.id, isLive: true },
      back: { href: pathOf(viewer, section), text: "Invoices" },
      action: isOpen && mayAs(viewer.role, "admin") ? { href: `${here}/cancel`, text: "Cancel" } : undefined
    },
    <>
      <Unplaced of={refused?.problems} />
      <Facts
        of={{
          Status: <Status of={invoice.status} />,
          Price: priceOf(invoice),
          Choice: chosen === undefined ? "not chosen yet" : assetOf(chosen),
          Rate: quote && `${quote.rate} ${quote.toCurrency} for 1 ${quote.fromCurrency}`,
          "May be paid in": invoice.choices.join(", "),
          Created: <Time at={invoice.createdAt} />,
          Expires: isOpen ? <Time at={invoice.expiresAt} /> : undefined,
          "Payment link": <CopyText text={link}>{isOpen ? <a href={link}>{link}</a> : link}</CopyText>
        }}
      />
      {payments.length > 1 ? (
        <Notice tone="warning">
          The customer chose {payments.length} times. Money that comes for a former choice is an exception of that
          payment.
        </Notice>
      ) : null}
      <Table
        caption="Its payments, oldest first"
        columns={[
          { name: "Reference", cell: ({ merchantRef }) => merchantRef, wide: true },
          { name: "Paid in", cell: assetOf },
          {
            name: "Amount",
            cell: (payment) => (
              <Money amount={payment.amount} currency={payment.currency} decimals={decimalsOfPayment(payment)} />
            ),
            numeric: true
          },
          { name: "Status", cell: (payment) => <Status of={payment.failureReason ?? payment.status} /> }
        ]}
        rows={payments}
        keyOf={({ id }) => id}
        hrefOf={({ id }) => pathOf(viewer, `/payments/${id}`)}
        empty="Nobody has chosen yet what to pay in."
      />
    </>,
    status
  )
})

const showOne = ofInvoice((viewer, found) => invoicePage(viewer, found))

const confirmCancel = ofInvoice((viewer, { invoice: { id, merchantRef = id } }) => {
  const back = `${section}/${id}`
  return confirmation(
    viewer,
    { section, title: "Cancel this invoice?", to: `${back}/cancel`, submit: "Cancel the invoice", back },
    <p>
      {merchantRef} ends now, with its open payment. Money that has come for that, or still comes, becomes an exception.
      This cannot be undone.
    </p>
  )
})

type Services = Invoices | Reader | Settings

const cancel = ofInvoice<Services | Writer>((viewer, found) =>
  Effect.flatMap(Invoices, (invoices) => {
    const { id } = found.invoice
    return actOn(
      viewer,
      Either.right(id),
      (_, { actor }) =>
        audited(actor, { act: "invoices cancel", detail: { id } }, () => invoices.cancel(viewer.owner, id)),
      {
        done: () => seeOther(afterDone(viewer, `${section}/${id}`, "ended")),
        refused: (problems) => invoicePage(viewer, found, { ...blank("cancel"), problems }, 409)
      }
    )
  })
)

export const invoiceRoutes: ReadonlyArray<PortalRoute<Services | Secrets | Writer>> = [
  pageRoute(section, "viewer", list),
  pageRoute(`${section}/:id`, "viewer", showOne),
  pageRoute(`${section}/:id/cancel`, "admin", confirmCancel),
  formRoute(`${section}/:id/cancel`, "admin", cancel, { when: "live", to: "cancel an invoice" })
]
