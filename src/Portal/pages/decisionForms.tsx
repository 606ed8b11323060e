/** The forms of a decision on an exception: to accept it, or to note that it was sent back. */
import type { ComponentChildren } from "preact"
import type { PaymentException } from "../../Domain/Exception.ts"
import { decimalsOfPayment, type Payment } from "../../Domain/Payment.ts"
import type { SettingsShape } from "../../Settings.ts"
import { blank, Checks, type FormState, PostForm, TextArea, TextField } from "../components/Form.tsx"
import { moneyText } from "../components/values.tsx"
import { pathOf } from "../route.ts"
import type { Viewer } from "../Viewer.ts"
import { decimalsOfException } from "./exceptionView.tsx"

type Action = "accept" | "refund"

/** A form that was refused, to be shown again. */
export interface Refused {
  readonly action: Action
  readonly state: Omit<FormState, "id">
}

export interface DecisionFormsProps {
  /** An open one. */
  readonly of: PaymentException
  /** Whose money it is. */
  readonly payment: Payment | undefined
  readonly chains: SettingsShape["chains"]
  readonly viewer: Viewer
  readonly refused?: Refused | undefined
}

export const decisionLabels = {
  txHash: "Transaction",
  amount: "Amount",
  to: "Receiver",
  note: "Note",
  reason: "Note",
  confirmed: "Confirmation"
}

/** What accepting an exception does, in amounts. */
const consequenceOf = ({ chains, of: exception, payment }: DecisionFormsProps): string => {
  const it = moneyText(exception.amount, exception.currency, decimalsOfException(chains, exception))
  if (exception.kind === "reorged") {
    return `You do without ${it}, which the chain took back. Name a transaction if another one has paid: only then is the payment confirmed.`
  }
  if (payment === undefined) return `You keep ${it}.`
  const asked = moneyText(payment.amount, payment.currency, decimalsOfPayment(payment))
  if (payment.status !== "confirmed") {
    return `You keep ${it}, and the payment, which asks for ${asked}, is confirmed with it. Its webhooks go out: deliver what was paid for.`
  }
  return exception.kind === "overpaid"
    ? `You keep ${it} on top of the ${asked} that were asked for. The payment is confirmed already, and stays as it is.`
    : `You keep ${it}. The payment of ${asked} is confirmed already, and stays so.`
}

const Note = () => (
  <TextArea
    name="note"
    label="Note (optional)"
    hint="Kept with the decision, and shown to everybody who sees the exception."
    rows={2}
  />
)

const formOf = ({ of: { id }, refused }: DecisionFormsProps, action: Action): FormState => {
  const form = blank(`${action}-${id}`)
  return refused?.action === action ? { ...form, ...refused.state } : form
}

interface DecisionProps {
  readonly button: string
  readonly isOpen: boolean
  readonly follows: ComponentChildren
  readonly children: ComponentChildren
}

/** A button with what follows of it, which opens its form. */
const Decision = ({ button, children, follows, isOpen }: DecisionProps) => (
  <div class="decision">
    <details open={isOpen}>
      <summary class="button">{button}</summary>
    </details>
    <p class="hint">{follows}</p>
    {children}
  </div>
)

const AcceptForm = (props: DecisionFormsProps) => {
  const { of: exception, viewer } = props
  return (
    <Decision
      button={exception.kind === "reorged" ? "Do without it" : "Keep it"}
      isOpen={props.refused?.action === "accept"}
      follows={consequenceOf(props)}
    >
      <PostForm
        of={formOf(props, "accept")}
        action={pathOf(viewer, `/exceptions/${exception.id}/accept`)}
        csrf={viewer.csrf}
        submit="Accept the money"
        labels={decisionLabels}
      >
        {exception.txHash === undefined || exception.kind === "reorged" ? (
          <TextField
            name="txHash"
            hint="The one that paid, where you know it: the chain must have it, with its confirmations."
          />
        ) : null}
        <Note />
        <Checks name="confirmed" options={[["yes", "Do this. The decision is final."]]} />
      </PostForm>
    </Decision>
  )
}

/** The form in which a refund is recorded. `amountHint`: what the amount may be; `children`: its other fields. */
export const RefundFields = ({
  action,
  amountHint,
  children,
  csrf,
  of
}: {
  readonly of: FormState
  readonly action: string
  readonly csrf: string
  readonly amountHint: string
  readonly children: ComponentChildren
}) => (
  <PostForm of={of} action={action} csrf={csrf} submit="Record the refund" labels={decisionLabels}>
    <TextField name="amount" inputMode="decimal" hint={amountHint} />
    <TextField
      name="txHash"
      hint="The one that sends it, which is looked up on the chain. It can be named later, on the payment’s page."
    />
    {children}
  </PostForm>
)

/** How money is sent back: not by tilld. */
export const sendItYourself =
  "with your own wallet: tilld holds no private key. Ask your customer for the address, since the sender may be an exchange."

const RefundForm = (props: DecisionFormsProps) => {
  const { chains, of: exception, viewer } = props
  const all = moneyText(exception.amount, exception.currency, decimalsOfException(chains, exception))
  return (
    <Decision
      button={`Send back ${all}`}
      isOpen={props.refused?.action === "refund"}
      follows={
        <>
          You send it {sendItYourself} The operator’s <code>tilld sweep plan --refund {exception.id}</code> sends it and
          records it: <a href="/guide/collect">how</a>.
        </>
      }
    >
      <RefundFields
        of={formOf(props, "refund")}
        action={pathOf(viewer, `/exceptions/${exception.id}/refund`)}
        csrf={viewer.csrf}
        amountHint={`Leave blank for all of it, ${all}.`}
      >
        <Note />
      </RefundFields>
    </Decision>
  )
}

export const DecisionForms = (props: DecisionFormsProps) => (
  <div class="cards no-print">
    {props.of.kind === "reorged" ? null : <RefundForm {...props} />}
    <AcceptForm {...props} />
  </div>
)
