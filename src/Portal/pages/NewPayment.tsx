/** A payment made by hand, for a link to send. */
import { Effect, Either, Schema } from "effect"
import { audited } from "../../Auth/auditLog.ts"
import { ApiError, type FieldProblem, invalid, statusOf } from "../../Domain/ApiError.ts"
import { decimalsOn } from "../../Domain/amountDecimals.ts"
import type { Mode } from "../../Domain/Chain.ts"
import type { CreatePayment } from "../../Domain/CreatePayment.ts"
import { nativeToken, PaymentCurrency } from "../../Domain/Currency.ts"
import { problemsOf } from "../../Http/validationProblems.ts"
import { seeOther } from "../../Pages/reply.tsx"
import { CreatePaymentBody } from "../../Payments/Api.ts"
import { creationRefusal } from "../../Payments/Http.ts"
import { type CreateError, Payments } from "../../Payments.ts"
import { Settings, type SettingsShape } from "../../Settings.ts"
import type { StoreUnavailable, Writer } from "../../Sql.ts"
import { amountRule, baseUnitsOf } from "../components/amountField.ts"
import { blank, type FormState, PostForm, Select, TextField } from "../components/Form.tsx"
import { Notice } from "../components/values.tsx"
import { framedReply } from "../framedReply.tsx"
import { givenOf } from "../query.ts"
import { problemsOfRefusal } from "../refusal.ts"
import { type PortalHandler, type PortalRoute, pathOf } from "../route.ts"
import type { Viewer } from "../Viewer.ts"

const section = "/payments"

type Chains = SettingsShape["chains"]

/** What can be asked for, as `base/USDC` with what people read. */
export const assetsOf = (chains: Chains, mode: Mode): ReadonlyArray<readonly [value: string, text: string]> =>
  chains
    .filter((one) => one.mode === mode)
    .flatMap(({ chain, tokens }) => {
      const here = new Set<string>([nativeToken(chain), ...tokens.map(({ symbol }) => symbol)])
      return PaymentCurrency.literals
        .filter((currency) => here.has(currency))
        .map((currency) => [`${chain}/${currency}`, `${currency} on ${chain}`] as const)
    })

const expiries = [
  ["900", "15 minutes"],
  ["3600", "1 hour"],
  ["21600", "6 hours"],
  ["86400", "24 hours"]
] as const

const labels = { merchantRef: "Reference", amount: "Amount", asset: "Currency and chain", expiresIn: "Time to pay" }

const page = (viewer: Viewer, chains: Chains, form: FormState, status = 200) => {
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
          submit="Make the payment"
          labels={labels}
        >
          <TextField
            of={form}
            name="merchantRef"
            label={labels.merchantRef}
            hint="Your own, such as the number of an invoice. It can be used once, for ever."
            required
          />
          <TextField
            of={form}
            name="amount"
            label={labels.amount}
            inputMode="decimal"
            hint="Such as 54.615517"
            required
          />
          <Select of={form} name="asset" label={labels.asset} options={assets} />
          <Select of={form} name="expiresIn" label={labels.expiresIn} options={expiries} />
        </PostForm>
      </div>
    ),
    status
  )
}

const show: PortalHandler<Settings> = (viewer) =>
  Effect.map(Settings, ({ chains }) => page(viewer, chains, blank("new", { expiresIn: "86400" })))

const { amount: Amount, chain, currency, expiresIn, merchantRef } = CreatePaymentBody.fields
const decode = Schema.decodeUnknownEither(Schema.Struct({ amount: Amount, chain, currency, expiresIn, merchantRef }), {
  errors: "all"
})

/** Chain and currency are one field here. */
const shownPath = ({ message, path }: FieldProblem): FieldProblem => ({
  path: path === "chain" || path === "currency" ? "asset" : path,
  message
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
    expiresIn: Number(given.expiresIn ?? "86400")
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
    return yield* audited(viewer.actor, { act: "payments create", detail }, (note) =>
      payments.create(viewer.owner, request, ({ payment }) => Effect.sync(() => note({ id: payment.id })))
    )
  }).pipe(
    Effect.map(({ payment }) => payment),
    Effect.mapError((error: CreateError): ApiError | StoreUnavailable =>
      error._tag === "StoreUnavailable" ? error : refusalOf(error)
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

const create: PortalHandler<Payments | Settings | Writer> = (viewer, { form }) =>
  Effect.gen(function* () {
    const { chains } = yield* Settings
    const given = givenOf(form)
    const refused = (error: ApiError) => {
      const problems = problemsOfRefusal(error).map(shownPath)
      return page(viewer, chains, { id: "new", typed: new URLSearchParams(given), problems }, statusOf[error.code])
    }
    const request = requestOf(given, chains, viewer.owner.mode)
    if (Either.isLeft(request)) return refused(invalid(request.left))
    return yield* createByHand(viewer, request.right).pipe(
      Effect.map(({ id }) => seeOther(pathOf(viewer, `/payments/${id}?done=created`))),
      Effect.catchTag("ApiError", (error) => Effect.succeed(refused(error)))
    )
  })

export const newPaymentRoutes: ReadonlyArray<PortalRoute<Payments | Settings | Writer>> = [
  { method: "GET", path: "/payments/new", role: "admin", handle: show },
  { method: "POST", path: "/payments/new", role: "admin", handle: create }
]
