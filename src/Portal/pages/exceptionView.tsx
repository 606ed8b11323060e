/** What exceptions look like, in their list, in a payment and by themselves. */
import { decimalsOn } from "../../Domain/Currency.ts"
import { type ExceptionKind, type PaymentException, walletPathOf } from "../../Domain/Exception.ts"
import { exceptionDetails } from "../../Domain/ExceptionObject.ts"
import type { PaymentId } from "../../Domain/Ids.ts"
import type { Payment } from "../../Domain/Payment.ts"
import type { SettingsShape } from "../../Settings.ts"
import { type Column, Facts } from "../components/Table.tsx"
import { Chain, Money, OnChain, onChain, Status, Time } from "../components/values.tsx"
import { pathOf } from "../route.ts"
import type { Viewer } from "../Viewer.ts"

/** What each kind means, in a sentence. */
export const kindTexts: Readonly<Record<ExceptionKind, string>> = {
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

export const ExceptionFacts = ({
  chains,
  of,
  payment,
  viewer
}: {
  readonly of: PaymentException
  readonly payment: Payment | undefined
  readonly chains: Chains
  readonly viewer: Viewer
}) => {
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
