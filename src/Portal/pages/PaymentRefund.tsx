/** Records a refund of a payment, names its transaction, or drops it. Each needs a fresh proof of identity. */
import { Effect, Either } from "effect"
import type { Settlement } from "../../Chains/ledger/SettlementTag.ts"
import type { Chains } from "../../Chains.ts"
import { decimalsOn } from "../../Domain/Currency.ts"
import type { Payment } from "../../Domain/Payment.ts"
import { seeOther } from "../../Pages/reply.tsx"
import { NameRefundBody, RefundBody } from "../../Payments/decisions/Api.ts"
import { dropOwnRefund, nameOwnRefund, refundPayment } from "../../Payments/decisions/decide.ts"
import { ownRefund } from "../../Payments/decisions/refund.ts"
import { byOwner } from "../../Payments/PaymentsRepo.ts"
import type { Payments } from "../../Payments.ts"
import { Settings } from "../../Settings.ts"
import { Reader, type Writer } from "../../Sql.ts"
import { actOn } from "../act.ts"
import { bodyOfForm } from "../components/amountField.ts"
import { blank, type FormState, TextArea, TextField } from "../components/Form.tsx"
import { aboutOne, framedReply } from "../framedReply.tsx"
import { givenOf } from "../query.ts"
import { afterDone, type Done, formRoute, type PortalRoute, pathOf, proofTo } from "../route.ts"
import type { Viewer } from "../Viewer.ts"
import { RefundFields, sendItYourself } from "./decisionForms.tsx"
import { paymentPage } from "./Payment.tsx"

const section = "/payments"

const page = (viewer: Viewer, { currency, id, merchantRef }: Payment, form: FormState, status = 200) => {
  const here = pathOf(viewer, `/payments/${id}`)
  return framedReply(
    viewer,
    { section, title: "Record a refund" },
    <>
      <p>
        What goes back of {merchantRef} counts no more: while it is open, it asks for the money again; once it is
        confirmed, it stays so. Send it {sendItYourself}
      </p>
      <p>
        Or name the receiver, and no transaction: the operator’s <code>tilld sweep plan --refund</code> sends it there (
        <a href="/guide/collect">how</a>).
      </p>
      <RefundFields
        of={form}
        action={`${here}/refund`}
        csrf={viewer.csrf}
        amountHint={`How much goes back, in ${currency}: of open exceptions first, then of what counts.`}
      >
        <TextField name="to" hint="The address that gets it (optional)." />
        <TextArea
          name="reason"
          label="Note (optional)"
          hint="Kept with the refund, and shown to everybody who sees the payment."
          rows={2}
        />
      </RefundFields>
      <p>
        <a href={here}>Back to the payment</a>
      </p>
    </>,
    status
  )
}

const ofPayment = aboutOne(section, "payment", (viewer, id) =>
  Effect.flatMap(Reader, (reader) => byOwner(reader, viewer.owner, id))
)

/** What an account has, has a payment. */
const ofRefund = aboutOne(section, "refund", (viewer, id) =>
  Effect.flatMap(Reader, (reader) => ownRefund(reader, viewer.owner, id))
)

const donePage = (viewer: Viewer, payment: string, done: Done) =>
  seeOther(afterDone(viewer, `${section}/${payment}`, done))

const refund = ofPayment<Settings | Settlement | Writer>((viewer, payment, form) =>
  Effect.flatMap(Settings, ({ chains }) => {
    const { chain, currency, id } = payment
    // Named, since the amount was typed in this currency: money of another one is sent back on its exception's page.
    const fields = { ...givenOf(form), chain, currency }
    return actOn(
      viewer,
      bodyOfForm(RefundBody, fields, decimalsOn(chains, payment, currency) ?? 0),
      (body, { actor }) => refundPayment(actor, viewer.owner, id, body),
      {
        done: () => donePage(viewer, id, "refunded"),
        refused: (problems, status) => page(viewer, payment, { id: "refund", typed: form, problems }, status)
      }
    )
  })
)

type Showing = Chains | Payments | Reader | Settings

/** The payment's page, with what is wrong with a form of it. */
const refusedOn =
  (viewer: Viewer, payment: string, id: string, form: URLSearchParams) =>
  (problems: FormState["problems"], status: number) =>
    paymentPage(viewer, payment, { id, typed: form, problems }, status)

const name = ofRefund<Showing | Settlement | Writer>((viewer, { id, payment = "" }, form) =>
  actOn(
    viewer,
    bodyOfForm(NameRefundBody, givenOf(form), 0),
    ({ txHash }, { actor }) => nameOwnRefund(actor, viewer.owner, id, txHash),
    { done: () => donePage(viewer, payment, "named"), refused: refusedOn(viewer, payment, id, form) }
  )
)

const drop = ofRefund<Showing | Settlement | Writer>((viewer, { id, payment = "" }, form) =>
  actOn(viewer, Either.right(id), (_, { actor }) => dropOwnRefund(actor, viewer.owner, id), {
    done: () => donePage(viewer, payment, "dropped"),
    refused: refusedOn(viewer, payment, id, form)
  })
)

export const paymentRefundRoutes: ReadonlyArray<PortalRoute<Showing | Settlement | Writer>> = [
  {
    ...{ method: "GET", path: "/payments/:id/refund", role: "admin" },
    handle: ofPayment((viewer, payment) => Effect.succeed(page(viewer, payment, blank("refund"))))
  },
  formRoute("/payments/:id/refund", "admin", refund, proofTo("record a refund")),
  formRoute("/refunds/:id", "admin", name, proofTo("name the transaction of a refund")),
  formRoute("/refunds/:id/drop", "admin", drop, proofTo("drop a refund"))
]
