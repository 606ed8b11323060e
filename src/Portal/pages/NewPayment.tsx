/** A payment made by hand, for a link to send. */
import { Effect, Either, Schema } from "effect"
import { shopOf } from "../../Auth/ShopsRepo.ts"
import { ApiError, type FieldProblem, invalid, statusOf } from "../../Domain/ApiError.ts"
import { chainTraits, type Mode } from "../../Domain/Chain.ts"
import { decimalsOn, nativeToken, type PaymentCurrency } from "../../Domain/Currency.ts"
import type { CreatePayment } from "../../Domain/Payment.ts"
import { problemsOf } from "../../Http/validationProblems.ts"
import { CreateInvoiceBody } from "../../Invoices/Api.ts"
import { invoiceRefusal } from "../../Invoices/Http.ts"
import { Invoices } from "../../Invoices.ts"
import { audited } from "../../Operations/auditLog.ts"
import { seeOther } from "../../Pages/reply.tsx"
import { CreatePaymentBody } from "../../Payments/Api.ts"
import { creationRefusal } from "../../Payments/Http.ts"
import { type CreateError, Payments } from "../../Payments.ts"
import { CreateQuoteBody } from "../../Quotes/Api.ts"
import { quotingRefusal } from "../../Quotes/Http.ts"
import { Quotes } from "../../Quotes.ts"
import { Settings, type SettingsShape } from "../../Settings.ts"
import { Reader, type StoreUnavailable, type Writer } from "../../Sql.ts"
import { amountRule, baseUnitsOf, decimalOf, problemsOfRefusal } from "../components/amountField.ts"
import { blank, type FormState, PostForm, Select, TextField } from "../components/Form.tsx"
import { Notice } from "../components/values.tsx"
import { framedReply } from "../framedReply.tsx"
import { givenOf } from "../query.ts"
import { afterDone, formRoute, type PortalHandler, type PortalRoute, pathOf } from "../route.ts"
import type { ProofNeeded, Viewer } from "../Viewer.ts"

const section = "/payments"

type Chains = SettingsShape["chains"]

/** The currencies in the order in which shops want them: what keeps its worth, first. */
const byUse = ["USDC", "USDT", "DAI", "ETH", "WBTC"] as const satisfies ReadonlyArray<PaymentCurrency>

/** What can be asked for, as `base/USDC` with what people read. */
export const assetsOf = (chains: Chains, mode: Mode): ReadonlyArray<readonly [value: string, text: string]> =>
  byUse.flatMap((currency) =>
    chains
      .filter((one) => one.mode === mode)
      .filter(({ chain, tokens }) => [nativeToken(chain), ...tokens.map(({ symbol }) => symbol)].includes(currency))
      .map(({ chain }) => [`${chain}/${currency}`, `${currency} on ${chainTraits[chain].displayName}`] as const)
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
        <PostForm
          of={form}
          action={pathOf(viewer, "/payments/new")}
          csrf={viewer.csrf}
          submit="Create the payment"
          labels={labels}
        >
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

const { amount: Amount, chain, currency, expiresIn, merchantRef } = CreatePaymentBody.fields
const decodeQuote = Schema.decodeUnknownEither(CreateQuoteBody, { errors: "all" })
const decode = Schema.decodeUnknownEither(Schema.Struct({ amount: Amount, chain, currency, expiresIn, merchantRef }), {
  errors: "all"
})

/** The fields here that stand for others of the API. */
const paths: Readonly<Record<string, string>> = {
  ...{ chain: "asset", currency: "asset", toCurrency: "asset", currencies: "asset", fromCurrency: "priced" },
  ...{ "price.amount": "amount", "price.currency": "priced" }
}

/** Chain and currency are one field here. */
const shownPath = ({ message, path }: FieldProblem): FieldProblem => ({
  path: paths[path] ?? path,
  message
})

const priceRule = "must be a number above zero such as 49.90, without a sign or a separator of thousands"

/** The amount of a quote for what was typed in fiat, with its id. */
const quotedFor = (viewer: Viewer, given: Record<string, string>) =>
  Effect.gen(function* () {
    const [chain, toCurrency] = (given.asset ?? "").split("/")
    const amount = decimalOf(given.amount ?? "")
    const asked = decodeQuote({ fromCurrency: given.priced, toCurrency, chain, amount })
    if (Either.isLeft(asked)) {
      const problems = problemsOf(asked.left, { kind: "field", known: [] })
      return yield* invalid(problems.map((each) => (each.path === "amount" ? { ...each, message: priceRule } : each)))
    }
    const { chargeAmount, id } = yield* (yield* Quotes)
      .create(viewer.owner, asked.right)
      .pipe(Effect.mapError((error) => (error._tag === "StoreUnavailable" ? error : quotingRefusal(error))))
    return { amount: chargeAmount, quoteId: id }
  })

/** What was typed, as the API takes it: the amount in base units. */
const requestOf = (
  given: Record<string, string>,
  chains: Chains,
  mode: Mode
): Either.Either<CreatePayment, ReadonlyArray<FieldProblem>> => {
  const [chain = "", currency = ""] = (given.asset ?? "").split("/")
  const decimals = decimalsOn(chains, { chain, mode }, currency) ?? 0
  const units = given.amount === undefined ? undefined : baseUnitsOf(given.amount, decimals)
  const problems = given.amount !== undefined && (units === undefined || units === "0")
  const { merchantRef } = given
  const decoded = decode({
    ...(merchantRef === undefined ? {} : { merchantRef }),
    ...(given.amount === undefined ? {} : { amount: problems ? "1" : units }),
    ...{ chain, currency },
    expiresIn: Number(given.expiresIn ?? "3600")
  })
  const wrongAmount = problems ? [{ path: "amount", message: amountRule(decimals) }] : []
  if (Either.isLeft(decoded)) {
    return Either.left([...problemsOf(decoded.left, { kind: "field", known: [] }).map(shownPath), ...wrongAmount])
  }
  return problems ? Either.left(wrongAmount) : Either.right({ ...decoded.right, metadata: undefined })
}

/** Makes a payment as the API does, with its row in the audit log. */
export const createByHand = (viewer: Viewer, request: CreatePayment) =>
  Effect.gen(function* () {
    const payments = yield* Payments
    const { amount, chain, currency, merchantRef } = request
    const detail = { merchantRef, amount: amount.toString(), currency, chain }
    return yield* audited(yield* viewer.actor, { act: "payments create", detail }, (note) =>
      payments.create(viewer.owner, request, ({ payment }) => Effect.sync(() => note({ id: payment.id })))
    )
  }).pipe(
    Effect.map(({ payment }) => payment),
    Effect.mapError((error: CreateError | ProofNeeded): ApiError | ProofNeeded | StoreUnavailable =>
      error._tag === "StoreUnavailable" || error._tag === "ProofNeeded" ? error : refusalOf(error)
    )
  )

const refusalOf = (error: Exclude<CreateError, StoreUnavailable>): ApiError =>
  error._tag === "DuplicateMerchantRef"
    ? new ApiError({
        code: "DUPLICATE_MERCHANT_REF",
        message: creationRefusal(error).message,
        details: [{ path: "merchantRef", message: `is the one of ${error.paymentId} already: choose another one` }]
      })
    : creationRefusal(error)

const { price } = CreateInvoiceBody.fields
const decodeInvoice = Schema.decodeUnknownEither(
  Schema.Struct({ price, expiresIn, merchantRef: Schema.optional(merchantRef) }),
  {
    errors: "all"
  }
)

/** Makes the invoice of a price for which the customer chooses what to pay in, with its row in the audit log. */
const invoiceByHand = Effect.fnUntraced(function* (viewer: Viewer, given: Record<string, string>) {
  const { amount = "", merchantRef, priced } = given
  const decoded = decodeInvoice({
    price: { amount: decimalOf(amount), currency: priced },
    ...{ merchantRef, expiresIn: Number(given.expiresIn ?? "3600") }
  })
  if (Either.isLeft(decoded)) return yield* invalid(problemsOf(decoded.left, { kind: "field", known: [] }))
  const invoices = yield* Invoices
  const detail = { merchantRef, price: `${amount} ${priced}` }
  const { invoice } = yield* audited(yield* viewer.actor, { act: "invoices create", detail }, (note) =>
    invoices.create(viewer.owner, decoded.right, (made) => Effect.sync(() => note({ id: made.invoice.id })))
  ).pipe(Effect.mapError((error) => (error._tag === "StoreUnavailable" ? error : invoiceRefusal(error))))
  return invoice
})

const create: PortalHandler<Invoices | Payments | Quotes | Settings | Writer> = (viewer, { form }) =>
  Effect.gen(function* () {
    const settings = yield* Settings
    const given = givenOf(form)
    const refused = (error: ApiError) => {
      const problems = problemsOfRefusal(error).map(shownPath)
      return page(viewer, settings, { id: "new", typed: new URLSearchParams(given), problems }, statusOf[error.code])
    }
    if (given.asset === undefined && given.priced !== undefined) {
      return yield* Effect.map(invoiceByHand(viewer, given), ({ id }) =>
        seeOther(afterDone(viewer, `/invoices/${id}`, "invoiced"))
      ).pipe(Effect.catchTag("ApiError", (error) => Effect.succeed(refused(error))))
    }
    // What is wrong besides is said before anything is priced.
    const isPriced = given.priced !== undefined && given.amount !== undefined
    const checked = requestOf(isPriced ? { ...given, amount: "1" } : given, settings.chains, viewer.owner.mode)
    if (Either.isLeft(checked)) return refused(invalid(checked.left))
    return yield* Effect.gen(function* () {
      const quoted = isPriced ? yield* quotedFor(viewer, given) : undefined
      const request =
        quoted === undefined ? checked : requestOf({ ...given, ...quoted }, settings.chains, viewer.owner.mode)
      if (Either.isLeft(request)) return refused(invalid(request.left))
      const quoteId = quoted === undefined ? {} : { quoteId: quoted.quoteId }
      const { id } = yield* createByHand(viewer, { ...request.right, ...quoteId })
      return seeOther(afterDone(viewer, `/payments/${id}`, "created"))
    }).pipe(Effect.catchTag("ApiError", (error) => Effect.succeed(refused(error))))
  })

export const newPaymentRoutes: ReadonlyArray<PortalRoute<Invoices | Payments | Quotes | Reader | Settings | Writer>> = [
  { method: "GET", path: "/payments/new", role: "admin", handle: show },
  formRoute("/payments/new", "admin", create)
]
