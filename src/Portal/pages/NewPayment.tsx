/** A payment made by hand, for a link to send: an amount of a token, or a price, which makes an invoice. */
import { Effect, Either } from "effect"
import { shopOf } from "../../Auth/shops.ts"
import type { Owner } from "../../Domain/Account.ts"
import { type ApiError, type FieldProblem, invalid } from "../../Domain/ApiError.ts"
import { chainTraits, type Mode } from "../../Domain/Chain.ts"
import { decimalsOn, type PaymentCurrency } from "../../Domain/Currency.ts"
import { choiceName } from "../../Domain/Invoice.ts"
import type { CreatePayment } from "../../Domain/Payment.ts"
import { CreateInvoiceBody } from "../../Invoices/Api.ts"
import { invoiceRefusal } from "../../Invoices/Http.ts"
import { type InvoiceError, Invoices } from "../../Invoices.ts"
import { type Actor, audited } from "../../Operations/auditLog.ts"
import { seeOther } from "../../Pages/reply.tsx"
import { CreatePaymentBody } from "../../Payments/Api.ts"
import { Payments, payableOn } from "../../Payments.ts"
import { Settings, type SettingsShape } from "../../Settings.ts"
import { Reader, type StoreUnavailable, type Writer } from "../../Sql.ts"
import { actOn, framedReply } from "../answers.tsx"
import { blank, type FormState, PostForm, Select, TextField } from "../components/Form.tsx"
import { Notice } from "../components/values.tsx"
import { afterDone, formRoute, type PortalHandler, type PortalRoute, pageRoute } from "../route.ts"
import { bodyOfForm, decimalOf, givenOf, type Viewer } from "../Viewer.ts"

const section = "/payments"

type Chains = SettingsShape["chains"]

/** The currencies in the order in which shops want them: what keeps its worth, first. */
const byUse = ["USDC", "USDT", "DAI", "ETH", "WBTC"] as const satisfies ReadonlyArray<PaymentCurrency>

/** What can be asked for, as `USDC-base` with what people read. */
const assetsOf = (chains: Chains, mode: Mode): ReadonlyArray<readonly [value: string, text: string]> =>
  byUse.flatMap((currency) =>
    chains
      .filter((one) => one.mode === mode)
      .flatMap(payableOn)
      .filter((one) => one.currency === currency)
      .map(
        ({ chain }) => [choiceName({ chain, currency }), `${currency} on ${chainTraits[chain].displayName}`] as const
      )
  )

const expiries = [
  ["900", "15 minutes"],
  ["3600", "1 hour"],
  ["21600", "6 hours"],
  ["86400", "24 hours"]
] as const

const labels = {
  merchantRef: "Reference",
  amount: "Amount",
  priced: "Priced in",
  asset: "To be paid in",
  expiresIn: "Time to pay"
}

const page = (viewer: Viewer, { chains, rates }: SettingsShape, form: FormState, status = 200) => {
  const assets = assetsOf(chains, viewer.owner.mode)
  return framedReply(
    viewer,
    { section, title: "New payment" },
    assets.length === 0 ? (
      <Notice tone="warning">
        No chain is configured in {viewer.owner.mode} mode, so that no payment can be made: the operator adds one.
      </Notice>
    ) : (
      <div class="card">
        <PostForm of={form} to="/payments/new" submit="Create the payment" labels={labels}>
          <TextField name="amount" inputMode="decimal" hint="Such as 49.90" required isStart />
          <Select
            name="priced"
            options={[
              ...rates.currencies.map((fiat) => [fiat, fiat] as const),
              ["", "the token that it is to be paid in"]
            ]}
          />
          <Select
            name="asset"
            hint="A price is converted at the rate of the moment."
            options={[["", "what the customer chooses"], ...assets]}
          />
          <TextField
            name="merchantRef"
            hint="Your own, such as the number of an order. Each reference can be used only once."
            required
          />
          <Select name="expiresIn" options={expiries} />
        </PostForm>
      </div>
    ),
    status
  )
}

const show: PortalHandler<Reader | Settings> = Effect.fnUntraced(function* (viewer) {
  const { currency = "USD" } = yield* shopOf(yield* Reader, viewer.owner.account)
  return page(viewer, yield* Settings, blank("new", { expiresIn: "3600", priced: currency }))
})

const PaymentByHand = CreatePaymentBody.pick("amount", "chain", "currency", "expiresIn", "merchantRef")
const InvoiceByHand = CreateInvoiceBody.pick("price", "currencies", "expiresIn", "merchantRef")

/** The fields here that stand for others of the API: token and network are one. */
const paths: Readonly<Record<string, string>> = {
  ...{ chain: "asset", currency: "asset", currencies: "asset", "currencies[0]": "asset" },
  ...{ "price.amount": "amount", "price.currency": "priced" }
}

const shownProblem = ({ message, path }: FieldProblem): FieldProblem => ({ path: paths[path] ?? path, message })

const priceRule = "must be a number above zero such as 49.90, without a sign or a separator of thousands"

/** Why nothing was made, for beside the fields. */
const refusalOf = (error: InvoiceError): ApiError | StoreUnavailable => {
  const taken = (id: string, way: string) =>
    invalid([{ path: "merchantRef", message: `is the one of ${id} already: choose another one${way}` }])
  switch (error._tag) {
    case "StoreUnavailable":
      return error
    case "DuplicateMerchantRef":
      return taken(error.paymentId, "")
    case "DuplicateInvoiceRef":
      return taken(error.invoiceId, ", or let invoices repeat one on the page Settings")
    default:
      return invoiceRefusal(error)
  }
}

/** Makes a payment as the API does, with its row in the audit log. */
const createByHand = Effect.fnUntraced(function* (owner: Owner, actor: Actor, request: CreatePayment) {
  const payments = yield* Payments
  const { amount, chain, currency, merchantRef } = request
  const detail = { merchantRef, amount: amount.toString(), currency, chain }
  const { payment } = yield* audited(actor, { act: "payments create", detail }, (note) =>
    payments.create(owner, request, ({ payment: { id } }) => Effect.sync(() => note({ id })))
  )
  return payment
}, Effect.mapError(refusalOf))

/** Makes the invoice of a price, with its row in the audit log. */
const invoiceByHand = Effect.fnUntraced(function* (owner: Owner, actor: Actor, request: typeof InvoiceByHand.Type) {
  const invoices = yield* Invoices
  const { merchantRef, price } = request
  const detail = { merchantRef, price: `${price.amount} ${price.currency}` }
  const { invoice } = yield* audited(actor, { act: "invoices create", detail }, (note) =>
    invoices.create(owner, request, ({ invoice: { id } }) => Effect.sync(() => note({ id })))
  )
  return invoice
}, Effect.mapError(refusalOf))

const create: PortalHandler<Invoices | Payments | Settings | Writer> = (viewer, { form }) =>
  Effect.flatMap(Settings, (settings) => {
    const { owner } = viewer
    const { amount, asset = "", priced, ...rest } = givenOf(form)
    const terms = { ...rest, expiresIn: Number(rest.expiresIn ?? "3600") }
    const made = (id: string) => seeOther(afterDone(viewer, `/payments/${id}`, "created"))
    const refused = (problems: ReadonlyArray<FieldProblem>, status: number) =>
      page(viewer, settings, { id: "new", typed: form, problems: problems.map(shownProblem) }, status)
    if (priced === undefined) {
      const [currency = "", chain = ""] = asset.split("-")
      const fields = { ...terms, chain, currency, ...(amount && { amount }) }
      const decimals = decimalsOn(settings.chains, { chain, mode: owner.mode }, currency) ?? 0
      const body = bodyOfForm(PaymentByHand, fields, decimals)
      return actOn(viewer, body, (request, { actor }) => createByHand(owner, actor, request), {
        done: ({ id }) => made(id),
        refused
      })
    }
    const price = { amount: decimalOf(amount ?? ""), currency: priced }
    const fields = { ...terms, price, ...(asset && { currencies: [asset] }) }
    const body = Either.mapLeft(bodyOfForm(InvoiceByHand, fields, 0), (problems) =>
      problems.map((each) => (each.path === "price.amount" ? { ...each, message: priceRule } : each))
    )
    return actOn(viewer, body, (request, { actor }) => invoiceByHand(owner, actor, request), {
      // One choice has its payment at once, unless it cannot be priced now.
      done: ({ id, payment }) =>
        payment === undefined ? seeOther(afterDone(viewer, `/invoices/${id}`, "invoiced")) : made(payment),
      refused
    })
  })

export const newPaymentRoutes: ReadonlyArray<PortalRoute<Invoices | Payments | Reader | Settings | Writer>> = [
  pageRoute("/payments/new", "admin", show),
  formRoute("/payments/new", "admin", create)
]
