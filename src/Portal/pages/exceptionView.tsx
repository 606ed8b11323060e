/** What exceptions look like, in their list, in a payment and by themselves. */

import type { ComponentChildren } from "preact"
import { decimalsOn } from "../../Domain/Currency.ts"
import { type ExceptionKind, exceptionDetails, type PaymentException, walletPathOf } from "../../Domain/Exception.ts"
import type { PaymentId } from "../../Domain/Ids.ts"
import { decimalsOfPayment, type Payment } from "../../Domain/Payment.ts"
import type { SettingsShape } from "../../Settings.ts"
import {
  blank,
  Checks,
  type FormState,
  PostForm,
  type PostFormProps,
  TextArea,
  TextField
} from "../components/Form.tsx"
import { Chain, type Column, Facts, Money, moneyText, OnChain, onChain, Status, Time } from "../components/values.tsx"
import { pathOf } from "../route.ts"
import type { Viewer } from "../Viewer.ts"

/** What each kind means, in a sentence. */
const kindTexts: Readonly<Record<ExceptionKind, string>> = {
  overpaid: "More came than was asked for.",
  underpaid: "It came for a payment that failed or was cancelled.",
  late: "It was mined after the deadline.",
  wrong_token: "It is not the currency that was asked for.",
  wrong_chain: "It came on another chain than was asked for.",
  unattributed: "The balance grew, and no provider can name the transaction, or only one knows of it.",
  found_late: "It was on time, but was seen after the payment had ended: somebody paid and got nothing.",
  reorged: "The chain took back what had confirmed the payment: something may have been delivered for nothing.",
  unknown_payment: "It came to an address whose payment a lost copy of the database had."
}

/** The same behind an amount: "4.99 USDC too much". */
export const kindWords: Readonly<Record<ExceptionKind, string>> = {
  overpaid: "too much",
  underpaid: "for a payment that has ended",
  late: "too late",
  wrong_token: "in another currency",
  wrong_chain: "on another chain",
  unattributed: "of unknown origin",
  found_late: "in time, but seen too late",
  reorged: "taken back by the chain",
  unknown_payment: "for an unknown payment"
}

type Chains = SettingsShape["chains"]

export const chainIdOf = (chains: Chains, { chain, mode }: Pick<PaymentException, "chain" | "mode">) =>
  chains.find((one) => one.chain === chain && one.mode === mode)?.chainId

export const decimalsOfException = (chains: Chains, exception: PaymentException) =>
  decimalsOn(chains, exception, exception.currency)

export const ExceptionAmount = ({ chains, of }: { readonly of: PaymentException; readonly chains: Chains }) => (
  <Money amount={of.amount} currency={of.currency} decimals={decimalsOfException(chains, of)} />
)

/** The status of a payment; one that was cancelled, or of which a part has come, says so. */
export const PaymentState = ({
  of: { amount, amountReceived = 0n, failureReason, status }
}: {
  readonly of: Pick<Payment, "amount" | "amountReceived" | "failureReason" | "status">
}) => {
  if (failureReason === "cancelled") return <Status of="cancelled" />
  if (status !== "detecting") return <Status of={status} />
  return amountReceived < amount ? <Status of="part paid" tone="warning" /> : <Status of="confirming" tone="info" />
}

/** Whether an exception of a payment is open. */
export const OpenExceptions = ({ of }: { readonly of: ReadonlyArray<Pick<PaymentException, "status">> }) =>
  of.every(({ status }) => status !== "open") ? null : <Status of="needs action" tone="warning" />

/** @param referenceOf the reference of a payment */
export const exceptionColumns = (
  viewer: Viewer,
  chains: Chains,
  referenceOf: (payment: PaymentId) => string | undefined
): ReadonlyArray<Column<PaymentException>> => [
  { name: "What", cell: ({ kind }) => kind.replaceAll("_", " ") },
  { name: "Status", cell: ({ status }) => <Status of={status} /> },
  { name: "Amount", numeric: true, cell: (exception) => <ExceptionAmount of={exception} chains={chains} /> },
  { name: "Chain", cell: ({ chain }) => <Chain of={chain} /> },
  {
    name: "Payment",
    cell: ({ payment }) =>
      payment === undefined ? null : (
        <a href={pathOf(viewer, `/payments/${payment}`)}>{referenceOf(payment) ?? payment}</a>
      )
  },
  { name: "Created", cell: ({ openedAt }) => <Time at={openedAt} /> }
]

const refundText = (exception: PaymentException, chains: Chains) =>
  exception.refunds.length === 0 ? undefined : (
    <ul>
      {exception.refunds.map(({ amount, at, id, note, status, txHash }) => (
        <li key={id}>
          <Money amount={amount} currency={exception.currency} decimals={decimalsOfException(chains, exception)} />,{" "}
          <Time at={at} /> <Status of={status} />
          {txHash === undefined ? null : (
            <>
              {" "}
              in <OnChain kind="tx" value={txHash} chainId={chainIdOf(chains, exception)} short />
            </>
          )}
          {note === undefined ? null : `: ${note}`}
        </li>
      ))}
    </ul>
  )

interface ExceptionProps {
  readonly of: PaymentException
  /** Whose money it is. */
  readonly payment: Payment | undefined
  readonly chains: Chains
}

export const ExceptionFacts = ({ chains, of, payment, viewer }: ExceptionProps & { readonly viewer: Viewer }) => {
  const { address, from, uncorroborated } = exceptionDetails(of)
  const chainId = chainIdOf(chains, of)
  const isPartlyBack = of.status !== "refunded" && of.sentBack > 0n
  const money = (amount: bigint) => <ExceptionAmount of={{ ...of, amount }} chains={chains} />
  return (
    <section class="card" aria-label="What came">
      <p>{kindTexts[of.kind]}</p>
      {uncorroborated === true ? (
        <p>
          It is not yet corroborated: only one provider has the transaction. Wait before you decide: once a second one
          has it, another exception takes its place, and once it is refuted there is none.
        </p>
      ) : null}
      <Facts
        of={{
          Amount: isPartlyBack ? money(of.amount + of.sentBack) : money(of.amount),
          [of.status === "open" ? "Still open" : "Accepted"]: isPartlyBack ? money(of.amount) : undefined,
          Status: <Status of={of.status} />,
          Chain: <Chain of={of.chain} />,
          Payment:
            payment === undefined ? undefined : (
              <a href={pathOf(viewer, `/payments/${payment.id}`)}>{payment.merchantRef}</a>
            ),
          Transaction: onChain("tx", of.txHash, chainId),
          "Sent by": onChain("address", from, chainId),
          "Received at": onChain("address", address, chainId),
          "Path in the wallet": walletPathOf(of),
          Noticed: <Time at={of.openedAt} />,
          Closed: of.closedAt === undefined ? undefined : <Time at={of.closedAt} />,
          "Transaction of the decision": onChain("tx", of.decisionTx, chainId),
          // That of a refund is beside it.
          Note: of.refunds.some(({ note }) => note === of.note) ? undefined : of.note,
          "Sent back": refundText(of, chains)
        }}
      />
    </section>
  )
}

type Action = "accept" | "refund"

/** A form that was refused, to be shown again. */
export interface Refused {
  readonly action: Action
  readonly state: Omit<FormState, "id">
}

/** Of an open one. */
interface DecisionFormsProps extends ExceptionProps {
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
  const { of: exception } = props
  return (
    <Decision
      button={exception.kind === "reorged" ? "Do without it" : "Keep it"}
      isOpen={props.refused?.action === "accept"}
      follows={consequenceOf(props)}
    >
      <PostForm
        of={formOf(props, "accept")}
        to={`/exceptions/${exception.id}/accept`}
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
  amountHint,
  children,
  ...form
}: Pick<PostFormProps, "children" | "of" | "to"> & { readonly amountHint: string }) => (
  <PostForm {...form} submit="Record the refund" labels={decisionLabels}>
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
  const { chains, of: exception } = props
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
        to={`/exceptions/${exception.id}/refund`}
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
