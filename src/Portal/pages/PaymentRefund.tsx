/** Notes that money which counts for an open payment was sent back. It needs a fresh proof of identity. */
import { Effect, Either, Schema } from "effect"
import type { Settlement } from "../../Chains/ledger/SettlementTag.ts"
import { type FieldProblem, invalid, statusOf } from "../../Domain/ApiError.ts"
import { decimalsOn } from "../../Domain/Currency.ts"
import type { Payment } from "../../Domain/Payment.ts"
import { problemsOf } from "../../Http/validationProblems.ts"
import { seeOther } from "../../Pages/reply.tsx"
import { RefundBody } from "../../Payments/decisions/Api.ts"
import { refundPayment } from "../../Payments/decisions/decide.ts"
import { byOwner } from "../../Payments/PaymentsRepo.ts"
import { Settings } from "../../Settings.ts"
import { Reader, type Writer } from "../../Sql.ts"
import { amountRule, baseUnitsOf, problemsOfRefusal } from "../components/amountField.ts"
import { blank, type FormState, TextArea } from "../components/Form.tsx"
import { moneyText } from "../components/values.tsx"
import { framedReply, missing } from "../framedReply.tsx"
import { givenOf } from "../query.ts"
import { afterDone, formRoute, type PortalHandler, type PortalRoute, pathOf, proofTo } from "../route.ts"
import type { Viewer } from "../Viewer.ts"
import { RefundFields, sendItYourself } from "./decisionForms.tsx"

const section = "/payments"

const page = Effect.fnUntraced(function* (viewer: Viewer, payment: Payment, form: FormState, status = 200) {
  const { chains } = yield* Settings
  const { amountReceived = 0n, currency, id, merchantRef } = payment
  const received = moneyText(amountReceived, currency, decimalsOn(chains, payment, currency))
  const here = pathOf(viewer, `/payments/${id}`)
  return framedReply(
    viewer,
    { section, title: "Note a refund" },
    <>
      <p>
        {merchantRef} is open, and {received} have come for it. What you have sent back of that counts no more: the
        payment asks for it again. To end the payment, cancel it as well. Send the money {sendItYourself}
      </p>
      <RefundFields
        of={form}
        action={`${here}/refund`}
        csrf={viewer.csrf}
        amountHint={`What you sent back, in ${currency}.`}
        note={
          <TextArea
            of={form}
            name="note"
            label="Note (optional)"
            hint="Kept with the refund, and shown to everybody who sees the payment."
            rows={2}
          />
        }
      />
      <p>
        <a href={here}>Back to the payment</a>
      </p>
    </>,
    status
  )
})

const decode = Schema.decodeUnknownEither(RefundBody, { errors: "all" })

/** What was typed, as the API takes it: the amount in base units. */
const bodyOf = (
  { amount = "", note, txHash }: Record<string, string>,
  decimals: number
): Either.Either<typeof RefundBody.Type, ReadonlyArray<FieldProblem>> => {
  const units = baseUnitsOf(amount, decimals)
  const isAmount = units !== undefined && units !== "0"
  const decoded = decode({
    amount: isAmount ? units : "1",
    ...(note === undefined ? {} : { note }),
    ...(txHash === undefined ? {} : { txHash })
  })
  const problems = [
    ...(isAmount ? [] : [{ path: "amount", message: amountRule(decimals) }]),
    ...(Either.isRight(decoded) ? [] : problemsOf(decoded.left, { kind: "field", known: [] }))
  ]
  return Either.isRight(decoded) && isAmount ? Either.right(decoded.right) : Either.left(problems)
}

type Refunding = Reader | Settings | Settlement | Writer

const show: PortalHandler<Reader | Settings> = Effect.fnUntraced(function* (viewer, { params: { id = "" } }) {
  const payment = yield* byOwner(yield* Reader, viewer.owner, id)
  return payment === undefined ? missing(viewer, section, "payment") : yield* page(viewer, payment, blank("refund"))
})

const refund: PortalHandler<Refunding> = (viewer, { form, params: { id = "" } }) =>
  Effect.gen(function* () {
    const { chains } = yield* Settings
    const payment = yield* byOwner(yield* Reader, viewer.owner, id)
    if (payment === undefined) return missing(viewer, section, "payment")
    const given = givenOf(form)
    const body = bodyOf(given, decimalsOn(chains, payment, payment.currency) ?? 0)
    return yield* (
      Either.isLeft(body) ? invalid(body.left) : refundPayment(viewer.actor, viewer.owner, id, body.right)
    ).pipe(
      Effect.as(seeOther(afterDone(viewer, `/payments/${payment.id}`, "refunded"))),
      Effect.catchTag("ApiError", (error) =>
        page(
          viewer,
          payment,
          { id: "refund", typed: new URLSearchParams(given), problems: problemsOfRefusal(error) },
          statusOf[error.code]
        )
      )
    )
  })

export const paymentRefundRoutes: ReadonlyArray<PortalRoute<Refunding>> = [
  { method: "GET", path: "/payments/:id/refund", role: "admin", handle: show },
  formRoute("/payments/:id/refund", "admin", refund, proofTo("record a refund"))
]
